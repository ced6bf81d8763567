// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Segments of the region that the last post of a queue has named: see
//! [`model::recent_region`](crate::model::recent_region).

use super::{
    region::{
        Memory,
        Region,
        Use, //
    },
    Pz, //
};
use crate::{
    dat::{
        base::Segment,
        prelude::*, //
    },
    model::recent_region::{
        Edition,
        RecentRegion, //
    },
    rdma::wr::{
        AllMemory,
        SgList, //
    },
};

/// Key of a region in work requests.
#[derive(Clone, Copy)]
enum Key {
    /// The LMR context.
    Context,
    /// The key to all memory.
    All(AllMemory),
}

/// Copy of a region that posts have named.
#[derive(Clone, Copy)]
struct RegionCopy {
    region: RecentRegion,
    key: Key,
}

/// The region that the posts of a queue name.
pub(in crate::dat) struct Recent {
    copy: Option<RegionCopy>,
    /// Edition and LMR context of the last post that did not use the copy.
    other: Option<(Edition, u32)>,
    /// That region cannot be copied.
    is_unfit: bool,
}

impl RegionCopy {
    /// Copies a region; `None` if it is hidden, or has more than one address for the device.
    fn new(edition: Edition, context: u32, region: &Region) -> Option<Self> {
        let (device_address, key) = match &region.memory {
            _ if region.is_hidden => return None,
            Memory::Registered => (region.address, Key::Context),
            Memory::Kernel(memory) => {
                let (address, key) = memory.contiguous(region.length)?;
                (address, Key::All(key))
            }
            Memory::Keyed(_) | Memory::Fast(_) => return None,
        };
        let region = RecentRegion {
            edition,
            context,
            address: region.address,
            length: region.length,
            device_address,
            writable: region.writable,
        };
        Some(Self { region, key })
    }

    /// Adds a segment of the region to a work request; `None` if the copy does not allow it.
    #[inline(always)]
    fn add(&self, list: &mut SgList, segment: &Segment, to: Use, now: Edition) -> Option<()> {
        let Segment {
            address,
            length,
            context,
        } = *segment;
        let writes = to == Use::Write;
        let place = self.region.place(now, context, address, length, writes)?;
        match self.key {
            Key::Context => list.push(place, length, context).ok(),
            Key::All(key) => list.push_dma(place, length, key).ok(),
        }
    }
}

impl Recent {
    /// Creates it before the first post.
    pub(in crate::dat) const fn none() -> Self {
        Self {
            copy: None,
            other: None,
            is_unfit: false,
        }
    }
}

impl Pz {
    /// As [`Pz::add`], for a read or a write by a DTO of an Endpoint whose lock is held. Most DTOs
    /// have one segment, of the region that the posts before have named.
    #[inline(always)]
    pub(in crate::dat) fn add_recent(
        &self,
        recent: &mut Recent,
        list: &mut SgList,
        segments: &[Segment],
        to: Use,
    ) -> DatResult<u64> {
        if let (Some(copy), [segment]) = (&recent.copy, segments) {
            let now = self.editions.current();
            if segment.length != 0 && copy.add(list, segment, to, now).is_some() {
                return Ok(segment.length.into());
            }
        }
        self.add_other(recent, list, segments, to)
    }

    /// Adds segments, and copies the region of a second post that names it in the same edition.
    #[inline(never)]
    fn add_other(
        &self,
        recent: &mut Recent,
        list: &mut SgList,
        segments: &[Segment],
        to: Use,
    ) -> DatResult<u64> {
        let length = self.add(list, segments, to)?;
        if let [Segment { context, .. }] = *segments {
            let this = Some((self.editions.current(), context));
            if recent.other != this {
                recent.other = this;
                recent.is_unfit = false;
            } else if !recent.is_unfit {
                recent.copy = self.copy_of(context);
                recent.is_unfit = recent.copy.is_none();
            }
        }
        Ok(length)
    }

    fn copy_of(&self, context: u32) -> Option<RegionCopy> {
        let regions = self.regions.lock();
        RegionCopy::new(self.editions.current(), context, regions.get(&context)?)
    }
}
