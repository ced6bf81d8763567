// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_wait`: operations for the protocol in [`model::wait`](crate::model::wait).

use super::{
    dequeue::TakeResult,
    Demand,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        direct_event::{
            DrainLimit,
            DrainRetries,
            EventSink, //
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
    sys::{
        task,
        wait::{
            Deadline,
            WaiterReservation, //
        },
    },
};

use core::borrow::Borrow;

/// `DAT_TIMEOUT_INFINITE`.
const TIMEOUT_INFINITE: u32 = u32::MAX;

/// Converts a DAT time-out, in microseconds, to a deadline.
pub(crate) fn deadline(timeout_us: u32) -> Deadline {
    match timeout_us {
        TIMEOUT_INFINITE => Deadline::Never,
        micros => Deadline::after_micros(micros),
    }
}

/// Counts events for a waiter with a threshold above 1, until the drop.
pub(super) struct Counting {
    demand: Demand,
}

impl Counting {
    pub(super) fn new(evd: &Arc<Evd>, threshold: u32) -> Self {
        // Demand begins first and ends last. The completion callback leaves the counting to the
        // pump in between, and the pump drains only on demand.
        let demand = evd.begin_demand();
        evd.wakeup.threshold.set(threshold);
        Self { demand }
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.demand.evd().wakeup.threshold.set(1);
    }
}

/// Lets events trigger the CNO again after the only waiter has left, on the drop.
pub(super) struct ReenableTriggers<E: Borrow<Arc<Evd>>>(pub(super) E);

impl<E: Borrow<Arc<Evd>>> Drop for ReenableTriggers<E> {
    fn drop(&mut self) {
        self.0.borrow().reenable_cno_trigger();
    }
}

/// The only waiter of an EVD, until the drop.
struct OnlyWaiter<'a> {
    evd: &'a Arc<Evd>,
    /// Destination of the event.
    sink: &'a mut dyn EventSink,
    limit: DrainLimit,
    deadline: Deadline,
    // The following fields are dropped in this order.
    _counting: Option<Counting>,
    reservation: WaiterReservation<'a>,
    _leaving: ReenableTriggers<&'a Arc<Evd>>,
}

impl<'a> OnlyWaiter<'a> {
    fn new(
        evd: &'a Arc<Evd>,
        deadline: Deadline,
        threshold: u32,
        limit: DrainLimit,
        sink: &'a mut dyn EventSink,
    ) -> DatResult<Self> {
        let reservation = evd.wakeup.waiter.take().ok_or(DatError::new(
            Kind::InvalidState,
            Subtype::InvalidStateEvdWaiter,
        ))?;
        Ok(Self {
            evd,
            sink,
            limit,
            deadline,
            _counting: (threshold > 1).then(|| Counting::new(evd, threshold)),
            reservation,
            _leaving: ReenableTriggers(evd),
        })
    }
}

impl Waiter for OnlyWaiter<'_> {
    /// Number of events that are left.
    type Output = u32;

    fn queued(&self) -> u32 {
        self.evd.queued()
    }

    #[inline(always)]
    fn take(&mut self, threshold: u32) -> Option<u32> {
        let evd = self.evd;
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = evd.consumer.lock();
            match evd.pop_at_threshold(&mut consumer, threshold, self.limit, self.sink) {
                TakeResult::Event(drained) => {
                    drop(consumer);
                    return Some(evd.count_left(self.limit, drained));
                }
                // An event may follow the completions that were polled. Release the lock for other
                // threads in between.
                TakeResult::BudgetExhausted if retries.next(|| consumer.cqs.depth()) => {}
                TakeResult::BudgetExhausted | TakeResult::Nothing => return None,
            }
        }
    }

    #[inline]
    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<u32>) {
        let evd = self.evd;
        evd.wakeup.doorbell.clear();
        let mut consumer = evd.consumer.lock();
        let armed = consumer.cqs.arm();
        let found = evd.pop_at_threshold(&mut consumer, threshold, self.limit, self.sink);
        drop(consumer);
        match (found, armed) {
            (TakeResult::Event(drained), _) => {
                (ArmResult::Empty, Some(evd.count_left(self.limit, drained)))
            }
            // No notification will come for the completions that are still queued.
            (TakeResult::BudgetExhausted, _) => (ArmResult::Missed, self.take(threshold)),
            // Pending events have reserved the room that the missed completions need. The pump runs
            // when one of those is queued or dropped.
            (TakeResult::Nothing, Armed::Missed) if evd.room() != 0 => (ArmResult::Missed, None),
            (TakeResult::Nothing, Armed::Missed | Armed::Empty) => (ArmResult::Empty, None),
        }
    }

    fn stop(&mut self) -> Option<WaitError> {
        if self.evd.is_over() {
            Some(WaitError::Closed)
        } else if self.deadline.has_passed() {
            Some(WaitError::TimedOut)
        } else if task::has_signal() {
            Some(WaitError::Interrupted)
        } else {
            None
        }
    }

    #[inline]
    fn sleep(&mut self) -> SleepEnd {
        let evd = self.evd;
        if evd.is_over() {
            return SleepEnd::Closed;
        }
        // A stop of waits wakes, too. The next sleep reports it, unless an event can be taken.
        self.reservation
            .wait(&mut self.deadline, || evd.wakeup.doorbell.is_rung())
            .into()
    }
}

impl Evd {
    /// Waits for `threshold` events and takes the oldest into `sink`: `dat_evd_wait`. Returns the
    /// number of events that are left if `limit` is [`DrainLimit::All`], and 0 otherwise.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// No event is lost by an error.
    ///
    /// * INVALID_PARAMETER (threshold) for a threshold below 1 or above the queue length;
    /// * INVALID_STATE if another thread waits already, or the EVD is unwaitable or has upcalls;
    /// * INVALID_STATE for a threshold above 1 if Endpoints are configured for UNSIGNALLED or
    ///   SOLICITED_WAIT;
    /// * TIMEOUT_EXPIRED when the deadline has passed;
    /// * INTERRUPTED_CALL after a signal;
    /// * ABORT if the EVD is freed or its adapter is closed, or if its device is removed and no
    ///   more events can arrive.
    #[inline(always)]
    pub(crate) fn wait(
        self: &Arc<Self>,
        deadline: Deadline,
        threshold: i32,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> DatResult<u32> {
        let threshold = self.may_begin_wait(threshold)?;
        let mut waiter = OnlyWaiter::new(self, deadline, threshold, limit, sink)?;
        self.may_wait_for(threshold)?;
        wait_for(&mut waiter, threshold).map_err(|stop| match stop {
            WaitError::TimedOut => Kind::TimeoutExpired.into(),
            WaitError::Interrupted => Kind::InterruptedCall.into(),
            WaitError::Closed => self.closed_reason(),
        })
    }

    /// Returns the error of a wait that was stopped.
    pub(super) fn closed_reason(&self) -> DatError {
        if self.wakeup.closed.load_acquire() {
            Kind::Abort.into()
        } else {
            Self::unwaitable()
        }
    }

    pub(super) fn unwaitable() -> DatError {
        DatError::new(Kind::InvalidState, Subtype::InvalidStateEvdUnwaitable)
    }

    /// Checks whether a wait for this number of events may begin, and returns the number.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (threshold), INVALID_STATE: see [`Evd::wait`].
    #[inline(always)]
    pub(super) fn may_begin_wait(&self, threshold: i32) -> DatResult<u32> {
        let threshold = self.threshold(threshold)?;
        if self.wakeup.unwaitable.load_acquire() || self.wakeup.upcalls.are_made() {
            return Err(Self::unwaitable());
        }
        self.may_count(threshold)?;
        Ok(threshold)
    }

    /// Returns whether waits are stopped: the EVD is closed or unwaitable.
    pub(super) fn is_over(&self) -> bool {
        self.wakeup.closed.load_acquire() || self.wakeup.unwaitable.load_acquire()
    }

    /// Stops all waits with INVALID_STATE (EVD unwaitable), now and later:
    /// `dat_evd_set_unwaitable`.
    pub(crate) fn set_unwaitable(&self) {
        self.wakeup.unwaitable.swap(true);
        self.update_calls_only();
        self.wakeup.doorbell.ring();
        self.wakeup.waiter.wake();
        self.wake_all_of_files();
    }

    /// Allows waits again: `dat_evd_clear_unwaitable`.
    pub(crate) fn clear_unwaitable(&self) {
        self.wakeup.unwaitable.swap(false);
        self.update_calls_only();
    }
}
