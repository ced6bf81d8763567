// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Segments at DMA addresses: those of the adapter's reserved LMR.
//!
//! The context is a fixed number. A post replaces it by the key to all memory of its Protection
//! Zone (PZ). It is invalid until a kernel consumer has asked for the reserved LMR, so it is never
//! valid for a process.

use super::Pz;
use crate::{
    dat::{
        base::Segment,
        prelude::*, //
    },
    rdma::wr::SgList,
};

/// Context of the reserved LMR. Contexts of other LMRs of kernel consumers have bit 31.
pub(crate) const RESERVED_CONTEXT: u32 = 1;

impl Pz {
    /// Returns whether a segment belongs to the reserved LMR.
    #[cold]
    pub(super) fn is_reserved(&self, segment: &Segment) -> bool {
        segment.context == RESERVED_CONTEXT && self.ia.reserved_lmr() != 0
    }

    /// Adds a segment of the reserved LMR to a work request. The consumer has mapped the memory.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (segments) if the work request has no room for the segment.
    pub(super) fn add_reserved(&self, list: &mut SgList, segment: &Segment) -> DatResult {
        list.push_dma(segment.address, segment.length, self.all_memory)
            .map_err(|_| DatError::Invalid(Arg::SegmentCount))
    }
}
