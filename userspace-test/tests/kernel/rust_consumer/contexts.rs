// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Contexts that cannot sleep: those of `contexts.c`.

use kernel::ffi::c_void;

/// Number of contexts: `CONTEXTS` of `contexts.h`.
pub(crate) const CONTEXTS: u32 = 5;

extern "C" {
    fn call_in(context: u32, run: unsafe extern "C" fn(*mut c_void), data: *mut c_void);
    fn in_soft_interrupt() -> bool;
}

/// Calls a closure.
///
/// # Safety
///
/// `data` is a closure that nobody else uses.
unsafe extern "C" fn run<F: FnMut()>(data: *mut c_void) {
    // SAFETY: By the safety requirement.
    let closure = unsafe { &mut *data.cast::<F>() };
    closure();
}

/// Calls a closure once in a context below [`CONTEXTS`].
pub(crate) fn in_context<F: FnMut() + Send>(context: u32, mut closure: F) {
    // SAFETY: The closure is called during the call only, and may be sent.
    unsafe { call_in(context, run::<F>, (&raw mut closure).cast()) };
}

/// Returns whether the caller is in a soft interrupt.
pub(crate) fn is_soft_interrupt() -> bool {
    // SAFETY: The call has no arguments.
    unsafe { in_soft_interrupt() }
}
