// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_wait`: the protocol is [`model::wait`](crate::model::wait), here is what it works with.

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
            Place,
            SleepResult, //
        },
    },
};

/// `DAT_TIMEOUT_INFINITE`.
const TIMEOUT_INFINITE: u32 = u32::MAX;

/// When a wait gives up, by a time-out of DAT's.
pub(crate) fn deadline(timeout_us: u32) -> Deadline {
    match timeout_us {
        TIMEOUT_INFINITE => Deadline::Never,
        micros => Deadline::after_micros(micros),
    }
}

/// The counting of events, for a waiter that waits for more than one, until the drop.
struct Counting<'a> {
    evd: &'a Evd,
    _demand: Demand,
}

impl<'a> Counting<'a> {
    fn new(evd: &'a Arc<Evd>, threshold: u32) -> Self {
        // In this order, and back in the other: while the callback leaves the counting to the pump,
        // there is demand for it.
        let demand = evd.begin_demand();
        evd.wakeup.threshold.set(threshold);
        Self {
            evd,
            _demand: demand,
        }
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.evd.wakeup.threshold.set(1);
    }
}

/// An EVD that nobody waits on any more from the drop on.
struct Leaving<'a>(&'a Arc<Evd>);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left_alone();
    }
}

/// The only waiter of an EVD, from its making to its drop.
struct OnlyWaiter<'a> {
    evd: &'a Arc<Evd>,
    /// Where the event goes.
    sink: &'a mut dyn EventSink,
    limit: DrainLimit,
    deadline: Deadline,
    // What ends with it ends in this order.
    _counting: Option<Counting<'a>>,
    place: Place<'a>,
    _leaving: Leaving<'a>,
}

impl<'a> OnlyWaiter<'a> {
    #[inline(always)]
    fn new(
        evd: &'a Arc<Evd>,
        deadline: Deadline,
        threshold: u32,
        limit: DrainLimit,
        sink: &'a mut dyn EventSink,
    ) -> DatResult<Self> {
        let place = evd.wakeup.waiter.take().ok_or(DatError::new(
            Kind::InvalidState,
            Subtype::InvalidStateEvdWaiter,
        ))?;
        Ok(Self {
            evd,
            sink,
            limit,
            deadline,
            _counting: (threshold > 1).then(|| Counting::new(evd, threshold)),
            place,
            _leaving: Leaving(evd),
        })
    }
}

impl Waiter for OnlyWaiter<'_> {
    /// How many are left.
    type Output = u32;

    fn queued(&self) -> u32 {
        self.evd.queue.ring.len()
    }

    #[inline(always)]
    fn take(&mut self, threshold: u32) -> Option<u32> {
        let evd = self.evd;
        let mut retries = DrainRetries::new();
        loop {
            let mut consumer = evd.consumer.lock();
            match evd.take(&mut consumer, threshold, self.limit, self.sink) {
                TakeResult::Event(drained) => {
                    drop(consumer);
                    return Some(evd.left(self.limit, drained));
                }
                // An event may follow those that were looked at. Others have the lock in between.
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
        let armed = consumer.cqs.arm(false);
        let found = evd.take(&mut consumer, threshold, self.limit, self.sink);
        drop(consumer);
        match (found, armed) {
            (TakeResult::Event(drained), _) => {
                (ArmResult::Quiet, Some(evd.left(self.limit, drained)))
            }
            // Of what lies there no notification will come.
            (TakeResult::BudgetExhausted, _) => (ArmResult::Missed, self.take(threshold)),
            // What is due keeps its room from what was missed. Whoever queues or forgets it sees to that.
            (TakeResult::Nothing, Armed::Missed) if evd.room() != 0 => (ArmResult::Missed, None),
            (TakeResult::Nothing, Armed::Missed | Armed::Quiet) => (ArmResult::Quiet, None),
        }
    }

    fn stop(&mut self) -> Option<WaitError> {
        if self.evd.is_over() {
            Some(WaitError::Closed)
        } else if task::has_signal() {
            Some(WaitError::Interrupted)
        } else if self.deadline.has_passed() {
            Some(WaitError::TimedOut)
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
        match self
            .place
            .wait(&mut self.deadline, || evd.wakeup.doorbell.is_rung())
        {
            // Also if it is over: the next sleep says so, if there is nothing to take.
            SleepResult::Ready => SleepEnd::Woken,
            SleepResult::TimedOut => SleepEnd::TimedOut,
            SleepResult::Interrupted => SleepEnd::Interrupted,
        }
    }
}

impl Evd {
    /// `dat_evd_wait`: waits for `threshold` events, takes the oldest into `sink`, and says how many are left,
    /// if `limit` is [`DrainLimit::All`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3) for a threshold below 1 or above the queue length,
    /// INVALID_STATE if another thread waits already, the EVD is unwaitable or has upcalls, or for a
    /// threshold above 1 where its Endpoints are configured for UNSIGNALLED or SOLICITED_WAIT, TIMEOUT_EXPIRED,
    /// INTERRUPTED_CALL after a signal, ABORT if the EVD goes away. No event is lost by any of them.
    #[inline(always)]
    pub(crate) fn wait(
        self: &Arc<Self>,
        deadline: Deadline,
        threshold: i32,
        limit: DrainLimit,
        sink: &mut dyn EventSink,
    ) -> DatResult<u32> {
        let threshold = self.threshold(threshold)?;
        let unwaitable = DatError::new(Kind::InvalidState, Subtype::InvalidStateEvdUnwaitable);
        if self.wakeup.unwaitable.load_acquire() || self.wakeup.upcalls.are_made() {
            return Err(unwaitable);
        }
        self.may_count(threshold)?;
        let mut waiter = OnlyWaiter::new(self, deadline, threshold, limit, sink)?;
        self.may_wait_for(threshold)?;
        wait_for(&mut waiter, threshold).map_err(|stop| match stop {
            WaitError::TimedOut => Kind::TimeoutExpired.into(),
            WaitError::Interrupted => Kind::InterruptedCall.into(),
            WaitError::Closed if self.wakeup.closed.load_acquire() => Kind::Abort.into(),
            WaitError::Closed => unwaitable,
        })
    }

    /// Whether nobody may wait.
    fn is_over(&self) -> bool {
        self.wakeup.closed.load_acquire() || self.wakeup.unwaitable.load_acquire()
    }

    /// `dat_evd_set_unwaitable`: who waits gets INVALID_STATE (EVD unwaitable), now and later.
    pub(crate) fn set_unwaitable(&self) {
        self.wakeup.unwaitable.swap(true);
        self.wakeup.doorbell.ring();
        self.wakeup.waiter.wake();
    }

    /// `dat_evd_clear_unwaitable`.
    pub(crate) fn clear_unwaitable(&self) {
        self.wakeup.unwaitable.swap(false);
    }
}
