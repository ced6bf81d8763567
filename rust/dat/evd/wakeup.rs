// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Wake-up by an Event Dispatcher (EVD): of its waiter, its Consumer Notification Object (CNO), or
//! a work item that makes upcalls.

use super::{
    cno_link::CnoLink,
    file::LazySleepers,
    upcall::{
        UpcallContext,
        Upcalls, //
    },
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::{
            AtomicBool,
            AtomicU32, //
        },
        wait::{
            Doorbell,
            Threshold, //
        },
    },
    sys::wait::LoneWaiter, //
};
use kernel::sync::atomic::Atomic;

/// Receivers of an EVD's wake-ups, and the conditions for waking them.
#[pin_data]
pub(super) struct Wakeup {
    pub(super) doorbell: Doorbell,
    /// Number of events that the waiter waits for.
    pub(super) threshold: Threshold,
    /// Place of the only waiter.
    #[pin]
    pub(super) waiter: LoneWaiter,
    /// No thread may wait any more: the EVD was freed, its adapter is being closed, or its device
    /// was removed.
    pub(super) closed: AtomicBool,
    /// No thread may wait: `dat_evd_set_unwaitable`.
    pub(super) unwaitable: AtomicBool,
    #[pin]
    pub(super) link: CnoLink,
    #[pin]
    pub(super) upcalls: Upcalls,
    /// Sleepers on the files of the EVD, once it has one.
    pub(super) file_sleepers: LazySleepers,
    /// Identifier of the newest event that wakes, at the time of the last notification.
    pub(super) last_notified: AtomicU32,
    /// The pump has to announce the events that it finds, because no other party does.
    pub(super) must_notify: AtomicBool,
    /// Number of reasons to drain the completion queues without a waiter.
    pub(super) demand: Atomic<i32>,
}

impl Wakeup {
    /// Creates the wake-up of an EVD without a waiter, CNO and upcalls. Upcalls are made in this
    /// context once they are enabled.
    pub(super) fn new(upcalls: UpcallContext) -> impl PinInit<Self> {
        pin_init!(Self {
            doorbell: Doorbell::new(),
            threshold: Threshold::one(),
            waiter <- LoneWaiter::new(),
            closed: AtomicBool::new(false),
            unwaitable: AtomicBool::new(false),
            link <- CnoLink::new(),
            upcalls <- Upcalls::new(upcalls),
            file_sleepers: LazySleepers::new(),
            last_notified: AtomicU32::new(0),
            must_notify: AtomicBool::new(false),
            demand: Atomic::new(0),
        })
    }
}

impl Evd {
    /// Announces an event to the waiter, the CNO and upcalls. `queued` events are queued now.
    pub(super) fn announce(&self, queued: u32) {
        self.wake(queued);
        self.notify();
    }

    /// Wakes the waiter if `queued` events, and those that were handed over, are enough for it.
    pub(super) fn wake(&self, queued: u32) {
        self.wakeup.doorbell.ring();
        let queued = queued.saturating_add(self.handed_over());
        if self.wakeup.threshold.is_met_by(queued) {
            self.wakeup.waiter.wake();
        }
    }

    /// Returns whether an event is queued that wakes, or may be left in a completion queue.
    pub(super) fn may_have_waking_event(&self) -> bool {
        self.queue.ring.has_waking() || self.handed_over() != 0 || self.may_leave_completions()
    }

    /// Returns whether queued events use up the room. Completions that wake may then be left in the
    /// completion queues.
    pub(super) fn may_leave_completions(&self) -> bool {
        self.queued() != 0 && self.room() == 0
    }
}
