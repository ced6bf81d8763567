// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits for work items of the kernel's per-CPU workqueues.

use super::workqueue::period_queue;
use kdapl_bindings as bindings;

/// Point in time, for [`PercpuPeriod::wait`].
///
/// Items of per-CPU workqueues of normal priority run in the kernel's pool of the CPU, in which an
/// item starts only while no other one runs: those that sleep do not count, those that are
/// preempted do. So an item that starts later than this point shows that those of that CPU which
/// ran before have ended or have slept. The exceptions are items that have used 10 ms of the CPU
/// (`workqueue.cpu_intensive_thresh_us`), and those of a CPU that is taken offline meanwhile.
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
