// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Who is calling.
//!
//! C header: [`include/linux/sched.h`](srctree/include/linux/sched.h)

use kernel::task::Task;

/// A number of the running task, which no other task has while it lives; never 0.
///
/// Context: process.
pub(crate) fn current() -> usize {
    Task::current_raw().addr()
}
