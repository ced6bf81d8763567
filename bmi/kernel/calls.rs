// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls of `include/rdma/kdapl_bmi.h`.
//!
//! # Safety
//!
//! By the header, an instance is not closed during a call with it. Pointers of callers are NULL
//! where it says so, or valid for the call; arrays have as many members as the count says; strings
//! end with a NUL. Memory of an operation is valid and not accessed by others until the operation
//! was tested for.

mod information;
mod posts;
mod results;

use crate::{
    address::Hosts,
    engine::{
        Key,
        OpId,
        PeerId, //
    },
    home::UNEXPECTED_PLACE,
    instance::{
        Instance,
        Shared, //
    },
    options::{
        Options,
        Wanted, //
    },
};
use kernel::{
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*, //
};

/// Converts a result to its C form.
fn ret(result: Result<c_int>) -> c_int {
    result.unwrap_or_else(|error| error.to_errno())
}

/// Returns what the calls of an instance share.
///
/// # Safety
///
/// `bmi` is NULL, or an instance that is not closed before the result was used.
unsafe fn shared<'a>(bmi: *const Instance) -> Result<&'a Shared> {
    // SAFETY: By the safety requirement.
    let instance = unsafe { bmi.as_ref() };
    instance.map(Instance::shared).ok_or(EINVAL)
}

/// Writes to an output argument, which may be NULL.
///
/// # Safety
///
/// `to` is NULL or valid for a write.
unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: By the safety requirement.
        unsafe { to.write(value) };
    }
}

/// Returns the operation of a number, which may be an invention.
fn op_of(id: i64) -> OpId {
    OpId(Key::from_raw(id as u64))
}

/// Returns the peer of a number, which may be an invention.
fn peer_of(address: i64) -> PeerId {
    PeerId(Key::from_raw(address as u64))
}

/// Returns a context; `Err` for one that cannot exist.
fn context_of(id: i64) -> Result<u8> {
    let context = u8::try_from(id).map_err(|_| EINVAL)?;
    (usize::from(context) < UNEXPECTED_PLACE)
        .then_some(context)
        .ok_or(EINVAL)
}

/// Returns a string of a caller.
///
/// # Safety
///
/// `text` is NULL, or a string that stays valid as long as the result is used.
unsafe fn string<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: By the safety requirement.
    (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) })
}

/// `bmi_open_with()`.
///
/// # Safety
///
/// As of the module. `options` is NULL, or valid for a read.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_open_with(
    adapter: *const c_char,
    listen: *const c_char,
    options: *const Wanted,
) -> *mut Instance {
    // SAFETY: By the safety requirement.
    let (adapter, listen) = unsafe { (string(adapter), string(listen)) };
    // SAFETY: By the safety requirement.
    let wanted = unsafe { options.as_ref() };
    let open = || {
        let parse = |text: &CStr| text.to_str().ok().and_then(Hosts::parse).ok_or(EINVAL);
        let options = wanted.map_or_else(|| Ok(Options::default()), |it| Options::wanted(*it))?;
        let listen = listen.map(parse).transpose()?;
        Instance::open(adapter.ok_or(EINVAL)?, listen, options)
    };
    open().map_or_else(|error: Error| error.to_ptr(), KBox::into_raw)
}

/// `bmi_close()`.
///
/// # Safety
///
/// As of the module. `bmi` is NULL or of `bmi_open_with()`, and closed once.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_close(bmi: *mut Instance) {
    if !bmi.is_null() {
        // SAFETY: By the safety requirement.
        drop(unsafe { KBox::from_raw(bmi) });
    }
}

/// `bmi_open_context()`.
///
/// # Safety
///
/// As of the module.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_open_context(
    bmi: *const Instance,
    context_id: *mut i64,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let open = || {
        if context_id.is_null() {
            return Err(EINVAL);
        }
        shared?
            .with(|inner| inner.state.engine.open_context())
            .ok_or(EBUSY)
    };
    ret(open().map(|context| {
        // SAFETY: By the safety requirement.
        unsafe { put(context_id, i64::from(context)) };
        0
    }))
}

/// `bmi_close_context()`.
///
/// # Safety
///
/// As of the module.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_close_context(bmi: *const Instance, context_id: i64) {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    if let (Ok(context), Ok(shared)) = (context_of(context_id), shared) {
        shared.with(|inner| inner.state.close_context(context));
        shared.wait_for_close(context);
    }
}

/// `bmi_cancel()`.
///
/// # Safety
///
/// As of the module.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_cancel(
    bmi: *const Instance,
    id: i64,
    context_id: i64,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let cancel = || {
        let context = context_of(context_id)?;
        shared?.with(|inner| inner.state.cancel(op_of(id), context))
    };
    ret(cancel().map(|()| 0))
}
