// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Posts the data transfer operations (DTOs) that a process has mapped: see
//! [`model::mapped_posts`](crate::model::mapped_posts).
//!
//! A mapped DTO cannot be refused any more: the process has gone on. So one that a call would
//! refuse completes with an error, and breaks the connection, as one does whose work request fails.
//! The DTOs after it are flushed.
//! `docs/ioctl/dto.md` tells a process what to check before it maps a DTO.

use super::Post;
use crate::{
    dat::{
        base::Segment,
        ep::{
            Ep,
            Inner, //
        },
        prelude::*, //
    },
    model::{
        completion::CompletionFlags,
        dto::{
            Dto,
            DtoResult,
            PostMark, //
        },
        ep::{
            flushes_posts,
            may_post_request,
            Phase, //
        },
        event::{
            DtoStatus,
            Operation, //
        },
        mapped_posts::{
            self,
            MappedDto,
            MappedSegment, //
        },
    },
    rdma::{
        qp::MAX_CHAIN,
        wr::SgList, //
    },
    sys::mapped_memory::{
        Area,
        MappedMemory, //
    },
};
use core::array;
use kernel::{
    mm::virt::VmaNew,
    new_mutex,
    sync::{
        Mutex,
        SetOnce, //
    },
};

/// The ring of an Endpoint whose posts a process has mapped.
type Ring = mapped_posts::MappedPosts<MappedMemory>;

/// The ring and its memory.
#[pin_data]
pub(in crate::dat::ep) struct SharedRing {
    /// Not in the lock, which must not be taken while a process is mapping it.
    memory: MappedMemory,
    #[pin]
    ring: Mutex<Ring>,
}

/// `None` before the first mapping.
pub(in crate::dat::ep) type LazyRing = SetOnce<Pin<KBox<SharedRing>>>;

impl From<MappedSegment> for Segment {
    fn from(segment: MappedSegment) -> Self {
        let MappedSegment {
            address,
            length,
            context,
        } = segment;
        Self {
            address,
            length,
            context,
        }
    }
}

impl Ep {
    /// Maps an area of the Endpoint's mapped posts into a process. The first call creates the ring.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`MappedMemory::map`]; `EAGAIN` while another thread creates the ring.
    pub(crate) fn map_posts(&self, area: Area, vma: &VmaNew) -> Result {
        if self.mapped.as_ref().is_none() {
            let memory = MappedMemory::new(self.context.ia.user())?;
            let ring = Ring::new(memory.clone()).ok_or(EINVAL)?;
            ring.memory().publish_dto_slots(ring.slots());
            let shared = pin_init!(SharedRing {
                memory,
                ring <- new_mutex!(ring, "SharedRing::ring"),
            });
            // Another thread may have been faster.
            let _ = self
                .mapped
                .populate(KBox::pin_init(shared, GFP_KERNEL_ACCOUNT)?);
        }
        self.mapped.as_ref().ok_or(EAGAIN)?.memory.map(area, vma)
    }

    /// Withdraws the promise to post mapped DTOs, and posts those that there are. Returns their
    /// number.
    ///
    /// Context: process; sleeps.
    #[inline]
    pub(crate) fn post_mapped(self: &Arc<Self>) -> u32 {
        match self.mapped.as_ref() {
            Some(shared) => self.drain_mapped(&mut shared.ring.lock()),
            None => 0,
        }
    }

    /// As [`Ep::post_mapped`], if there are any. `None` if there are none, and the promise stands.
    ///
    /// Context: process; sleeps.
    pub(crate) fn post_if_mapped(self: &Arc<Self>) -> Option<u32> {
        let mut ring = self.mapped.as_ref()?.ring.lock();
        let is_freed = self.inner.lock().phase == Phase::Freed;
        if ring.count() == 0 && !is_freed {
            return None;
        }
        Some(self.drain_mapped(&mut ring))
    }

    /// Posts the mapped DTOs, and promises to post those that the process maps from now on. Returns
    /// whether it does: not if the process has not mapped the posts, or the Endpoint cannot send.
    ///
    /// The caller has to call [`Ep::post_mapped`] soon.
    ///
    /// Context: process; sleeps.
    pub(crate) fn promise_posts(self: &Arc<Self>) -> bool {
        let Some(shared) = self.mapped.as_ref() else {
            return false;
        };
        let mut ring = shared.ring.lock();
        self.drain_mapped(&mut ring);
        let room = self.inner.lock().room();
        let promises = room.is_some();
        if let Some(room) = room {
            ring.promise(room);
        }
        promises
    }

    /// Posts as many DTOs as there are at first: a process that maps more does not prolong it.
    #[cold]
    fn drain_mapped(self: &Arc<Self>, ring: &mut Ring) -> u32 {
        ring.withdraw();
        let count = ring.count();
        let mut left = count;
        while left != 0 {
            let batch = left.min(MAX_CHAIN as u32);
            let taken = |number| u32::try_from(number).is_ok_and(|number| number < batch);
            self.post_batch(&array::from_fn(|number| taken(number).then(|| ring.take())));
            left = left.wrapping_sub(batch);
        }
        count
    }

    fn post_batch(self: &Arc<Self>, dtos: &[Option<MappedDto>; MAX_CHAIN]) {
        let locals = dtos.map(|dto| dto.map_or(Segment::default(), |dto| dto.local.into()));
        let mut posts = [Post::NOTHING; MAX_CHAIN];
        let mut count = 0_usize;
        for (dto, local) in dtos.iter().flatten().zip(&locals) {
            let post = dto.describe(local);
            if dto.operation.is_none() {
                self.post_or_complete(posts.get(..count).unwrap_or_default());
                self.complete_refused(&post, DatError::Invalid(Arg::Operation));
                count = 0;
            } else if let Some(next) = posts.get_mut(count) {
                *next = post;
                count = count.wrapping_add(1);
            }
        }
        self.post_or_complete(posts.get(..count).unwrap_or_default());
    }

    /// Posts DTOs. Completes those that are refused.
    fn post_or_complete(self: &Arc<Self>, mut posts: &[Post<'_>]) {
        let mut stopped = None;
        while let [_, ..] = posts {
            let (posted, result) = match self.prepare_posts(&mut stopped) {
                Ok(()) => self.post_list(posts),
                Err(error) => (0, Err(error)),
            };
            posts = posts.get(posted..).unwrap_or_default();
            if let (Err(error), [refused, rest @ ..]) = (result, posts) {
                // The connection may just have ended.
                let prepared = self.prepare_posts(&mut stopped);
                if prepared
                    .and_then(|()| self.post_to_flushing_qp(refused))
                    .is_err()
                {
                    self.complete_refused(refused, error);
                }
                posts = rest;
            }
        }
    }

    /// Makes sure that no DTO reaches the peer after a refused one. A DTO that is refused on a
    /// connected Endpoint breaks the connection. Others are refused while a graceful disconnect
    /// waits for requests, and the end of the connection may follow before the next DTO. Another
    /// thread may have ended the connection, and not have stopped the QP yet. `stopped` is the life
    /// whose QP was stopped before.
    ///
    /// # Errors
    ///
    /// INVALID_STATE or INVALID_HANDLE if the DTOs can neither be sent nor flushed by the QP.
    #[inline]
    fn prepare_posts(self: &Arc<Self>, stopped: &mut Option<u32>) -> DatResult {
        let (phase, life) = {
            let inner = self.inner.lock();
            (inner.phase, inner.life)
        };
        may_post_request(phase)?;
        if flushes_posts(phase) && *stopped != Some(life) {
            self.fail_qp(life);
            *stopped = Some(life);
        }
        Ok(())
    }

    /// Posts a DTO to a QP whose DTOs are being flushed: its event follows those of earlier DTOs.
    ///
    /// # Errors
    ///
    /// INVALID_STATE if the DTOs are not being flushed; as for [`Ep::post`].
    #[cold]
    fn post_to_flushing_qp(&self, post: &Post<'_>) -> DatResult {
        let mut inner = self.inner.lock();
        if !flushes_posts(inner.phase) {
            return Err(inner.phase.invalid_state_error());
        }
        let mut list = SgList::new();
        let dto = self.examine(post.operation, &mut inner, post, &mut list)?;
        self.flush_by_qp(&mut inner, dto, post, &list)
    }

    /// Completes a DTO that cannot be posted, and breaks the connection.
    #[cold]
    fn complete_refused(self: &Arc<Self>, post: &Post<'_>, error: DatError) {
        let inner = self.inner.lock();
        let is_connected = matches!(inner.phase, Phase::Connected(_));
        let dto = Dto {
            cookie: post.cookie,
            operation: post.operation,
            flags: CompletionFlags::MARKER,
            length: 0,
            posted: PostMark::NONE,
        };
        let result = DtoResult {
            status: status(error, is_connected),
            length: 0,
            extra: 0,
        };
        // None if the Endpoint was freed.
        if let Ok(evd) = inner.parts.request_evd() {
            evd.report(&dto.event(self.handle(), result));
        }
        drop(inner);
        if is_connected {
            // At once: no later DTO may reach the peer.
            self.break_connection();
        }
    }
}

impl MappedDto {
    /// Returns the post of the DTO. An unknown operation becomes a send.
    fn describe<'a>(&self, local: &'a Segment) -> Post<'a> {
        Post {
            operation: self.operation.unwrap_or(Operation::Send),
            flags: self.flags,
            cookie: self.cookie,
            local: core::slice::from_ref(local),
            remote: self.remote.into(),
            ..Post::NOTHING
        }
    }
}

impl Inner {
    /// Returns the number of requests that surely find a slot; `None` unless they can be sent. A
    /// marker may take the slot after an open end.
    fn room(&self) -> Option<u32> {
        if !matches!(self.phase, Phase::Connected(_)) || self.may_send().is_err() {
            return None;
        }
        let requests = &self.requests;
        let taken = requests
            .outstanding()
            .saturating_add(requests.has_open_end().into());
        Some(requests.capacity().saturating_sub(taken))
    }
}

/// Returns the status of a DTO that was refused.
fn status(error: DatError, is_connected: bool) -> DtoStatus {
    match error.kind() {
        _ if !is_connected => DtoStatus::Flushed,
        Kind::ProtectionViolation | Kind::PrivilegesViolation => DtoStatus::LocalProtection,
        Kind::LengthError => DtoStatus::LocalLength,
        _ => DtoStatus::LocalEp,
    }
}
