// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory that is registered once.

use super::returned;
use crate::errors::EINVAL;
use crate::library;
use std::ffi::{c_int, c_void};

#[no_mangle]
extern "C" fn BMI_memalloc(_address: i64, size: i64, _send_recv: c_int) -> *mut c_void {
    let allocate = || {
        let length = usize::try_from(size).ok().filter(|length| *length > 0)?;
        let library = library::get().ok()?;
        let memory = library.bmi.alloc(length).ok()?;
        let start = library.allocated().insert(memory);
        Some(start)
    };
    allocate().unwrap_or(0) as *mut c_void
}

#[no_mangle]
extern "C" fn BMI_memfree(
    _address: i64,
    buffer: *mut c_void,
    _size: i64,
    _send_recv: c_int,
) -> c_int {
    returned(library::get().and_then(|library| {
        // Operations with the memory keep it.
        let freed = library.allocated().remove(buffer as usize);
        freed.then_some(0).ok_or(EINVAL)
    }))
}
