// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Far deadlines, for next to nothing.
//!
//! Nearly every sleep ends long before its deadline, so that the price of a time-out is that of setting and
//! deleting its timer. Here neither is done: who sleep in one place have one timer of the kernel's wheel, which
//! wakes them all to look how much time they have left. Whoever goes to sleep sets it only if it would
//! ring later than that, or not at all, and nobody deletes it.
//!
//! C header: [`include/linux/timer.h`](srctree/include/linux/timer.h)

use super::{
    Deadline,
    Outcome, //
};
use crate::model::wheel;
use core::{
    mem,
    pin::Pin, //
};
use kdapl_bindings as bindings;
use kernel::{
    container_of,
    ffi::{
        c_long,
        c_ulong, //
    },
    prelude::*,
    time::msecs_to_jiffies,
    types::Opaque, //
};

/// A time, in jiffies.
#[derive(Clone, Copy)]
struct Jiffies(c_ulong);

/// When to look again how much time is left.
#[derive(Clone, Copy)]
pub(super) struct Look(Next);

#[derive(Clone, Copy)]
enum Next {
    /// Not before it is over.
    Over,
    /// By then.
    By(Jiffies),
    /// That is to be found out, before somebody sleeps.
    Unknown,
}

impl Look {
    /// To be found out before somebody sleeps.
    pub(super) fn unknown() -> Self {
        Self(Next::Unknown)
    }

    /// As above, by how many nanoseconds are left from now.
    pub(super) fn with(nanoseconds: i64) -> Self {
        Self(Jiffies::before(nanoseconds).map_or(Next::Over, Next::By))
    }
}

impl Jiffies {
    /// When to look again, who has so many nanoseconds left from now; `None` if that is soon.
    fn before(nanoseconds: i64) -> Option<Self> {
        let delay = msecs_to_jiffies(wheel::look_after(nanoseconds)?);
        // SAFETY: Reading the count of ticks has no precondition.
        let now = unsafe { bindings::kdapl_helper_jiffies() } as u64;
        let expiry = wheel::expiry(now, u32::try_from(delay).unwrap_or(u32::MAX));
        Some(Self(expiry as c_ulong))
    }
}

/// Where tasks sleep.
pub(super) trait Sleepers {
    /// Wakes them all. Context: any, including hard IRQ.
    fn wake(&self);
}

/// Those who sleep in one place, and their timer.
#[pin_data(PinnedDrop)]
pub(super) struct Alarm<S: Sleepers> {
    #[pin]
    pub(super) sleepers: S,
    #[pin]
    timer: Opaque<bindings::timer_list>,
}

impl<S: Sleepers> Alarm<S> {
    /// One that is not set.
    pub(super) fn new(sleepers: impl PinInit<S>) -> impl PinInit<Self> {
        pin_init!(Self {
            sleepers <- sleepers,
            timer <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for a write, and its pinned content stays there until the drop,
                // behind which the timer does not run.
                unsafe { bindings::kdapl_helper_timer_setup(slot, Some(ring::<S>)) }
            }),
        })
    }

    /// Sleeps until `ready` says so, the deadline passes, or a signal is pending. `prepare` makes the caller
    /// one of the sleepers, sets the task's state, and says whether a signal is pending; the caller undoes it.
    pub(super) fn wait(
        &self,
        deadline: &mut Deadline,
        mut prepare: impl FnMut() -> bool,
        mut ready: impl FnMut() -> bool,
    ) -> Outcome {
        let mut expired = false;
        loop {
            let signal = prepare();
            if ready() {
                return Outcome::Ready;
            }
            if signal {
                return Outcome::Interrupted;
            }
            if expired {
                return Outcome::TimedOut;
            }
            expired = self.sleep(deadline);
            // A look that ends it needs no preparations.
            if ready() {
                return Outcome::Ready;
            }
        }
    }

    /// Sleeps until it is woken, and says whether the deadline has passed. May end early. The caller has set
    /// the task's state, and is where [`Sleepers::wake`] finds it.
    fn sleep(&self, deadline: &mut Deadline) -> bool {
        let Deadline::At(time) = deadline else {
            // SAFETY: The task state has been set.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        };
        let mut look = mem::replace(&mut time.look.0, Next::Unknown);
        if let Next::Unknown = look {
            look = Look::with(time.left()).0;
        }
        if let Next::By(then) = look {
            self.set_by(then);
            // SAFETY: As above.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        }
        let (mut at, absolute) = (time.at, bindings::hrtimer_mode_HRTIMER_MODE_ABS);
        // SAFETY: `at` lives through the call; the task state has been set.
        let left = unsafe { bindings::schedule_hrtimeout_range(&raw mut at, 0, absolute) };
        left == 0
    }

    /// Wakes whoever sleeps by this time; may do so before. The kernel compares with the time that
    /// the timer was set to, which is that at which it rings: see [`wheel`].
    fn set_by(&self, time: Jiffies) {
        // SAFETY: The timer is initialised.
        unsafe { bindings::timer_reduce(self.timer.get(), time.0) };
    }
}

#[pinned_drop]
impl<S: Sleepers> PinnedDrop for Alarm<S> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The timer is initialised, and nobody sets it any more. What it calls takes no lock that
        // whoever drops it holds.
        unsafe { bindings::timer_shutdown_sync(self.timer.get()) };
    }
}

/// The timer's function. Context: soft IRQ.
///
/// # Safety
///
/// `timer` is that of an [`Alarm<S>`].
unsafe extern "C" fn ring<S: Sleepers>(timer: *mut bindings::timer_list) {
    let timer = Opaque::cast_from(timer.cast_const());
    // SAFETY: By the caller it lies in an alarm.
    let alarm = unsafe { &*container_of!(timer, Alarm<S>, timer) };
    alarm.sleepers.wake();
}
