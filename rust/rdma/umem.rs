// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pinned memory of processes.
//!
//! C header: [`include/rdma/ib_umem.h`](srctree/include/rdma/ib_umem.h)

use super::{
    charge::charge_pinned,
    device::Device,
    mr::{
        may_pin,
        Access, //
    },
};
use crate::sys::user::FixedCharge;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc, //
    },
    task::might_sleep, //
};

/// Memory of a process that is pinned and mapped for a device.
///
/// # Invariants
///
/// `raw` is a live `ib_umem` of `_device`, owned by this value.
pub(crate) struct Umem {
    raw: NonNull<bindings::ib_umem>,
    /// The device may use the pages for as long as it exists, so they stay pinned for ever.
    stays: Atomic<bool>,
    /// Taken in `drop` alone.
    charge: Option<FixedCharge>,
    _device: Arc<Device>,
}

// SAFETY: An `ib_umem` does not change until its release, which any thread may do.
unsafe impl Send for Umem {}
// SAFETY: As above.
unsafe impl Sync for Umem {}

impl Umem {
    /// Pins `length` bytes of the calling process's memory from `start` on, for uses within
    /// `access`. The pages are charged to the `RLIMIT_MEMLOCK` of the process and to its user until
    /// the drop.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EFAULT` if part of the range is not mapped or not writable as required, `ENOMEM` above the
    /// limit of the process or the machine's memory, `EAGAIN` above the limit of the user, `EINVAL`
    /// for an impossible range.
    pub(crate) fn pin(
        device: Arc<Device>,
        start: u64,
        length: u64,
        access: Access,
    ) -> Result<Self> {
        might_sleep();
        let charge = charge_pinned(may_pin(start, length)?)?;
        // SAFETY: The device is alive. This is a system call of the process that owns the memory.
        let raw = unsafe {
            bindings::kdapl_helper_umem_get(
                device.as_ptr(),
                start,
                length,
                u32::from(access) as i32,
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // INVARIANT: The memory was just pinned for this device.
        Ok(Self {
            raw,
            stays: Atomic::new(false),
            charge: Some(charge),
            _device: device,
        })
    }

    /// Keeps the pages pinned for ever: a region that uses them could not be destroyed.
    pub(super) fn stay(&self) {
        self.stays.store(true, Release);
    }

    /// Returns the C pointer, which is valid as long as `self`.
    pub(super) fn as_ptr(&self) -> *mut bindings::ib_umem {
        self.raw.as_ptr()
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        if self.stays.load(Acquire) {
            core::mem::forget(self.charge.take());
            return;
        }
        // SAFETY: By the type invariant this value owns the memory, and the device is alive.
        unsafe { bindings::ib_umem_release(self.raw.as_ptr()) };
    }
}
