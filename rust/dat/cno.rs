// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer Notification Objects (CNO): one place to wait for events of many Event Dispatchers
//! (EVD).
//!
//! An EVD that has events, and on which no thread waits, *triggers* its CNO. The CNO queues the
//! EVD, once, and the thread that reported the event wakes one waiter of the CNO. A trigger stays:
//! if no thread waits, the next wait returns at once.
//!
//! A CNO queues each EVD that has triggered, not only the last one. Waits return them in the order
//! of their triggers. An EVD that a wait has returned may still hold events, so later waits check
//! it again.
//!
//! [`model::cno`](crate::model::cno) has the states of an EVD at its CNO.

mod agent;
mod async_wait;
mod file;
mod wait;

pub(crate) use self::{
    agent::{
        Agent,
        Proxy, //
    },
    async_wait::CnoAsyncWait,
};

use super::base::{
    Freeing,
    Object,
    Objects,
    Usable,
    UseCount, //
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
        user::{
            ChargedArray,
            User, //
        },
        wait::{
            new_wait_queue,
            WaitQueue, //
        },
    },
};
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Relaxed, //
};

/// EVDs that may trigger a CNO, by handle.
pub(super) trait Sources: Send + Sync {
    /// Returns whether an EVD with this handle exists.
    fn exists(&self, evd: u64) -> bool;

    /// Makes an EVD trigger its CNO if it holds events, and with its next event otherwise. Returns
    /// `false` if no EVD has this handle.
    ///
    /// Context: process; sleeps.
    fn offer(&self, evd: u64) -> bool;
}

/// Fields of [`Cno`] protected by its lock.
struct Inner {
    table: EvdTable<ChargedArray<EvdSlot>>,
    /// The consumer has triggered the CNO, without an EVD.
    triggered_by_consumer: bool,
    /// Number of times that the CNO lost its last EVD.
    deserted: u32,
    /// No wait sleeps any more: the CNO was freed, or the adapter is being closed.
    closed: bool,
    /// The consumer's OS wait proxy agent, which is signalled with each trigger.
    agent: Option<Agent>,
}

impl Inner {
    /// Returns whether a wait would return a trigger at once.
    fn has_trigger(&self) -> bool {
        self.triggered_by_consumer || self.table.triggered() != 0
    }

    /// Reports an event of the EVD in this slot to the agent; `is_trigger` if it has triggered the
    /// CNO.
    fn notify_agent(&mut self, slot: SlotIndex, is_trigger: bool) {
        match &self.agent {
            Some(Agent::EventFd(eventfd)) => {
                if self.table.add_for_agent(slot, is_trigger) {
                    eventfd.signal();
                }
            }
            // The function takes no trigger from the table, which only tells there whether the
            // agent has been called for the EVD.
            Some(Agent::Proxy(proxy)) => {
                if self.table.add_for_agent(slot, is_trigger) {
                    proxy.call(self.table.evd(slot));
                }
            }
            None => {}
        }
    }

    /// Reports a trigger by the consumer to the agent.
    fn notify_agent_of_consumer_trigger(&mut self) {
        match &self.agent {
            Some(Agent::EventFd(eventfd)) => {
                self.table.add_by_consumer_for_agent();
                eventfd.signal();
            }
            Some(Agent::Proxy(proxy)) => proxy.call(0),
            None => {}
        }
    }
}

/// Consumer Notification Object.
#[pin_data]
pub(crate) struct Cno {
    handle: u64,
    #[pin]
    inner: SpinLockIrq<Inner>,
    #[pin]
    sleepers: WaitQueue,
    waiters: Atomic<i32>,
    sources: Arc<dyn Sources>,
    /// User that is charged for the slots.
    user: User,
    uses: UseCount,
    _counted: Counted,
}

/// Result of [`Cno::query`].
pub(crate) struct Param {
    pub(crate) has_agent: bool,
    pub(crate) evds: u32,
    pub(crate) triggered: u32,
}

impl Cno {
    /// Creates a CNO: `dat_cno_create`. Each trigger signals `agent`. Returns the handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory, or above a limit; (device) after the device
    /// was removed.
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
                user: cnos.user().clone(),
                uses: UseCount::none(),
                _counted: Counted::new(census::Kind::Cno),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// Returns the parameters: `dat_cno_query`.
    pub(crate) fn query(&self) -> Param {
        let inner = self.inner.lock();
        Param {
            has_agent: inner.agent.is_some(),
            evds: inner.table.evds(),
            triggered: inner.table.triggered(),
        }
    }

    /// Returns the number of threads that wait.
    pub(in crate::dat) fn waiters(&self) -> u32 {
        u32::try_from(self.waiters.load(Relaxed)).unwrap_or(0)
    }

    /// Replaces the agent: `dat_cno_modify_agent`.
    ///
    /// The new agent is notified at once of the first pending trigger. The next event of another
    /// EVD that has triggered notifies it, too. The old agent is not called any more when this
    /// function returns.
    pub(crate) fn modify_agent(&self, agent: Option<Agent>) {
        let old = {
            let mut inner = self.inner.lock();
            let old = core::mem::replace(&mut inner.agent, agent);
            inner.table.replace_agent();
            match inner.table.first_triggered() {
                Some(first) => inner.notify_agent(first, true),
                None if inner.triggered_by_consumer => inner.notify_agent_of_consumer_trigger(),
                None => {}
            }
            old
        };
        drop(old);
    }

    /// Triggers the CNO without an EVD: `dat_cno_trigger`.
    pub(crate) fn trigger_by_consumer(&self) {
        {
            let mut inner = self.inner.lock();
            inner.triggered_by_consumer = true;
            inner.notify_agent_of_consumer_trigger();
        }
        self.sleepers.wake_one();
    }

    /// Marks an EVD as having events, and wakes a waiter unless the EVD is marked already. The
    /// agent is notified independently.
    ///
    /// Context: any, including hard IRQ. In this and the next functions the caller guarantees that
    /// the EVD keeps its slot.
    pub(super) fn trigger(&self, slot: SlotIndex) {
        {
            let mut inner = self.inner.lock();
            let is_trigger = inner.table.trigger(slot);
            inner.notify_agent(slot, is_trigger);
            if !is_trigger {
                return;
            }
        }
        self.sleepers.wake_one();
    }

    /// Announces a check of an EVD for events. Returns `false` if no check is needed.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn begin_check(&self, slot: SlotIndex, reason: CheckReason) -> bool {
        let mut inner = self.inner.lock();
        match reason {
            CheckReason::Unchecked => inner.table.begin_check(slot),
            CheckReason::FoundEmpty => inner.table.begin_check_empty(slot),
        }
    }

    /// Ends a check that found no events. The EVD is idle unless it has triggered since the check
    /// began.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn end_check(&self, slot: SlotIndex) {
        self.inner.lock().table.end_check(slot);
    }

    /// Assigns a slot to an EVD.
    ///
    /// Slots are allocated before the lock is taken, because it disables interrupts.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory, or if the CNO has the maximum of EVDs.
    pub(super) fn attach(&self, evd: u64) -> DatResult<SlotIndex> {
        loop {
            let full = match self.inner.lock().table.attach(evd) {
                Ok(slot) => return Ok(slot),
                Err(full) => full,
            };
            let count = full.wanted.ok_or(DatError::memory())?;
            let slots =
                ChargedArray::filled(&self.user, count, GFP_KERNEL_ACCOUNT, || EvdSlot::VACANT)?;
            // The table returns them if another thread has added slots first.
            let spare = self.inner.lock().table.grow(slots);
            drop(spare);
        }
    }

    /// Releases the slot of an EVD. Waiters stop with ABORT if it was the last EVD.
    ///
    /// Context: any that may take a spinlock.
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

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Stops all waits. Later waits do not sleep.
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

    /// Checks that the CNO is unused.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an EVD is attached to the CNO, or a thread waits.
    fn prepare_free(&self) -> DatResult {
        if self.uses.any() || self.waiters.load(Acquire) != 0 {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateCnoInUse,
            ));
        }
        Ok(())
    }

    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.close();
        // A file may keep the CNO, but not the table of its EVDs, which have left.
        let table = core::mem::replace(&mut self.inner.lock().table, EvdTable::new());
        drop(table);
    }
}

impl Usable for Cno {
    fn uses(&self) -> &UseCount {
        &self.uses
    }
}
