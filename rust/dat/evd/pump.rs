// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The pump: a work item that drains without a waiter.
//!
//! It drains while there is *demand*: a waiter for many events is woken only when there are that
//! many, and an Endpoint that disconnects reports its last event once all its DTOs are reported,
//! whether or not a thread waits for them. It also drains where some completions wake nobody
//! ([`WakeMode::Unsignalled`]), because only the completion itself tells whether it wakes.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        direct_event::{
            DirectEvent, //
            DrainEnd,
        },
    },
    rdma::cq::Armed,
    sys::workqueue::queue, //
};
use kernel::{
    impl_has_work,
    sync::atomic::{
        Acquire,
        Full, //
    },
    workqueue::WorkItem, //
};

impl Evd {
    /// There is room again that was kept for others: without it an EVD may have seemed empty, and what
    /// came was told to nobody.
    pub(in crate::dat) fn run_pump_and_notify(self: &Arc<Self>) {
        self.wakeup.must_notify.swap(true);
        let _ = queue().enqueue(self.clone());
    }

    /// Starts the pump, if it has stopped for want of room. The consumer has made room, or what was due
    /// is here, and a pump that looked meanwhile has counted it twice.
    pub(super) fn pump_again(self: &Arc<Self>) {
        if self.wakeup.demand.load(Acquire) != 0
            || (self.wakeup.must_notify.load_acquire() && self.is_watched())
        {
            let _ = queue().enqueue(self.clone());
        }
    }

    /// There is room for more events than before, or for less.
    pub(super) fn was_resized(self: &Arc<Self>) {
        if self.queue.pending.count() == 0 {
            self.pump_again();
        } else {
            self.run_pump_and_notify();
        }
    }

    /// Queues the pump for one drain.
    pub(in crate::dat) fn drain_soon(self: &Arc<Self>) {
        let _ = queue().enqueue(self.clone());
    }

    /// There is one more reason to drain without a waiter, until the drop of what this returns.
    pub(in crate::dat) fn begin_demand(self: &Arc<Self>) -> Demand {
        self.wakeup.demand.fetch_add(1, Full);
        let _ = queue().enqueue(self.clone());
        Demand(self.clone())
    }

    /// Drains, and arms if anybody is to know of what comes; `owes` says that nobody else tells of what it
    /// finds. If the budget is exhausted, it queues the pump again, and others have the lock and the worker first.
    fn pump(self: &Arc<Self>, owes: bool) {
        let mut consumer = self.consumer.lock();
        let mut direct = DirectEvent::none();
        let mut drained = self.drain_to(&mut consumer, &mut direct);
        let mut armed = Armed::Missed;
        while armed == Armed::Missed
            && drained == DrainEnd::Complete
            && consumer.cqs.count() != 0
            && self.room() != 0
        {
            let all = self.wakeup.demand.load(Acquire) != 0;
            if !all && !self.is_watched() {
                break;
            }
            armed = consumer.cqs.arm(all);
            // What came between the drain and the arming.
            drained = self.drain_to(&mut consumer, &mut direct);
        }
        // Who makes room starts the pump again, if there is more to tell: the consumer, or what was due.
        if owes && (self.room() == 0 || drained == DrainEnd::BudgetExhausted) {
            self.wakeup.must_notify.swap(true);
        }
        if drained == DrainEnd::BudgetExhausted {
            let _ = queue().enqueue(self.clone());
        }
    }

    /// Whether somebody waits, here or at the CNO, or has upcalls. The callback may have left it to the
    /// pump to wake them, for streams that are gone by now: so it leaves the completion queues armed for
    /// what comes next.
    fn is_watched(&self) -> bool {
        self.wakeup.waiter.is_taken()
            || self.wakeup.link.is_live()
            || self.wakeup.upcalls.are_made()
    }

    /// Whether the callback tells of each completion, so that the pump need not.
    fn callback_tells(&self) -> bool {
        match self.mode() {
            WakeMode::Threshold => true,
            // Solicited: a failure may come unsolicited.
            WakeMode::Unsignalled | WakeMode::Solicited => false,
        }
    }

    /// Tells of what the pump has found, and not again of what was told before.
    fn tell(&self) {
        let is_new = self.queue.ring.has_waking()
            && self.wakeup.last_notified.load() != self.queue.ring.last_waking_index();
        // What is solicited wakes by itself, and nothing else does; but for the failures at the end.
        let may_wait = self.mode() != WakeMode::Solicited || self.wakeup.demand.load(Acquire) != 0;
        let is_stuck = may_wait && self.is_stuck();
        if is_stuck {
            self.wakeup.doorbell.ring();
            self.wakeup.waiter.wake();
        }
        if is_new || is_stuck {
            self.notify();
        }
    }
}

/// A reason to drain without a waiter.
pub(in crate::dat) struct Demand(Arc<Evd>);

impl Drop for Demand {
    fn drop(&mut self) {
        self.0.wakeup.demand.fetch_sub(1, Full);
    }
}

impl_has_work! {
    impl HasWork<Self> for Evd { self.pump }
}

impl WorkItem for Evd {
    type Pointer = Arc<Self>;

    /// The pump: drains, and leaves the completion queues armed for as long as there is demand.
    fn run(this: Arc<Self>) {
        // Before the pump: what comes from now on has a run of its own, and the streams may be gone after.
        let owes = this.wakeup.must_notify.swap(false) || !this.callback_tells();
        this.pump(owes);
        if owes || !this.callback_tells() {
            this.tell();
        }
    }
}
