// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD and its CNO.
//!
//! The CNO learns of an event that nobody waits for on the EVD itself. Completions tell by the
//! completion queue's notification, which is armed where the consumer has found the EVD empty, where
//! the CNO [looks again](super::super::cno), and where the EVD begins to trigger; everything else
//! tells when it is pushed. Completions that the consumer itself drains tell nothing: it is there.

use super::{
    Consumer,
    Evd, //
};
use crate::{
    dat::{
        cno::Cno,
        ia::Ia,
        users::InUse, //
    },
    model::{
        atomic::AtomicBool,
        cno::Pending,
        code::{
            DatResult,
            Subtype, //
        },
        event::Record,
    },
    sys::lock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Fields of [`Link`] protected by its lock.
struct Inner {
    cno: Option<InUse<Cno>>,
    /// `dat_evd_enable`.
    enabled: bool,
}

/// What an EVD has for its CNO.
#[pin_data]
pub(super) struct Link {
    #[pin]
    inner: SpinLockIrq<Inner>,
    /// There is a CNO to trigger. Changes under the lock.
    live: AtomicBool,
    /// It has triggered, and was not handed out yet.
    pending: Pending,
    /// It lies among those that the CNO has handed out.
    handed: AtomicBool,
    /// It was found empty, and its completion queue armed, since it was handed out.
    settled: AtomicBool,
}

impl Link {
    /// To no CNO.
    pub(super) fn new() -> impl PinInit<Self> {
        let inner = Inner {
            cno: None,
            enabled: true,
        };
        pin_init!(Self {
            inner <- new_spinlock_irq!(inner, "Evd::link"),
            live: AtomicBool::new(false),
            pending: Pending::new(),
            handed: AtomicBool::new(false),
            settled: AtomicBool::new(false),
        })
    }

    /// Whether there is a CNO to trigger.
    pub(super) fn is_live(&self) -> bool {
        self.live.load_acquire()
    }

    /// The CNO's handle or 0, and whether it is triggered.
    pub(super) fn query(&self) -> (u64, bool) {
        let inner = self.inner.lock();
        (
            inner.cno.as_ref().map_or(0, |cno| cno.handle()),
            inner.enabled,
        )
    }

    /// Changes what is under the lock; returns what `change` does.
    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        self.live.swap(inner.cno.is_some() && inner.enabled);
        self.settled.swap(false);
        result
    }
}

impl Evd {
    /// `dat_evd_modify_cno`; a handle of 0 is DAT_HANDLE_NULL. Events that lie here trigger the new
    /// one. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (CNO).
    pub(crate) fn modify_cno(this: &Arc<Self>, ia: &Ia, cno: u64) -> DatResult {
        let new = match cno {
            0 => None,
            cno => {
                let cno: InUse<Cno> = ia.objects().use_as(cno, Subtype::InvalidHandleCno)?;
                cno.attach()?;
                Some(cno)
            }
        };
        drop(this.replace_cno(new));
        Self::offer(this);
        Ok(())
    }

    fn replace_cno(&self, new: Option<InUse<Cno>>) -> Option<InUse<Cno>> {
        self.link.change(|inner| {
            let old = core::mem::replace(&mut inner.cno, new);
            if let Some(old) = &old {
                old.detach(self.handle);
            }
            self.link.handed.swap(false);
            self.link.pending.lower();
            old
        })
    }

    /// Parts with its CNO.
    pub(super) fn unlink(&self) {
        drop(self.replace_cno(None));
    }

    /// `dat_evd_enable` and `dat_evd_disable`: whether its events trigger its CNO. Events that lie
    /// here do when it is enabled. Context: process; sleeps.
    pub(crate) fn enable(this: &Arc<Self>, enabled: bool) {
        this.link.change(|inner| inner.enabled = enabled);
        Self::offer(this);
    }

    /// An event is here: the CNO learns of it, unless somebody waits on the EVD itself.
    ///
    /// Context: any, including hard IRQ. The caller has rung the bell behind the event.
    pub(super) fn notify(&self) {
        if !self.link.is_live() || self.waited_on.load_acquire() || !self.link.pending.raise() {
            return;
        }
        let inner = self.link.inner.lock();
        match &inner.cno {
            Some(cno) if inner.enabled => cno.trigger(self.handle),
            // Whoever links or enables it looks for events then.
            Some(_) | None => self.link.pending.lower(),
        }
    }

    /// Sees that the CNO learns of what is here and of what comes, whoever has looked at it before.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn offer(this: &Arc<Self>) {
        if !this.link.is_live() || this.link.settled.load_acquire() {
            return;
        }
        {
            let consumer = this.consumer.lock();
            this.settle(&consumer);
        }
        if this.ring.len() != 0 {
            this.notify();
        }
    }

    /// Arms, and drains what came before that.
    fn settle(&self, consumer: &Consumer) {
        self.link.settled.swap(true);
        if let Some(cq) = &consumer.cq {
            // What it has missed the drain finds.
            let _ = cq.arm();
            self.drain(consumer);
        }
    }

    /// The consumer has found nothing: from now on what comes triggers the CNO, unless it is here
    /// by now.
    pub(super) fn pop_or_settle(this: &Arc<Self>, consumer: &mut Consumer) -> Option<Record> {
        if !this.link.is_live() {
            return None;
        }
        this.withdraw();
        this.settle(consumer);
        let record = Self::pop(this, consumer);
        if record.is_some() {
            // Something came in between, and maybe more than the consumer takes: its trigger was
            // taken back, so it gets one anew.
            this.link.settled.swap(false);
            this.notify();
        }
        record
    }

    /// Takes its trigger back: it has nothing. Before anybody looks again.
    fn withdraw(&self) {
        if !self.link.pending.is_raised() {
            return;
        }
        let inner = self.link.inner.lock();
        if let Some(cno) = &inner.cno {
            cno.withdraw(self.handle);
        }
        self.link.pending.lower();
    }

    /// The only waiter leaves: what is here and what comes is the CNO's.
    pub(super) fn left_alone(this: &Arc<Self>) {
        if this.link.is_live() {
            this.link.settled.swap(false);
            Self::offer(this);
        }
    }

    /// The CNO hands it out: it may trigger again. Says whether it was not among those that are
    /// handed out already.
    pub(in crate::dat) fn hand_out(&self) -> bool {
        self.link.settled.swap(false);
        self.link.pending.lower();
        !self.link.handed.swap(true)
    }

    /// It is no longer among those that are handed out.
    pub(in crate::dat) fn take_back(&self) {
        self.link.handed.swap(false);
    }
}
