// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Wait queues with microsecond time-outs.
//!
//! The kernel crate's `CondVar` counts in jiffies and sleeps with a lock in hand; this one counts
//! in nanoseconds, and its condition is a closure over atomics, so that a waker needs no lock.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

mod alarm;

use self::alarm::{
    Alarm,
    Jiffies, //
};
use core::mem;
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_long,
    prelude::*,
    sync::LockClassKey,
    task::might_sleep,
    types::Opaque, //
};

/// When a wait gives up.
#[derive(Clone, Copy)]
pub(crate) enum Deadline {
    /// Never.
    Never,
    /// At some time.
    At(Time),
}

/// The time of a [`Deadline`].
#[derive(Clone, Copy)]
pub(crate) struct Time {
    /// Of `CLOCK_MONOTONIC`, in nanoseconds.
    at: i64,
    look: Look,
}

/// When to look again how much time is left.
#[derive(Clone, Copy)]
enum Look {
    /// Not before it is over.
    Over,
    /// By then.
    By(Jiffies),
    /// That is to be found out, before somebody sleeps.
    Unknown,
}

impl Look {
    /// Who has so many nanoseconds left.
    fn with(left: i64) -> Self {
        Jiffies::before(left).map_or(Self::Over, Self::By)
    }
}

impl Deadline {
    /// `microseconds` from now.
    pub(crate) fn after_micros(microseconds: u32) -> Self {
        let nanoseconds = i64::from(microseconds).saturating_mul(1_000);
        Self::At(Time {
            at: now().saturating_add(nanoseconds),
            look: Look::with(nanoseconds),
        })
    }

    /// Whether it is over.
    pub(crate) fn has_passed(self) -> bool {
        match self {
            Self::Never => false,
            Self::At(time) => now() >= time.at,
        }
    }
}

/// The time of `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn now() -> i64 {
    // SAFETY: Reading the clock has no precondition.
    unsafe { bindings::ktime_get() }
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The condition holds.
    Ready,
    /// The deadline has passed.
    TimedOut,
    /// A signal is pending.
    Interrupted,
}

/// A `wait_queue_head_t`.
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
    /// For those who have far deadlines.
    #[pin]
    alarm: Alarm,
}

// SAFETY: A wait queue is made to be shared: its list is protected by the lock inside.
unsafe impl Send for WaitQueue {}
// SAFETY: As above.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Makes an empty wait queue; use [`new_wait_queue!`].
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            head <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for a write, `name` and `key` are static.
                unsafe {
                    bindings::kdapl_helper_init_waitqueue_head(
                        slot,
                        name.as_char_ptr(),
                        key.as_ptr(),
                    )
                }
            }),
            alarm <- Alarm::new(),
        })
    }

    /// For C functions that wait on it.
    pub(super) fn as_ptr(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Wakes everybody who waits.
    ///
    /// Context: any, including hard IRQ. The caller has made the condition true before, with a full
    /// barrier in between if there is no lock that both sides take.
    pub(crate) fn wake_all(&self) {
        self.wake(0);
    }

    /// Wakes as many of those who wait alone; 0 is all of them.
    fn wake(&self, alone: i32) {
        // SAFETY: The head was initialised, and outlives this call.
        if !unsafe { bindings::kdapl_helper_wq_has_sleeper(self.head.get()) } {
            return;
        }
        // SAFETY: As above.
        unsafe {
            bindings::__wake_up(
                self.head.get(),
                bindings::TASK_NORMAL,
                alone,
                core::ptr::null_mut(),
            )
        };
    }

    /// Wakes one of those who wait [alone](WaitQueue::wait_alone), and all who do not.
    ///
    /// Context: as for [`WaitQueue::wake_all`].
    pub(crate) fn wake_one(&self) {
        self.wake(1);
    }

    /// Sleeps until `ready` says so, the deadline passes, or a signal is pending.
    ///
    /// `ready` wins: it is asked once more after each sleep. It also runs with the task state set, so
    /// it must not sleep itself.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(&self, deadline: &mut Deadline, ready: impl FnMut() -> bool) -> Outcome {
        self.wait_as(0, deadline, ready)
    }

    /// As [`WaitQueue::wait`]; of those who wait alone one is woken at a time.
    pub(crate) fn wait_alone(
        &self,
        deadline: &mut Deadline,
        ready: impl FnMut() -> bool,
    ) -> Outcome {
        self.wait_as(bindings::WQ_FLAG_EXCLUSIVE as i32, deadline, ready)
    }

    /// Sleeps until `ready` says so, whatever signals are pending: for what has to be over before the caller
    /// can go on, and will be. `ready` as for [`WaitQueue::wait`].
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait_for(&self, mut ready: impl FnMut() -> bool) {
        might_sleep();
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid for a write, and stays in place until `finish_wait` below.
        unsafe { bindings::init_wait_entry(entry.get(), 0) };
        loop {
            // SAFETY: Head and entry are initialised; `finish_wait` is called before either goes.
            unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    entry.get(),
                    bindings::TASK_UNINTERRUPTIBLE as i32,
                )
            };
            if ready() {
                break;
            }
            self.sleep_until(&mut Deadline::Never);
            if ready() {
                break;
            }
        }
        // SAFETY: As above; the entry is off the queue afterwards.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
    }

    fn wait_as(
        &self,
        flags: i32,
        deadline: &mut Deadline,
        mut ready: impl FnMut() -> bool,
    ) -> Outcome {
        might_sleep();
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: `entry` is valid for a write, and stays in place until `finish_wait` below.
        unsafe { bindings::init_wait_entry(entry.get(), flags) };
        let mut expired = false;
        let outcome = loop {
            // SAFETY: Head and entry are initialised; `finish_wait` is called before either goes.
            let signal = unsafe {
                bindings::prepare_to_wait_event(
                    self.head.get(),
                    entry.get(),
                    bindings::TASK_INTERRUPTIBLE as i32,
                )
            } != 0;
            if ready() {
                break Outcome::Ready;
            }
            if signal {
                break Outcome::Interrupted;
            }
            if expired {
                break Outcome::TimedOut;
            }
            expired = self.sleep_until(deadline);
            // Whoever wakes takes the entry off the queue: it need not go there again for a look.
            if ready() {
                break Outcome::Ready;
            }
        };
        // SAFETY: As above; the entry is off the queue afterwards.
        unsafe { bindings::finish_wait(self.head.get(), entry.get()) };
        outcome
    }

    /// Sleeps in the task state that was set before, on the queue, and says whether the deadline has
    /// passed. May end early.
    fn sleep_until(&self, deadline: &mut Deadline) -> bool {
        let Deadline::At(time) = deadline else {
            // SAFETY: The task state has been set.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        };
        let mut look = mem::replace(&mut time.look, Look::Unknown);
        if let Look::Unknown = look {
            look = Look::with(time.at.saturating_sub(now()));
        }
        if let Look::By(then) = look {
            self.alarm.set_by(then);
            // SAFETY: As above.
            unsafe { bindings::schedule_timeout(c_long::MAX) };
            return false;
        }
        let (mut at, absolute) = (time.at, bindings::hrtimer_mode_HRTIMER_MODE_ABS);
        // SAFETY: `at` lives through the call; the task state has been set.
        let left = unsafe { bindings::schedule_hrtimeout_range(&raw mut at, 0, absolute) };
        left == 0
    }
}

/// Makes a [`WaitQueue`] with a lockdep class of its own.
macro_rules! new_wait_queue {
    ($name:literal) => {
        $crate::sys::wait::WaitQueue::new(::kernel::c_str!($name), ::kernel::static_lock_class!())
    };
}
pub(crate) use new_wait_queue;
