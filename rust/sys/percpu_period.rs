// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits for work items of the kernel's per-CPU workqueues.

use super::workqueue::period_queue;
use kdapl_bindings as bindings;

/// Point in time, for [`PercpuPeriod::wait`].
///
/// A work item of a per-CPU workqueue of normal priority runs in the pool of its CPU. The pool
/// starts an item only while none of its items runs: one that sleeps does not count as running, one
/// that is preempted does. So an item that starts after this point shows that each item that ran on
/// that CPU before has ended or has slept. Two kinds of items are exceptions: those that have used
/// 10 ms of the CPU (`workqueue.cpu_intensive_thresh_us`), and those of a CPU that goes offline.
#[derive(Clone, Copy)]
pub(crate) struct PercpuPeriod(usize);

impl PercpuPeriod {
    /// Returns the current point in time. What the caller has written before is visible to items
    /// that start after a later [`PercpuPeriod::wait`] has returned. Context: any.
    pub(crate) fn now() -> Self {
        // SAFETY: The function has no preconditions.
        Self(unsafe { bindings::kdapl_helper_percpu_period() })
    }

    /// Waits until each work item that ran at this point, in a per-CPU workqueue of normal
    /// priority, has ended or has slept.
    ///
    /// One wait of any thread, if it begins after this point, serves all.
    ///
    /// Context: process; sleeps.
    pub(crate) fn wait(self) {
        // SAFETY: The caller may sleep. The queue exists: the module ends its listeners before.
        unsafe { bindings::kdapl_helper_await_percpu_period(period_queue(), self.0) };
    }
}
