// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Results of operations, and unexpected messages.

use super::posts::array;
use super::{number, returned, store};
use crate::errors::{self, EINVAL};
use crate::header::BMI_unexpected_info;
use crate::library::{self, Library, Outcome};
use libkdapl_bmi::{Completion, Op, Unexpected};
use std::ffi::{c_int, c_void};
use std::time::Duration;

/// Where results go. Pointers may be NULL.
#[derive(Clone, Copy)]
struct Places {
    count: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
}

impl Places {
    /// Stores the results. Returns what the call returns: 1 if there are any, else 0.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn store(self, done: &[Completion]) -> c_int {
        for (index, completion) in done.iter().enumerate() {
            let error = completion.result.err().map_or(0, |failure| -errors::of_failure(failure));
            // SAFETY: As above.
            unsafe {
                store(self.errors, index, error);
                store(self.sizes, index, completion.length as i64);
                store(self.users, index, completion.user as *mut c_void);
            }
        }
        // SAFETY: As above.
        unsafe { store(self.count, 0, done.len() as c_int) };
        c_int::from(!done.is_empty())
    }
}

/// Makes a call that takes results. The count is 0 first, so that it is right after an error too.
///
/// # Safety
/// There is room for the count, unless the pointer is NULL.
unsafe fn counting(count: *mut c_int, take: impl FnOnce(&Library) -> Outcome) -> c_int {
    // SAFETY: As above.
    unsafe { store(count, 0, 0) };
    returned(match count.is_null() {
        true => Err(EINVAL),
        false => library::get().and_then(|library| take(&library)),
    })
}

/// Returns how many results there is room for.
fn room(incount: c_int) -> Outcome<usize> {
    usize::try_from(incount).ok().filter(|room| *room > 0).ok_or(EINVAL)
}

/// Returns the time of a wait; negative numbers are no limit.
fn idle(milliseconds: c_int) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

#[no_mangle]
extern "C" fn BMI_test(
    id: i64,
    count: *mut c_int,
    error: *mut i32,
    size: *mut i64,
    user: *mut *mut c_void,
    idle_ms: c_int,
    context: i64,
) -> c_int {
    let places = Places { count, errors: error, sizes: size, users: user };
    let take = |library: &Library| {
        let (context, op) = (library.context(context)?, Op::from_raw(id as u64));
        if !context.has(op) {
            return Err(EINVAL);
        }
        let done = context.wait_for(op, idle(idle_ms)).map_err(number)?;
        // SAFETY: The program has room for a result.
        Ok(unsafe { places.store(done.as_slice()) })
    };
    // SAFETY: The program has room for the count.
    unsafe { counting(count, take) }
}

#[no_mangle]
extern "C" fn BMI_testsome(
    incount: c_int,
    ids: *mut i64,
    count: *mut c_int,
    indices: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
    idle_ms: c_int,
    context: i64,
) -> c_int {
    let places = Places { count, errors, sizes, users };
    let take = |library: &Library| {
        let context = library.context(context)?;
        // SAFETY: The program's array has `incount` entries.
        let ids = unsafe { array(ids.cast_const(), incount) }?;
        let all: Vec<Op> =
            ids.iter().filter(|id| **id != 0).map(|id| Op::from_raw(*id as u64)).collect();
        if !all.iter().all(|op| context.has(*op)) {
            return Err(EINVAL);
        }
        let done = match all.as_slice() {
            [] => Vec::new(),
            all => context.wait_for_some(all, idle(idle_ms)).map_err(number)?,
        };
        for (place, completion) in done.iter().enumerate() {
            let id = completion.op.to_raw() as i64;
            let index = ids.iter().position(|other| *other == id).unwrap_or_default();
            // SAFETY: The program has room for `incount` results.
            unsafe { store(indices, place, index as c_int) };
        }
        // SAFETY: As above.
        Ok(unsafe { places.store(&done) })
    };
    // SAFETY: The program has room for the count.
    unsafe { counting(count, take) }
}

#[no_mangle]
extern "C" fn BMI_testcontext(
    incount: c_int,
    ids: *mut i64,
    count: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
    idle_ms: c_int,
    context: i64,
) -> c_int {
    let places = Places { count, errors, sizes, users };
    let take = |library: &Library| {
        let context = library.context(context)?;
        let done = context.wait(room(incount)?, idle(idle_ms)).map_err(number)?;
        for (place, completion) in done.iter().enumerate() {
            // SAFETY: The program has room for `incount` results.
            unsafe { store(ids, place, completion.op.to_raw() as i64) };
        }
        // SAFETY: As above.
        Ok(unsafe { places.store(&done) })
    };
    // SAFETY: The program has room for the count.
    unsafe { counting(count, take) }
}

#[no_mangle]
extern "C" fn BMI_testunexpected(
    incount: c_int,
    count: *mut c_int,
    info: *mut BMI_unexpected_info,
    idle_ms: c_int,
) -> c_int {
    let take = |library: &Library| {
        let most = room(incount)?;
        if info.is_null() {
            return Err(EINVAL);
        }
        let taken = library.bmi.wait_unexpected(most, idle(idle_ms)).map_err(number)?;
        for (place, message) in taken.iter().enumerate() {
            // SAFETY: The program has room for `incount` messages.
            unsafe { store(info, place, described(library, message)) };
        }
        // SAFETY: As above.
        unsafe { store(count, 0, taken.len() as c_int) };
        Ok(c_int::from(!taken.is_empty()))
    };
    // SAFETY: The program has room for the count.
    unsafe { counting(count, take) }
}

/// Describes a message to C, in a buffer of its own.
fn described(library: &Library, message: &Unexpected) -> BMI_unexpected_info {
    let bytes = message.bytes();
    // SAFETY: malloc() takes any length. At least one byte, so that only an error is NULL.
    let buffer = unsafe { libc::malloc(bytes.len().max(1)) };
    let mut info = BMI_unexpected_info {
        error_code: 0,
        addr: library.addresses().of(&message.peer, library.counts_references),
        buffer,
        size: bytes.len() as i64,
        tag: message.tag,
    };
    if buffer.is_null() {
        (info.error_code, info.size) = (-errors::ENOMEM, 0);
    } else {
        // SAFETY: The buffer is new, and has as many bytes.
        unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    info
}

#[no_mangle]
extern "C" fn BMI_unexpected_free(_address: i64, buffer: *mut c_void) -> c_int {
    // SAFETY: The buffer is one of `described`, or NULL.
    unsafe { libc::free(buffer) };
    0
}
