// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The pump: the work item of an Event Dispatcher (EVD) that drains completions without a waiter.
//!
//! It drains while there is a [`Demand`] for this:
//!
//! * A waiter for several events is woken only when that many are queued, so completions have to be
//!   counted.
//! * An Endpoint that disconnects reports its last event after all its completions, even if no
//!   thread waits for them.
//! * An Endpoint holds receives or events back until an event of this EVD has been reported
//!   (`ep/connect/held_receives.rs`).
//! * An Endpoint has asked for reports of the receives that the consumer takes
//!   ([`ReceiveReports`](super::receives::ReceiveReports)).
//!
//! It also drains if some completions wake no waiter ([`WakeMode::Unsignalled`]). Only the
//! completion itself says whether it wakes, and the completion callback must not poll.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        direct_event::{
            DirectEvent,
            DrainEnd, //
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
    /// Queues the pump, and lets it notify. Called after room that was reserved for pending events
    /// was released.
    ///
    /// While the room was reserved, completions could not be drained. So the EVD may have looked
    /// empty, and events may have gone unannounced.
    pub(in crate::dat) fn queue_pump_and_notify(self: &Arc<Self>) {
        self.wakeup.must_notify.swap(true);
        let _ = queue().enqueue(self.clone());
        self.wake_writers();
    }

    /// Queues the pump again if it has stopped for lack of room, and wakes writers that wait for
    /// room. Called after the consumer took an event, and after a pending event was queued. An
    /// event that is just being queued may count twice, so a pump that ran at that moment may have
    /// found too little room.
    pub(super) fn queue_pump_if_needed(self: &Arc<Self>) {
        if self.wakeup.demand.load(Acquire) != 0
            || (self.wakeup.must_notify.load_acquire() && self.has_receiver())
        {
            let _ = queue().enqueue(self.clone());
        }
        self.wake_writers();
    }

    /// Queues the pump after the queue length has changed.
    pub(super) fn was_resized(self: &Arc<Self>) {
        if self.queue.pending.count() == 0 {
            self.queue_pump_if_needed();
        } else {
            self.queue_pump_and_notify();
        }
    }

    /// Queues the pump for one run.
    pub(in crate::dat) fn queue_pump(self: &Arc<Self>) {
        let _ = queue().enqueue(self.clone());
    }

    /// Demands drains without a waiter, until the drop of the returned value.
    pub(in crate::dat) fn begin_demand(self: &Arc<Self>) -> Demand {
        self.wakeup.demand.fetch_add(1, Full);
        let _ = queue().enqueue(self.clone());
        Demand(self.clone())
    }

    /// Drains, and arms the completion queues if events are demanded or have a receiver.
    /// `must_announce` means that no other party announces the events that this run finds.
    ///
    /// If the budget is used up, the pump is queued again. Other threads get the lock, and other
    /// work the worker, before it continues.
    fn pump(self: &Arc<Self>, must_announce: bool) {
        let mut consumer = self.consumer.lock();
        let mut direct = DirectEvent::none();
        let mut drained = self.drain_with_direct(&mut consumer, &mut direct);
        let mut armed = Armed::Missed;
        while armed == Armed::Missed
            && drained == DrainEnd::Complete
            && consumer.cqs.count() != 0
            && self.room() != 0
        {
            armed = if self.wakeup.demand.load(Acquire) != 0 {
                consumer.cqs.arm_for_any()
            } else if self.has_receiver() {
                consumer.cqs.arm()
            } else {
                break;
            };
            // Completions that arrived between the drain and the arming.
            drained = self.drain_with_direct(&mut consumer, &mut direct);
        }
        // The consumer that makes room, or the release of a pending event, runs the pump again.
        if must_announce && (self.room() == 0 || drained == DrainEnd::BudgetExhausted) {
            self.wakeup.must_notify.swap(true);
        }
        if drained == DrainEnd::BudgetExhausted {
            let _ = queue().enqueue(self.clone());
        }
    }

    /// Returns whether events have a receiver: a waiter, a CNO, upcalls or an open file. The pump
    /// then leaves the completion queues armed for the next event.
    ///
    /// The wake-up mode does not matter. It may have changed since the callback left the wake-up to
    /// the pump.
    fn has_receiver(&self) -> bool {
        self.wakeup.waiter.is_taken()
            || self.wakeup.link.is_live()
            || self.wakeup.upcalls.are_made()
            || self.has_file()
    }

    /// Returns whether the callback announces each completion, so that the pump does not have to.
    fn callback_announces_all(&self) -> bool {
        // With SOLICITED, a completion that failed may be unsolicited, and has to be announced.
        self.mode() == WakeMode::Threshold
    }

    /// Announces the events that the pump has found, unless they were announced before.
    fn announce_if_new(&self) {
        let is_new = self.queue.ring.has_waking()
            && self.wakeup.last_notified.load() != self.queue.ring.last_waking_index();
        // With SOLICITED, the notification of a solicited completion wakes, and other completions
        // need not wake. The exception is a failure at the end of a connection, for which there is
        // demand.
        let may_wait = self.mode() != WakeMode::Solicited || self.wakeup.demand.load(Acquire) != 0;
        let is_stuck = may_wait && self.may_leave_completions();
        if is_stuck {
            self.wakeup.doorbell.ring();
            self.wakeup.waiter.wake();
        }
        if is_new || is_stuck {
            self.notify();
        }
    }
}

/// Reason to drain without a waiter, until the drop.
pub(in crate::dat) struct Demand(Arc<Evd>);

impl Demand {
    /// Returns the EVD.
    pub(super) fn evd(&self) -> &Evd {
        &self.0
    }
}

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

    /// Runs the pump.
    fn run(this: Arc<Self>) {
        // Read before the pump drains. An event that arrives from now on queues another run, and
        // the streams may leave the EVD during this run.
        let must_announce = this.wakeup.must_notify.swap(false) || !this.callback_announces_all();
        this.pump(must_announce);
        if must_announce || !this.callback_announces_all() {
            this.announce_if_new();
        }
    }
}
