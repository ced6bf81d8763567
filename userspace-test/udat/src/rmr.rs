// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Remote Memory Regions (RMRs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{get, put, put_if, wanted, word};
use crate::object::find;
use crate::pz::{fields, Pz};
use crate::ret::Ret;
use crate::{ep::Ep, lmr::Lmr};
use libkdapl::{CompletionFlags, Handle, Privileges, RmrBinding, Segment};
use std::sync::Arc;

/// A Remote Memory Region.
pub struct Rmr {
    pub cell: &'static Cell,
    pz: Arc<Pz>,
    dat: libkdapl::Rmr,
}

pub extern "C" fn create(pz: DAT_PZ_HANDLE, rmr_handle: *mut DAT_RMR_HANDLE) -> DAT_RETURN {
    entry(|| {
        let pz = find::<Pz>(pz)?;
        wanted(rmr_handle, 2)?;
        let dat = pz.ia.dat.create_rmr(&pz.dat)?;
        let rmr = pz.ia.adopt(dat.handle(), |cell| Rmr { cell, pz: pz.clone(), dat })?;
        put(rmr_handle, 2, rmr.cell.handle())
    })
}

/// `dat_rmr_create_for_ep`. A context is valid on all Endpoints of its PZ, so that the scope of one
/// Endpoint is not supported.
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
        let query = rmr.dat.query()?;
        put(
            param,
            3,
            DAT_RMR_PARAM {
                ia_handle: rmr.pz.ia.handle(),
                pz_handle: rmr.pz.ia.handle_of(Handle(query.pz)),
                lmr_triplet: DAT_LMR_TRIPLET {
                    virtual_address: query.segment.address,
                    segment_length: query.segment.length,
                    lmr_context: query.segment.context,
                },
                mem_priv: query.privileges,
                rmr_context: query.rmr_context,
                rmr_scope: DAT_RMR_SCOPE_PZ,
                va_type: DAT_VA_TYPE_VA,
            },
        )
    })
}

#[allow(clippy::too_many_arguments, reason = "the prototype is DAT's")]
pub extern "C" fn bind(
    rmr: DAT_RMR_HANDLE,
    lmr: DAT_LMR_HANDLE,
    triplet: *const DAT_LMR_TRIPLET,
    privileges: DAT_MEM_PRIV_FLAGS,
    va_type: DAT_VA_TYPE,
    ep: DAT_EP_HANDLE,
    cookie: DAT_RMR_COOKIE,
    flags: DAT_COMPLETION_FLAGS,
    context: *mut DAT_RMR_CONTEXT,
) -> DAT_RETURN {
    entry(|| {
        let rmr = find::<Rmr>(rmr)?;
        let triplet = get(triplet, 3)?;
        let segment = Segment {
            address: triplet.virtual_address,
            length: triplet.segment_length,
            context: triplet.lmr_context,
        };
        let (cookie, flags) = (word(cookie), CompletionFlags(flags));
        if segment.length == 0 {
            let ep = find::<Ep>(ep)?;
            rmr.dat.unbind(&ep.dat, cookie, flags)?;
            put_if(context, 0);
            return Ok(());
        }
        let lmr = find::<Lmr>(lmr)?;
        let ep = find::<Ep>(ep)?;
        if va_type != DAT_VA_TYPE_VA {
            return Err(Ret::UNSUPPORTED);
        }
        let to = RmrBinding { lmr: &lmr.dat, segment, privileges: Privileges(privileges) };
        let bound = rmr.dat.bind(&ep.dat, &to, cookie, flags)?;
        put_if(context, bound.context);
        Ok(())
    })
}

pub extern "C" fn free(rmr: DAT_RMR_HANDLE) -> DAT_RETURN {
    entry(|| {
        let rmr = find::<Rmr>(rmr)?;
        rmr.dat.free()?;
        rmr.pz.ia.forget(rmr.dat.handle());
        Ok(())
    })
}
