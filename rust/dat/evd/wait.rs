// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_wait`: the protocol is [`model::wait`](crate::model::wait), here is what it works with.

use super::{
    dequeue::Found,
    Demand,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        hand::{
            Reach,
            Sink,
            Turns, //
        },
        wait::{
            wait_for,
            Arm,
            Stop,
            Waiter,
            Wake, //
        },
    },
    rdma::cq::Armed,
    sys::{
        task,
        wait::{
            Deadline,
            Outcome,
            Place, //
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
        evd.wakeup.wanted.set(threshold);
        Self {
            evd,
            _demand: demand,
        }
    }
}

impl Drop for Counting<'_> {
    fn drop(&mut self) {
        self.evd.wakeup.wanted.set(1);
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
    sink: &'a mut dyn Sink,
    reach: Reach,
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
        reach: Reach,
        sink: &'a mut dyn Sink,
    ) -> DatResult<Self> {
        let place = evd.wakeup.waiter.take().ok_or(DatError::new(
            Kind::InvalidState,
            Subtype::InvalidStateEvdWaiter,
        ))?;
        Ok(Self {
            evd,
            sink,
            reach,
            deadline,
            _counting: (threshold > 1).then(|| Counting::new(evd, threshold)),
            place,
            _leaving: Leaving(evd),
        })
    }
}

impl Waiter for OnlyWaiter<'_> {
    /// How many are left.
    type Taken = u32;

    fn queued(&self) -> u32 {
        self.evd.queue.ring.len()
    }

    #[inline(always)]
    fn take(&mut self, threshold: u32) -> Option<u32> {
        let evd = self.evd;
        let mut turns = Turns::new();
        loop {
            let mut consumer = evd.consumer.lock();
            match evd.take(&mut consumer, threshold, self.reach, self.sink) {
                Found::Event(drained) => {
                    drop(consumer);
                    return Some(evd.left(self.reach, drained));
                }
                // An event may follow those that were looked at. Others have the lock in between.
                Found::Cut if turns.another(|| consumer.cqs.depth()) => {}
                Found::Cut | Found::Nothing => return None,
            }
        }
    }

    #[inline]
    fn arm_and_take(&mut self, threshold: u32) -> (Arm, Option<u32>) {
        let evd = self.evd;
        evd.wakeup.bell.clear();
        let mut consumer = evd.consumer.lock();
        let armed = consumer.cqs.arm(false);
        let found = evd.take(&mut consumer, threshold, self.reach, self.sink);
        drop(consumer);
        match (found, armed) {
            (Found::Event(drained), _) => (Arm::Quiet, Some(evd.left(self.reach, drained))),
            // Of what lies there no notification will come.
            (Found::Cut, _) => (Arm::Missed, self.take(threshold)),
            // What is due keeps its room from what was missed. Whoever queues or forgets it sees to that.
            (Found::Nothing, Armed::Missed) if evd.room() != 0 => (Arm::Missed, None),
            (Found::Nothing, Armed::Missed | Armed::Quiet) => (Arm::Quiet, None),
        }
    }

    fn stop(&mut self) -> Option<Stop> {
        if self.evd.is_over() {
            Some(Stop::Closed)
        } else if task::has_signal() {
            Some(Stop::Interrupted)
        } else if self.deadline.has_passed() {
            Some(Stop::TimedOut)
        } else {
            None
        }
    }

    #[inline]
    fn sleep(&mut self) -> Wake {
        let evd = self.evd;
        if evd.is_over() {
            return Wake::Closed;
        }
        match self
            .place
            .wait(&mut self.deadline, || evd.wakeup.bell.is_rung())
        {
            // Also if it is over: the next sleep says so, if there is nothing to take.
            Outcome::Ready => Wake::Woken,
            Outcome::TimedOut => Wake::TimedOut,
            Outcome::Interrupted => Wake::Interrupted,
        }
    }
}

impl Evd {
    /// `dat_evd_wait`: waits for `threshold` events, takes the oldest into `sink`, and says how many are left,
    /// if `reach` is [`Reach::All`].
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
        reach: Reach,
        sink: &mut dyn Sink,
    ) -> DatResult<u32> {
        let threshold = self.threshold(threshold)?;
        let unwaitable = DatError::new(Kind::InvalidState, Subtype::InvalidStateEvdUnwaitable);
        if self.wakeup.unwaitable.load_acquire() || self.wakeup.upcalls.are_made() {
            return Err(unwaitable);
        }
        self.may_count(threshold)?;
        let mut waiter = OnlyWaiter::new(self, deadline, threshold, reach, sink)?;
        self.may_wait_for(threshold)?;
        wait_for(&mut waiter, threshold).map_err(|stop| match stop {
            Stop::TimedOut => Kind::TimeoutExpired.into(),
            Stop::Interrupted => Kind::InterruptedCall.into(),
            Stop::Closed if self.wakeup.closed.load_acquire() => Kind::Abort.into(),
            Stop::Closed => unwaitable,
        })
    }

    /// Whether nobody may wait.
    fn is_over(&self) -> bool {
        self.wakeup.closed.load_acquire() || self.wakeup.unwaitable.load_acquire()
    }

    /// `dat_evd_set_unwaitable`: who waits gets INVALID_STATE (EVD unwaitable), now and later.
    pub(crate) fn set_unwaitable(&self) {
        self.wakeup.unwaitable.swap(true);
        self.wakeup.bell.ring();
        self.wakeup.waiter.wake();
    }

    /// `dat_evd_clear_unwaitable`.
    pub(crate) fn clear_unwaitable(&self) {
        self.wakeup.unwaitable.swap(false);
    }
}
