// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Consumer Notification Objects: one place to wait for events of many EVDs.
//!
//! An EVD that has something, and that nobody waits on, *triggers* its CNO: it is queued there, once,
//! and one of the CNO's waiters is woken, by whoever brought the event. A trigger is sticky: if
//! nobody waits, the next wait returns at once. EVDs are handed out in the order in which they
//! triggered, and each wait looks again at those that were handed out before and may not have been
//! emptied: none is forgotten. (Seed 001, "CNO Synchronization"; its CNO remembers the last EVD only.)

mod file;

use super::{
    evd::Evd,
    ia::Ia,
    objects::Objects,
    users::{
        Shared,
        Users, //
    },
};
use crate::{
    model::{
        cno::Fifo,
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        handle::HandleKind,
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        eventfd::EventFd,
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
        wait::{
            new_wait_queue,
            Deadline,
            Outcome,
            WaitQueue, //
        },
    },
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

/// Handles of EVDs.
type Queue = Fifo<KVVec<u64>>;

/// Room for `count` handles.
fn storage(count: usize) -> DatResult<KVVec<u64>> {
    Ok(KVVec::from_elem(0, count, GFP_KERNEL_ACCOUNT)?)
}

/// Fields of [`Cno`] protected by its lock.
struct Inner {
    /// EVDs that have triggered and are not handed out yet.
    triggered: Queue,
    /// EVDs that were handed out, and may have more than was taken.
    handed: Queue,
    /// How many EVDs there are: both queues have room for all of them.
    evds: usize,
    /// Triggered by the consumer, for no EVD.
    poked: bool,
    /// How often the last EVD has left.
    deserted: u32,
    /// No wait sleeps any more: freed, or the adapter closes.
    closed: bool,
    /// Signalled with each trigger: the consumer's OS wait proxy agent.
    agent: Option<EventFd>,
}

/// What a wait finds.
enum Found {
    Evd(u64),
    /// Triggered by the consumer.
    Poke,
    /// There is nothing to wait for any more.
    End,
}

impl Inner {
    /// Takes what a wait is to return with; `deserted` is what the wait began with.
    fn take(&mut self, deserted: u32) -> Option<Found> {
        if let Some(evd) = self.triggered.pop() {
            return Some(Found::Evd(evd));
        }
        if core::mem::take(&mut self.poked) {
            return Some(Found::Poke);
        }
        (self.closed || self.deserted != deserted).then_some(Found::End)
    }

    fn signal(&self) {
        if let Some(agent) = &self.agent {
            agent.signal();
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
    objects: Arc<Objects>,
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
struct Waiting<'a>(&'a Cno);

impl<'a> Waiting<'a> {
    fn new(cno: &'a Cno) -> Self {
        cno.waiters.fetch_add(1, Relaxed);
        Self(cno)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, Release);
    }
}

impl Cno {
    /// `dat_cno_create`. `agent` is signalled with each trigger. Returns the handle.
    ///
    /// Context: process; sleeps.
    pub(crate) fn create(ia: &Ia, agent: Option<EventFd>) -> DatResult<u64> {
        let place = Objects::reserve(ia.objects(), HandleKind::Cno)?;
        let handle = place.handle().into_raw();
        let inner = Inner {
            triggered: Queue::new(KVVec::new()),
            handed: Queue::new(KVVec::new()),
            evds: 0,
            poked: false,
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
                objects: ia.objects().clone(),
                users: Users::none(),
                _counted: Counted::new(census::Kind::Cno),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        place.commit(this)?;
        Ok(handle)
    }

    /// `dat_cno_free`.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an EVD triggers it, or somebody waits.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        let cno = ia.objects().take::<Self>(handle, |cno| {
            if cno.users.any() || cno.waiters.load(Acquire) != 0 {
                return Err(DatError::new(
                    Kind::InvalidState,
                    Subtype::InvalidStateCnoInUse,
                ));
            }
            Ok(())
        })?;
        cno.shutdown();
        Ok(())
    }

    /// `dat_cno_query`.
    pub(crate) fn query(&self) -> Param {
        let inner = self.inner.lock();
        let count = |n| u32::try_from(n).unwrap_or(u32::MAX);
        Param {
            has_agent: inner.agent.is_some(),
            evds: count(inner.evds),
            triggered: count(inner.triggered.len()),
        }
    }

    /// `dat_cno_modify_agent`. A new agent is told at once of what has triggered already.
    pub(crate) fn modify_agent(&self, agent: Option<EventFd>) {
        let old = {
            let mut inner = self.inner.lock();
            let old = core::mem::replace(&mut inner.agent, agent);
            if inner.poked || inner.triggered.len() != 0 {
                inner.signal();
            }
            old
        };
        drop(old);
    }

    /// `dat_cno_trigger`: as if an EVD had triggered, but for none.
    pub(crate) fn poke(&self) {
        {
            let mut inner = self.inner.lock();
            inner.poked = true;
            inner.signal();
        }
        self.sleepers.wake_one();
    }

    /// `dat_cno_wait`: waits until an EVD has triggered, and returns its handle; 0 after
    /// [`Cno::poke`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY when the time is up, INTERRUPTED_CALL after a signal, ABORT if the adapter closes
    /// or the last EVD leaves. No trigger is lost by any of them.
    pub(crate) fn wait(&self, deadline: Deadline) -> DatResult<u64> {
        let _waiting = Waiting::new(self);
        let deserted = self.inner.lock().deserted;
        loop {
            self.look_again();
            let mut found = None;
            let outcome = self.sleepers.wait_alone(deadline, || {
                found = self.inner.lock().take(deserted);
                found.is_some()
            });
            match (outcome, found) {
                (_, Some(Found::Evd(evd))) if self.hand_out(evd) => return Ok(evd),
                // Freed meanwhile.
                (_, Some(Found::Evd(_))) => {}
                (_, Some(Found::Poke)) => return Ok(0),
                (_, Some(Found::End)) => return Err(Kind::Abort.into()),
                (Outcome::TimedOut, None) => return Err(Kind::QueueEmpty.into()),
                (Outcome::Interrupted, None) => return Err(Kind::InterruptedCall.into()),
                (Outcome::Ready, None) => {}
            }
        }
    }

    /// Hands an EVD out, if there still is one.
    fn hand_out(&self, handle: u64) -> bool {
        let Ok(evd) = self.objects.get::<Evd>(handle) else {
            return false;
        };
        if evd.hand_out() {
            // Never full: each EVD is there once.
            let _ = self.inner.lock().handed.push(handle);
        }
        true
    }

    /// Looks at the EVDs that were handed out: those that still have events trigger again, the others
    /// will when one comes.
    fn look_again(&self) {
        loop {
            let handed = self.inner.lock().handed.pop();
            let Some(handle) = handed else {
                return;
            };
            if let Ok(evd) = self.objects.get::<Evd>(handle) {
                evd.take_back();
                Evd::offer(&evd);
            }
        }
    }

    /// An EVD has something. It says so once, until it was handed out.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn trigger(&self, evd: u64) {
        {
            let mut inner = self.inner.lock();
            if inner.triggered.push(evd).is_err() {
                // There is room for all, so some are there twice.
                inner.triggered.dedup();
                let _ = inner.triggered.push(evd);
            }
            inner.signal();
        }
        self.sleepers.wake_one();
    }

    /// An EVD has nothing any more. Context: any that may take a spinlock.
    pub(super) fn withdraw(&self, evd: u64) {
        self.inner.lock().triggered.remove(evd);
    }

    /// Makes room for one more EVD. Context: process; sleeps.
    pub(super) fn attach(&self) -> DatResult {
        loop {
            let count = {
                let mut inner = self.inner.lock();
                let room = inner.triggered.capacity().min(inner.handed.capacity());
                if room > inner.evds {
                    inner.evds = inner.evds.saturating_add(1);
                    return Ok(());
                }
                inner.evds.saturating_add(1).saturating_mul(2)
            };
            let (triggered, handed) = (storage(count)?, storage(count)?);
            let old = {
                let mut inner = self.inner.lock();
                (
                    inner.triggered.move_to(triggered),
                    inner.handed.move_to(handed),
                )
            };
            drop(old);
        }
    }

    /// An EVD leaves. Context: any that may take a spinlock.
    pub(super) fn detach(&self, evd: u64) {
        let deserted = {
            let mut inner = self.inner.lock();
            inner.triggered.remove(evd);
            inner.handed.remove(evd);
            inner.evds = inner.evds.saturating_sub(1);
            if inner.evds == 0 {
                inner.deserted = inner.deserted.wrapping_add(1);
            }
            inner.evds == 0
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
    pub(super) fn shutdown(&self) {
        let agent = {
            let mut inner = self.inner.lock();
            inner.closed = true;
            inner.agent.take()
        };
        self.sleepers.wake_all();
        drop(agent);
    }
}

impl Shared for Cno {
    fn users(&self) -> &Users {
        &self.users
    }
}
