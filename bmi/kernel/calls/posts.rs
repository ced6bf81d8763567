// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts of operations.

use super::{
    context_of,
    peer_of,
    put,
    ret,
    shared, //
};
use crate::{
    engine::{
        Post,
        Role, //
    },
    foreign::Foreign,
    home::Fragment,
    instance::{
        Inner,
        Instance, //
    },
};
use core::ptr::NonNull;
use kernel::{
    ffi::{
        c_int,
        c_void, //
    },
    prelude::*, //
};

/// Returns the fragment at an address.
///
/// # Safety
///
/// The memory is valid as the header demands.
unsafe fn fragment(inner: &Inner, start: *const c_void, length: usize) -> Result<Fragment> {
    if let Some((memory, offset)) = inner.find(start.addr()) {
        if length <= memory.size() - offset {
            return Ok(Fragment::Registered(memory.clone(), offset, length));
        }
    }
    let start = NonNull::new(start.cast_mut().cast()).ok_or(EINVAL)?;
    // SAFETY: By the safety requirement.
    Ok(Fragment::Foreign(unsafe { Foreign::new(start, length) }))
}

/// Arguments of a post that have the same meaning in all of them.
struct Common {
    role: Role,
    peer: i64,
    tag: i32,
    user: *mut c_void,
    context: i64,
}

/// Posts an operation with a list of fragments.
///
/// # Safety
///
/// As of the module `calls`. The list has `count` members.
unsafe fn post(
    bmi: *const Instance,
    id: *mut i64,
    common: &Common,
    list: (*const *const c_void, *const i64, c_int),
    (total, actual): (i64, *mut i64),
) -> c_int {
    // SAFETY: By the safety requirement.
    ret(unsafe { try_post(bmi, id, common, list, (total, actual)) })
}

/// # Safety
///
/// As of [`post`].
unsafe fn try_post(
    bmi: *const Instance,
    id: *mut i64,
    common: &Common,
    (buffers, sizes, count): (*const *const c_void, *const i64, c_int),
    (total, actual): (i64, *mut i64),
) -> Result<c_int> {
    let count = usize::try_from(count).map_err(|_| EINVAL)?;
    if id.is_null() || count > 0 && (buffers.is_null() || sizes.is_null()) {
        return Err(EINVAL);
    }
    let context = context_of(common.context)?;
    let post = Post {
        role: common.role,
        peer: peer_of(common.peer),
        tag: common.tag,
        length: 0,
        fragments: 0,
        context,
        user: common.user.expose_provenance() as u64,
    };
    // SAFETY: By the safety requirement.
    let done = unsafe { shared(bmi) }?.with(|inner| {
        let mut fragments = KVec::with_capacity(count, GFP_KERNEL)?;
        let mut sum = 0_i64;
        for index in 0..count {
            // SAFETY: The lists have `count` members, by the safety requirement.
            let (start, size) = unsafe { (*buffers.add(index), *sizes.add(index)) };
            let length = usize::try_from(size).map_err(|_| EINVAL)?;
            sum = sum.checked_add(size).ok_or(EINVAL)?;
            if length > 0 {
                // SAFETY: By the safety requirement.
                fragments.push(unsafe { fragment(inner, start, length) }?, GFP_KERNEL)?;
            }
        }
        if sum != total {
            return Err(EINVAL);
        }
        let op = inner.state.post(post, fragments)?;
        let done = inner.state.engine.has_succeeded(op);
        let done = done.then(|| inner.state.test(op, context)).flatten();
        Ok((op, done))
    });
    let (op, done) = done?;
    // SAFETY: By the safety requirement.
    unsafe {
        id.write(if done.is_some() { 0 } else { op.0.raw() as i64 });
        if let Some(done) = &done {
            put(actual, done.actual as i64);
        }
    }
    Ok(done.is_some().into())
}

macro_rules! sends {
    ($(#[doc = $doc:literal])+ $name:ident = $role:expr) => {
        $(#[doc = $doc])+
        ///
        /// # Safety
        ///
        /// As of the module `calls`.
        #[no_mangle]
        pub(crate) unsafe extern "C" fn $name(
            bmi: *const Instance,
            id: *mut i64,
            peer: i64,
            buffers: *const *const c_void,
            sizes: *const i64,
            count: c_int,
            total: i64,
            tag: i32,
            user: *mut c_void,
            context: i64,
        ) -> c_int {
            let common = Common {
                role: $role,
                peer,
                tag,
                user,
                context,
            };
            let outcome = (total, core::ptr::null_mut());
            // SAFETY: By the safety requirement.
            unsafe { post(bmi, id, &common, (buffers, sizes, count), outcome) }
        }
    };
}

sends! {
    /// `bmi_post_send_list()`.
    bmi_post_send_list = Role::Send
}

sends! {
    /// `bmi_post_sendunexpected_list()`.
    bmi_post_sendunexpected_list = Role::SendUnexpected
}

/// `bmi_post_recv_list()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_post_recv_list(
    bmi: *const Instance,
    id: *mut i64,
    peer: i64,
    buffers: *const *mut c_void,
    sizes: *const i64,
    count: c_int,
    total: i64,
    actual: *mut i64,
    tag: i32,
    user: *mut c_void,
    context: i64,
) -> c_int {
    let common = Common {
        role: Role::Receive,
        peer,
        tag,
        user,
        context,
    };
    let list = (buffers.cast(), sizes, count);
    // SAFETY: By the safety requirement.
    unsafe { post(bmi, id, &common, list, (total, actual)) }
}
