// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of drivers that discard the signals of their caller.
//!
//! Over iWARP some drivers sleep until no other thread uses a connection. If a signal ends that
//! sleep, they call `flush_signals()` and sleep again. The process would miss these signals. After
//! a SIGKILL it would run on, and ignore each later one.

use crate::{
    model::driver::DriverProperties,
    sys::worker_call::call_in_worker, //
};
use kdapl_bindings as bindings;

/// A call that may be made in any thread.
struct AnyThread<F>(F);

// SAFETY: `without_signals` requires it of the call.
unsafe impl<F> Send for AnyThread<F> {}

/// Makes a call of `ib_core` or `rdma_cm` that ends, accepts or rejects a connection. With a driver
/// that discards signals, a worker makes it.
///
/// Context: process; sleeps.
///
/// # Safety
///
/// `device` is null or alive. `call` may be made in any thread, and takes no lock of the caller.
pub(super) unsafe fn without_signals<R: Send>(
    device: *const bindings::ib_device,
    call: impl FnOnce() -> R,
) -> R {
    // SAFETY: The caller guarantees that the device is alive if there is one.
    let driver = unsafe { device.as_ref() }.map(|device| device.ops.driver_id);
    if !driver.is_some_and(|id| DriverProperties::from_id(id).discards_signals) {
        return call();
    }
    let call = AnyThread(call);
    call_in_worker(move || {
        // Captures the whole value, not only the field.
        let AnyThread(call) = { call };
        call()
    })
}
