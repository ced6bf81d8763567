// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory as a consumer describes it: `DAT_MEM_TYPE` and `DAT_REGION_DESCRIPTION`.

use crate::{
    dat::{
        lmr::Description,
        prelude::*, //
    },
    model::handle::KernelHandle,
    rdma::kernel_memory::Source,
};
use kdapl_bindings as bindings;
use kernel::page::PAGE_SIZE;

/// Supported types of memory that are bits of a mask. `DAT_MEM_TYPE_VIRTUAL`, which is 0, is
/// supported too.
pub(super) const MEM_TYPES: u32 = bindings::DAT_MEM_TYPE_LMR
    | bindings::DAT_MEM_TYPE_PHYSICAL
    | bindings::DAT_MEM_TYPE_PLATFORM
    | bindings::DAT_MEM_TYPE_PHYSICAL_VAR_PAGES
    | bindings::KDAPL_MEM_TYPE_BVEC;

/// Memory that a description names.
pub(super) enum DescribedMemory {
    Memory(Source),
    Lmr(KernelHandle),
}

/// Returns whether a type of memory is supported.
pub(super) fn is_supported(mem_type: u32) -> bool {
    mem_type == bindings::DAT_MEM_TYPE_VIRTUAL
        || (mem_type & MEM_TYPES != 0 && mem_type.is_power_of_two())
}

/// Converts a type of addresses. Returns whether they begin at 0.
///
/// # Errors
///
/// MODEL_NOT_SUPPORTED for an undefined type.
pub(super) fn is_zero_based(va_type: u32) -> DatResult<bool> {
    match va_type {
        bindings::DAT_VA_TYPE_VA => Ok(false),
        bindings::DAT_VA_TYPE_ZB => Ok(true),
        _ => Err(Kind::ModelNotSupported.into()),
    }
}

/// Converts a description.
///
/// # Errors
///
/// - MODEL_NOT_SUPPORTED for a type of memory that is not supported.
/// - INVALID_PARAMETER (region) for NULL in place of a list, and for a size that is not a power of
///   two of pages.
pub(super) fn region(
    mem_type: u32,
    region: &bindings::DAT_REGION_DESCRIPTION,
) -> DatResult<DescribedMemory> {
    let invalid = DatError::Invalid(Arg::Region);
    let list = |pointer: *const ()| match pointer.is_null() {
        true => Err(invalid),
        false => Ok(pointer),
    };
    let [first, second] = words(mem_type, region);
    let pointer = core::ptr::with_exposed_provenance::<()>(first as usize);
    Ok(DescribedMemory::Memory(match mem_type {
        bindings::DAT_MEM_TYPE_VIRTUAL => Source::Virtual(first),
        bindings::DAT_MEM_TYPE_LMR => {
            return Ok(DescribedMemory::Lmr(KernelHandle::from_raw(first)))
        }
        bindings::DAT_MEM_TYPE_PHYSICAL => Source::Pages {
            addresses: list(pointer)?.cast(),
            size: PAGE_SIZE as u64,
        },
        bindings::DAT_MEM_TYPE_PHYSICAL_VAR_PAGES => {
            if first < PAGE_SIZE as u64 || !first.is_power_of_two() {
                return Err(invalid);
            }
            let pages = core::ptr::with_exposed_provenance::<()>(second as usize);
            Source::Pages {
                addresses: list(pages)?.cast(),
                size: first,
            }
        }
        bindings::DAT_MEM_TYPE_PLATFORM => Source::Scatterlist(list(pointer)?.cast()),
        bindings::KDAPL_MEM_TYPE_BVEC => Source::Bvecs(list(pointer)?.cast()),
        _ => return Err(Kind::ModelNotSupported.into()),
    }))
}

/// Returns the two words of a description. The second one is 0 where the type has one word.
fn words(mem_type: u32, region: &bindings::DAT_REGION_DESCRIPTION) -> [u64; 2] {
    if mem_type == bindings::DAT_MEM_TYPE_PHYSICAL_VAR_PAGES {
        // SAFETY: The caller set this member. Any bit pattern is a valid number or pointer.
        let array = unsafe { region.for_array };
        return [array.page_size, array.pages.expose_provenance() as u64];
    }
    // SAFETY: Every member has this word. Any bit pattern is a valid number.
    [unsafe { region.for_ia }, 0]
}

/// Describes memory for queries.
pub(super) fn describe(
    mem_type: u32,
    region: &bindings::DAT_REGION_DESCRIPTION,
    zero_based: bool,
) -> Description {
    Description {
        mem_type,
        region: words(mem_type, region),
        zero_based,
    }
}

/// Converts a description back.
pub(super) fn raw_region(description: &Description) -> bindings::DAT_REGION_DESCRIPTION {
    let [first, second] = description.region;
    bindings::DAT_REGION_DESCRIPTION {
        for_array: bindings::DAT_PHYSICAL_VAR_PAGES {
            page_size: first,
            pages: core::ptr::with_exposed_provenance_mut(second as usize),
        },
    }
}
