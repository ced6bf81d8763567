// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD and its CNO.
//!
//! The CNO learns of an event that nobody waits for on the EVD itself. Completions tell by the
//! completion queue's notification, which is armed by each [check](crate::model::cno::check): where the
//! consumer has found the EVD empty, where the CNO [rechecks](super::super::cno), and where the EVD
//! begins to trigger; everything else tells when it is pushed. Completions that the consumer itself
//! drains tell nothing: it is there.

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::{
        base::{
            InUse,
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
        direct_event::DrainLimit, //
        event::Record,
    },
    sys::lock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};

/// The CNO of an EVD, and the EVD's slot there.
struct Attachment {
    cno: InUse<Cno>,
    slot: SlotIndex,
}

/// Fields of [`CnoLink`] protected by its lock, under which the slot is used as well: so it is never
/// another's.
struct Inner {
    attachment: Option<Attachment>,
    /// `dat_evd_enable`.
    enabled: bool,
}

/// What an EVD has for its CNO.
#[pin_data]
pub(super) struct CnoLink {
    #[pin]
    inner: SpinLockIrq<Inner>,
    /// There is a CNO to trigger. Changes under the lock.
    live: AtomicBool,
}

impl CnoLink {
    /// To no CNO.
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

    /// Whether there is a CNO to trigger.
    pub(super) fn is_live(&self) -> bool {
        self.live.load_acquire()
    }

    /// The CNO's handle or 0, and whether it is triggered.
    pub(super) fn query(&self) -> (u64, bool) {
        let inner = self.inner.lock();
        let cno = inner.attachment.as_ref().map_or(0, |it| it.cno.handle());
        (cno, inner.enabled)
    }

    /// Changes what is under the lock; returns what `change` does.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        self.live.swap(inner.attachment.is_some() && inner.enabled);
        result
    }

    /// A check begins. `false` if that is known, or nobody is to know.
    fn begin_check(&self, reason: CheckReason) -> bool {
        let inner = self.inner.lock();
        let Some(Attachment { cno, slot }) = &inner.attachment else {
            return false;
        };
        let is_unchecked = cno.begin_check(*slot, reason);
        if !inner.enabled {
            // Whoever enables it checks then.
            cno.end_check(*slot);
        }
        is_unchecked && inner.enabled
    }

    /// The check is over.
    fn end_check(&self) {
        if let Some(Attachment { cno, slot }) = &self.inner.lock().attachment {
            cno.end_check(*slot);
        }
    }
}

/// A check of an EVD, by who holds the consumer's lock: one at a time.
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
        match self.evd.mode() {
            WakeMode::Threshold | WakeMode::Unsignalled => self.evd.has_news(),
            // What came before the arming may have been solicited: nobody can tell any more.
            WakeMode::Solicited => self.evd.queue.ring.len() != 0,
        }
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
    /// `dat_evd_modify_cno`; `None` is DAT_HANDLE_NULL. Queued events trigger the new CNO.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory).
    pub(in crate::dat) fn modify_cno(self: &Arc<Self>, cno: Option<InUse<Cno>>) -> DatResult {
        let new = match cno {
            None => None,
            Some(cno) => {
                let slot = cno.attach(self.handle)?;
                Some(Attachment { cno, slot })
            }
        };
        drop(self.replace_cno(new));
        self.offer();
        Ok(())
    }

    fn replace_cno(&self, new: Option<Attachment>) -> Option<Attachment> {
        self.wakeup.link.change(|inner| {
            let old = core::mem::replace(&mut inner.attachment, new);
            if let Some(Attachment { cno, slot }) = &old {
                cno.detach(*slot);
            }
            old
        })
    }

    /// Parts with its CNO.
    pub(super) fn unlink(&self) {
        drop(self.replace_cno(None));
    }

    /// `dat_evd_enable` and `dat_evd_disable`: whether its events trigger its CNO. Events that lie
    /// here do when it is enabled. Context: process; sleeps.
    pub(crate) fn enable(self: &Arc<Self>, enabled: bool) {
        self.wakeup.link.change(|inner| inner.enabled = enabled);
        self.offer();
    }

    /// An event is here: it has its upcall, and the CNO learns of it, unless somebody waits on the EVD
    /// itself.
    ///
    /// Context: any, including hard IRQ. The caller has rung the doorbell behind the event.
    #[inline]
    pub(super) fn notify(&self) {
        self.wakeup
            .last_notified
            .store_release(self.queue.ring.last_waking_index());
        self.wakeup.upcalls.arrived();
        if !self.wakeup.link.is_live() || self.wakeup.waiter.is_taken() {
            return;
        }
        let inner = self.wakeup.link.inner.lock();
        match &inner.attachment {
            Some(Attachment { cno, slot }) if inner.enabled => cno.trigger(*slot),
            // Whoever links or enables it checks for events then.
            Some(_) | None => {}
        }
    }

    /// Sees that the CNO learns of what is here and of what comes, whoever has checked it before.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn offer(self: &Arc<Self>) {
        let mut consumer = self.consumer.lock();
        check::check(&mut EvdCheck {
            evd: self,
            consumer: &mut consumer,
        });
    }

    /// The consumer has found nothing: from now on what comes triggers the CNO, unless it is here
    /// by now.
    pub(super) fn check_and_pop(self: &Arc<Self>, consumer: &mut Consumer) -> Option<Record> {
        if !self.wakeup.link.is_live() {
            return None;
        }
        check::check_and_pop(&mut EvdCheck {
            evd: self,
            consumer,
        })
    }

    /// The only waiter leaves: what is here and what comes is the CNO's.
    pub(super) fn left_alone(self: &Arc<Self>) {
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
