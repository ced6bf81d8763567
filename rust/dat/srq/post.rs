// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts receives to a Shared Receive Queue (SRQ).

use super::Srq;
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
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            PostMark, //
        },
        event::Operation,
        handle::SrqWrId, //
    },
    rdma::wr::SgList,
};
/// A receive to post.
pub(crate) struct Receive<'a> {
    /// Consumer's value, which the completion returns.
    pub(crate) cookie: u64,
    pub(crate) local: &'a [Segment],
}

/// Returns the error for an SRQ that holds as many receives as it may.
const fn queue_full() -> DatError {
    DatError::new(Kind::InsufficientResources, Subtype::ResourceSrq)
}

impl Srq {
    /// Posts a receive: `dat_srq_post_recv`. Context: process.
    ///
    /// # Errors
    ///
    /// * INVALID_PARAMETER for too many segments;
    /// * LENGTH_ERROR if the segments are longer than the device can transfer;
    /// * PROTECTION_VIOLATION for a segment outside the LMRs of the Protection Zone;
    /// * PRIVILEGES_VIOLATION for a segment whose LMR is not writable;
    /// * INSUFFICIENT_RESOURCES (SRQ) if as many receives are posted, or held back by Endpoints, as
    ///   the SRQ holds;
    /// * INSUFFICIENT_RESOURCES (device) after the device was removed.
    pub(crate) fn post(&self, receive: &Receive<'_>) -> DatResult {
        match self.post_at_once(receive) {
            Err(error) if error == queue_full() && self.finds_slots() => self.post_at_once(receive),
            result => result,
        }
    }

    /// Frees slots of lost receives, and waits for a thread that examines the queue. Returns
    /// whether a slot may be free.
    ///
    /// Context: process; sleeps.
    #[cold]
    fn finds_slots(&self) -> bool {
        let is_examined = self.inner.lock().loss.is_examined;
        if is_examined {
            drop(self.slots.lock());
        }
        self.drop_lost() || is_examined
    }

    /// As [`Srq::post`], but does not search for lost receives. Context: any.
    ///
    /// # Errors
    ///
    /// As for [`Srq::post`].
    pub(crate) fn post_at_once(&self, receive: &Receive<'_>) -> DatResult {
        let mut inner = self.inner.lock();
        if inner.loss.is_examined {
            return Err(queue_full());
        }
        let (Some(queue), Some(pz)) = (&inner.queue, &inner.pz) else {
            return Err(DatError::device());
        };
        let queue = queue.clone();
        let mut list = SgList::new();
        let length = self.gather(pz, receive.local, &mut list)?;
        let dto = Dto {
            cookie: receive.cookie,
            operation: Operation::Receive,
            flags: CompletionFlags::default(),
            length,
            posted: PostMark::NONE,
        };
        let slot = inner.receives.post(dto).ok_or(queue_full())?;
        inner.named.set(slot, contexts_of(receive.local));
        let wr = SrqWrId::new(slot, self.handle.key());
        // The reference is not the last one while the lock is held.
        queue.post_recv(wr.into_raw(), &list).map_err(|error| {
            inner.receives.cancel(slot);
            if error == ENOMEM {
                queue_full()
            } else {
                error.into()
            }
        })
    }

    /// Returns whether a receive that is posted names an LMR.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn names(&self, context: u32) -> bool {
        self.drop_lost();
        let mut next = Some(0);
        while let Some(from) = next {
            let inner = self.inner.lock();
            let scan = inner.receives.find_busy(from);
            next = scan.next;
            let found = scan.found.map(|(slot, _)| slot);
            if found.is_some_and(|slot| inner.named.has(slot, context)) {
                return true;
            }
        }
        false
    }

    /// Fills the scatter/gather list. Returns the number of bytes in it.
    fn gather(&self, pz: &Pz, local: &[Segment], list: &mut SgList) -> DatResult<u64> {
        let exceeds = |count: usize| u32::try_from(count).map_or(true, |n| n > self.max_iov);
        if exceeds(local.len()) {
            return Err(DatError::Invalid(Arg::SegmentCount));
        }
        let length = pz.add(list, local, Use::Write)?;
        // A segment of memory that is not contiguous for the device takes several entries.
        if exceeds(list.len()) {
            return Err(DatError::Invalid(Arg::SegmentCount));
        }
        if length > self.ia.attr().max_message_size {
            return Err(Kind::LengthError.into());
        }
        Ok(length)
    }
}
