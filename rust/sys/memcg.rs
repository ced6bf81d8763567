// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Charges allocations to the memory cgroup of another process.
//!
//! A kernel worker's allocations are charged to no cgroup, even with `GFP_KERNEL_ACCOUNT`. A peer's
//! connection request creates objects for the consumer that listens, so the consumer's memory
//! cgroup is charged for them.
//!
//! All connections share the worker. If it met a cgroup limit with ordinary flags, it would reclaim
//! memory and run the cgroup's OOM (out of memory) killer, and all other connections would wait. It
//! therefore allocates with [`flags_for_others`], so that an allocation fails at once instead.
//!
//! C headers: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// Returns allocation flags for memory that is charged to another process: accounted, and without
/// waiting for memory to be freed.
pub(crate) fn flags_for_others() -> Flags {
    (GFP_KERNEL_ACCOUNT & !GFP_KERNEL) | GFP_NOWAIT
}

/// Calls `action` and charges its allocations to the calling process, even within
/// [`MemCgroup::charged`].
///
/// It is for actions that allocate with their own flags and may therefore wait. A kernel worker is
/// charged nothing.
///
/// Context: process.
pub(crate) fn charged_to_caller<T>(action: impl FnOnce() -> T) -> T {
    // INVARIANT: The pointer is null.
    MemCgroup(core::ptr::null_mut()).charged(action)
}

/// Process whose memory cgroup is charged for an allocation.
#[derive(Clone, Copy)]
pub(crate) enum Payer<'a> {
    /// The calling process. It may wait for memory to be freed.
    Caller,
    /// The process of this cgroup. The caller does not wait.
    Other(&'a MemCgroup),
}

impl Payer<'_> {
    /// Calls `allocate` with flags for its allocations, and charges them to the process.
    ///
    /// Context: process; sleeps if the caller pays.
    pub(crate) fn charged<T>(self, allocate: impl FnOnce(Flags) -> T) -> T {
        match self {
            Self::Caller => charged_to_caller(|| allocate(GFP_KERNEL_ACCOUNT)),
            Self::Other(cgroup) => cgroup.charged(|| allocate(flags_for_others())),
        }
    }
}

/// A counted reference to the memory cgroup of a process.
///
/// # Invariants
///
/// The pointer is null (there are no memory cgroups), or valid, and this value owns one reference.
pub(crate) struct MemCgroup(*mut bindings::mem_cgroup);

// SAFETY: References to a memory cgroup may be taken and dropped from any thread.
unsafe impl Send for MemCgroup {}
// SAFETY: As above. No method changes the cgroup.
unsafe impl Sync for MemCgroup {}

impl MemCgroup {
    /// Returns the memory cgroup of the calling process. Context: process.
    pub(crate) fn current() -> Self {
        // SAFETY: The helper may be called in any task, with or without its own address space.
        // INVARIANT: The helper returned a counted reference, or null.
        Self(unsafe { bindings::kdapl_helper_get_current_memcg() })
    }

    /// Calls `action` and charges its allocations with [`flags_for_others`] to this cgroup.
    ///
    /// Context: process.
    pub(crate) fn charged<T>(&self, action: impl FnOnce() -> T) -> T {
        // SAFETY: By the type invariant the cgroup is null or alive. `self` outlives this scope, at
        // the end of which the previous cgroup is restored. A panic does not unwind: it ends the
        // task.
        let before = unsafe { bindings::kdapl_helper_set_active_memcg(self.0) };
        let result = action();
        // SAFETY: The code that set the previous cgroup keeps it alive until its own scope ends.
        unsafe { bindings::kdapl_helper_set_active_memcg(before) };
        result
    }
}

impl Drop for MemCgroup {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns a reference, or the pointer is null, which
        // the helper accepts.
        unsafe { bindings::kdapl_helper_put_memcg(self.0) };
    }
}
