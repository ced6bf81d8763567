// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages from and to user space, copied once in each direction.

use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    uaccess::{
        UserPtr,
        UserSlice, //
    },
};
use zerocopy::Immutable;

/// A message of `/dev/kdapl`: plain data that starts with a `struct kdapl_hdr`.
pub(crate) trait Message: FromBytes + IntoBytes + Immutable + Default {
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
    let mut message = M::default();
    let mut reader = UserSlice::new(from, size).reader();
    reader.read_slice(message.as_mut_bytes())?;
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

/// Copies a message back.
pub(crate) fn write<M: Message>(to: UserPtr, message: &M) -> Result {
    UserSlice::new(to, size_of::<M>())
        .writer()
        .write_slice(message.as_bytes())
}

/// Copies `bytes.len()` bytes in from the address that a message names.
pub(crate) fn read_bytes(from: u64, bytes: &mut [u8]) -> Result {
    let address = usize::try_from(from).map_err(|_| EFAULT)?;
    UserSlice::new(UserPtr::from_addr(address), bytes.len())
        .reader()
        .read_slice(bytes)
}
