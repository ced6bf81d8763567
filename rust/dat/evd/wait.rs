// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `dat_evd_wait`: the protocol is [`model::wait`](crate::model::wait), here is what it works with.

use super::{
    Demand,
    Evd, //
};
use crate::{
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        event::Record,
        hand::Reach,
        wait::{
            wait_for,
            Arm,
            Stop,
            Waiter,
            Wake, //
        },
    },
    rdma::cq::Armed,
    sys::wait::{
        Deadline,
        Outcome, //
    },
};
use kernel::sync::Arc;

/// When a wait gives up, by a time-out of DAT's.
pub(crate) fn deadline(timeout_us: u32) -> Deadline {
    match timeout_us {
        kdapl_bindings::KDAPL_TIMEOUT_INFINITE => Deadline::Never,
        micros => Deadline::after_micros(micros),
    }
}

/// The only waiter of an EVD, from its making to its drop.
struct OnlyWaiter<'a> {
    evd: &'a Arc<Evd>,
    /// Where the event goes.
    record: &'a mut Record,
    reach: Reach,
    deadline: Deadline,
    /// For the counting of events, if there is more than one to wait for.
    demand: Option<Demand>,
}

impl<'a> OnlyWaiter<'a> {
    fn new(
        evd: &'a Arc<Evd>,
        deadline: Deadline,
        threshold: u32,
        reach: Reach,
        record: &'a mut Record,
    ) -> DatResult<Self> {
        if evd.waited_on.swap(true) {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateEvdWaiter,
            ));
        }
        // In this order, and back in the other: while the callback leaves the counting to the pump,
        // there is demand for it.
        let demand = (threshold > 1).then(|| Evd::begin_demand(evd));
        if demand.is_some() {
            evd.wanted.set(threshold);
        }
        Ok(Self {
            evd,
            record,
            reach,
            deadline,
            demand,
        })
    }
}

impl Drop for OnlyWaiter<'_> {
    fn drop(&mut self) {
        if let Some(demand) = self.demand.take() {
            self.evd.wanted.set(1);
            drop(demand);
        }
        self.evd.waited_on.swap(false);
        Evd::left_alone(self.evd);
    }
}

impl Waiter for OnlyWaiter<'_> {
    /// How many are left.
    type Taken = u32;

    fn queued(&self) -> u32 {
        self.evd.ring.len()
    }

    #[inline]
    fn take(&mut self, threshold: u32) -> Option<u32> {
        let mut consumer = self.evd.consumer.lock();
        Evd::take(self.evd, &mut consumer, threshold, self.reach, self.record)
    }

    #[inline]
    fn arm_and_take(&mut self, threshold: u32) -> (Arm, Option<u32>) {
        self.evd.bell.clear();
        let mut consumer = self.evd.consumer.lock();
        let armed = match consumer.queues.arm(false) {
            Armed::Missed => Arm::Missed,
            Armed::Quiet => Arm::Quiet,
        };
        let taken = Evd::take(self.evd, &mut consumer, threshold, self.reach, self.record);
        (armed, taken)
    }

    #[inline]
    fn sleep(&mut self) -> Wake {
        let evd = self.evd;
        let over = || evd.closed.load_acquire() || evd.unwaitable.load_acquire();
        if over() {
            return Wake::Closed;
        }
        match evd.sleepers.wait(&mut self.deadline, || evd.bell.is_rung()) {
            // Also if it is over: the next sleep says so, if there is nothing to take.
            Outcome::Ready => Wake::Woken,
            Outcome::TimedOut => Wake::TimedOut,
            Outcome::Interrupted => Wake::Interrupted,
        }
    }
}

impl Evd {
    /// `dat_evd_wait`: waits for `threshold` events, takes the oldest into `record`, and says how many are left:
    /// in the ring alone with [`Reach::One`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 3) for a threshold below 1 or above the queue length,
    /// INVALID_STATE if another thread waits already, the EVD is unwaitable or has upcalls, or for a
    /// threshold above 1 where its Endpoints are configured for UNSIGNALLED or SOLICITED_WAIT, TIMEOUT_EXPIRED,
    /// INTERRUPTED_CALL after a signal, ABORT if the EVD goes away. No event is lost by any of them.
    pub(crate) fn wait(
        this: &Arc<Self>,
        deadline: Deadline,
        threshold: i32,
        reach: Reach,
        record: &mut Record,
    ) -> DatResult<u32> {
        let threshold = this.threshold(threshold)?;
        let unwaitable = DatError::new(Kind::InvalidState, Subtype::InvalidStateEvdUnwaitable);
        if this.unwaitable.load_acquire() || this.upcalls.are_made() {
            return Err(unwaitable);
        }
        this.may_count(threshold)?;
        let mut waiter = OnlyWaiter::new(this, deadline, threshold, reach, record)?;
        this.may_wait_for(threshold)?;
        wait_for(&mut waiter, threshold).map_err(|stop| match stop {
            Stop::TimedOut => Kind::TimeoutExpired.into(),
            Stop::Interrupted => Kind::InterruptedCall.into(),
            Stop::Closed if this.closed.load_acquire() => Kind::Abort.into(),
            Stop::Closed => unwaitable,
        })
    }

    /// `dat_evd_set_unwaitable`: who waits gets INVALID_STATE (EVD unwaitable), now and later.
    pub(crate) fn set_unwaitable(&self) {
        self.unwaitable.swap(true);
        self.bell.ring();
        self.sleepers.wake_all();
    }

    /// `dat_evd_clear_unwaitable`.
    pub(crate) fn clear_unwaitable(&self) {
        self.unwaitable.swap(false);
    }
}
