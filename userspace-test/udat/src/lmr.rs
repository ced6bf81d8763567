// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Local Memory Regions (LMRs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{put, put_if, region, wanted, with_segments, Description};
use crate::ia::Ia;
use crate::object::{find, find_as, Noun};
use crate::pz::{fields, Pz};
use crate::ret::{Result, Ret};
use libkdapl::{Buffer, Handle, LmrRegistration, Privileges, Segment, Subtype, Type};
use std::collections::HashMap;
use std::sync::Arc;

/// A Local Memory Region.
pub struct Lmr {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    source: Source,
    pub dat: libkdapl::Lmr,
}

/// Memory that an LMR was created of, as the program has described it.
struct Source {
    mem_type: DAT_MEM_TYPE,
    description: Description,
}

impl Source {
    /// Reads the arguments of the creation.
    fn new(mem_type: DAT_MEM_TYPE, description: DAT_REGION_DESCRIPTION) -> Result<Self> {
        match mem_type {
            DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_SHARED_VIRTUAL => {
                Ok(Self { mem_type, description: Description::new(description) })
            }
            _ => Err(Ret::UNSUPPORTED),
        }
    }

    /// Returns the memory. For another LMR: its memory from the start, possibly shorter.
    ///
    /// Each process registers shared memory at its own address. The pages are the same, so the
    /// identifier of the memory is of no use.
    fn memory(&self, length: usize) -> Result<Buffer> {
        let address = match self.mem_type {
            DAT_MEM_TYPE_LMR => {
                let handle = self.description.address();
                let whole = find_as::<Lmr>(handle, Subtype::INVALID_HANDLE_LMR)?.dat.query()?;
                if u64::try_from(length).map_or(true, |length| length > whole.length) {
                    return Err(Ret::of(Type::LENGTH_ERROR));
                }
                whole.address as usize as DAT_PVOID
            }
            _ => self.description.address(),
        };
        region(address, length)
    }
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
        let zero_based = match va_type {
            DAT_VA_TYPE_VA => false,
            DAT_VA_TYPE_ZB => true,
            _ => return Err(Ret::UNSUPPORTED),
        };
        let source = Source::new(mem_type, description)?;
        let too_long = Ret::of(Type::LENGTH_ERROR);
        let length = usize::try_from(length).ok().filter(|length| *length != 0).ok_or(too_long)?;
        let (memory, privileges) = (source.memory(length)?, Privileges(privileges));
        let dat = if zero_based {
            ia.dat.register_zero_based(&pz.dat, memory, privileges)?
        } else {
            ia.dat.register(&pz.dat, memory, privileges)?
        };
        let made = dat.registration();
        let lmr = ia.adopt(dat.handle(), |cell| Lmr { cell, ia: ia.clone(), source, dat })?;
        put_if(lmr_context, made.lmr_context);
        put_if(rmr_context, made.rmr_context);
        put_if(registered_length, made.size);
        put_if(registered_address, made.address);
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
                mem_type: lmr.source.mem_type,
                region_desc: lmr.source.description.get(),
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

/// Checks that the segments are parts of LMRs of the IA. A segment of length 0 names no memory, so
/// its context is not checked. On x86 memory is coherent with devices, so that nothing else is
/// necessary.
fn sync(ia: DAT_IA_HANDLE, segments: *const DAT_LMR_TRIPLET, count: DAT_VLEN) -> Result<()> {
    let ia = find::<Ia>(ia)?;
    let count = i32::try_from(count).map_err(|_| Ret::argument(3))?;
    with_segments(segments, count, (3, 2), |segments| {
        let memory: HashMap<_, _> = ia
            .objects()
            .filter_map(|object| Some(Lmr::of(&object)?.dat.registration()))
            .map(|made| (made.lmr_context, made))
            .collect();
        let within = |segment: &Segment| {
            segment.length == 0
                || memory.get(&segment.context).is_some_and(|made| contains(made, segment))
        };
        segments.iter().all(within).then_some(()).ok_or(Ret::argument(2))
    })
}

/// Returns whether all bytes of a segment are in an LMR. The addresses of a zero-based one begin
/// with 0.
fn contains(made: &LmrRegistration, segment: &Segment) -> bool {
    let offset = segment.address.checked_sub(made.address);
    let left = offset.and_then(|offset| made.size.checked_sub(offset));
    left.is_some_and(|left| u64::from(segment.length) <= left)
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
