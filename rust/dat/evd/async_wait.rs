// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits for events without a thread: operations for the protocol in
//! [`model::wait`](crate::model::wait).
//!
//! A poll runs the wait protocol up to the sleep: it arms the completion queues, checks for events
//! again, and returns `Pending`. A wake-up calls the waker, and the next poll follows.

use super::{
    wait::{
        Counting,
        ReenableTriggers, //
    },
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        direct_event::{
            DrainEnd,
            DrainRetries, //
        },
        wait::{
            wait_for,
            ArmResult,
            SleepEnd,
            WaitError,
            Waiter, //
        },
    },
    rdma::cq::Armed,
    sys::wait::{
        HasLoneWaiter,
        LoneWaiter,
        OwnedWaiterReservation,
        Wake, //
    },
};
use core::task::Poll;

/// Number of times that a poll repeats because completions were missed.
const MAX_MISSED: u32 = 16;

impl HasLoneWaiter for Evd {
    fn lone_waiter(&self) -> &LoneWaiter {
        &self.wakeup.waiter
    }
}

/// Wait on an EVD without a thread. It is the EVD's only waiter until the drop.
pub(crate) struct EvdAsyncWait {
    evd: Arc<Evd>,
    threshold: u32,
    // The following fields are dropped in this order.
    _counting: Option<Counting>,
    reservation: OwnedWaiterReservation<Evd>,
    _leaving: ReenableTriggers<Arc<Evd>>,
}

impl EvdAsyncWait {
    /// Becomes the waiter of `evd`, for `threshold` events. Fails as [`Evd::wait`] does before it
    /// sleeps.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (threshold), INVALID_STATE: see [`Evd::wait`].
    pub(crate) fn new(evd: &Arc<Evd>, threshold: i32) -> DatResult<Self> {
        let threshold = evd.may_begin_wait(threshold)?;
        let reservation = OwnedWaiterReservation::take(evd.clone()).ok_or(DatError::new(
            Kind::InvalidState,
            Subtype::InvalidStateEvdWaiter,
        ))?;
        let this = Self {
            evd: evd.clone(),
            threshold,
            _counting: (threshold > 1).then(|| Counting::new(evd, threshold)),
            reservation,
            _leaving: ReenableTriggers(evd.clone()),
        };
        evd.may_wait_for(threshold)?;
        Ok(this)
    }

    /// Returns the EVD.
    pub(crate) fn evd(&self) -> &Arc<Evd> {
        &self.evd
    }

    /// Lets wake-ups call `waker`. A [poll](EvdAsyncWait::poll) has to follow.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn wake_by(&mut self, waker: Arc<dyn Wake>) -> Result {
        self.reservation.wake_by(waker)
    }

    /// Checks whether enough events are queued. If not, the next event calls the waker, if there is
    /// one. Sets `again` if the caller has to repeat the check without a wake-up.
    ///
    /// Context: process; sleeps for short times only.
    ///
    /// # Errors
    ///
    /// ABORT or INVALID_STATE if the wait is over: see [`Evd::wait`].
    pub(crate) fn poll(&mut self, again: &mut bool) -> Poll<DatResult> {
        let mut poll = PollOnce {
            evd: &self.evd,
            missed: 0,
        };
        let result = if self.reservation.is_called() {
            wait_for(&mut poll, self.threshold)
        } else {
            poll.take(self.threshold).ok_or(poll.reason())
        };
        *again = poll.missed >= MAX_MISSED;
        match result {
            Ok(()) => Poll::Ready(Ok(())),
            Err(WaitError::Closed) => Poll::Ready(Err(self.evd.closed_reason())),
            Err(WaitError::TimedOut | WaitError::Interrupted) => Poll::Pending,
        }
    }
}

/// One poll for events.
struct PollOnce<'a> {
    evd: &'a Arc<Evd>,
    /// Number of times that completions were missed.
    missed: u32,
}

impl PollOnce<'_> {
    /// Returns the reason why the poll ends without enough events. "Timed out" means that the next
    /// wake-up repeats it.
    fn reason(&self) -> WaitError {
        if self.evd.is_over() {
            WaitError::Closed
        } else {
            WaitError::TimedOut
        }
    }
}

impl Waiter for PollOnce<'_> {
    /// Enough events are queued.
    type Output = ();

    fn queued(&self) -> u32 {
        self.evd.queued()
    }

    fn take(&mut self, threshold: u32) -> Option<()> {
        let evd = self.evd;
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = evd.consumer.lock();
            let drained = evd.drain_to_ring(&mut consumer);
            if evd.queued() >= threshold {
                return Some(());
            }
            if drained == DrainEnd::Complete || !retries.next(|| consumer.cqs.depth()) {
                return None;
            }
        }
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<()>) {
        let evd = self.evd;
        evd.wakeup.doorbell.clear();
        let mut consumer = evd.consumer.lock();
        let armed = consumer.cqs.arm();
        let drained = evd.drain_to_ring(&mut consumer);
        drop(consumer);
        if evd.queued() >= threshold {
            return (ArmResult::Empty, Some(()));
        }
        match (drained, armed) {
            // No notification will come for the completions that are still queued.
            (DrainEnd::BudgetExhausted, _) => (ArmResult::Missed, self.take(threshold)),
            // As for a thread that waits.
            (DrainEnd::Complete, Armed::Missed) if evd.room() != 0 => (ArmResult::Missed, None),
            (DrainEnd::Complete, Armed::Missed | Armed::Empty) => (ArmResult::Empty, None),
        }
    }

    fn stop(&mut self) -> Option<WaitError> {
        self.missed = self.missed.saturating_add(1);
        if self.evd.is_over() || self.missed >= MAX_MISSED {
            Some(self.reason())
        } else {
            None
        }
    }

    fn sleep(&mut self) -> SleepEnd {
        if self.evd.is_over() {
            SleepEnd::Closed
        } else {
            SleepEnd::TimedOut
        }
    }
}
