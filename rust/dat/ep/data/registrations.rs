// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Requests in a send queue that register or invalidate memory.

use crate::{
    dat::{
        ep::Inner,
        lmr::Outstanding, //
    },
    model::{
        dto::{
            Dto,
            DtoResult, //
        },
        event::{
            DtoStatus,
            Operation, //
        },
        fast_lmr::LmrInput, //
    },
    rdma::fast_mr::PostedMr,
};
use kernel::rbtree::{
    RBTree,
    RBTreeNodeReservation, //
};

/// Objects of a request.
pub(super) struct RequestObjects {
    pub(super) region: PostedMr,
    /// `None` for a bind.
    pub(super) lmr: Option<Outstanding>,
}

/// Requests in the send queue, by slot.
pub(in crate::dat::ep) struct Registrations(RBTree<u32, RequestObjects>);

impl Registrations {
    /// Creates an empty set.
    pub(in crate::dat::ep) fn none() -> Self {
        Self(RBTree::new())
    }

    /// Adds a request that was posted.
    pub(super) fn begin(
        &mut self,
        node: RBTreeNodeReservation<u32, RequestObjects>,
        slot: u32,
        posted: RequestObjects,
    ) {
        drop(self.0.insert(node.into_node(slot, posted)));
    }

    /// Releases the objects of a request that has ended, or that no QP will carry out.
    #[inline]
    pub(in crate::dat::ep) fn end(&mut self, slot: u32, dto: &Dto, status: DtoStatus) {
        if dto.operation.is_local() {
            self.end_local(slot, dto.operation, status);
        }
    }

    #[cold]
    fn end_local(&mut self, slot: u32, operation: Operation, status: DtoStatus) {
        let ok = status == DtoStatus::Success;
        let input = match operation {
            Operation::LmrInvalidate => LmrInput::InvalidationEnded { ok },
            Operation::LmrFmr => LmrInput::RegistrationEnded { ok },
            Operation::BindMw => {
                drop(self.0.remove(&slot));
                return;
            }
            _ => return,
        };
        // There are none for an invalidation that a driver needs before a registration.
        let Some(RequestObjects { region, lmr }) = self.0.remove(&slot) else {
            return;
        };
        // The state may allow another registration, which requires that no request has the region.
        drop(region);
        if let Some(lmr) = lmr {
            lmr.ended(input);
        }
    }
}

impl Inner {
    /// Changes the state of the LMR whose RMR context the message of a receive has invalidated.
    #[inline]
    pub(super) fn note_invalidation(&self, dto: &Dto, result: DtoResult) {
        if dto.operation == Operation::ReceiveWithInvalidate {
            if let Ok(pz) = self.parts.pz() {
                pz.peer_invalidated(result.extra);
            }
        }
    }
}
