// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Protection Zones (PZs) and Local Memory Regions (LMRs) of kernel memory.

use super::{
    dto::triplets,
    export::{
        export,
        In,
        Out, //
    },
    region::{
        self,
        DescribedMemory, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        lmr::{
            KernelArguments,
            Lmr, //
        },
        prelude::*,
        pz::Pz, //
    },
    model::handle::KernelHandle,
    rdma::kernel_memory::KernelMemory, //
};
use kdapl_bindings as bindings;
use kernel::ffi::c_void;

/// Largest value of `DAT_MEM_OPTIMIZE_FLAGS`.
const OPTIMIZE_MAX: u32 = bindings::DAT_MEM_OPTIMIZE_EXACT_EXPOSURE;

/// Checks the segments of `dat_lmr_sync_rdma_read` and `dat_lmr_sync_rdma_write`.
fn sync(ia: KernelHandle, local: &In<bindings::DAT_LMR_TRIPLET>, count: u64) -> DatResult {
    let adapter = Adapter::of(ia)?;
    let count = i32::try_from(count).ok();
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or(DatError::Invalid(Arg::SegmentCount))?;
    // SAFETY: The header obliges the caller to pass `count` triplets, unless `local` is NULL. That
    // many have less than `isize::MAX` bytes.
    let segments = unsafe { triplets(count, local.as_ptr()) }?;
    adapter.ia.check_segments(segments)
}

export! {
    /// `dat_pz_create`.
    fn dat_pz_create(ia: KernelHandle, pz: Out<*mut c_void>) {
        pz.needed(Arg::Handle)?;
        let adapter = Adapter::of(ia)?;
        pz.put(adapter.raw(adapter.ia.create_pz()?));
        Ok(())
    }

    /// `dat_pz_query`.
    fn dat_pz_query(pz: KernelHandle, _mask: u64, param: Out<bindings::DAT_PZ_PARAM>) {
        param.needed(Arg::Param)?;
        let (adapter, _) = Adapter::find::<Pz>(pz)?;
        param.put(bindings::DAT_PZ_PARAM {
            ia_handle: super::export::raw_handle(adapter.handle()),
        });
        Ok(())
    }

    /// `dat_pz_free`.
    fn dat_pz_free(pz: KernelHandle) {
        let (adapter, pz) = Adapter::of_object::<Pz>(pz)?;
        adapter.ia.free::<Pz>(pz)
    }

    /// `dat_lmr_kcreate`.
    fn dat_lmr_kcreate(
        ia: KernelHandle,
        mem_type: u32,
        region: bindings::DAT_REGION_DESCRIPTION,
        length: u64,
        pz: KernelHandle,
        privileges: u32,
        va_type: u32,
        optimize: u32,
        lmr: Out<*mut c_void>,
        lmr_context: Out<u32>,
        rmr_context: Out<u32>,
        registered_size: Out<u64>,
        registered_address: Out<u64>,
    ) {
        lmr.needed(Arg::Handle)?;
        lmr_context.needed(Arg::LmrContext)?;
        if optimize > OPTIMIZE_MAX {
            return Err(DatError::Invalid(Arg::Optimize));
        }
        let adapter = Adapter::of(ia)?;
        let zero_based = region::is_zero_based(va_type)?;
        let arguments = KernelArguments {
            length,
            privileges,
            description: region::describe(mem_type, &region, zero_based),
        };
        let pz = adapter.inner(pz);
        let (handle, param) = match region::region(mem_type, &region)? {
            DescribedMemory::Memory(source) => adapter.ia.create_kernel_lmr(pz, &arguments, |pd| {
                // SAFETY: The header obliges the consumer to pass a list that names `length` bytes,
                // and to keep the memory until the LMR and those of the same memory are freed.
                unsafe { KernelMemory::map(pd, &source, length) }
            }),
            DescribedMemory::Lmr(other) => {
                adapter.ia.create_lmr_of_lmr(pz, adapter.inner(other), &arguments)
            }
        }?;
        lmr.put(adapter.raw(handle));
        lmr_context.put(param.lmr_context);
        rmr_context.put(param.rmr_context);
        registered_size.put(param.length);
        registered_address.put(param.address);
        Ok(())
    }

    /// `dat_ia_memtype_hint`.
    fn dat_ia_memtype_hint(
        ia: KernelHandle,
        mem_type: u32,
        length: u64,
        optimize: u32,
        preferred_length: Out<u64>,
        preferred_alignment: Out<u64>,
    ) {
        if optimize > OPTIMIZE_MAX {
            return Err(DatError::Invalid(Arg::Optimize));
        }
        let adapter = Adapter::of(ia)?;
        if !region::is_supported(mem_type) {
            return Err(Kind::ModelNotSupported.into());
        }
        let hint = adapter.ia.memory_hint(length)?;
        preferred_length.put(hint.length);
        preferred_alignment.put(hint.alignment);
        Ok(())
    }

    /// `dat_lmr_query`.
    fn dat_lmr_query(lmr: KernelHandle, _mask: u64, result: Out<bindings::DAT_LMR_PARAM>) {
        result.needed(Arg::Param)?;
        let (adapter, lmr) = Adapter::find::<Lmr>(lmr)?;
        let param = lmr.query();
        result.put(bindings::DAT_LMR_PARAM {
            ia_handle: super::export::raw_handle(adapter.handle()),
            mem_type: param.description.mem_type,
            region_desc: region::raw_region(&param.description),
            length: param.length,
            pz_handle: adapter.raw(param.pz),
            mem_priv: param.privileges,
            va_type: if param.description.zero_based {
                bindings::DAT_VA_TYPE_ZB
            } else {
                bindings::DAT_VA_TYPE_VA
            },
            lmr_context: param.lmr_context,
            rmr_context: param.rmr_context,
            registered_size: param.length,
            registered_address: param.address,
        });
        Ok(())
    }

    /// `dat_lmr_free`.
    fn dat_lmr_free(lmr: KernelHandle) {
        let (adapter, lmr) = Adapter::of_object::<Lmr>(lmr)?;
        adapter.ia.free_lmr(lmr)
    }

    /// `dat_lmr_sync_rdma_read`.
    fn dat_lmr_sync_rdma_read(
        ia: KernelHandle,
        local: In<bindings::DAT_LMR_TRIPLET>,
        count: u64,
    ) {
        sync(ia, &local, count)
    }

    /// `dat_lmr_sync_rdma_write`.
    fn dat_lmr_sync_rdma_write(
        ia: KernelHandle,
        local: In<bindings::DAT_LMR_TRIPLET>,
        count: u64,
    ) {
        sync(ia, &local, count)
    }

    /// `kdapl_lmr_free_unused`.
    fn kdapl_lmr_free_unused(lmr: KernelHandle) {
        let (adapter, lmr) = Adapter::of_object::<Lmr>(lmr)?;
        adapter.ia.free_unused_lmr(lmr)
    }
}
