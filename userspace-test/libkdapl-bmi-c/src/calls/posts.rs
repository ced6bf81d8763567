// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts, and cancellation.

use super::{number, returned, store};
use crate::errors::EINVAL;
use crate::library::{self, Library, Outcome};
use libkdapl_bmi::{Context, Op, Part, Peer, Result};
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::slice;

/// Buffers of an operation.
#[derive(Clone, Copy)]
struct Buffers {
    buffers: *const *const c_void,
    sizes: *const i64,
    count: c_int,
    total: i64,
}

/// Other arguments of a post.
struct Arguments {
    id: *mut i64,
    address: i64,
    tag: i32,
    user: *mut c_void,
    context: i64,
    /// Bytes that an operation has received which is complete already.
    actual: *mut i64,
}

/// Post of the Rust library.
type Post = fn(&Context, &Peer, i32, &[Part], u64) -> Result<Op>;

impl Buffers {
    /// Returns the parts.
    ///
    /// # Safety
    /// The arrays have `count` entries, and the buffers are as [`Part::borrowed`] requires.
    unsafe fn parts(&self, library: &Library) -> Outcome<Vec<Part>> {
        let count = usize::try_from(self.count).map_err(|_| EINVAL)?;
        if count > 0 && (self.buffers.is_null() || self.sizes.is_null()) {
            return Err(EINVAL);
        }
        let mut parts = Vec::new();
        let allocated = library.allocated();
        let mut total = 0_i64;
        for index in 0..count {
            // SAFETY: The arrays have this entry.
            let (buffer, size) = unsafe { (*self.buffers.add(index), *self.sizes.add(index)) };
            total = total.checked_add(size).filter(|_| size >= 0).ok_or(EINVAL)?;
            if size == 0 {
                continue;
            }
            let start = NonNull::new(buffer.cast_mut().cast()).ok_or(EINVAL)?;
            let length = usize::try_from(size).map_err(|_| EINVAL)?;
            // SAFETY: The caller's promise.
            parts.push(unsafe { allocated.part(start, length) });
        }
        (total == self.total).then_some(parts).ok_or(EINVAL)
    }
}

/// Posts an operation. Returns 1 if it is complete with success.
///
/// # Safety
/// That of [`Buffers::parts`]; there is room for the results.
unsafe fn post(buffers: Buffers, arguments: &Arguments, post: Post) -> Outcome {
    let library = library::get()?;
    if arguments.id.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: The caller's promise.
    let parts = unsafe { buffers.parts(&library) }?;
    let context = library.context(arguments.context)?;
    let peer = {
        let addresses = library.addresses();
        addresses.get(arguments.address).map(|address| address.peer.clone()).ok_or(EINVAL)?
    };
    let user = arguments.user as u64;
    let op = post(&context, &peer, arguments.tag, &parts, user).map_err(number)?;
    // An error is left for the test.
    let done = context.take_successful(op);
    let id = if done.is_some() { 0 } else { op.to_raw() as i64 };
    // SAFETY: The caller's promise.
    unsafe { store(arguments.id, 0, id) };
    if let Some(done) = done {
        // SAFETY: The caller's promise.
        unsafe { store(arguments.actual, 0, done.length as i64) };
        return Ok(1);
    }
    Ok(0)
}

/// Defines the posts of one buffer, and those of a list. A receive has a place for the bytes that
/// it has received if it is complete already.
macro_rules! posts {
    ($(single $single:ident, list $list:ident $(, $actual:ident)? => $post:path;)*) => {$(
        #[no_mangle]
        extern "C" fn $single(
            id: *mut i64,
            address: i64,
            buffer: *const c_void,
            size: i64,
            $($actual: *mut i64,)?
            _buffer_type: c_int,
            tag: i32,
            user: *mut c_void,
            context: i64,
            _hints: *mut c_void,
        ) -> c_int {
            let actual = [$($actual,)? std::ptr::null_mut()][0];
            let arguments = Arguments { id, address, tag, user, context, actual };
            let buffers = Buffers { buffers: &buffer, sizes: &size, count: 1, total: size };
            // SAFETY: The program's buffer has `size` bytes, and belongs to the operation.
            returned(unsafe { post(buffers, &arguments, $post) })
        }

        #[no_mangle]
        extern "C" fn $list(
            id: *mut i64,
            address: i64,
            buffers: *const *const c_void,
            sizes: *const i64,
            count: c_int,
            total: i64,
            $($actual: *mut i64,)?
            _buffer_type: c_int,
            tag: i32,
            user: *mut c_void,
            context: i64,
            _hints: *mut c_void,
        ) -> c_int {
            let actual = [$($actual,)? std::ptr::null_mut()][0];
            let arguments = Arguments { id, address, tag, user, context, actual };
            let buffers = Buffers { buffers, sizes, count, total };
            // SAFETY: The program's arrays have `count` entries; otherwise as for one buffer.
            returned(unsafe { post(buffers, &arguments, $post) })
        }
    )*};
}

posts! {
    single BMI_post_send, list BMI_post_send_list => Context::send;
    single BMI_post_sendunexpected,
        list BMI_post_sendunexpected_list => Context::send_unexpected;
    single BMI_post_recv, list BMI_post_recv_list, actual_size => Context::receive;
}

#[no_mangle]
extern "C" fn BMI_cancel(id: i64, context: i64) -> c_int {
    returned(library::get().and_then(|library| {
        library.context(context)?.cancel(Op::from_raw(id as u64));
        Ok(0)
    }))
}

/// Returns the program's array.
///
/// # Safety
/// It has `count` entries, unless it is NULL.
pub(super) unsafe fn array<'a, T>(start: *const T, count: c_int) -> Outcome<&'a [T]> {
    let count = usize::try_from(count).map_err(|_| EINVAL)?;
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: As above.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}
