// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Streams of events: a command that posts a completion for each batch of an EVD's events, which
//! lie in a buffer that the process has provided.

use super::{
    evd,
    order,
    zero,
    Exchange,
    Issued,
    ABSOLUTE, //
};
use crate::{
    chardev::ioctl::{
        self,
        evd::{
            EventArray,
            Taken, //
        },
        CallResult, //
    },
    dat::{
        evd::Listening,
        prelude::*, //
    },
    sys::{
        uring::{
            Command,
            Progress,
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
struct Stream {
    exchange: Exchange<bindings::kdapl_evd_wait>,
    listening: Listening,
    deadline: Deadline,
    /// Group of the provided buffers.
    group: u16,
}

/// Result of a batch.
enum Batch {
    /// Events were posted, or another thread has taken them.
    Posted,
    /// The stream ends with this result.
    End(Result<i32>),
}

impl Stream {
    /// Ends the stream with a return code of DAT.
    fn finish(&mut self, error: DatError) -> Progress {
        let result: CallResult = Err(error.into());
        let answered = self.exchange.finish(order::dat_evd_wait, result);
        Progress::Done(answered.map(|()| 0))
    }

    /// Posts a completion with queued events. Events that have no buffer stay in the queue.
    fn post(&mut self, command: &Command<'_>) -> Batch {
        let buffer = match command.select(self.group) {
            Ok(buffer) => buffer,
            Err(error) => return Batch::End(Err(error)),
        };
        let size = self.exchange.message.event_size;
        let (address, length) = buffer.place();
        let room = length.checked_div(size.into()).unwrap_or(0);
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        if room == 0 {
            return Batch::End(Err(EINVAL));
        }
        let Ok(events) = EventArray::new(address, room, size) else {
            return Batch::End(Err(EFAULT));
        };
        let Taken { taken, .. } = evd::take_queued(self.listening.evd(), &events);
        let bytes = taken.wrapping_mul(size);
        if taken == 0 || buffer.post(bytes as usize) {
            return Batch::Posted;
        }
        // The last completion delivers the events.
        Batch::End(Ok(i32::try_from(bytes).unwrap_or(i32::MAX)))
    }
}

impl Task for Stream {
    fn listen(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.listening.listen(waker)
    }

    fn run(&mut self, command: &Command<'_>, expired: bool) -> Progress {
        for _ in 0..BATCHES {
            let mut again = false;
            match self.listening.look(&mut again) {
                Poll::Pending if expired => return self.finish(Kind::TimeoutExpired.into()),
                Poll::Pending if again => return Progress::Yield,
                Poll::Pending => return Progress::Wait,
                Poll::Ready(Err(error)) => return self.finish(error),
                Poll::Ready(Ok(())) => {}
            }
            if let Batch::End(result) = self.post(command) {
                return Progress::Done(result);
            }
        }
        Progress::Yield
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }
}

impl Issued<'_> {
    /// Begins a stream. The group of buffers takes the place of the message's array of events.
    pub(super) fn stream(&self, group: u16) -> Result<i32> {
        let mut exchange = Exchange::<bindings::kdapl_evd_wait>::begin(self.place, ABSOLUTE)?;
        let message = &mut exchange.message;
        let deadline = ioctl::deadline(&message.hdr, message.timeout_ns);
        zero(message.pad)?;
        zero(message.events)?;
        zero(message.max_events)?;
        (message.taken, message.nmore) = (0, 0);
        EventArray::check_size(message.event_size)?;
        let listening = evd::find(self.client, message.handle)
            .and_then(|evd| Listening::new(&evd, message.threshold));
        match listening {
            Ok(listening) => self.start(Stream {
                exchange,
                listening,
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
