// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that Remote Memory Regions (RMRs) are bound to, as the destination of RDMA reads.

use super::Pz;
use crate::{
    dat::{
        base::Segment,
        prelude::*, //
    },
    rdma::wr::SgList,
};
use kernel::rbtree::RBTreeNodeReservation;

/// Part of a Local Memory Region that an RMR is bound to.
#[derive(Clone, Copy)]
pub(in crate::dat) struct Bound {
    /// The part, with the RMR context.
    pub(in crate::dat) segment: Segment,
    /// Local key of the region.
    pub(in crate::dat) lkey: u32,
    /// RDMA reads may write to this memory.
    pub(in crate::dat) writable: bool,
}

impl Bound {
    /// Returns whether the part contains a segment.
    fn holds(&self, segment: &Segment) -> bool {
        match segment.address.checked_sub(self.segment.address) {
            Some(offset) => offset
                .checked_add(segment.length.into())
                .is_some_and(|end| end <= self.segment.length.into()),
            None => false,
        }
    }
}

/// Memory for one more RMR context of a PZ.
pub(in crate::dat) struct BoundReservation(RBTreeNodeReservation<u32, Bound>);

impl BoundReservation {
    /// Allocates the memory.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory).
    pub(in crate::dat) fn new() -> DatResult<Self> {
        Ok(Self(RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?))
    }
}

impl Pz {
    /// Allows RDMA reads to name an RMR context as their destination.
    pub(in crate::dat) fn add_bound(&self, room: BoundReservation, bound: Bound) {
        let node = room.0.into_node(bound.segment.context, bound);
        let old = self.bound.lock().insert(node);
        drop(old);
    }

    /// Forbids RDMA reads to name an RMR context.
    pub(in crate::dat) fn remove_bound(&self, context: u32) {
        let node = self.bound.lock().remove_node(&context);
        drop(node);
    }

    /// Adds a segment that an RMR context names to a work request, as the destination of an RDMA
    /// read.
    ///
    /// # Errors
    ///
    /// * PROTECTION_VIOLATION if no RMR of the PZ is bound with this context, or the segment
    ///   exceeds the part that it is bound to;
    /// * PRIVILEGES_VIOLATION if it is bound without the privilege of remote writes;
    /// * INVALID_PARAMETER (segments) if the work request has no room for the segment.
    pub(in crate::dat) fn add_rmr(&self, list: &mut SgList, segment: &Segment) -> DatResult {
        let found = self.bound.lock().get(&segment.context).copied();
        let Some(bound) = found.filter(|bound| bound.holds(segment)) else {
            let subtype = Subtype::ProtectionWrite;
            return Err(DatError::new(Kind::ProtectionViolation, subtype));
        };
        if !bound.writable {
            let subtype = Subtype::PrivilegesWrite;
            return Err(DatError::new(Kind::PrivilegesViolation, subtype));
        }
        list.push(segment.address, segment.length, bound.lkey)
            .map_err(|_| DatError::Invalid(Arg::SegmentCount))
    }
}
