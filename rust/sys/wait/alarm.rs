// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One shared timer for long time-outs.
//!
//! Nearly every sleep ends long before its deadline, so the cost of a time-out is that of setting
//! and deleting a timer. This module avoids both for deadlines that are far away. All tasks that
//! sleep in one place share one timer of the kernel's timer wheel. When it expires it wakes all of
//! them, and each checks how much time it has left. A task that goes to sleep sets the timer only
//! if it is not set, or would expire too late for this task. No task deletes it. Near deadlines use
//! a high-resolution timer, because they need its precision.
//!
//! C header: [`include/linux/timer.h`](srctree/include/linux/timer.h)

use super::{
    Deadline,
    SleepResult, //
};
use crate::{
    model::shared_timer,
    sys::jiffies::Jiffies, //
};
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

/// Time of the next check of how much time is left.
#[derive(Clone, Copy)]
pub(super) struct NextCheck(Next);

#[derive(Clone, Copy)]
enum Next {
    /// No check is needed: the deadline is near, and a high-resolution timer is set to it.
    Over,
    /// The check takes place at this time or before.
    By(Jiffies),
    /// Unknown: to be computed before the sleep.
    Unknown,
}

impl NextCheck {
    /// Leaves the time to be computed before the sleep.
    pub(super) fn unknown() -> Self {
        Self(Next::Unknown)
    }

    /// Computes the time of the check. `nanoseconds` are left until the deadline.
    pub(super) fn with(nanoseconds: i64) -> Self {
        Self(check_before(nanoseconds).map_or(Next::Over, Next::By))
    }
}

/// Returns the time of the next check if `nanoseconds` are left until the deadline. `None` if the
/// deadline is near.
fn check_before(nanoseconds: i64) -> Option<Jiffies> {
    let delay = msecs_to_jiffies(shared_timer::recheck_delay_ms(nanoseconds)?);
    let delay = u32::try_from(delay).unwrap_or(u32::MAX);
    let expiry = shared_timer::expiry(Jiffies::now().0 as u64, delay);
    Some(Jiffies(expiry as c_ulong))
}

/// A place in which tasks sleep.
pub(super) trait WakeAll {
    /// Wakes all tasks that sleep here. Context: any, including hard IRQ.
    fn wake(&self);
}

/// The tasks that sleep in one place, and their shared timer.
#[pin_data(PinnedDrop)]
pub(super) struct Alarm<S: WakeAll> {
    #[pin]
    pub(super) sleepers: S,
    #[pin]
    timer: Opaque<bindings::timer_list>,
}

impl<S: WakeAll> Alarm<S> {
    /// Creates an alarm whose timer is not set.
    pub(super) fn new(sleepers: impl PinInit<S>) -> impl PinInit<Self> {
        pin_init!(Self {
            sleepers <- sleepers,
            timer <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for a write. The timer is pinned, so it stays there until
                // the drop, which shuts it down.
                unsafe { bindings::kdapl_helper_timer_setup(slot, Some(ring::<S>)) }
            }),
        })
    }

    /// Sleeps until `ready` returns true, the deadline passes, or a signal is pending.
    ///
    /// `prepare` adds the caller to the sleepers, sets the task state, and returns whether a signal
    /// is pending. The caller of this function undoes these afterwards.
    pub(super) fn wait(
        &self,
        deadline: &mut Deadline,
        mut prepare: impl FnMut() -> bool,
        mut ready: impl FnMut() -> bool,
    ) -> SleepResult {
        let mut expired = false;
        loop {
            let signal = prepare();
            if ready() {
                return SleepResult::Ready;
            }
            // A wait without time cannot be interrupted. Work of io_uring for this task, too, is a
            // pending signal.
            if expired || (signal && deadline.has_passed()) {
                return SleepResult::TimedOut;
            }
            if signal {
                return SleepResult::Interrupted;
            }
            expired = self.sleep(deadline);
            // A check here ends the wait without another preparation.
            if ready() {
                return SleepResult::Ready;
            }
        }
    }

    /// Sleeps until woken, and returns whether the deadline has passed. May return early.
    ///
    /// The caller has set the task state and is among the tasks that [`WakeAll::wake`] wakes.
    fn sleep(&self, deadline: &mut Deadline) -> bool {
        let Deadline::At(time) = deadline else {
            // SAFETY: The caller has set the task state.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        };
        // The computed check time is used once. After a wake-up less time is left, so it is
        // computed again.
        let mut next_check = mem::replace(&mut time.next_check.0, Next::Unknown);
        if let Next::Unknown = next_check {
            next_check = NextCheck::with(time.left()).0;
        }
        // Far deadline: the shared timer wakes this task in time for another check.
        if let Next::By(then) = next_check {
            self.set_by(then);
            // SAFETY: As above.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        }
        // Near deadline: a high-resolution timer measures the rest.
        let (mut at, absolute) = (time.at, bindings::hrtimer_mode_HRTIMER_MODE_ABS);
        // SAFETY: `at` lives through the call. The caller has set the task state.
        let left = unsafe { bindings::schedule_hrtimeout_range(&raw mut at, 0, absolute) };
        left == 0
    }

    /// Makes the timer expire at this time or before.
    ///
    /// `timer_reduce()` compares with the time to which the timer was set. The timer must expire at
    /// about that time: see [`shared_timer::expiry`].
    fn set_by(&self, time: Jiffies) {
        // SAFETY: The timer is initialised.
        unsafe { bindings::timer_reduce(self.timer.get(), time.0) };
    }
}

#[pinned_drop]
impl<S: WakeAll> PinnedDrop for Alarm<S> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The timer is initialised, and no task sets it any more. The timer function takes
        // no lock that the dropping task holds, so waiting for it cannot deadlock.
        unsafe { bindings::timer_shutdown_sync(self.timer.get()) };
    }
}

/// Timer function: wakes the sleepers. Context: soft IRQ.
///
/// # Safety
///
/// `timer` is the timer of an [`Alarm<S>`].
unsafe extern "C" fn ring<S: WakeAll>(timer: *mut bindings::timer_list) {
    let timer = Opaque::cast_from(timer.cast_const());
    // SAFETY: The caller guarantees that the timer is part of an alarm.
    let alarm = unsafe { &*container_of!(timer, Alarm<S>, timer) };
    alarm.sleepers.wake();
}
