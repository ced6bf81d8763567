// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Local Memory Regions (LMRs) that data transfer operations (DTOs) in flight name.
//!
//! The device addresses memory of the kernel directly, without a key that would end with the LMR.
//! So an LMR of a kernel consumer is in use while a DTO names it.

use super::SEARCH_STEP;
use crate::{
    dat::{
        base::{
            contexts,
            contexts_of,
            ContextStorage,
            Contexts,
            Segment, //
        },
        ep::{
            Ep,
            EpAttr,
            EpContext,
            Inner, //
        },
        prelude::*,
        srq::Srq, //
    },
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            ScanPart, //
        },
        handle::Direction, //
    },
};
use kernel::{
    alloc::Flags,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Milliseconds that suppressed requests have to complete. Their completions have no events.
const SUPPRESSED_MS: u32 = 100;

/// LMR contexts of the DTOs of one queue.
pub(in crate::dat::ep) struct NamedQueue(Contexts);

impl NamedQueue {
    /// Stores the contexts of the DTO that was posted in a slot.
    #[inline]
    pub(super) fn name(&mut self, slot: u32, local: &[Segment]) {
        self.0.set(slot, contexts_of(local));
    }
}

/// LMR contexts of the DTOs of an Endpoint.
pub(in crate::dat::ep) struct Named {
    pub(super) receives: NamedQueue,
    pub(super) requests: NamedQueue,
}

impl Named {
    /// Keeps no contexts.
    pub(in crate::dat::ep) const fn none() -> Self {
        Self {
            receives: NamedQueue(Contexts::new(0, ContextStorage::empty())),
            requests: NamedQueue(Contexts::new(0, ContextStorage::empty())),
        }
    }

    /// Allocates contexts for an Endpoint with these attributes. Those of a process need none, nor
    /// do receives that were taken from a Shared Receive Queue: they have completed.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(in crate::dat::ep) fn new(
        context: &EpContext,
        attr: &EpAttr,
        srq: Option<&Srq>,
        flags: Flags,
    ) -> DatResult<Self> {
        let mut this = Self::none();
        if !context.ia.is_of_kernel {
            return Ok(this);
        }
        let request_iov = attr
            .max_request_iov
            .max(attr.max_rdma_read_iov)
            .max(attr.max_rdma_write_iov);
        let user = context.ia.user();
        // An atomic operation has a segment whatever the attributes are.
        this.requests.0 = contexts(user, attr.max_request_dtos, request_iov.max(1), flags)?;
        if srq.is_none() {
            this.receives.0 = contexts(user, attr.max_recv_dtos, attr.max_recv_iov, flags)?;
        }
        Ok(this)
    }
}

/// Use of an LMR by DTOs in flight.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MemoryUse {
    /// No DTO in flight uses it.
    None,
    /// Only requests without an event use it.
    Suppressed,
    /// A DTO whose event the consumer awaits uses it.
    Awaited,
}

/// Returns whether the segments of a DTO name LMRs. A marker and a request that registers memory
/// have none, and the contexts in their slots are old.
fn names_lmrs(dto: &Dto) -> bool {
    !dto.flags.has(CompletionFlags::MARKER)
        && !dto.operation.is_local()
        && !dto.operation.names_local_rmrs()
}

impl Inner {
    /// Looks for the use of an LMR in some slots, from `from` on. Returns it, and the slot to
    /// continue from.
    fn look_for(&self, direction: Direction, context: u32, from: u32) -> (MemoryUse, Option<u32>) {
        let queue = match direction {
            Direction::Receive => &self.named.receives,
            Direction::Request => &self.named.requests,
        };
        let mut found = MemoryUse::None;
        let mut part = ScanPart::new(from, SEARCH_STEP);
        while let Some((slot, dto)) = part.advance(|from| self.find_busy(direction, from)) {
            if names_lmrs(&dto) && queue.0.has(slot, context) {
                found = found.max(use_of(&dto, direction));
            }
        }
        (found, part.rest())
    }
}

/// Returns how a DTO uses its memory.
fn use_of(dto: &Dto, direction: Direction) -> MemoryUse {
    match direction {
        Direction::Request if dto.flags.has(CompletionFlags::SUPPRESS) => MemoryUse::Suppressed,
        Direction::Request | Direction::Receive => MemoryUse::Awaited,
    }
}

impl Ep {
    /// Returns how DTOs in flight use an LMR. First drains completions, and posts a marker after
    /// unsignalled requests.
    ///
    /// Context: process; sleeps.
    fn memory_use(&self, context: u32) -> MemoryUse {
        {
            let mut inner = self.inner.lock();
            if inner.receives_outstanding() == 0 && inner.requests.outstanding() == 0 {
                return MemoryUse::None;
            }
            self.close_end_if_connected(&mut inner);
        }
        // Before the slots: a connect moves waiting receives there.
        if self.preposted.lock().name(context) {
            return MemoryUse::Awaited;
        }
        self.drain_evds();
        let mut found = MemoryUse::None;
        for direction in [Direction::Receive, Direction::Request] {
            let mut next = Some(0);
            while let Some(from) = next {
                let (more, then) = self.inner.lock().look_for(direction, context, from);
                (found, next) = (found.max(more), then);
            }
        }
        found
    }
}

impl EpContext {
    /// Returns whether a DTO in flight on any Endpoint, or in a Shared Receive Queue, names an LMR.
    /// The caller prevents that posts name it meanwhile.
    ///
    /// Context: process; sleeps, up to [`SUPPRESSED_MS`] for suppressed requests, and up to a
    /// second for Endpoints that end.
    pub(in crate::dat) fn is_memory_used(&self, context: u32) -> bool {
        let used = || {
            let mut found = MemoryUse::None;
            self.eps
                .for_each(|ep| found = found.max(ep.memory_use(context)));
            self.srqs.for_each(|srq| {
                if srq.names(context) {
                    found = MemoryUse::Awaited;
                }
            });
            found
        };
        let mut found = used();
        for _ in 0..SUPPRESSED_MS {
            if found != MemoryUse::Suppressed {
                break;
            }
            fsleep(Delta::from_millis(1));
            found = used();
        }
        // Endpoints that had left the table before the search may still use it.
        found != MemoryUse::None || !self.eps.await_frees_shortly()
    }
}
