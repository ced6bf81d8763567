// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Whom an EVD wakes: its waiter, its CNO, or a work item that makes upcalls.

use super::{
    cno_link::CnoLink,
    upcall::Upcalls,
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

/// Whom an EVD wakes, and when.
#[pin_data]
pub(super) struct Wakeup {
    pub(super) doorbell: Doorbell,
    /// The threshold of the waiter.
    pub(super) threshold: Threshold,
    /// The one waiter.
    #[pin]
    pub(super) waiter: LoneWaiter,
    /// The EVD was freed: no thread waits any more.
    pub(super) closed: AtomicBool,
    /// `dat_evd_set_unwaitable`: no thread may wait.
    pub(super) unwaitable: AtomicBool,
    #[pin]
    pub(super) link: CnoLink,
    #[pin]
    pub(super) upcalls: Upcalls,
    /// The newest event at the time of the last notification.
    pub(super) last_notified: AtomicU32,
    /// The pump has to notify of the events that it finds, because nothing else does.
    pub(super) must_notify: AtomicBool,
    /// Number of reasons to drain the completion queues without a waiter.
    pub(super) demand: Atomic<i32>,
}

impl Wakeup {
    /// Creates the wake-up of an EVD without a waiter, a CNO and upcalls.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            doorbell: Doorbell::new(),
            threshold: Threshold::one(),
            waiter <- LoneWaiter::new(),
            closed: AtomicBool::new(false),
            unwaitable: AtomicBool::new(false),
            link <- CnoLink::new(),
            upcalls <- Upcalls::new(),
            last_notified: AtomicU32::new(0),
            must_notify: AtomicBool::new(false),
            demand: Atomic::new(0),
        })
    }
}

impl Evd {
    /// There are `queued` events now.
    pub(super) fn announce(&self, queued: u32) {
        self.wake(queued);
        self.notify();
    }

    /// Wakes the waiter if `queued` events are enough for it.
    pub(super) fn wake(&self, queued: u32) {
        self.wakeup.doorbell.ring();
        if self.wakeup.threshold.is_met_by(queued) {
            self.wakeup.waiter.wake();
        }
    }

    /// Whether anything lies here that somebody is to be told of.
    pub(super) fn has_news(&self) -> bool {
        self.queue.ring.has_waking() || self.is_stuck()
    }

    /// Whether so many events lie here that others, of which somebody is to be told, may wait behind them.
    pub(super) fn is_stuck(&self) -> bool {
        self.queue.ring.len() != 0 && self.room() == 0
    }
}
