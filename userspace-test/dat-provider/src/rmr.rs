// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Remote Memory Regions (RMRs). They can be created, queried and freed, but not bound:
//! the kernel has no such operation yet.

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{put, wanted};
use crate::object::find;
use crate::pz::{fields, Pz};
use crate::ret::Ret;
use crate::{ep::Ep, lmr::Lmr};
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// A Remote Memory Region that is not bound.
pub struct Rmr {
    pub cell: &'static Cell,
    pz: Arc<Pz>,
}

pub extern "C" fn create(pz: DAT_PZ_HANDLE, rmr_handle: *mut DAT_RMR_HANDLE) -> DAT_RETURN {
    entry(|| {
        let pz = find::<Pz>(pz)?;
        wanted(rmr_handle, 2)?;
        let rmr = pz.ia.adopt_own(|cell| {
            pz.rmrs.fetch_add(1, Ordering::Relaxed);
            Rmr { cell, pz: pz.clone() }
        })?;
        put(rmr_handle, 2, rmr.cell.handle())
    })
}

/// `dat_rmr_create_for_ep`.
pub extern "C" fn create_for_ep(pz: DAT_PZ_HANDLE, _rmr_handle: *mut DAT_RMR_HANDLE) -> DAT_RETURN {
    entry(|| find::<Pz>(pz).and(Err(Ret::UNSUPPORTED)))
}

pub extern "C" fn query(
    rmr: DAT_RMR_HANDLE,
    mask: DAT_RMR_PARAM_MASK,
    param: *mut DAT_RMR_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let rmr = find::<Rmr>(rmr)?;
        fields(mask.into(), DAT_RMR_FIELD_ALL.into())?;
        put(
            param,
            3,
            DAT_RMR_PARAM {
                ia_handle: rmr.pz.ia.handle(),
                pz_handle: rmr.pz.cell.handle(),
                rmr_scope: DAT_RMR_SCOPE_PZ,
                ..Default::default()
            },
        )
    })
}

#[allow(clippy::too_many_arguments, reason = "the prototype is DAT's")]
pub extern "C" fn bind(
    rmr: DAT_RMR_HANDLE,
    lmr: DAT_LMR_HANDLE,
    _triplet: *const DAT_LMR_TRIPLET,
    _privileges: DAT_MEM_PRIV_FLAGS,
    _va_type: DAT_VA_TYPE,
    ep: DAT_EP_HANDLE,
    _cookie: DAT_RMR_COOKIE,
    _flags: DAT_COMPLETION_FLAGS,
    _context: *mut DAT_RMR_CONTEXT,
) -> DAT_RETURN {
    entry(|| {
        find::<Rmr>(rmr)?;
        find::<Lmr>(lmr)?;
        find::<Ep>(ep)?;
        Err(Ret::UNSUPPORTED)
    })
}

pub extern "C" fn free(rmr: DAT_RMR_HANDLE) -> DAT_RETURN {
    entry(|| {
        let rmr = find::<Rmr>(rmr)?;
        rmr.pz.ia.forget_own(rmr.cell);
        Ok(())
    })
}

impl Drop for Rmr {
    fn drop(&mut self) {
        self.pz.rmrs.fetch_sub(1, Ordering::Relaxed);
    }
}
