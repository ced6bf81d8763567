// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Local Memory Regions (LMRs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{put, put_if, region, region_address, wanted};
use crate::ia::Ia;
use crate::object::{find, find_as};
use crate::pz::{fields, Pz};
use crate::ret::{Result, Ret};
use libkdapl::{Handle, Privileges, Subtype, Type};
use std::sync::Arc;

/// A Local Memory Region.
pub struct Lmr {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    pub dat: libkdapl::Lmr,
}

#[allow(clippy::too_many_arguments, reason = "the prototype is DAT's")]
pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    mem_type: DAT_MEM_TYPE,
    description: DAT_REGION_DESCRIPTION,
    length: DAT_VLEN,
    pz: DAT_PZ_HANDLE,
    privileges: DAT_MEM_PRIV_FLAGS,
    va_type: DAT_VA_TYPE,
    lmr_handle: *mut DAT_LMR_HANDLE,
    lmr_context: *mut DAT_LMR_CONTEXT,
    rmr_context: *mut DAT_RMR_CONTEXT,
    registered_length: *mut DAT_VLEN,
    registered_address: *mut DAT_VADDR,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        let pz = find::<Pz>(pz)?;
        wanted(lmr_handle, 8)?;
        if mem_type != DAT_MEM_TYPE_VIRTUAL || va_type != DAT_VA_TYPE_VA {
            return Err(Ret::UNSUPPORTED);
        }
        let too_long = Ret::of(Type::LENGTH_ERROR);
        let length = usize::try_from(length).ok().filter(|length| *length != 0).ok_or(too_long)?;
        let memory = region(region_address(description), length)?;
        let dat = ia.dat.register(&pz.dat, memory, Privileges(privileges))?;
        let query = dat.query()?;
        let lmr = ia.adopt(dat.handle(), |cell| Lmr { cell, ia: ia.clone(), dat })?;
        put_if(lmr_context, query.lmr_context);
        put_if(rmr_context, query.rmr_context);
        put_if(registered_length, query.registered_size);
        put_if(registered_address, query.registered_address);
        put(lmr_handle, 8, lmr.cell.handle())
    })
}

pub extern "C" fn query(
    lmr: DAT_LMR_HANDLE,
    mask: DAT_LMR_PARAM_MASK,
    param: *mut DAT_LMR_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let lmr = find::<Lmr>(lmr)?;
        fields(mask.into(), DAT_LMR_FIELD_ALL.into())?;
        let query = lmr.dat.query()?;
        put(
            param,
            3,
            DAT_LMR_PARAM {
                ia_handle: lmr.ia.handle(),
                mem_type: query.mem_type,
                region_desc: DAT_REGION_DESCRIPTION { for_va: query.address as usize as DAT_PVOID },
                length: query.length,
                pz_handle: lmr.ia.handle_of(Handle(query.pz)),
                mem_priv: query.privileges,
                va_type: query.va_type,
                lmr_context: query.lmr_context,
                rmr_context: query.rmr_context,
                registered_size: query.registered_size,
                registered_address: query.registered_address,
            },
        )
    })
}

pub extern "C" fn free(lmr: DAT_LMR_HANDLE) -> DAT_RETURN {
    entry(|| {
        let lmr = find_as::<Lmr>(lmr, Subtype::INVALID_HANDLE_LMR)?;
        lmr.dat.free()?;
        lmr.ia.forget(lmr.dat.handle());
        Ok(())
    })
}

/// Checks the arguments. On x86 memory is coherent with devices, so that nothing else is necessary.
fn sync(ia: DAT_IA_HANDLE, segments: *const DAT_LMR_TRIPLET, count: DAT_VLEN) -> Result<()> {
    find::<Ia>(ia)?;
    if count != 0 {
        wanted(segments, 2)?;
    }
    Ok(())
}

pub extern "C" fn sync_rdma_read(
    ia: DAT_IA_HANDLE,
    segments: *const DAT_LMR_TRIPLET,
    count: DAT_VLEN,
) -> DAT_RETURN {
    entry(|| sync(ia, segments, count))
}

pub extern "C" fn sync_rdma_write(
    ia: DAT_IA_HANDLE,
    segments: *const DAT_LMR_TRIPLET,
    count: DAT_VLEN,
) -> DAT_RETURN {
    entry(|| sync(ia, segments, count))
}
