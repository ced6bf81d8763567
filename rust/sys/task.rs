// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Properties of the running task.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    prelude::*,
    task::Task, //
};

/// Returns a number that identifies the running task. No other task has it during the task's life.
/// It is never 0.
///
/// Context: process.
pub(crate) fn current() -> usize {
    Task::current_raw().addr()
}

/// Returns whether the running task may access all memory of the machine by other means: whether it
/// has `CAP_SYS_RAWIO` in the initial user namespace.
///
/// Context: process.
pub(crate) fn may_raw_io() -> bool {
    // SAFETY: The helper only reads the running task.
    unsafe { bindings::kdapl_helper_may_raw_io() }
}

/// Returns whether a signal is pending for the running task.
///
/// Context: process.
pub(crate) fn has_signal() -> bool {
    kernel::current!().signal_pending()
}

/// Returns whether a fatal signal is pending for the running task.
///
/// Context: process.
pub(crate) fn is_killed() -> bool {
    // SAFETY: Only looks at the task that runs.
    unsafe { bindings::kdapl_helper_is_killed() }
}

/// Returns whether the process of the running task was killed, or exits.
///
/// Context: process.
pub(crate) fn is_ending() -> bool {
    // SAFETY: The helper only reads the running task.
    unsafe { bindings::kdapl_helper_is_ending() }
}

/// Returns whether the running task is a thread of the kernel.
///
/// Context: process.
pub(crate) fn is_kernel_thread() -> bool {
    // SAFETY: The helper only reads the running task.
    unsafe { bindings::kdapl_helper_is_kernel_thread() }
}

/// Calls `action` so that its allocations start no I/O: a storage consumer may hold what I/O needs.
///
/// Context: process.
pub(crate) fn without_io<R>(action: impl FnOnce() -> R) -> R {
    // SAFETY: The helper changes a flag of the running task.
    let flags = unsafe { bindings::kdapl_helper_begin_noio() };
    let result = action();
    // SAFETY: The flags are those that the call above has returned.
    unsafe { bindings::kdapl_helper_end_noio(flags) };
    result
}

/// Yields the CPU if the scheduler has requested it.
///
/// Context: process; sleeps.
pub(crate) fn cond_resched() {
    // SAFETY: The caller may sleep.
    unsafe { bindings::kdapl_helper_cond_resched() };
}

/// Returns whether the caller is in an interrupt, hard or soft, and so not in a thread.
///
/// Context: any.
pub(crate) fn is_in_interrupt() -> bool {
    // SAFETY: The helper only reads the state of the processor.
    unsafe { bindings::kdapl_helper_in_interrupt() }
}

/// Context of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallContext {
    /// The caller may sleep.
    Process,
    /// The caller may not sleep: it is in an interrupt, holds a spinlock or is an RCU reader.
    Atomic,
}

impl CallContext {
    /// Returns the context of the caller. On a kernel without CONFIG_PREEMPT_COUNT it is not known,
    /// and the result is [`CallContext::Atomic`].
    pub(crate) fn current() -> Self {
        // SAFETY: The helper only reads the running task and the state of the processor.
        match unsafe { bindings::kdapl_helper_may_sleep() } {
            true => Self::Process,
            false => Self::Atomic,
        }
    }

    /// Returns whether the caller may sleep.
    pub(crate) fn may_sleep(self) -> bool {
        self == Self::Process
    }

    /// Returns the flags for allocations.
    pub(crate) fn allocation_flags(self) -> Flags {
        match self {
            Self::Process => GFP_KERNEL_ACCOUNT,
            Self::Atomic => GFP_ATOMIC,
        }
    }
}

#[kunit_tests(kdapl_sys_task)]
mod tests {
    use super::*;
    use crate::sys::lock::new_spinlock_irq;
    use kernel::sync::{
        rcu::read_lock,
        Arc, //
    };

    #[test]
    fn a_thread_may_sleep_without_a_lock() -> Result {
        let free = match cfg!(CONFIG_PREEMPT_COUNT) {
            true => CallContext::Process,
            false => CallContext::Atomic,
        };
        let lock = Arc::pin_init(new_spinlock_irq!(0, "tests::lock"), GFP_KERNEL)?;
        assert!(CallContext::current() == free);
        {
            let _guard = lock.lock();
            assert!(CallContext::current() == CallContext::Atomic);
        }
        {
            let _guard = read_lock();
            assert!(CallContext::current() == CallContext::Atomic);
        }
        assert!(CallContext::current() == free);
        Ok(())
    }
}
