// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that requests register and invalidate.

use super::{
    Pz,
    Region, //
};
use crate::dat::prelude::*;
use kernel::rbtree::{
    RBTreeNode,
    RBTreeNodeReservation, //
};

/// Low bits of an RMR context, which change with each registration.
const LOW_BITS: u32 = 8;

/// LMR that a peer can invalidate.
pub(in crate::dat) trait PeerInvalidation: Send + Sync {
    /// Handles the arrival of a message that has invalidated the RMR context.
    ///
    /// Context: the caller holds `Ep::inner` and `Pz::peers`.
    fn peer_invalidated(&self, rmr_context: u32);
}

/// Memory for one LMR context of a PZ.
pub(in crate::dat) struct RegionReservation(RBTreeNodeReservation<u32, Region>);

impl RegionReservation {
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
    /// Allows posts to use an LMR context, without an allocation. Context: any that may take a
    /// spinlock.
    pub(in crate::dat) fn insert_region(
        &self,
        room: RegionReservation,
        context: u32,
        region: Region,
    ) {
        let node = room.0.into_node(context, region);
        let old = self.regions.lock().insert(node);
        drop(old);
    }

    /// Forbids posts to use an LMR context. Returns the memory for another one.
    pub(in crate::dat) fn take_region(&self, context: u32) -> Option<RegionReservation> {
        let node = self.regions.lock().remove_node(&context);
        node.map(|node| RegionReservation(node.into_reservation()))
    }

    /// Reports invalidations by peers to an LMR. The upper bits of its RMR contexts are those of
    /// `rmr_context`.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory).
    pub(in crate::dat) fn add_peer_invalidation(
        &self,
        rmr_context: u32,
        lmr: Arc<dyn PeerInvalidation>,
    ) -> DatResult {
        let node = RBTreeNode::new(rmr_context >> LOW_BITS, lmr, GFP_KERNEL_ACCOUNT)?;
        let old = self.peers.lock().insert(node);
        drop(old);
        Ok(())
    }

    /// Reports no more invalidations by peers to an LMR.
    pub(in crate::dat) fn remove_peer_invalidation(&self, rmr_context: u32) {
        let node = self.peers.lock().remove_node(&(rmr_context >> LOW_BITS));
        drop(node);
    }

    /// Handles the arrival of a message that has invalidated an RMR context.
    ///
    /// Context: the caller holds `Ep::inner`.
    // Kept out of the completions, of which few invalidate a context.
    #[inline(never)]
    pub(in crate::dat) fn peer_invalidated(&self, rmr_context: u32) {
        let peers = self.peers.lock();
        if let Some(lmr) = peers.get(&(rmr_context >> LOW_BITS)) {
            lmr.peer_invalidated(rmr_context);
        }
    }
}
