// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages from and to user space, copied once in each direction.

use core::{
    mem::MaybeUninit,
    slice, //
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    transmute,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use zerocopy::Immutable;

/// A message of `/dev/kdapl`: plain data that starts with a `struct kdapl_hdr`.
pub(crate) trait Message: FromBytes + IntoBytes + Immutable {
    /// The head of the message.
    fn header(&mut self) -> &mut bindings::kdapl_hdr;
}

macro_rules! messages {
    ($($name:ident),+ $(,)?) => {
        $(impl Message for bindings::$name {
            fn header(&mut self) -> &mut bindings::kdapl_hdr {
                &mut self.hdr
            }
        })+
    };
}

messages!(
    kdapl_cno,
    kdapl_cno_query,
    kdapl_cno_wait,
    kdapl_cno_fd,
    kdapl_cr_answer,
    kdapl_cr_handoff,
    kdapl_cr_query,
    kdapl_csp,
    kdapl_device,
    kdapl_ep_connect,
    kdapl_ep_common_connect,
    kdapl_ep_dup_connect,
    kdapl_ep_modify,
    kdapl_ep_create,
    kdapl_ep_disconnect,
    kdapl_ep_post,
    kdapl_ep_private_data,
    kdapl_ep_query,
    kdapl_ep_status,
    kdapl_ep_submit,
    kdapl_evd_create,
    kdapl_evd_modify_cno,
    kdapl_evd_resize,
    kdapl_evd_post_se,
    kdapl_evd_query,
    kdapl_evd_wait,
    kdapl_handle,
    kdapl_ia_close,
    kdapl_ia_open,
    kdapl_ia_query,
    kdapl_lmr_create,
    kdapl_lmr_query,
    kdapl_psp_create,
    kdapl_psp_query,
    kdapl_rsp,
);

/// Copies a message of `size` bytes in.
///
/// Every message was first published in the size that it has now; a later field is to be taken as
/// zero when the caller does not know it.
///
/// # Errors
///
/// `EINVAL` if the size is wrong or not what the message itself says, `E2BIG` if what follows the
/// known part is not zero, `EFAULT`.
pub(crate) fn read<M: Message>(from: UserPtr, size: usize) -> Result<M> {
    if size < size_of::<M>() {
        return Err(EINVAL);
    }
    let mut reader = UserSlice::new(from, size).reader();
    let Plain(mut message) = reader.read::<Plain<M>>()?;
    if usize::try_from(message.header().size) != Ok(size) {
        return Err(EINVAL);
    }
    let mut rest = [0_u8; 64];
    while !reader.is_empty() {
        let piece = rest.get_mut(..reader.len().min(64)).ok_or(EINVAL)?;
        reader.read_slice(piece)?;
        if piece.iter().any(|&byte| byte != 0) {
            return Err(E2BIG);
        }
    }
    Ok(message)
}

/// Finds out whether a message can be copied back.
///
/// # Errors
///
/// `EFAULT`.
pub(crate) fn may_write<M: Message>(to: UserPtr, message: &M) -> Result {
    const { assert!(size_of::<M>() <= PAGE_SIZE) };
    // SAFETY: The message has as many bytes; what lies in user space may be anything.
    let may = unsafe {
        bindings::kdapl_helper_can_write_back(
            to.as_mut_ptr(),
            core::ptr::from_ref(message).cast(),
            size_of::<M>(),
        )
    };
    if may {
        Ok(())
    } else {
        Err(EFAULT)
    }
}

/// Copies a message back.
pub(crate) fn write<M: Message>(to: UserPtr, message: &M) -> Result {
    // SAFETY: A `Plain` is what it wraps.
    let message = unsafe { &*core::ptr::from_ref(message).cast::<Plain<M>>() };
    UserSlice::new(to, size_of::<M>()).writer().write(message)
}

/// Plain data, as the kernel crate wants it that copies values of a known size: at less cost than slices.
#[repr(transparent)]
struct Plain<T>(T);

// SAFETY: Any bytes are a `T`.
unsafe impl<T: FromBytes> transmute::FromBytes for Plain<T> {}
// SAFETY: A `T` has neither padding nor interior mutability.
unsafe impl<T: IntoBytes + Immutable> transmute::AsBytes for Plain<T> {}

/// Copies `bytes.len()` bytes in from the address that a message names.
pub(crate) fn read_bytes(from: u64, bytes: &mut [u8]) -> Result {
    let address = usize::try_from(from).map_err(|_| EFAULT)?;
    UserSlice::new(UserPtr::from_addr(address), bytes.len())
        .reader()
        .read_slice(bytes)
}

/// Copies an element of an array in that a message names.
pub(crate) fn read_element<T: FromBytes>(array: u64, index: u32) -> Result<T> {
    let offset = u64::from(index)
        .checked_mul(size_of::<T>() as u64)
        .ok_or(EFAULT)?;
    let address = array.checked_add(offset).ok_or(EFAULT)?;
    let address = usize::try_from(address).map_err(|_| EFAULT)?;
    let Plain(element) = UserSlice::new(UserPtr::from_addr(address), size_of::<T>())
        .reader()
        .read::<Plain<T>>()?;
    Ok(element)
}

/// Room for an array of at most `N` that a message names: on the stack, and not cleared.
pub(crate) struct ShortArray<T, const N: usize>([MaybeUninit<T>; N]);

impl<T: FromBytes, const N: usize> ShortArray<T, N> {
    /// Room for `N`.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        // SAFETY: An array of what may be uninitialised may be.
        Self(unsafe { MaybeUninit::uninit().assume_init() })
    }

    /// Copies `count` in from the address that the message names.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more than `N`, `EFAULT`.
    pub(crate) fn read(&mut self, from: u64, count: u32) -> Result<&[T]> {
        let count = usize::try_from(count).map_err(|_| EINVAL)?;
        let room = self.0.get_mut(..count).ok_or(EINVAL)?;
        let address = usize::try_from(from).map_err(|_| EFAULT)?;
        // SAFETY: The same memory, as bytes that need not be written yet.
        let bytes = unsafe {
            slice::from_raw_parts_mut(room.as_mut_ptr().cast(), size_of_val::<[_]>(room))
        };
        UserSlice::new(UserPtr::from_addr(address), bytes.len())
            .reader()
            .read_raw(bytes)?;
        // SAFETY: `count` of them are written now, and any bytes are a `T`.
        Ok(unsafe { slice::from_raw_parts(self.0.as_ptr().cast(), count) })
    }
}
