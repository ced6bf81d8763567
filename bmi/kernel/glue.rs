// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of `glue.c`.

use crate::instance::Shared;
use core::ptr::NonNull;
use kernel::{
    ffi::c_void,
    prelude::*,
    sync::Arc, //
};

mod ffi {
    use kernel::ffi::{
        c_uint,
        c_void, //
    };

    extern "C" {
        pub(super) fn kdapl_bmi_random() -> u64;
        pub(super) fn kdapl_bmi_noio_save() -> c_uint;
        pub(super) fn kdapl_bmi_noio_restore(flags: c_uint);
        pub(super) fn kdapl_bmi_ticker_start(shared: *const c_void) -> *mut c_void;
        pub(super) fn kdapl_bmi_ticker_stop(ticker: *mut c_void);
    }
}

/// Returns a random number.
pub(crate) fn random() -> u64 {
    // SAFETY: The call has no requirements.
    unsafe { ffi::kdapl_bmi_random() }
}

/// Calls `with` while the thread allocates without I/O. Calls may be nested.
///
/// The lock of an instance is held over allocations. A file system, whose messages wait for this
/// lock, may have to write before memory is free.
pub(crate) fn without_io<T>(with: impl FnOnce() -> T) -> T {
    // SAFETY: The call has no requirements.
    let flags = unsafe { ffi::kdapl_bmi_noio_save() };
    let result = with();
    // SAFETY: The flags are those of this thread before.
    unsafe { ffi::kdapl_bmi_noio_restore(flags) };
    result
}

/// Work item that lets an instance know the time, until it is dropped.
pub(crate) struct Ticker {
    work: NonNull<c_void>,
    /// The work item has a pointer to it.
    _shared: Arc<Shared>,
}

// SAFETY: The work item belongs to no thread.
unsafe impl Send for Ticker {}
// SAFETY: There are no calls with a shared reference.
unsafe impl Sync for Ticker {}

impl Ticker {
    pub(crate) fn start(shared: &Arc<Shared>) -> Result<Self> {
        let pointer: *const Shared = &raw const **shared;
        // SAFETY: The pointer is valid until the drop of the result has stopped the work item.
        let work = unsafe { ffi::kdapl_bmi_ticker_start(pointer.cast()) };
        Ok(Self {
            work: NonNull::new(work).ok_or(ENOMEM)?,
            _shared: shared.clone(),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // SAFETY: The work item was started, and is stopped once.
        unsafe { ffi::kdapl_bmi_ticker_stop(self.work.as_ptr()) };
    }
}

/// Tells an instance the time.
///
/// # Safety
///
/// `shared` is that of a ticker that was not stopped.
#[no_mangle]
unsafe extern "C" fn kdapl_bmi_tick(shared: *const c_void) {
    // SAFETY: By the safety requirement.
    unsafe { &*shared.cast::<Shared>() }.tick();
}
