// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of the receives that wait for a connection.

use crate::{
    dat::{
        base::{
            contexts_of,
            Segment, //
        },
        prelude::*,
        pz::{
            Pz,
            Use, //
        },
    },
    model::dto::Dto,
    rdma::wr::SgList,
    sys::user::{
        ChargedArray,
        User, //
    },
};

/// A receive that waits for a connection.
struct Waiting {
    dto: Dto,
    /// End of its segments in [`Preposted::segments`].
    end: usize,
}

/// Numbers of receives, and of their segments, for which there is memory.
pub(super) struct Capacities {
    receives: usize,
    segments: usize,
}

impl Capacities {
    /// Allocates an empty queue, for whose memory `user` is charged.
    pub(super) fn allocate(self, user: &User) -> Result<Preposted> {
        let flags = GFP_KERNEL_ACCOUNT;
        Ok(Preposted {
            receives: ChargedArray::with_capacity(user, self.receives, flags)?,
            segments: ChargedArray::with_capacity(user, self.segments, flags)?,
        })
    }
}

/// Receives that wait for a connection, oldest first.
pub(in crate::dat::ep) struct Preposted {
    receives: ChargedArray<Waiting>,
    segments: ChargedArray<Segment>,
}

impl Preposted {
    /// Creates an empty queue.
    pub(in crate::dat::ep) fn new() -> Self {
        Self {
            receives: ChargedArray::empty(),
            segments: ChargedArray::empty(),
        }
    }

    /// Returns the capacities that one more receive needs, if its arrays must grow for it.
    pub(super) fn shortage(&self, segments: usize) -> Option<Capacities> {
        let has_room = self.receives.has_room(1) && self.segments.has_room(segments);
        (!has_room).then(|| Capacities {
            receives: self.receives.next_capacity(1),
            segments: self.segments.next_capacity(segments),
        })
    }

    /// Moves the receives to longer arrays. Returns the memory that is left.
    pub(super) fn move_to(&mut self, longer: Self) -> Self {
        Self {
            receives: self.receives.move_to(longer.receives),
            segments: self.segments.move_to(longer.segments),
        }
    }

    /// Adds a receive, for which there is room.
    pub(super) fn push(&mut self, dto: Dto, segments: &[Segment]) -> DatResult {
        for segment in segments {
            let pushed = self.segments.push(*segment);
            pushed.map_err(|_| DatError::internal())?;
        }
        let end = self.segments.len();
        let pushed = self.receives.push(Waiting { dto, end });
        pushed.map_err(|_| DatError::internal())
    }

    /// Iterates over the receives, each with its segments.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Dto, &[Segment])> {
        let mut start = 0;
        self.receives.iter().map(move |receive| {
            let segments = self.segments.get(start..receive.end).unwrap_or(&[]);
            start = receive.end;
            (receive.dto, segments)
        })
    }

    /// Checks that this zone holds the memory of all receives.
    ///
    /// # Errors
    ///
    /// As for [`Pz::add`].
    pub(in crate::dat::ep) fn fit_zone(&self, pz: &Pz) -> DatResult {
        self.iter()
            .try_for_each(|(_, segments)| fill(&mut SgList::new(), pz, segments))
    }

    /// Returns whether the receives fit into queues of this size.
    pub(in crate::dat::ep) fn fit_queues(&self, max_dtos: u32, max_iov: u32) -> bool {
        let at_most = |count: usize, limit: u32| u32::try_from(count).is_ok_and(|n| n <= limit);
        at_most(self.receives.len(), max_dtos)
            && self
                .iter()
                .all(|(_, segments)| at_most(segments.len(), max_iov))
    }

    /// Returns whether a receive names this LMR context.
    pub(in crate::dat::ep) fn name(&self, context: u32) -> bool {
        contexts_of(&self.segments).any(|named| named == context)
    }

    /// Removes all receives, and frees their memory.
    pub(in crate::dat::ep) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Fills the scatter/gather list with the segments of a receive, if it may use them.
pub(super) fn fill(list: &mut SgList, pz: &Pz, segments: &[Segment]) -> DatResult {
    pz.add(list, segments, Use::WaitingReceive).map(drop)
}
