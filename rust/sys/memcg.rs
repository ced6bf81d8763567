// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Who pays for memory that is allocated on somebody's behalf.
//!
//! What a worker of the kernel allocates is charged to nobody, even with `GFP_KERNEL_ACCOUNT`. A
//! peer's request makes objects for the consumer that listens, so its memory cgroup is to pay.
//!
//! The worker is everybody's. A cgroup at its limit would have it reclaim memory, and run the
//! cgroup's OOM killer, while all other connections wait. So it allocates with [`flags_for_others`],
//! which fail at once instead.
//!
//! C headers: [`include/linux/memcontrol.h`](srctree/include/linux/memcontrol.h),
//! [`include/linux/sched/mm.h`](srctree/include/linux/sched/mm.h)

use kdapl_bindings as bindings;
use kernel::{
    alloc::Flags,
    prelude::*, //
};

/// How to allocate memory that another process pays for: charged, and without waiting for any.
pub(crate) fn flags_for_others() -> Flags {
    (GFP_KERNEL_ACCOUNT & !GFP_KERNEL) | GFP_NOWAIT
}

/// Calls `action`; the calling process pays for what it allocates, as if nobody else was to.
///
/// For what allocates with flags of its own, and so might wait. A worker of the kernel pays nothing.
///
/// Context: process.
pub(crate) fn caller_pays<T>(action: impl FnOnce() -> T) -> T {
    // INVARIANT: Null.
    Payer(core::ptr::null_mut()).pays(action)
}

/// A reference to the memory cgroup of a process.
///
/// # Invariants
///
/// The pointer is null (there are no memory cgroups), or valid, and one reference to it is ours.
pub(crate) struct Payer(*mut bindings::mem_cgroup);

// SAFETY: References to a memory cgroup may be taken and dropped from any thread.
unsafe impl Send for Payer {}
// SAFETY: As above; nothing here mutates it.
unsafe impl Sync for Payer {}

impl Payer {
    /// The calling process. Context: process.
    pub(crate) fn current() -> Self {
        // SAFETY: May be called in any process, with or without memory of its own.
        // INVARIANT: The helper returned a referenced cgroup, or null.
        Self(unsafe { bindings::kdapl_helper_get_current_memcg() })
    }

    /// Calls `action`; this one pays for what it allocates with [`flags_for_others`].
    ///
    /// Context: process.
    pub(crate) fn pays<T>(&self, action: impl FnOnce() -> T) -> T {
        // SAFETY: By the invariant the cgroup is alive, or null, and `self` outlives the scope, at whose end
        // the one before is put back. A panic ends the kernel, not the scope.
        let before = unsafe { bindings::kdapl_helper_set_active_memcg(self.0) };
        let result = action();
        // SAFETY: Whoever set that one keeps it alive until its own scope ends.
        unsafe { bindings::kdapl_helper_set_active_memcg(before) };
        result
    }
}

impl Drop for Payer {
    fn drop(&mut self) {
        // SAFETY: By the invariant there is a reference to give back, unless it is null, which the
        // helper allows.
        unsafe { bindings::kdapl_helper_put_memcg(self.0) };
    }
}
