// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Implements `dat_cno_wait`.

use super::{
    Cno,
    Inner, //
};
use crate::{
    dat::prelude::*,
    sys::wait::{
        Deadline,
        SleepResult, //
    },
};
use core::ops::Deref;
use kernel::sync::atomic::{
    Relaxed,
    Release, //
};

/// Reason why a wait stops sleeping.
pub(super) enum WaitResult {
    /// This EVD has triggered.
    Evd(u64),
    /// The consumer has triggered the CNO.
    TriggeredByConsumer,
    /// No trigger, but some EVDs have to be checked for events.
    Unchecked,
    /// The CNO was closed, or its last EVD has left.
    End,
}

impl Inner {
    /// Takes a trigger, or another reason to stop sleeping. `deserted` is the count when the wait
    /// began.
    pub(super) fn take(&mut self, deserted: u32) -> Option<WaitResult> {
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
}

/// Counts a waiter, until the drop.
pub(super) struct WaiterCount<C: Deref<Target = Cno>>(C);

impl<C: Deref<Target = Cno>> WaiterCount<C> {
    pub(super) fn new(cno: C) -> Self {
        cno.waiters.fetch_add(1, Relaxed);
        Self(cno)
    }
}

impl<C: Deref<Target = Cno>> Drop for WaiterCount<C> {
    /// Passes remaining triggers to another waiter.
    ///
    /// A trigger wakes one waiter only. If that one took another trigger, or stopped waiting, the
    /// trigger would stay without a wake-up.
    fn drop(&mut self) {
        let is_left = self.0.inner.lock().has_trigger();
        if is_left {
            self.0.sleepers.wake_one();
        }
        self.0.waiters.fetch_sub(1, Release);
    }
}

impl Cno {
    /// Waits until an EVD triggers, and returns its handle: `dat_cno_wait`. Returns 0 after
    /// [`Cno::trigger_by_consumer`].
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// No trigger is lost by an error.
    ///
    /// * QUEUE_EMPTY when the deadline has passed;
    /// * INTERRUPTED_CALL after a signal;
    /// * ABORT if the CNO is closed, or its last EVD leaves.
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
                // The EVD was freed in the meantime.
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

    /// Checks the EVDs that waits have returned. An EVD that still has events triggers again;
    /// another one triggers with its next event. If a thread is checking an EVD already, this
    /// function waits for it.
    pub(super) fn recheck(&self) {
        loop {
            let unchecked = self.inner.lock().table.first_unchecked();
            let Some((slot, handle)) = unchecked else {
                return;
            };
            if !self.sources.offer(handle) {
                // The EVD was freed, and will leave the CNO.
                self.inner.lock().table.clear_unchecked(slot, handle);
            }
        }
    }
}
