// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Local Memory Regions (LMRs) that requests register and invalidate, and on the reserved
//! LMR.

use super::{
    export::{
        export,
        Out, //
    },
    region::is_zero_based,
    registry::Adapter, //
};
use crate::{
    dat::{
        ep::Ep,
        ia::Ia,
        lmr::{
            Fmr,
            Lmr, //
        },
        prelude::*,
        pz::RESERVED_CONTEXT, //
    },
    model::handle::KernelHandle,
    rdma::dma_pages::{
        DmaPages,
        Pages, //
    },
    sys::task::CallContext,
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    sync::rcu, //
};

/// Privileges that make the device write to the memory.
const WRITES: u32 = bindings::DAT_MEM_PRIV_LOCAL_WRITE_FLAG
    | bindings::DAT_MEM_PRIV_REMOTE_WRITE_FLAG
    | bindings::KDAPL_MEM_REMOTE_ATOMIC;

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

/// Returns the memory that a region describes.
///
/// # Errors
///
/// MODEL_NOT_SUPPORTED for other types of memory, INVALID_PARAMETER (region) for NULL in place of
/// a list.
fn pages(mem_type: u32, region: bindings::DAT_REGION_DESCRIPTION) -> DatResult<Pages> {
    // SAFETY: Every member has this pointer, of which every bit pattern is valid. It is not
    // dereferenced here.
    let start = unsafe { region.for_va };
    let list = NonNull::new(start).ok_or(DatError::Invalid(Arg::Region));
    Ok(match mem_type {
        bindings::DAT_MEM_TYPE_VIRTUAL => Pages::Virtual(start.addr() as u64),
        bindings::DAT_MEM_TYPE_PHYSICAL => Pages::Physical(list?.cast()),
        bindings::DAT_MEM_TYPE_PLATFORM => Pages::Scatterlist(list?),
        bindings::KDAPL_MEM_TYPE_BVEC => Pages::Bvecs(list?),
        _ => return Err(Kind::ModelNotSupported.into()),
    })
}

/// Calls `call` with an adapter, its LMR and Endpoint with these handles, and the caller's context.
///
/// Context: any.
///
/// # Errors
///
/// INVALID_HANDLE (LMR or Endpoint), also for objects of two adapters.
fn with_lmr_and_ep<R>(
    lmr: KernelHandle,
    ep: KernelHandle,
    call: impl FnOnce(&Ia, (&Lmr, &Ep), CallContext) -> DatResult<R>,
) -> DatResult<R> {
    let is_one = lmr.adapter() == ep.adapter();
    let unless_two = || {
        let other = DatError::new(Kind::InvalidHandle, Subtype::InvalidHandleEp);
        is_one.then_some(()).ok_or(other)
    };
    match CallContext::current() {
        CallContext::Process => {
            let (adapter, lmr) = Adapter::find::<Lmr>(lmr)?;
            unless_two()?;
            let ep = Adapter::object::<Ep>(ep)?;
            call(&adapter.ia, (&lmr, &ep), CallContext::Process)
        }
        CallContext::Atomic => {
            let guard = rcu::read_lock();
            let number = lmr.adapter();
            let lmr = Adapter::borrow::<Lmr>(&guard, lmr)?;
            unless_two()?;
            let ep = Adapter::borrow::<Ep>(&guard, ep)?;
            let ia = Adapter::borrow_ia(&guard, number);
            let ia = ia.ok_or(DatError::new(
                Kind::InvalidHandle,
                Subtype::InvalidHandleLmr,
            ))?;
            call(ia, (lmr, ep), CallContext::Atomic)
        }
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
        Adapter::check::<Lmr>(lmr)?;
        let pages = pages(mem_type, region)?;
        let fmr = Fmr {
            pages: npages,
            is_zero_based: is_zero_based(va_type)?,
            privileges,
            // SAFETY: Every bit pattern is a valid cookie.
            cookie: unsafe { cookie.as_64 },
            flags,
        };
        let write = privileges & WRITES != 0;
        // SAFETY: The header obliges the consumer to pass a list of `npages` elements, and to keep
        // the memory until the registration has ended.
        let map = |list: &mut DmaPages| unsafe { list.map(pages, npages, write) };
        let contexts = with_lmr_and_ep(lmr, ep, |ia, both, context| {
            ia.register_lmr(both, &fmr, map, context)
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
        // SAFETY: Every bit pattern is a valid cookie.
        let cookie = unsafe { cookie.as_64 };
        with_lmr_and_ep(lmr, ep, |ia, both, context| {
            ia.invalidate_lmr(both, cookie, flags, context)
        })
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
