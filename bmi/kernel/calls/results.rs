// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests for results.

use super::{
    context_of,
    op_of,
    put,
    ret,
    shared, //
};
use crate::{
    engine::{
        Completion,
        HEADER, //
    },
    home::{
        Stashed,
        UNEXPECTED_PLACE, //
    },
    instance::{
        Instance,
        Shared, //
    },
    state::Unexpected, //
};
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};

/// Arrays for results, each of which may be NULL.
struct Results {
    ids: *mut i64,
    indices: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
}

/// Writes to an entry of an array, which may be NULL.
///
/// # Safety
///
/// `array` is NULL or has more than `entry` members.
unsafe fn put_at<T>(array: *mut T, entry: usize, value: T) {
    if !array.is_null() {
        // SAFETY: By the safety requirement.
        unsafe { array.add(entry).write(value) };
    }
}

impl Results {
    /// No array.
    const NONE: Self = Self {
        ids: core::ptr::null_mut(),
        indices: core::ptr::null_mut(),
        errors: core::ptr::null_mut(),
        sizes: core::ptr::null_mut(),
        users: core::ptr::null_mut(),
    };

    /// # Safety
    ///
    /// The arrays have more than `entry` members.
    unsafe fn put(&self, entry: usize, index: usize, done: &Completion) {
        // SAFETY: By the safety requirement.
        unsafe {
            put_at(self.ids, entry, done.op.0.raw() as i64);
            put_at(self.indices, entry, index as c_int);
            put_at(
                self.errors,
                entry,
                done.error.map_or(0, |error| -error.errno()),
            );
            put_at(self.sizes, entry, done.actual as i64);
            let user = core::ptr::with_exposed_provenance_mut(done.user as usize);
            put_at(self.users, entry, user);
        }
    }
}

/// `bmi_test()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_test(
    bmi: *const Instance,
    id: i64,
    outcount: *mut c_int,
    error: *mut i32,
    size: *mut i64,
    user: *mut *mut c_void,
    milliseconds: c_int,
    context: i64,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let results = Results {
        errors: error,
        sizes: size,
        users: user,
        ..Results::NONE
    };
    let mut ids = [id];
    // SAFETY: By the safety requirement; all arrays have one member.
    let tested = unsafe { test_some(shared, &mut ids, &results, milliseconds, context) };
    // SAFETY: By the safety requirement.
    unsafe { finish(tested, outcount) }
}

/// Writes the count of results, and returns whether there are any.
///
/// # Safety
///
/// `outcount` is NULL or valid for a write.
unsafe fn finish(taken: Result<usize>, outcount: *mut c_int) -> c_int {
    let count = taken.as_ref().map_or(0, |count| *count as c_int);
    // SAFETY: By the safety requirement.
    unsafe { put(outcount, count) };
    ret(taken.map(|count| (count > 0).into()))
}

/// Takes the results of those of `ids` that are complete.
///
/// # Safety
///
/// The arrays have as many members as `ids`.
unsafe fn test_some(
    shared: Result<&Shared>,
    ids: &mut [i64],
    results: &Results,
    milliseconds: c_int,
    context: i64,
) -> Result<usize> {
    let (shared, context) = (shared?, context_of(context)?);
    if ids.iter().all(|id| *id == 0) {
        return Ok(0);
    }
    let taken = shared.wait(context.into(), milliseconds, |inner| {
        let (mut entry, mut exists) = (0, false);
        for (index, id) in ids.iter().enumerate().filter(|(_, id)| **id != 0) {
            exists |= inner.state.engine.context_of(op_of(*id)) == Some(context);
            if let Some(done) = inner.state.test(op_of(*id), context) {
                // SAFETY: `entry` is less than the number of ids.
                unsafe { results.put(entry, index, &done) };
                entry += 1;
            }
        }
        match exists {
            true => (entry > 0).then_some(Ok(entry)),
            false => Some(Err(EINVAL)),
        }
    });
    taken?.unwrap_or(Ok(0))
}

/// `bmi_testsome()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_testsome(
    bmi: *const Instance,
    incount: c_int,
    ids: *mut i64,
    outcount: *mut c_int,
    indices: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
    milliseconds: c_int,
    context: i64,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let results = Results {
        indices,
        errors,
        sizes,
        users,
        ..Results::NONE
    };
    let count = usize::try_from(incount).unwrap_or(0);
    if ids.is_null() || count == 0 {
        return EINVAL.to_errno();
    }
    // SAFETY: By the safety requirement the array has `count` members.
    let ids = unsafe { core::slice::from_raw_parts_mut(ids, count) };
    // SAFETY: By the safety requirement.
    let tested = unsafe { test_some(shared, ids, &results, milliseconds, context) };
    // SAFETY: By the safety requirement.
    unsafe { finish(tested, outcount) }
}

/// `bmi_testcontext()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_testcontext(
    bmi: *const Instance,
    incount: c_int,
    ids: *mut i64,
    outcount: *mut c_int,
    errors: *mut i32,
    sizes: *mut i64,
    users: *mut *mut c_void,
    milliseconds: c_int,
    context: i64,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let results = Results {
        ids,
        errors,
        sizes,
        users,
        ..Results::NONE
    };
    let take = || -> Result<usize> {
        let most = usize::try_from(incount).map_err(|_| EINVAL)?;
        let context = context_of(context)?;
        let taken = shared?.wait(context.into(), milliseconds, |inner| {
            let mut entry = 0;
            if !inner.state.has_context(context) {
                return Some(Err(EINVAL));
            }
            while entry < most {
                let Some(done) = inner.state.test_context(context) else {
                    break;
                };
                // SAFETY: By the safety requirement of the function: `entry` is less than `most`.
                unsafe { results.put(entry, 0, &done) };
                entry += 1;
            }
            if entry == 0 && inner.state.expects_nothing(context) {
                return Some(Err(ENODEV));
            }
            (entry > 0 || most == 0).then_some(Ok(entry))
        });
        taken?.unwrap_or(Ok(0))
    };
    // SAFETY: By the safety requirement.
    unsafe { finish(take(), outcount) }
}

/// Unexpected message, as `struct bmi_unexpected_info` has it.
#[repr(C)]
pub(crate) struct UnexpectedInfo {
    error: i32,
    peer: i64,
    buffer: *mut c_void,
    size: i64,
    tag: i32,
}

/// Returns memory for a message, which `bmi_unexpected_free()` frees.
fn leak(message: Stashed) -> Result<(*mut c_void, usize)> {
    let length = message.bytes().len().saturating_sub(HEADER);
    let mut bytes = match message {
        Stashed::Copy(bytes) => bytes,
        Stashed::Buffer(buffer, length) => {
            let mut copy = KVVec::new();
            copy.extend_from_slice(buffer.get(..length).unwrap_or(&[]), GFP_KERNEL)?;
            copy
        }
    };
    if bytes.capacity() == 0 {
        bytes.reserve(1, GFP_KERNEL)?;
    }
    if length > 0 {
        bytes.copy_within(HEADER.., 0);
    }
    let (start, _, _) = bytes.into_raw_parts();
    Ok((start.cast(), length))
}

impl From<Unexpected> for UnexpectedInfo {
    fn from(taken: Unexpected) -> Self {
        let leaked = leak(taken.message);
        let error = leaked.as_ref().err().map_or(0, |error| error.to_errno());
        let (buffer, length) = leaked.unwrap_or((core::ptr::null_mut(), 0));
        Self {
            error,
            peer: taken.peer.0.raw() as i64,
            buffer,
            size: length as i64,
            tag: taken.tag,
        }
    }
}

/// `bmi_testunexpected()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_testunexpected(
    bmi: *const Instance,
    incount: c_int,
    outcount: *mut c_int,
    infos: *mut UnexpectedInfo,
    milliseconds: c_int,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let take = || -> Result<usize> {
        let most = usize::try_from(incount).map_err(|_| EINVAL)?;
        if infos.is_null() {
            return Err(EINVAL);
        }
        let taken = shared?.wait(UNEXPECTED_PLACE, milliseconds, |inner| {
            let mut entry = 0;
            while entry < most {
                let Some(taken) = inner.state.take_unexpected() else {
                    break;
                };
                // SAFETY: By the safety requirement of the function: `entry` is less than `most`.
                unsafe { infos.add(entry).write(taken.into()) };
                entry += 1;
            }
            if entry == 0 && inner.state.home.is_lost() {
                return Some(Err(ENODEV));
            }
            (entry > 0 || most == 0).then_some(Ok(entry))
        });
        taken?.unwrap_or(Ok(0))
    };
    // SAFETY: By the safety requirement.
    unsafe { finish(take(), outcount) }
}
