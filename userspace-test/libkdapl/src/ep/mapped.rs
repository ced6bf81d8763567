// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Mapped posts of an endpoint: see "Mapped posts" in `docs/ioctl/dto.md`.
//!
//! The requests of a long burst of posts are mapped, so that one call posts many. A request is
//! mapped only if the kernel has accepted one like it before, and so cannot refuse it. All other
//! DTOs are posted by calls.

use super::Dto;
use crate::raw::{self, call, Device, MappedPosts};
use crate::sys::*;
use crate::{Handle, Segment};
use std::ops::Range;
use std::sync::Arc;

/// Number of requests between two calls that take events, after which a burst asks for a promise.
const LONG: u32 = 8;

/// Number of requests of a burst that are posted without any preparation for a promise.
const SHORT: u32 = 4;

/// Number of kinds of DTOs that are remembered.
const KINDS: usize = 4;

/// DTOs that the kernel accepts.
#[derive(Clone, Debug)]
struct Kind {
    operation: u32,
    flags: u32,
    /// LMR context of the local segment.
    context: u32,
    /// Addresses of the region.
    memory: Range<u64>,
    /// Length of the longest local segment that was accepted.
    longest: u32,
    /// [`Bursts::frees`](crate::bursts::Bursts::frees) when the region existed.
    frees: u32,
}

impl Kind {
    fn is_of(&self, dto: &kdapl_dto, context: u32) -> bool {
        (self.operation, self.flags, self.context) == (dto.operation, dto.flags, context)
    }

    /// Checks whether the local segment is in the region and is not too long.
    fn holds(&self, local: &Segment) -> bool {
        let end = local.address.checked_add(local.length.into());
        local.length <= self.longest
            && local.address >= self.memory.start
            && end.is_some_and(|end| end <= self.memory.end)
    }
}

/// Requests of an endpoint. Locked during the post of each.
#[derive(Debug, Default)]
pub(crate) struct Posts {
    /// [`Bursts::takes`](crate::bursts::Bursts::takes) at the last post.
    takes: u32,
    /// Number of requests of this burst.
    burst: u32,
    kinds: [Option<Kind>; KINDS],
    /// Position in `kinds` of the next kind.
    next: usize,
    /// `None` before the first long burst; `Some(None)` if the kernel cannot map posts.
    ring: Option<Option<MappedPosts>>,
    /// Number of the promise that `room` belongs to.
    promise: u32,
    /// Number of DTOs that may still be mapped under the promise.
    room: u32,
    /// Number of DTOs that were mapped so far.
    total: u64,
    /// Number of calls that post without this lock.
    unlocked: u32,
}

impl Posts {
    /// Counts a request. Returns whether the burst is short so far, and nothing was mapped before:
    /// a call posts the request, and that is all.
    pub(super) fn count(&mut self, device: &Device) -> bool {
        let takes = device.bursts.takes();
        if takes != self.takes {
            (self.takes, self.burst) = (takes, 0);
        }
        self.burst = self.burst.saturating_add(1);
        self.burst <= SHORT && self.ring.is_none()
    }

    /// Maps a DTO. Returns `false` if it has to be posted by a call.
    pub(super) fn map(&mut self, device: &Arc<Device>, ep: Handle, dto: &Dto<'_>) -> bool {
        if !device.bursts.may_map() || self.unlocked != 0 {
            return false;
        }
        let Some(promise) = self.ring().and_then(|ring| ring.promise()) else { return false };
        let Some(mapped) = self.accepted(device, dto) else { return false };
        if !self.take_room(promise) {
            return false;
        }
        let Some(ring) = self.ring() else { return false };
        if !ring.push(&mapped, promise) {
            post_mapped(device, ep);
        }
        device.bursts.note_mapped();
        self.total += 1;
        true
    }

    fn ring(&mut self) -> Option<&mut MappedPosts> {
        self.ring.as_mut()?.as_mut()
    }

    /// Takes room for a DTO. Returns `false` if the promise has none left.
    fn take_room(&mut self, promise: u32) -> bool {
        if promise != self.promise {
            let Some(ring) = self.ring() else { return false };
            (self.promise, self.room) = (promise, ring.room());
        }
        let left = self.room.checked_sub(1);
        self.room = left.unwrap_or(0);
        left.is_some()
    }

    /// Returns the DTO in the form of the ring, if the kernel accepts it.
    fn accepted(&self, device: &Device, dto: &Dto<'_>) -> Option<kdapl_mapped_dto> {
        let (raw, [local]) = (dto.raw(), raw::segments(dto)) else { return None };
        let kind = self.kinds.iter().flatten().find(|kind| kind.is_of(&raw, local.context))?;
        // Some drivers refuse a read of no bytes.
        let is_empty_read = raw.operation == KDAPL_DTO_RDMA_READ && local.length == 0;
        let fits = !is_empty_read
            && kind.frees == device.bursts.frees()
            && kind.holds(local)
            && (raw.operation == KDAPL_DTO_SEND || fits_remote(local, &raw.remote));
        fits.then_some(kdapl_mapped_dto {
            operation: raw.operation,
            flags: raw.flags,
            cookie: raw.cookie,
            local: *local,
            remote: raw.remote,
            reserved: [0; 2],
        })
    }

    /// Returns the flags for the header of a post by a call.
    pub(super) fn flags(&mut self, device: &Device, ep: Handle) -> u32 {
        if self.burst < LONG || !device.bursts.may_map() {
            return 0;
        }
        match self.ring.get_or_insert_with(|| MappedPosts::new(device, ep.0).ok()) {
            Some(_) => KDAPL_FLAG_PROMISE,
            None => 0,
        }
    }

    /// Remembers a DTO that the kernel has accepted.
    pub(super) fn learn(&mut self, device: &Device, dto: &Dto<'_>) {
        let (raw, [local]) = (dto.raw(), raw::segments(dto)) else { return };
        if !matches!(raw.operation, KDAPL_DTO_SEND | KDAPL_DTO_RDMA_WRITE | KDAPL_DTO_RDMA_READ) {
            return;
        }
        let frees = device.bursts.frees();
        let is_of =
            |kind: &Option<Kind>| kind.as_ref().is_some_and(|kind| kind.is_of(&raw, local.context));
        let known = self.kinds.iter().position(is_of);
        let place = known.unwrap_or(self.next);
        if let Some(kind) =
            self.kinds[place].as_mut().filter(|kind| known.is_some() && kind.frees == frees)
        {
            kind.longest = kind.longest.max(local.length);
            return;
        }
        let Some(memory) = device.bursts.region(local.context) else { return };
        self.kinds[place] = Some(Kind {
            operation: raw.operation,
            flags: raw.flags,
            context: local.context,
            memory,
            longest: local.length,
            frees,
        });
        if known.is_none() {
            self.next = (self.next + 1) % KINDS;
        }
    }

    /// Begins a call that posts without this lock, because it may wait for long. A post that takes
    /// room could leave too little for mapped DTOs, so none is mapped meanwhile. Returns `false` if
    /// DTOs were mapped before: then the call has to post under the lock.
    pub(super) fn begin_unlocked(&mut self) -> bool {
        if self.total != 0 {
            return false;
        }
        self.unlocked += 1;
        true
    }

    /// Ends such a call.
    pub(super) fn end_unlocked(&mut self) {
        self.unlocked -= 1;
    }

    /// Returns the number of DTOs that were mapped so far.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Begins a call that changes the state or the attributes of the endpoint, without this lock:
    /// it may wait, and other threads may post meanwhile. None maps a DTO until it has ended.
    pub(super) fn begin_change(&mut self) {
        self.unlocked += 1;
    }

    /// Ends such a call. Forgets what the kernel has accepted until now.
    pub(super) fn end_change(&mut self) {
        self.kinds = Default::default();
        self.end_unlocked();
    }
}

/// Checks whether the peer's segment has room for the local one.
fn fits_remote(local: &Segment, remote: &Segment) -> bool {
    remote.length >= local.length && remote.address.checked_add(remote.length.into()).is_some()
}

/// Lets the kernel post the mapped DTOs. An error means that the endpoint is gone.
fn post_mapped(device: &Arc<Device>, ep: Handle) {
    let hdr = kdapl_hdr { flags: KDAPL_FLAG_PROMISE, ..Default::default() };
    let mut message = kdapl_ep_submit { hdr, handle: ep.0, ..Default::default() };
    let _ = raw::call(device, call::EP_SUBMIT, &mut message);
}
