// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Who is calling.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use kdapl_bindings as bindings;
use kernel::task::Task;

/// A number of the running task, which no other task has while it lives; never 0.
///
/// Context: process.
pub(crate) fn current() -> usize {
    Task::current_raw().addr()
}

/// Whether the running task may reach all memory of the machine anyway: `CAP_SYS_RAWIO`, outside of
/// every user namespace.
///
/// Context: process.
pub(crate) fn may_raw_io() -> bool {
    // SAFETY: Only looks at the task that runs.
    unsafe { bindings::kdapl_helper_may_raw_io() }
}

/// Whether a signal is pending for the running task.
///
/// Context: process.
pub(crate) fn has_signal() -> bool {
    kernel::current!().signal_pending()
}

/// Whether the running task is to end.
///
/// Context: process.
pub(crate) fn is_killed() -> bool {
    // SAFETY: Only looks at the task that runs.
    unsafe { bindings::kdapl_helper_is_killed() }
}

/// Lets others run, if it is their turn.
///
/// Context: process; sleeps.
pub(crate) fn cond_resched() {
    // SAFETY: The caller may sleep.
    unsafe { bindings::kdapl_helper_cond_resched() };
}
