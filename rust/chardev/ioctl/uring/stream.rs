// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Streams of events: a command that posts a completion for each batch of an EVD's events, which
//! lie in a buffer that the process has provided.

use super::{
    evd,
    order,
    Exchange,
    Issued,
    ABSOLUTE, //
};
use crate::{
    chardev::ioctl::{
        self,
        evd::{
            EventArray,
            TakenEvents, //
        },
        CallResult, //
    },
    dat::{
        evd::EvdAsyncWait,
        prelude::*, //
    },
    sys::{
        uring::{
            Command,
            RunResult,
            Task, //
        },
        wait::{
            Deadline,
            Wake, //
        },
    },
};
use core::task::Poll;
use kdapl_bindings as bindings;

/// Number of batches after which a stream lets other work run.
const BATCHES: u32 = 16;

/// A stream of an EVD's events.
struct EventStream {
    exchange: Exchange<bindings::kdapl_uring_stream>,
    waiting: EvdAsyncWait,
    deadline: Deadline,
    /// Group of the provided buffers.
    group: u16,
}

/// Result of a batch.
enum BatchResult {
    /// Events were posted, or another thread has taken them.
    Posted,
    /// The stream ends with this result.
    End(Result<i32>),
}

impl EventStream {
    /// Ends the stream with an answer of DAT.
    fn finish(&mut self, result: CallResult) -> Result<i32> {
        self.exchange
            .finish(order::dat_evd_wait, result)
            .map(|()| 0)
    }

    /// Ends the stream with an error of DAT.
    fn end(&mut self, error: DatError) -> Result<i32> {
        self.finish(Err(error.into()))
    }

    /// Posts a completion with queued events. Events that have no buffer stay in the queue.
    ///
    /// # Errors
    ///
    /// `ENOBUFS` without a buffer, `EINVAL` for a buffer without room for an event, `EFAULT` for a
    /// buffer or a message that cannot be written.
    fn post(&mut self, command: &Command<'_>) -> Result<BatchResult> {
        // The message reports a batch whose completion finds no room.
        self.exchange.may_write()?;
        let buffer = command.select(self.group)?;
        let size = self.exchange.message.event_size;
        let (address, length) = buffer.extent();
        let room = length.checked_div(size.into()).unwrap_or(0);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        if room == 0 {
            return Err(EINVAL);
        }
        let events = EventArray::new(address, room, size).map_err(|_| EFAULT)?;
        let TakenEvents { taken, .. } = evd::take_queued(self.waiting.evd(), &events)?;
        let id = buffer.id();
        let bytes = taken.wrapping_mul(size);
        if taken == 0 || buffer.post(bytes as usize) {
            return Ok(BatchResult::Posted);
        }
        let message = &mut self.exchange.message;
        (message.taken, message.buffer) = (taken, id);
        Ok(BatchResult::End(self.finish(Ok(()))))
    }
}

impl Task for EventStream {
    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.waiting.wake_by(waker)
    }

    fn run(&mut self, command: &Command<'_>, expired: bool) -> RunResult {
        for _ in 0..BATCHES {
            let mut again = false;
            match self.waiting.poll(&mut again) {
                Poll::Pending if expired => {
                    return RunResult::Done(self.end(Kind::TimeoutExpired.into()));
                }
                Poll::Pending if again => return RunResult::Yield,
                Poll::Pending => return RunResult::Wait,
                Poll::Ready(Err(error)) => return RunResult::Done(self.end(error)),
                Poll::Ready(Ok(())) => {}
            }
            match self.post(command) {
                Ok(BatchResult::Posted) => {}
                Ok(BatchResult::End(result)) => return RunResult::Done(result),
                Err(error) => return RunResult::Done(Err(error)),
            }
        }
        // A stream that always finds events ends, too.
        if expired {
            return RunResult::Done(self.end(Kind::TimeoutExpired.into()));
        }
        RunResult::Yield
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn refuse(&mut self, error: Error) -> Result<i32> {
        self.end(error.into())
    }
}

impl Issued<'_> {
    /// Begins a stream into the buffers of a group.
    pub(super) fn stream(&self, group: u16) -> Result<i32> {
        let mut exchange = Exchange::<bindings::kdapl_uring_stream>::new(self.argument);
        exchange.begin(ABSOLUTE)?;
        let message = &mut exchange.message;
        let deadline = ioctl::deadline(&message.hdr, message.timeout_ns);
        (message.taken, message.buffer) = (0, 0);
        EventArray::check_size(message.event_size)?;
        let waiting = evd::find(self.client, message.handle)
            .and_then(|evd| EvdAsyncWait::new(&evd, message.threshold));
        match waiting {
            Ok(waiting) => self.start(EventStream {
                exchange,
                waiting,
                deadline,
                group,
            }),
            Err(error) => {
                let result: CallResult = Err(error.into());
                exchange.finish(order::dat_evd_wait, result).map(|()| 0)
            }
        }
    }
}
