// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer Notification Objects: one place to wait for events of many EVDs.
//!
//! An EVD that has something, and that nobody waits on, *triggers* its CNO: it is queued there, once,
//! and one of the CNO's waiters is woken, by whoever brought the event. A trigger is sticky: if
//! nobody waits, the next wait returns at once. EVDs are handed out in the order in which they
//! triggered, and each wait checks again those that were handed out before and may not have been
//! emptied: none is forgotten. (Seed 001, "CNO Synchronization"; its CNO remembers the last EVD only.)
//!
//! Where each EVD stands is [`model::cno`](crate::model::cno).

mod agent;
mod file;

pub(crate) use self::agent::{
    Agent,
    Proxy, //
};

use super::base::{
    Object,
    Objects,
    Shared,
    Users, //
};
use crate::{
    dat::prelude::*,
    model::{
        cno::{
            check::CheckReason,
            EvdSlot,
            EvdTable,
            SlotIndex, //
        },
        handle::HandleKind, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
        wait::{
            new_wait_queue,
            Deadline,
            SleepResult,
            WaitQueue, //
        },
    },
};
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed,
    Release, //
};

/// The EVDs that may trigger a CNO, by handle.
pub(super) trait Sources: Send + Sync {
    /// Whether an EVD has this handle.
    fn exists(&self, evd: u64) -> bool;

    /// Makes an EVD trigger its CNO if it holds events, and otherwise with its next event. Returns
    /// `false` if no EVD has this handle.
    ///
    /// Context: process; sleeps.
    fn offer(&self, evd: u64) -> bool;
}

/// Fields of [`Cno`] protected by its lock.
struct Inner {
    table: EvdTable<KVVec<EvdSlot>>,
    /// Triggered by the consumer, for no EVD.
    triggered_by_consumer: bool,
    /// How often the last EVD has left.
    deserted: u32,
    /// No wait sleeps any more: freed, or the adapter closes.
    closed: bool,
    /// Signalled with each trigger: the consumer's OS wait proxy agent.
    agent: Option<Agent>,
}

/// What a wait finds.
enum WaitResult {
    Evd(u64),
    /// Triggered by the consumer.
    TriggeredByConsumer,
    /// Nothing, but nobody knows how some EVDs stand.
    Unchecked,
    /// There is nothing to wait for any more.
    End,
}

impl Inner {
    /// Takes what a wait is to return with; `deserted` is what the wait began with.
    fn take(&mut self, deserted: u32) -> Option<WaitResult> {
        if let Some(evd) = self.table.take() {
            return Some(WaitResult::Evd(evd));
        }
        if core::mem::take(&mut self.triggered_by_consumer) {
            return Some(WaitResult::TriggeredByConsumer);
        }
        if self.closed || self.deserted != deserted {
            return Some(WaitResult::End);
        }
        self.table.first_unchecked().map(|_| WaitResult::Unchecked)
    }

    /// Whether a wait would return at once, and not because there is nothing to wait for.
    fn has_trigger(&self) -> bool {
        self.triggered_by_consumer || self.table.triggered() != 0
    }

    fn signal(&self, evd: u64) {
        if let Some(agent) = &self.agent {
            agent.signal(evd);
        }
    }
}

/// A Consumer Notification Object.
#[pin_data]
pub(crate) struct Cno {
    handle: u64,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    sleepers: WaitQueue,
    waiters: Atomic<i32>,
    sources: Arc<dyn Sources>,
    users: Users,
    _counted: Counted,
}

/// What [`Cno::query`] tells.
pub(crate) struct Param {
    pub(crate) has_agent: bool,
    pub(crate) evds: u32,
    pub(crate) triggered: u32,
}

/// One who waits, from its making to its drop.
struct WaiterCount<'a>(&'a Cno);

impl<'a> WaiterCount<'a> {
    fn new(cno: &'a Cno) -> Self {
        cno.waiters.fetch_add(1, Relaxed);
        Self(cno)
    }
}

impl Drop for WaiterCount<'_> {
    /// Until it is off the wait queue it may be woken in the place of another, for what it does not
    /// take, or, if it has given up, for what it never sees: whatever is left is told on.
    fn drop(&mut self) {
        let is_left = self.0.inner.lock().has_trigger();
        if is_left {
            self.0.sleepers.wake_one();
        }
        self.0.waiters.fetch_sub(1, Release);
    }
}

impl Cno {
    /// `dat_cno_create`. `agent` is signalled with each trigger. Returns the handle.
    ///
    /// Context: process; sleeps.
    pub(super) fn create(
        cnos: &Arc<Objects<Self>>,
        sources: Arc<dyn Sources>,
        agent: Option<Agent>,
    ) -> DatResult<u64> {
        let entry = Objects::reserve(cnos)?;
        let handle = entry.handle().into_raw();
        let inner = Inner {
            table: EvdTable::new(),
            triggered_by_consumer: false,
            deserted: 0,
            closed: false,
            agent,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                inner <- new_spinlock_irq!(inner, "Cno::inner"),
                sleepers <- new_wait_queue!("Cno::sleepers"),
                waiters: Atomic::new(0),
                sources,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Cno),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// `dat_cno_query`.
    pub(crate) fn query(&self) -> Param {
        let inner = self.inner.lock();
        Param {
            has_agent: inner.agent.is_some(),
            evds: inner.table.evds(),
            triggered: inner.table.triggered(),
        }
    }

    /// `dat_cno_modify_agent`. A new agent is told at once of what has triggered already; the old one is not
    /// called any more when this returns.
    pub(crate) fn modify_agent(&self, agent: Option<Agent>) {
        let old = {
            let mut inner = self.inner.lock();
            let old = core::mem::replace(&mut inner.agent, agent);
            if inner.has_trigger() {
                inner.signal(inner.table.first_triggered().unwrap_or(0));
            }
            old
        };
        drop(old);
    }

    /// `dat_cno_trigger`: as if an EVD had triggered, but for none.
    pub(crate) fn trigger_by_consumer(&self) {
        {
            let mut inner = self.inner.lock();
            inner.triggered_by_consumer = true;
            inner.signal(0);
        }
        self.sleepers.wake_one();
    }

    /// `dat_cno_wait`: waits until an EVD has triggered, and returns its handle; 0 after
    /// [`Cno::trigger_by_consumer`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY when the time is up, INTERRUPTED_CALL after a signal, ABORT if the adapter closes
    /// or the last EVD leaves. No trigger is lost by any of them.
    pub(crate) fn wait(&self, mut deadline: Deadline) -> DatResult<u64> {
        let _waiting = WaiterCount::new(self);
        let deserted = self.inner.lock().deserted;
        self.recheck();
        loop {
            let mut found = None;
            let outcome = self.sleepers.wait(&mut deadline, || {
                found = self.inner.lock().take(deserted);
                found.is_some()
            });
            match (outcome, found) {
                (_, Some(WaitResult::Evd(evd))) if self.sources.exists(evd) => return Ok(evd),
                // Freed meanwhile.
                (_, Some(WaitResult::Evd(_))) => {}
                (_, Some(WaitResult::TriggeredByConsumer)) => return Ok(0),
                (_, Some(WaitResult::Unchecked)) => self.recheck(),
                (_, Some(WaitResult::End)) => return Err(Kind::Abort.into()),
                (SleepResult::TimedOut, None) => return Err(Kind::QueueEmpty.into()),
                (SleepResult::Interrupted, None) => return Err(Kind::InterruptedCall.into()),
                (SleepResult::Ready, None) => {}
            }
        }
    }

    /// Looks at the EVDs that were handed out: those that still have events trigger again, the others
    /// will when one comes. Where another thread is looking just now this waits for it.
    fn recheck(&self) {
        loop {
            let unchecked = self.inner.lock().table.first_unchecked();
            let Some((slot, handle)) = unchecked else {
                return;
            };
            if !self.sources.offer(handle) {
                // Freed: it leaves at any moment.
                self.inner.lock().table.clear_unchecked(slot, handle);
            }
        }
    }

    /// An EVD has something. It says so once, until it was handed out.
    ///
    /// Context: any, including hard IRQ. The caller keeps the EVD from leaving, here and below.
    pub(super) fn trigger(&self, slot: SlotIndex) {
        {
            let mut inner = self.inner.lock();
            if !inner.table.trigger(slot) {
                return;
            }
            inner.signal(inner.table.evd(slot));
        }
        self.sleepers.wake_one();
    }

    /// A check of an EVD begins. `false` if that is known. Context: any that may
    /// take a spinlock.
    pub(super) fn begin_check(&self, slot: SlotIndex, reason: CheckReason) -> bool {
        let mut inner = self.inner.lock();
        match reason {
            CheckReason::Unchecked => inner.table.begin_check(slot),
            CheckReason::FoundEmpty => inner.table.begin_check_empty(slot),
        }
    }

    /// The check is over: an EVD that has not triggered since it began has nothing. Context: any that
    /// may take a spinlock.
    pub(super) fn end_check(&self, slot: SlotIndex) {
        self.inner.lock().table.end_check(slot);
    }

    /// Gives one more EVD a slot. Context: process; sleeps.
    ///
    /// Seats are allocated and set up before the lock is taken: interrupts are off under it.
    pub(super) fn attach(&self, evd: u64) -> DatResult<SlotIndex> {
        loop {
            let full = match self.inner.lock().table.attach(evd) {
                Ok(slot) => return Ok(slot),
                Err(full) => full,
            };
            let count = full.wanted.ok_or(DatError::memory())?;
            let slots = KVVec::from_elem(EvdSlot::VACANT, count, GFP_KERNEL_ACCOUNT)?;
            // Comes back if another thread was quicker.
            let spare = self.inner.lock().table.grow(slots);
            drop(spare);
        }
    }

    /// An EVD leaves. Context: any that may take a spinlock.
    pub(super) fn detach(&self, slot: SlotIndex) {
        let deserted = {
            let mut inner = self.inner.lock();
            let deserted = inner.table.detach(slot);
            if deserted {
                inner.deserted = inner.deserted.wrapping_add(1);
            }
            deserted
        };
        if deserted {
            self.sleepers.wake_all();
        }
    }

    /// Its handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Ends every wait, now and later.
    pub(super) fn close(&self) {
        let agent = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            inner.agent.take()
        };
        self.sleepers.wake_all();
        drop(agent);
    }
}

impl Object for Cno {
    const KIND: HandleKind = HandleKind::Cno;
    const INVALID: Subtype = Subtype::InvalidHandleCno;

    /// # Errors
    ///
    /// INVALID_STATE while an EVD triggers the CNO, or a thread waits.
    fn may_free(&self) -> DatResult {
        if self.users.any() || self.waiters.load(Acquire) != 0 {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateCnoInUse,
            ));
        }
        Ok(())
    }

    fn shutdown(self: &Arc<Self>) {
        self.close();
    }
}

impl Shared for Cno {
    fn users(&self) -> &Users {
        &self.users
    }
}
