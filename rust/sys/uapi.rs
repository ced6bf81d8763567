// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Copies messages, and the arrays that they point to, from and to user space.
//!
//! Both may grow at their end in later versions. If the caller's version is older than the
//! kernel's, its message is shorter. The kernel then takes the missing part as zeros. If the
//! caller's version is newer, its message is longer. The kernel then accepts it if the unknown part
//! is zero. The kernel never writes beyond the caller's size.

mod array;

pub(crate) use array::{
    check_size,
    Array,
    Records,
    ShortArray, //
};

use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use zerocopy::Immutable;

/// A message of `/dev/kdapl`: plain data that starts with a `struct kdapl_hdr`.
pub(crate) trait Message: FromBytes + IntoBytes + Immutable {
    /// The first published size in bytes. A shorter message is refused.
    const FIRST: usize;

    /// End offset of the part that is written back. That part starts at `hdr.ret` and contains all
    /// output fields.
    const WRITTEN: usize;

    /// Returns the header of the message.
    fn header(&mut self) -> &mut bindings::kdapl_hdr;
}

macro_rules! messages {
    ($($name:ident $(from $first:expr)? $(=> $written:expr)?),+ $(,)?) => {
        $(impl Message for bindings::$name {
            const FIRST: usize = messages!(@or $name $(, $first)?);
            const WRITTEN: usize = messages!(@or $name $(, $written)?);

            fn header(&mut self) -> &mut bindings::kdapl_hdr {
                &mut self.hdr
            }
        })+
    };
    (@or $name:ident) => { size_of::<Self>() };
    (@or $name:ident, $bytes:expr) => { $bytes as usize };
}

/// Size of the header, and end of the part that is written back for a message without output
/// fields.
const HEADER: usize = size_of::<bindings::kdapl_hdr>();

/// Start offset of the part that is written back.
const RET: usize = core::mem::offset_of!(bindings::kdapl_hdr, ret);

// `from` gives the first published size, `=>` the end of the part that is written back. Both
// default to the size of the message.
messages!(
    kdapl_cno,
    kdapl_cno_query,
    kdapl_cno_wait => core::mem::offset_of!(bindings::kdapl_cno_wait, handle),
    kdapl_cno_fd,
    kdapl_cr_answer,
    kdapl_cr_handoff,
    kdapl_cr_query,
    kdapl_csp,
    kdapl_device,
    kdapl_ep_connect => HEADER,
    kdapl_ep_common_connect => HEADER,
    kdapl_ep_dup_connect => HEADER,
    kdapl_ep_modify,
    kdapl_ep_create,
    kdapl_ep_disconnect => HEADER,
    kdapl_ep_post from bindings::KDAPL_EP_POST_SIZE_MIN => HEADER,
    kdapl_ep_private_data,
    kdapl_ep_query,
    kdapl_ep_recv_query,
    kdapl_ep_status,
    kdapl_ep_submit => core::mem::offset_of!(bindings::kdapl_ep_submit, event_size),
    kdapl_ep_watermark => HEADER,
    kdapl_evd_create,
    kdapl_evd_fd,
    kdapl_evd_modify_cno => HEADER,
    kdapl_evd_resize,
    kdapl_evd_post_se => HEADER,
    kdapl_evd_query,
    kdapl_evd_wait => core::mem::offset_of!(bindings::kdapl_evd_wait, handle),
    kdapl_handle,
    kdapl_ia_close => HEADER,
    kdapl_ia_open,
    kdapl_ia_stat,
    kdapl_ia_query from bindings::KDAPL_IA_QUERY_SIZE_MIN,
    kdapl_lmr_create,
    kdapl_lmr_query,
    kdapl_port,
    kdapl_psp_create,
    kdapl_psp_query,
    kdapl_rmr_bind => core::mem::offset_of!(bindings::kdapl_rmr_bind, handle),
    kdapl_rmr_create,
    kdapl_rmr_query,
    kdapl_rsp,
    kdapl_srq_create,
    kdapl_srq_number => HEADER,
    kdapl_srq_post => HEADER,
    kdapl_srq_query,
    kdapl_uring_cancel,
    kdapl_uring_stream => core::mem::offset_of!(bindings::kdapl_uring_stream, handle),
);

/// Copies in a message of `size` bytes. `message` is zeroed, so fields that the caller's version
/// lacks are zero.
///
/// # Errors
///
/// `EINVAL` if the size is too small or differs from the size field of the message, `E2BIG` if the
/// bytes after the known part are not zero, `EFAULT`.
#[inline(always)]
pub(crate) fn read<M: Message>(from: UserPtr, size: usize, message: &mut M) -> Result {
    if size < M::FIRST {
        return Err(EINVAL);
    }
    read_known(from, size, message)?;
    if usize::try_from(message.header().size) != Ok(size) {
        return Err(EINVAL);
    }
    Ok(())
}

/// Copies in a value of `size` bytes in the caller's version. `known` is zeroed.
///
/// # Errors
///
/// `E2BIG` if the bytes that the kernel does not know are not zero, `EFAULT`.
#[inline(always)]
fn read_known<T: FromBytes + IntoBytes>(from: UserPtr, size: usize, known: &mut T) -> Result {
    let bytes = known.as_mut_bytes();
    if size >= bytes.len() {
        copy_in(from, bytes)?;
    } else {
        copy_in(from, bytes.get_mut(..size).ok_or(EINVAL)?)?;
    }
    if size > size_of::<T>() {
        unknown_is_zero(from, size, size_of::<T>())?;
    }
    Ok(())
}

/// Checks that the bytes from `known` up to `size` are zero.
///
/// # Errors
///
/// `E2BIG` if one of them is not, `EFAULT`.
#[inline(never)]
fn unknown_is_zero(from: UserPtr, size: usize, known: usize) -> Result {
    let mut reader = UserSlice::new(from, size).reader();
    reader.skip(known)?;
    let mut rest = [0_u8; 64];
    while !reader.is_empty() {
        let piece = rest.get_mut(..reader.len().min(64)).ok_or(EINVAL)?;
        reader.read_slice(piece)?;
        if piece.iter().any(|&byte| byte != 0) {
            return Err(E2BIG);
        }
    }
    Ok(())
}

/// Returns the address and the bytes to write back for a message of `size` bytes. They do not
/// exceed the caller's size.
fn written<M: Message>(to: UserPtr, message: &M, size: usize) -> Result<(UserPtr, &[u8])> {
    const { assert!(M::WRITTEN <= size_of::<M>() && M::WRITTEN <= PAGE_SIZE) };
    const { assert!(M::FIRST <= size_of::<M>() && M::FIRST >= HEADER && M::WRITTEN >= HEADER) };
    let bytes = message.as_bytes().get(RET..M::WRITTEN.min(size));
    Ok((to.wrapping_byte_add(RET), bytes.ok_or(EINVAL)?))
}

/// Checks whether a message of `size` bytes can be written back.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn may_write<M: Message>(to: UserPtr, message: &M, size: usize) -> Result {
    let (to, bytes) = written(to, message, size)?;
    // SAFETY: `bytes` is readable and not empty. The helper accepts any user address.
    let may = unsafe {
        bindings::kdapl_helper_can_write_back(to.as_mut_ptr(), bytes.as_ptr().cast(), bytes.len())
    };
    if may {
        Ok(())
    } else {
        Err(EFAULT)
    }
}

/// Writes a message back to a caller whose message has `size` bytes.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn write<M: Message>(to: UserPtr, message: &M, size: usize) -> Result {
    let (to, bytes) = written(to, message, size)?;
    copy_out(to, bytes)
}

/// Copies `bytes` to user space.
#[inline(always)]
fn copy_out(to: UserPtr, bytes: &[u8]) -> Result {
    // SAFETY: `bytes` is readable. The function accepts any user address.
    let left =
        unsafe { bindings::_copy_to_user(to.as_mut_ptr(), bytes.as_ptr().cast(), bytes.len()) };
    if left == 0 {
        Ok(())
    } else {
        Err(EFAULT)
    }
}

/// Copies `bytes` from user space, without the bookkeeping of a `UserSliceReader`.
///
/// # Errors
///
/// `EFAULT`.
#[inline(always)]
fn copy_in(from: UserPtr, bytes: &mut [u8]) -> Result {
    // SAFETY: `bytes` is writable. The function accepts any user address.
    let left = unsafe {
        bindings::_copy_from_user(bytes.as_mut_ptr().cast(), from.as_const_ptr(), bytes.len())
    };
    if left == 0 {
        Ok(())
    } else {
        Err(EFAULT)
    }
}

/// Copies `bytes.len()` bytes from the user address that a message contains.
pub(crate) fn read_bytes(from: u64, bytes: &mut [u8]) -> Result {
    let address = usize::try_from(from).map_err(|_| EFAULT)?;
    copy_in(UserPtr::from_addr(address), bytes)
}
