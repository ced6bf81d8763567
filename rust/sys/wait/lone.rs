// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A place in which one task at a time can wait.
//!
//! With a single waiter a wait queue's list and lock are not needed. The waker only needs a pointer
//! to the task while it waits.
//!
//! C header: [`include/linux/rcuwait.h`](srctree/include/linux/rcuwait.h)

use super::{
    alarm::{
        Alarm,
        Sleepers, //
    },
    Deadline,
    SleepResult, //
};
use crate::model::atomic::AtomicBool;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    task::might_sleep,
    types::Opaque, //
};

/// A `struct rcuwait`.
struct Rcuwait(Opaque<bindings::rcuwait>);

impl Sleepers for Rcuwait {
    fn wake(&self) {
        // SAFETY: The structure is initialised. RCU keeps the waiting task alive while it is woken.
        unsafe { bindings::rcuwait_wake_up(self.0.get()) };
    }
}

/// A place in which one task at a time can wait.
#[pin_data]
pub(crate) struct LoneWaiter {
    #[pin]
    alarm: Alarm<Rcuwait>,
    taken: AtomicBool,
}

// SAFETY: The type is meant to be shared. A waker reads the task pointer under RCU. Only the task
// that has reserved the place writes it, and there is one such task at a time.
unsafe impl Send for LoneWaiter {}
// SAFETY: As above.
unsafe impl Sync for LoneWaiter {}

impl LoneWaiter {
    /// Creates a free place.
    pub(crate) fn new() -> impl PinInit<Self> {
        // All zeros is the state without a waiter, as `rcuwait_init` sets it.
        let nobody = Rcuwait(Opaque::new(bindings::rcuwait::default()));
        pin_init!(Self {
            alarm <- Alarm::new(nobody),
            taken: AtomicBool::new(false),
        })
    }

    /// Reserves the place for the caller, unless it is reserved already.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        (!self.taken.swap(true)).then(|| Place(self))
    }

    /// Returns whether the place is reserved. The owner of the reservation may be awake.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load_acquire()
    }

    /// Wakes the waiter, if there is one.
    ///
    /// Context: any, including hard IRQ. The caller must have made the condition true before. This
    /// function contains the full barrier between that store and the check for a waiter.
    pub(crate) fn wake(&self) {
        self.alarm.sleepers.wake();
    }
}

/// Reservation of a [`LoneWaiter`]. Dropped to release the place.
pub(crate) struct Place<'a>(&'a LoneWaiter);

impl Place<'_> {
    /// Sleeps until `ready` returns true, the deadline passes, or a signal is pending.
    ///
    /// `ready` takes precedence: it is checked once more after each sleep. It also runs with the
    /// task state set, so it must not sleep.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(
        &mut self,
        deadline: &mut Deadline,
        ready: impl FnMut() -> bool,
    ) -> SleepResult {
        might_sleep();
        let alarm = &self.0.alarm;
        let task = alarm.sleepers.0.get();
        // SAFETY: The structure is initialised, and only the owner of the reservation writes it.
        unsafe { bindings::kdapl_helper_prepare_to_rcuwait(task) };
        let outcome = alarm.wait(
            deadline,
            // SAFETY: `finish_rcuwait` below restores the task state.
            || unsafe { bindings::kdapl_helper_set_interruptible() },
            ready,
        );
        // SAFETY: As above.
        unsafe { bindings::finish_rcuwait(task) };
        outcome
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.swap(false);
    }
}
