// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that wait, as commands: `KDAPL_EVD_WAIT`, `KDAPL_EP_SUBMIT` and `KDAPL_CNO_WAIT`.

use super::{
    cno,
    dto,
    evd,
    order,
    Exchange,
    Issued,
    ABSOLUTE,
    FOR_AGENT, //
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
        cno::CnoAsyncWait,
        evd::EvdAsyncWait,
        prelude::*, //
    },
    model::code::Order,
    sys::{
        uapi::Message,
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

/// Wait of a call for a condition.
trait CommandWait: Send {
    /// Message of the call.
    type Message: Message + Send;

    /// Order of the call's arguments.
    const ORDER: &'static Order;

    /// Error of a wait whose time-out has passed.
    const TIMED_OUT: Kind;

    /// Lets events call `waker`.
    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result;

    /// Takes the awaited events or trigger into the message. Sets `again` if the caller has to poll
    /// again without a wake-up.
    fn poll(&mut self, message: &mut Self::Message, again: &mut bool) -> Poll<CallResult>;
}

/// A call that waits.
struct WaitCommand<W: CommandWait> {
    exchange: Exchange<W::Message>,
    wait: W,
    deadline: Deadline,
}

impl<W: CommandWait> WaitCommand<W> {
    fn finish(&mut self, result: CallResult) -> RunResult {
        RunResult::Done(self.exchange.finish(W::ORDER, result).map(|()| 0))
    }
}

impl<W: CommandWait> Task for WaitCommand<W> {
    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.wait.wake_by(waker)
    }

    fn run(&mut self, _: &Command<'_>, expired: bool) -> RunResult {
        // The process may have unmapped the message in the meantime.
        if let Err(fault) = self.exchange.may_write() {
            return RunResult::Done(Err(fault));
        }
        let mut again = false;
        match self.wait.poll(&mut self.exchange.message, &mut again) {
            Poll::Ready(result) => self.finish(result),
            Poll::Pending if expired => self.finish(Err(DatError::from(W::TIMED_OUT).into())),
            Poll::Pending if again => RunResult::Yield,
            Poll::Pending => RunResult::Wait,
        }
    }

    fn deadline(&self) -> Deadline {
        self.deadline
    }

    fn refuse(&mut self, error: Error) -> Result<i32> {
        let result = self
            .exchange
            .finish::<()>(W::ORDER, Err(DatError::from(error).into()));
        result.map(|()| 0)
    }
}

/// Wait on an EVD.
struct ForEvents {
    waiting: EvdAsyncWait,
    events: EventArray,
}

impl ForEvents {
    fn poll(&mut self, again: &mut bool) -> Poll<CallResult<TakenEvents>> {
        loop {
            // An event that cannot be copied out stays in the queue.
            if let Err(fault) = self.events.may_write() {
                return Poll::Ready(Err(fault.into()));
            }
            match self.waiting.poll(again) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Ok(())) => {}
            }
            let evd = self.waiting.evd();
            let taken = match evd::take_queued(evd, &self.events) {
                Ok(taken) => taken,
                Err(fault) => return Poll::Ready(Err(fault.into())),
            };
            // None if another thread was faster.
            if taken.taken == 0 {
                continue;
            }
            if taken.nmore != 0 {
                evd.hand_over();
            }
            return Poll::Ready(Ok(taken));
        }
    }
}

/// `KDAPL_EVD_WAIT`.
struct EvdWait(ForEvents);

impl CommandWait for EvdWait {
    type Message = bindings::kdapl_evd_wait;
    const ORDER: &'static Order = order::dat_evd_wait;
    const TIMED_OUT: Kind = Kind::TimeoutExpired;

    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.0.waiting.wake_by(waker)
    }

    fn poll(&mut self, message: &mut Self::Message, again: &mut bool) -> Poll<CallResult> {
        self.0
            .poll(again)
            .map_ok(|taken| evd::answer(message, taken))
    }
}

/// `KDAPL_EP_SUBMIT`, after its DTOs were posted.
struct Submit(ForEvents);

impl CommandWait for Submit {
    type Message = bindings::kdapl_ep_submit;
    const ORDER: &'static Order = order::kdapl_ep_submit;
    const TIMED_OUT: Kind = Kind::TimeoutExpired;

    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.0.waiting.wake_by(waker)
    }

    fn poll(&mut self, message: &mut Self::Message, again: &mut bool) -> Poll<CallResult> {
        self.0.poll(again).map_ok(|TakenEvents { taken, nmore }| {
            (message.taken, message.nmore) = (taken, nmore);
        })
    }
}

/// `KDAPL_CNO_WAIT`.
struct CnoWait(CnoAsyncWait);

impl CommandWait for CnoWait {
    type Message = bindings::kdapl_cno_wait;
    const ORDER: &'static Order = &[];
    const TIMED_OUT: Kind = Kind::QueueEmpty;

    fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.0.wake_by(waker)
    }

    fn poll(&mut self, message: &mut Self::Message, _: &mut bool) -> Poll<CallResult> {
        self.0.poll().map(|result| {
            message.evd = result?;
            Ok(())
        })
    }
}

/// Result of the first part of a call.
enum Begun<W> {
    Done,
    /// The call waits until the deadline.
    Wait(W, Deadline),
}

impl Issued<'_> {
    /// Makes a call that may have to wait. `begin` makes its first part, `flags` are the header
    /// flags that the call supports.
    fn wait<W: CommandWait + 'static>(
        &self,
        flags: u32,
        begin: impl FnOnce(&mut W::Message) -> CallResult<Begun<W>>,
    ) -> Result<i32> {
        let mut exchange = Exchange::<W::Message>::new(self.argument);
        exchange.begin(flags)?;
        let done = match begin(&mut exchange.message) {
            Ok(Begun::Wait(wait, deadline)) => {
                return self.start(WaitCommand {
                    exchange,
                    wait,
                    deadline,
                })
            }
            Ok(Begun::Done) => Ok(()),
            Err(failure) => Err(failure),
        };
        exchange.finish(W::ORDER, done).map(|()| 0)
    }

    pub(super) fn evd_wait(&self) -> Result<i32> {
        self.wait(ABSOLUTE, |message: &mut bindings::kdapl_evd_wait| {
            let deadline = ioctl::deadline(&message.hdr, message.timeout_ns);
            let (evd, events) = evd::parts(self.client, message)?;
            let waiting = EvdAsyncWait::new(&evd, message.threshold)?;
            let wait = EvdWait(ForEvents { waiting, events });
            Ok(Begun::Wait(wait, deadline))
        })
    }

    pub(super) fn submit(&self) -> Result<i32> {
        self.wait(ABSOLUTE, |message: &mut bindings::kdapl_ep_submit| {
            let Some(dto::SubmitWait { evd, events }) = dto::begin_submit(self.client, message)?
            else {
                return Ok(Begun::Done);
            };
            let deadline = ioctl::deadline(&message.hdr, message.timeout_ns);
            let waiting = EvdAsyncWait::new(&evd, message.threshold)?;
            let wait = Submit(ForEvents { waiting, events });
            Ok(Begun::Wait(wait, deadline))
        })
    }

    pub(super) fn cno_wait(&self) -> Result<i32> {
        let flags = ABSOLUTE | FOR_AGENT;
        self.wait(flags, |message: &mut bindings::kdapl_cno_wait| {
            if message.hdr.flags & FOR_AGENT != 0 {
                cno::wait(self.client, message)?;
                return Ok(Begun::Done);
            }
            let deadline = ioctl::deadline(&message.hdr, message.timeout_ns);
            message.evd = 0;
            let cno = cno::find(self.client, message.handle)?;
            Ok(Begun::Wait(CnoWait(CnoAsyncWait::new(cno)), deadline))
        })
    }
}
