// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Local Memory Regions (LMRs) that requests register and invalidate, and on the reserved
//! LMR.

use super::{
    export::{
        export,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        lmr::{
            Fmr,
            Lmr, //
        },
        prelude::*,
        pz::RESERVED_CONTEXT, //
    },
    model::handle::KernelHandle,
    rdma::dma_pages::Pages, //
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Privileges that make the device write to the memory.
const WRITES: u32 =
    bindings::DAT_MEM_PRIV_LOCAL_WRITE_FLAG | bindings::DAT_MEM_PRIV_REMOTE_WRITE_FLAG;

/// Checks `DAT_LMR_SCOPE`. The keys of a device are valid in their protection domain.
///
/// # Errors
///
/// INVALID_PARAMETER (scope), or MODEL_NOT_SUPPORTED for a scope other than the PZ.
fn check_scope(scope: u32) -> DatResult {
    match scope {
        bindings::DAT_LMR_SCOPE_PZ => Ok(()),
        bindings::DAT_LMR_SCOPE_EP | bindings::DAT_LMR_SCOPE_ANY => {
            Err(Kind::ModelNotSupported.into())
        }
        _ => Err(DatError::Invalid(Arg::Scope)),
    }
}

/// Returns the pages that a region describes, and the address of the first byte.
///
/// # Errors
///
/// MODEL_NOT_SUPPORTED for other types of memory, INVALID_PARAMETER (region) for NULL in place of
/// an array.
///
/// # Safety
///
/// By the header, an array has at least one element if `count` is not 0.
unsafe fn pages(
    mem_type: u32,
    region: bindings::DAT_REGION_DESCRIPTION,
    count: u32,
) -> DatResult<(Pages, u64)> {
    match mem_type {
        bindings::DAT_MEM_TYPE_VIRTUAL => {
            // SAFETY: Every bit pattern is a valid pointer value, which is not dereferenced here.
            let start = unsafe { region.for_va }.addr() as u64;
            Ok((Pages::Virtual(start), start))
        }
        bindings::DAT_MEM_TYPE_PHYSICAL => {
            // SAFETY: As above.
            let array = NonNull::new(unsafe { region.for_pages }.cast_mut());
            let array = array.ok_or(DatError::Invalid(Arg::Region))?;
            let first = match count {
                0 => 0,
                // SAFETY: By the safety requirement there is an element.
                _ => unsafe { array.read() },
            };
            Ok((Pages::Physical(array), first))
        }
        _ => Err(Kind::ModelNotSupported.into()),
    }
}

export! {
    /// `dat_lmr_allocate`.
    fn dat_lmr_allocate(
        ia: KernelHandle,
        pz: KernelHandle,
        max_pages: u32,
        scope: u32,
        lmr: Out<*mut c_void>,
    ) {
        lmr.needed(Arg::Handle)?;
        check_scope(scope)?;
        let adapter = Adapter::of(ia)?;
        let handle = adapter.ia.allocate_lmr(adapter.inner(pz), max_pages)?;
        lmr.put(adapter.raw(handle));
        Ok(())
    }

    /// `dat_lmr_fmr`.
    fn dat_lmr_fmr(
        lmr: KernelHandle,
        mem_type: u32,
        region: bindings::DAT_REGION_DESCRIPTION,
        npages: u32,
        privileges: u32,
        va_type: u32,
        ep: KernelHandle,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
        lmr_context: Out<u32>,
        rmr_context: Out<u32>,
    ) {
        let (adapter, lmr) = Adapter::of_object::<Lmr>(lmr)?;
        if va_type != bindings::DAT_VA_TYPE_VA {
            return Err(Kind::ModelNotSupported.into());
        }
        // SAFETY: The header obliges the consumer to pass an array of `npages` elements.
        let (pages, address) = unsafe { pages(mem_type, region, npages) }?;
        let fmr = Fmr {
            address,
            pages: npages,
            privileges,
            // SAFETY: Every bit pattern is a valid cookie.
            cookie: unsafe { cookie.as_64 },
            flags,
        };
        let write = privileges & WRITES != 0;
        let contexts = adapter.ia.register_lmr(lmr, adapter.inner(ep), &fmr, |list| {
            // SAFETY: As above. The header obliges the consumer to keep the memory until the
            // registration has ended.
            unsafe { list.map(pages, npages, write) }
        })?;
        lmr_context.put(contexts.0);
        rmr_context.put(contexts.1);
        Ok(())
    }

    /// `dat_lmr_invalidate`.
    fn dat_lmr_invalidate(
        lmr: KernelHandle,
        ep: KernelHandle,
        cookie: bindings::DAT_CONTEXT,
        flags: u32,
    ) {
        let (adapter, lmr) = Adapter::of_object::<Lmr>(lmr)?;
        // SAFETY: Every bit pattern is a valid cookie.
        let cookie = unsafe { cookie.as_64 };
        adapter.ia.invalidate_lmr(lmr, adapter.inner(ep), cookie, flags)
    }

    /// `dat_ia_reserved_lmr`.
    fn dat_ia_reserved_lmr(
        ia: KernelHandle,
        lmr: Out<*mut c_void>,
        lmr_context: Out<u32>,
    ) {
        lmr.needed(Arg::Handle)?;
        lmr_context.needed(Arg::LmrContext)?;
        let adapter = Adapter::of(ia)?;
        lmr.put(adapter.raw(adapter.ia.reserved_lmr()?));
        lmr_context.put(RESERVED_CONTEXT);
        Ok(())
    }
}
