// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    charge::{
        charge_pinned,
        Charge,
        Resource, //
    },
    leak::check_destroyed,
    pd::Pd, //
};
use crate::sys::user::FixedCharge;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    impl_flags,
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc,
    task::might_sleep, //
};

impl_flags!(
    /// Access rights to a memory region.
    #[derive(Debug, Clone, Default, Copy, PartialEq, Eq)]
    pub(crate) struct Access(u32);

    /// One access right. Local reads are always allowed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Permission {
        /// Receives and RDMA reads of this side may write to the region.
        LocalWrite = bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE,
        /// The peer may write to the region.
        RemoteWrite = bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE,
        /// The peer may read the region.
        RemoteRead = bindings::ib_access_flags_IB_ACCESS_REMOTE_READ,
        /// The peer may perform atomic operations on the region.
        RemoteAtomic = bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC,
    }
);

/// A memory region over memory of a process.
///
/// # Invariants
///
/// `raw` is a live memory region in `_pd`, owned by this value.
pub(crate) struct Mr {
    raw: NonNull<bindings::ib_mr>,
    charge: Charge,
    /// Taken in `drop` alone.
    pinned: Option<FixedCharge>,
    _pd: Arc<Pd>,
}

// SAFETY: `ib_core` allows the use of a memory region from any thread.
unsafe impl Send for Mr {}
// SAFETY: As above.
unsafe impl Sync for Mr {}

impl Mr {
    /// Pins and registers `length` bytes of the calling process's memory from `start` on. Segments
    /// address the region from `address` on. Returns `None` if the driver is not known to register
    /// memory of processes for a kernel caller, or at an address other than `start`.
    ///
    /// The pages are charged to the `RLIMIT_MEMLOCK` of the process, and to its user. They stay
    /// pinned until the drop, even if the process unmaps them.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EFAULT` if part of the range is not mapped or not writable as required, `ENOMEM` above the
    /// limit of the process or the machine's memory, `EAGAIN` above a limit of the user, `EINVAL`
    /// or `E2BIG` for an impossible length, `ERANGE` if `address` has not the same offset in
    /// its page as `start`, any other error of the driver.
    pub(crate) fn register_user(
        pd: Arc<Pd>,
        start: u64,
        length: u64,
        address: u64,
        access: Access,
    ) -> Result<Option<Self>> {
        might_sleep();
        let driver = pd.device().driver();
        if !driver.registers_user_memory {
            pd.device().warn_of_memory();
            return Ok(None);
        }
        if address != start && !driver.rebases_user_regions {
            return Ok(None);
        }
        if (address ^ start) % PAGE_SIZE as u64 != 0 {
            return Err(ERANGE);
        }
        let pages = may_pin(start, length)?;
        if !driver.can_register(pages) {
            return Err(E2BIG);
        }
        let charge = Charge::new(pd.device(), Resource::Region(length))?;
        let pinned = charge_pinned(pages)?;
        // SAFETY: The protection domain is alive. This is a system call of the process that owns
        // the memory. The driver does not need the user data that this call lacks:
        // `registers_user_memory` says so.
        let raw = unsafe {
            bindings::ib_reg_user_mr(
                pd.as_ptr(),
                start,
                length,
                address,
                u32::from(access) as i32,
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: The region was just registered.
        Ok(Some(Self {
            raw,
            charge,
            pinned: Some(pinned),
            _pd: pd,
        }))
    }

    /// Returns the key for work requests of this side.
    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: By the type invariant the region is alive.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    /// Returns the key for the peer.
    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: By the type invariant the region is alive.
        unsafe { (*self.raw.as_ptr()).rkey }
    }
}

impl Drop for Mr {
    fn drop(&mut self) {
        // SAFETY: By the type invariant this value owns the region, which is not used afterwards.
        if !unsafe { destroy(self.raw, &mut self.charge) } {
            // The pages stay pinned.
            core::mem::forget(self.pinned.take());
        }
    }
}

/// Destroys a region. Waits for current users of the driver. Returns whether it is destroyed.
///
/// Context: process; sleeps.
///
/// # Safety
///
/// The caller owns the region, and does not use it afterwards.
pub(super) unsafe fn destroy(raw: NonNull<bindings::ib_mr>, charge: &mut Charge) -> bool {
    // SAFETY: The caller guarantees it.
    let ret = unsafe { bindings::ib_dereg_mr_user(raw.as_ptr(), core::ptr::null_mut()) };
    check_destroyed("memory region", ret, (), charge)
}

/// Returns the number of pages of a range of the calling process, if it may pin so many.
pub(super) fn may_pin(start: u64, length: u64) -> Result<u64> {
    // SAFETY: The helper does not access the range.
    let pages = unsafe { bindings::kdapl_helper_may_pin(start, length) };
    u64::try_from(pages).map_err(|_| Error::from_errno(i32::try_from(pages).unwrap_or(0)))
}
