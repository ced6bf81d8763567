// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Length and alignment of regions that suit a device: `dat_ia_memtype_hint`.

use crate::dat::{
    base::IaAttr,
    prelude::*, //
};
use kernel::page::PAGE_SIZE;

/// Result of `dat_ia_memtype_hint`.
#[derive(Clone, Copy)]
pub(crate) struct Hint {
    /// Preferred length in bytes.
    pub(crate) length: u64,
    /// Preferred alignment in bytes.
    pub(crate) alignment: u64,
}

/// Implements `dat_ia_memtype_hint` for a region of `length` bytes.
///
/// # Errors
///
/// LENGTH_ERROR if the length is 0, or overflows when it is rounded up to whole pages.
pub(in crate::dat) fn hint(attr: &IaAttr, length: u64) -> DatResult<Hint> {
    let alignment = PAGE_SIZE as u64;
    let whole = match length {
        0 => None,
        _ => length.checked_next_multiple_of(alignment),
    };
    // A device that cannot register memory has no limit for it.
    let longest = match attr.max_rmr_size {
        0 => attr.max_lmr_size,
        limit => limit.min(attr.max_lmr_size),
    };
    Ok(Hint {
        length: whole.ok_or(Kind::LengthError)?.min(longest),
        alignment,
    })
}
