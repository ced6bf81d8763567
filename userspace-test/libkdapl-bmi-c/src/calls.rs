// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The exported functions.
//!
//! A pointer of the program may be NULL where `bmi.h` allows it. Otherwise the functions trust the
//! program's pointers, as any C library does. A panic ends the process: nothing unwinds into C.

mod information;
mod memory;
mod posts;
mod results;

use crate::errors::{self, EINVAL};
use crate::library::{self, Outcome};
use libkdapl_bmi::Options;
use std::ffi::{c_char, c_int, CStr};

/// Environment variable with the place of the adapter.
const ADAPTER: &str = "KDAPL_BMI_ADAPTER";

/// Flags of `BMI_initialize`.
const SERVER: c_int = 1;
const AUTO_REF_COUNT: c_int = 4;

/// Returns what C gets: 0, 1 or the negative number of an error.
fn returned(outcome: Outcome) -> c_int {
    outcome.unwrap_or_else(|error| -error)
}

/// Returns the text at a pointer, if it is not NULL.
///
/// # Safety
/// The pointer is NULL, or to a C string that outlives the result.
unsafe fn text<'a>(pointer: *const c_char) -> Outcome<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: As above.
    unsafe { CStr::from_ptr(pointer) }.to_str().map(Some).map_err(|_| EINVAL)
}

/// Stores a result, unless the pointer is NULL.
///
/// # Safety
/// The pointer is NULL, or there is room for the value.
unsafe fn store<T>(place: *mut T, index: usize, value: T) {
    if !place.is_null() {
        // SAFETY: As above.
        unsafe { place.add(index).write(value) };
    }
}

#[no_mangle]
extern "C" fn BMI_initialize(
    method_list: *const c_char,
    listen_addr: *const c_char,
    flags: c_int,
) -> c_int {
    let options = || {
        // SAFETY: The program passes NULL or C strings.
        let (methods, listen) = unsafe { (text(method_list)?, text(listen_addr)?) };
        let ours = methods.is_none_or(|methods| methods.contains("kdapl"));
        if !ours || listen.is_some() != (flags & SERVER != 0) {
            return Err(EINVAL);
        }
        let options = Options {
            adapter: std::env::var(ADAPTER).ok(),
            listen: listen.map(str::to_owned),
            ..Options::default()
        };
        Ok((options, flags & AUTO_REF_COUNT != 0))
    };
    returned(library::initialize(options).map(|()| 0))
}

#[no_mangle]
extern "C" fn BMI_finalize() -> c_int {
    returned(library::finalize().map(|()| 0))
}

#[no_mangle]
extern "C" fn bmi_errno_to_pvfs(error: c_int) -> c_int {
    errors::of_errno(error)
}

#[no_mangle]
extern "C" fn BMI_open_context(context_id: *mut i64) -> c_int {
    returned(library::get().and_then(|library| {
        if context_id.is_null() {
            return Err(EINVAL);
        }
        let number = library.open_context()?;
        // SAFETY: The program has room for the number.
        unsafe { store(context_id, 0, number) };
        Ok(0)
    }))
}

#[no_mangle]
extern "C" fn BMI_close_context(context_id: i64) {
    if let Ok(library) = library::get() {
        library.close_context(context_id);
    }
}

/// Returns the number of an error of the Rust library.
fn number(error: libkdapl_bmi::Error) -> i32 {
    errors::of(&error)
}
