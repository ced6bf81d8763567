// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A place for one task to wait in.
//!
//! Where there is one waiter at a time a wait queue's list, and its lock, are for nothing: what is needed is
//! the task, for as long as it waits.
//!
//! C header: [`include/linux/rcuwait.h`](srctree/include/linux/rcuwait.h)

use super::{
    alarm::{
        Alarm,
        Sleepers, //
    },
    Deadline,
    Outcome, //
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
        // SAFETY: It was initialised. The task that it finds does not go while it is woken: see RCU.
        unsafe { bindings::rcuwait_wake_up(self.0.get()) };
    }
}

/// A place for one task to wait in.
#[pin_data]
pub(crate) struct LoneWaiter {
    #[pin]
    alarm: Alarm<Rcuwait>,
    taken: AtomicBool,
}

// SAFETY: It is made to be shared: whoever wakes reads the task under RCU, and it is written by who has the
// place, of whom there is one at a time.
unsafe impl Send for LoneWaiter {}
// SAFETY: As above.
unsafe impl Sync for LoneWaiter {}

impl LoneWaiter {
    /// A place that nobody has.
    pub(crate) fn new() -> impl PinInit<Self> {
        // Zeroes are nobody: `rcuwait_init`.
        let nobody = Rcuwait(Opaque::new(bindings::rcuwait::default()));
        pin_init!(Self {
            alarm <- Alarm::new(nobody),
            taken: AtomicBool::new(false),
        })
    }

    /// Takes the place, unless somebody has it.
    pub(crate) fn take(&self) -> Option<Place<'_>> {
        (!self.taken.swap(true)).then(|| Place(self))
    }

    /// Whether somebody has the place, asleep or not.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load_acquire()
    }

    /// Wakes who waits, if somebody does.
    ///
    /// Context: any, including hard IRQ. The caller has made the condition true before; the full barrier
    /// behind that is here.
    pub(crate) fn wake(&self) {
        self.alarm.sleepers.wake();
    }
}

/// A [`LoneWaiter`]'s place, until the drop.
pub(crate) struct Place<'a>(&'a LoneWaiter);

impl Place<'_> {
    /// Sleeps until `ready` says so, the deadline passes, or a signal is pending.
    ///
    /// `ready` wins: it is asked once more after each sleep. It also runs with the task state set, so
    /// it must not sleep itself.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(&mut self, deadline: &mut Deadline, ready: impl FnMut() -> bool) -> Outcome {
        might_sleep();
        let alarm = &self.0.alarm;
        let task = alarm.sleepers.0.get();
        // SAFETY: It was initialised, and whoever has the place is the only one to write it.
        unsafe { bindings::kdapl_helper_prepare_to_rcuwait(task) };
        let outcome = alarm.wait(
            deadline,
            // SAFETY: `finish_rcuwait` sets the state back.
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
