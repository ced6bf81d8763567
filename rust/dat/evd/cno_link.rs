// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Link from an Event Dispatcher (EVD) to its Consumer Notification Object (CNO).
//!
//! An event triggers the CNO unless a thread waits on the EVD itself. An event that a producer
//! pushes into the ring triggers at once. A completion triggers by the notification of its
//! completion queue. That is armed by each [check](crate::model::cno::check) of the EVD: after the
//! consumer has found the EVD empty, when a wait on the CNO [checks](super::super::cno) the EVD,
//! and when the link is made or enabled. Completions that the consumer drains do not trigger,
//! because the consumer is taking events already.

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Object,
            Objects, //
        },
        cno::{
            Cno,
            Sources, //
        },
        prelude::*, //
    },
    model::{
        atomic::AtomicBool,
        cno::{
            check::{
                self,
                CheckReason,
                CheckedEvd, //
            },
            SlotIndex, //
        },
        completion::WakeMode,
        direct_event::DrainLimit,
        event::Record, //
    },
    sys::lock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

/// CNO of an EVD, and the EVD's slot there.
struct Attachment {
    cno: InUse<Cno>,
    slot: SlotIndex,
}

/// Fields of [`CnoLink`] protected by its lock. The slot is used with the lock held only, so that
/// it is not assigned to another EVD in the meantime.
struct Inner {
    attachment: Option<Attachment>,
    /// Set by `dat_evd_enable` and cleared by `dat_evd_disable`.
    enabled: bool,
}

/// Link from an EVD to its CNO.
#[pin_data]
pub(super) struct CnoLink {
    #[pin]
    inner: SpinLockIrq<Inner>,
    /// The EVD has a CNO and is enabled. Written with the lock held.
    live: AtomicBool,
}

impl CnoLink {
    /// Creates a link without a CNO.
    pub(super) fn new() -> impl PinInit<Self> {
        let inner = Inner {
            attachment: None,
            enabled: true,
        };
        pin_init!(Self {
            inner <- new_spinlock_irq!(inner, "Evd::link"),
            live: AtomicBool::new(false),
        })
    }

    /// Returns whether the EVD has a CNO to trigger.
    pub(super) fn is_live(&self) -> bool {
        self.live.load_acquire()
    }

    /// Returns the CNO's handle or 0, and whether the link is enabled.
    pub(super) fn query(&self) -> (u64, bool) {
        let inner = self.inner.lock();
        let cno = inner.attachment.as_ref().map_or(0, |it| it.cno.handle());
        (cno, inner.enabled)
    }

    /// Calls `change` with the lock held, and returns its result.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        self.live.swap(inner.attachment.is_some() && inner.enabled);
        result
    }

    /// Announces a check to the CNO. Returns `false` if no check is needed, or no CNO is to be
    /// triggered.
    fn begin_check(&self, reason: CheckReason) -> bool {
        let inner = self.inner.lock();
        let Some(Attachment { cno, slot }) = &inner.attachment else {
            return false;
        };
        let is_unchecked = cno.begin_check(*slot, reason);
        if !inner.enabled {
            // The EVD is checked when it is enabled.
            cno.end_check(*slot);
        }
        is_unchecked && inner.enabled
    }

    /// Ends a check that found no events.
    fn end_check(&self) {
        if let Some(Attachment { cno, slot }) = &self.inner.lock().attachment {
            cno.end_check(*slot);
        }
    }
}

/// Check of an EVD. The caller holds the consumer's lock, so that there is one check at a time.
struct EvdCheck<'a> {
    evd: &'a Arc<Evd>,
    consumer: &'a mut Consumer,
}

impl CheckedEvd for EvdCheck<'_> {
    type Event = Record;

    fn begin(&mut self, reason: CheckReason) -> bool {
        self.evd.wakeup.link.begin_check(reason)
    }

    fn arm_and_drain(&mut self) {
        self.evd.arm_and_drain(self.consumer);
    }

    fn has_events(&self) -> bool {
        self.evd.has_events()
    }

    fn pop(&mut self) -> Option<Record> {
        let mut record = Record::default();
        let found = self.evd.pop(self.consumer, DrainLimit::All, &mut record);
        found.is_event().then_some(record)
    }

    fn trigger(&mut self) {
        if self.evd.mode() != WakeMode::Unsignalled || self.has_events() {
            self.evd.notify();
        }
    }

    fn end(&mut self) {
        self.evd.wakeup.link.end_check();
    }
}

impl Evd {
    /// Replaces the CNO: `dat_evd_modify_cno`. `None` is DAT_HANDLE_NULL. Queued events trigger the
    /// new CNO.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INSUFFICIENT_RESOURCES (memory).
    /// - INVALID_HANDLE if the EVD is freed meanwhile.
    pub(in crate::dat) fn modify_cno(self: &Arc<Self>, cno: Option<InUse<Cno>>) -> DatResult {
        let new = match cno {
            None => None,
            Some(cno) => {
                let slot = cno.attach(self.handle)?;
                Some(Attachment { cno, slot })
            }
        };
        drop(self.replace_cno(new));
        if self.is_freed.load_acquire() {
            // The free may have released the CNO before it was replaced.
            self.unlink();
            return Err(DatError::new(Kind::InvalidHandle, Self::INVALID));
        }
        self.offer();
        Ok(())
    }

    /// Replaces the CNO, and releases the slot at the old one. The caller drops the old attachment.
    fn replace_cno(&self, new: Option<Attachment>) -> Option<Attachment> {
        self.change_link(|inner| {
            let old = core::mem::replace(&mut inner.attachment, new);
            if let Some(Attachment { cno, slot }) = &old {
                cno.detach(*slot);
            }
            old
        })
    }

    /// Changes the link to the CNO. A process that polls mapped events has to call from now on, if
    /// the EVD has an enabled CNO.
    fn change_link<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let result = self.wakeup.link.change(change);
        self.retract_empty();
        result
    }

    /// Releases the CNO.
    pub(super) fn unlink(&self) {
        drop(self.replace_cno(None));
    }

    /// Enables the link: `dat_evd_enable`. Queued events trigger the CNO.
    ///
    /// Context: process; sleeps.
    pub(crate) fn enable(self: &Arc<Self>) {
        self.change_link(|inner| inner.enabled = true);
        self.offer();
    }

    /// Disables the link: `dat_evd_disable`.
    ///
    /// Context: process; sleeps.
    pub(crate) fn disable(self: &Arc<Self>) {
        self.change_link(|inner| inner.enabled = false);
        self.offer();
    }

    /// Announces an event: requests its upcall, wakes a reader of the EVD's file, and triggers the
    /// CNO unless a thread waits on the EVD itself.
    ///
    /// Context: any, including hard IRQ. The caller has rung the doorbell after the event was
    /// queued.
    pub(super) fn notify(&self) {
        self.wakeup
            .last_notified
            .store_release(self.queue.ring.last_waking_index());
        self.wakeup.upcalls.arrived();
        self.wake_reader();
        if !self.wakeup.link.is_live() || self.wakeup.waiter.is_taken() {
            return;
        }
        let inner = self.wakeup.link.inner.lock();
        match &inner.attachment {
            Some(Attachment { cno, slot }) if inner.enabled => cno.trigger(*slot),
            // The EVD is checked when it gets a CNO, and when it is enabled.
            Some(_) | None => {}
        }
    }

    /// Triggers the CNO if the EVD has events. Otherwise the next event triggers it. Earlier checks
    /// make no difference.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn offer(self: &Arc<Self>) {
        let mut consumer = self.consumer.lock();
        check::check(&mut EvdCheck {
            evd: self,
            consumer: &mut consumer,
        });
    }

    /// Returns whether an event is queued that wakes. The completion queues were armed and drained
    /// before.
    pub(super) fn has_events(&self) -> bool {
        match self.mode() {
            WakeMode::Threshold | WakeMode::Unsignalled => self.may_have_waking_event(),
            // Each queued event counts: a solicited completion that arrived before the arming can
            // no longer be told from others.
            WakeMode::Solicited => self.queued() != 0,
        }
    }

    /// Checks an EVD that the consumer has found empty. Returns an event that arrived in the
    /// meantime. If there is none, the next event triggers the CNO, and wakes a sleeper on a file.
    pub(super) fn check_and_pop(self: &Arc<Self>, consumer: &mut Consumer) -> Option<Record> {
        if !self.wakeup.link.is_live() {
            return self.arm_and_pop(consumer);
        }
        check::check_and_pop(&mut EvdCheck {
            evd: self,
            consumer,
        })
    }

    /// Lets events trigger the CNO after the only waiter has left. Queued events trigger at once.
    pub(super) fn reenable_cno_trigger(self: &Arc<Self>) {
        if self.wakeup.link.is_live() {
            self.offer();
        }
    }
}

impl Sources for Objects<Evd> {
    fn exists(&self, evd: u64) -> bool {
        self.get(evd).is_ok()
    }

    fn offer(&self, evd: u64) -> bool {
        let found = self.get(evd);
        found.map(|evd| evd.offer()).is_ok()
    }
}
