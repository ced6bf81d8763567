// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Bits of `DAT_MEM_PRIV_FLAGS`, and the access rights of the verbs that they stand for.

use crate::{
    dat::prelude::*,
    rdma::mr::{
        Access,
        Permission, //
    },
};
use kdapl_bindings as uapi;

pub(super) const LOCAL_READ: u32 = uapi::KDAPL_MEM_LOCAL_READ;
pub(super) const REMOTE_READ: u32 = uapi::KDAPL_MEM_REMOTE_READ;
pub(super) const LOCAL_WRITE: u32 = uapi::KDAPL_MEM_LOCAL_WRITE;
pub(super) const REMOTE_WRITE: u32 = uapi::KDAPL_MEM_REMOTE_WRITE;
/// `DAT_IB_MEM_PRIV_REMOTE_ATOMIC`.
pub(super) const REMOTE_ATOMIC: u32 = uapi::KDAPL_MEM_REMOTE_ATOMIC;
/// All privileges of peers.
pub(super) const REMOTE: u32 = REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC;
/// All defined privileges.
pub(super) const KNOWN: u32 = LOCAL_READ | LOCAL_WRITE | REMOTE;

/// Converts privileges to access rights of the verbs.
///
/// # Errors
///
/// INVALID_PARAMETER (privileges) for undefined privileges.
pub(super) fn access(privileges: u32) -> DatResult<Access> {
    if privileges & !KNOWN != 0 {
        return Err(DatError::Invalid(Arg::Privileges));
    }
    let mut access = Access::default();
    if privileges & LOCAL_WRITE != 0 {
        access |= Permission::LocalWrite;
    }
    if privileges & REMOTE_READ != 0 {
        access |= Permission::RemoteRead;
    }
    if privileges & REMOTE_WRITE != 0 {
        // The verbs require local write access for remote write access.
        access |= Permission::RemoteWrite | Permission::LocalWrite;
    }
    if privileges & REMOTE_ATOMIC != 0 {
        // As for remote write access.
        access |= Permission::RemoteAtomic | Permission::LocalWrite;
    }
    Ok(access)
}
