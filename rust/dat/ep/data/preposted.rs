// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that are posted before there is a connection.
//!
//! A correct consumer posts its first receives before it connects. Until then nothing can arrive
//! for them, and the consumer may still change the Protection Zone or the EVDs, which costs the
//! Endpoint its QP: a QP never parts with what was posted to it. So these receives wait here, and
//! are handed to the QP when it is about to be connected, or about to be stopped, so that they flush
//! the same way as all others. (Seed 000, "EP and QP creation".)
//!
//! There may be thousands of them, each with many segments. The thread that connects or accepts posts
//! them, never a handler of `rdma_cm`, for which all its users on the host wait. So two things have to
//! be there before the active side sends its request: the receives and the route. The later of them
//! sends it.

use crate::{
    dat::{
        base::Segment,
        ep::{
            Ep,
            EpQp,
            Inner,
            Post, //
        },
        prelude::*,
        pz::{
            Pz,
            Use, //
        },
    },
    model::{
        dto::Dto,
        ep::{
            may_post_recv,
            Effects,
            Phase, //
        },
    },
    rdma::{
        cm::{
            CmId,
            IdRef, //
        },
        qp::ReadDepth,
        wr::SgList, //
    },
};

/// A receive that waits.
struct Waiting {
    dto: Dto,
    /// Where its segments end among all.
    end: usize,
}

/// A QP that was made ready for a connection.
pub(in crate::dat::ep) struct Ready {
    pub(in crate::dat::ep) qp: Arc<EpQp>,
    /// What both sides can take.
    pub(in crate::dat::ep) depth: ReadDepth,
    /// Which of the Endpoint's lives it is for.
    pub(in crate::dat::ep) life: u32,
}

/// The receives that wait, oldest first.
pub(in crate::dat::ep) struct Preposted {
    receives: KVVec<Waiting>,
    segments: KVVec<Segment>,
}

impl Preposted {
    /// None.
    pub(in crate::dat::ep) fn new() -> Self {
        Self {
            receives: KVVec::new(),
            segments: KVVec::new(),
        }
    }

    /// Adds one. On failure nothing has changed.
    fn push(&mut self, dto: Dto, segments: &[Segment]) -> DatResult {
        self.receives.reserve(1, GFP_KERNEL_ACCOUNT)?;
        self.segments
            .extend_from_slice(segments, GFP_KERNEL_ACCOUNT)?;
        let end = self.segments.len();
        self.receives
            .push_within_capacity(Waiting { dto, end })
            .map_err(|_| DatError::internal())
    }

    /// Each with its segments.
    fn iter(&self) -> impl Iterator<Item = (Dto, &[Segment])> {
        let mut start = 0;
        self.receives.iter().map(move |receive| {
            let segments = self.segments.get(start..receive.end).unwrap_or(&[]);
            start = receive.end;
            (receive.dto, segments)
        })
    }

    /// Whether all of them lie in this zone.
    ///
    /// # Errors
    ///
    /// As for [`Pz::add`].
    pub(in crate::dat::ep) fn fit_zone(&self, pz: &Pz) -> DatResult {
        self.iter()
            .try_for_each(|(_, segments)| fill(&mut SgList::new(), pz, segments))
    }

    /// Whether an Endpoint with such queues could hold them.
    pub(in crate::dat::ep) fn fit_queues(&self, max_dtos: u32, max_iov: u32) -> bool {
        let at_most = |count: usize, limit: u32| u32::try_from(count).is_ok_and(|n| n <= limit);
        at_most(self.receives.len(), max_dtos)
            && self
                .iter()
                .all(|(_, segments)| at_most(segments.len(), max_iov))
    }

    /// Forgets them all, and gives their memory back.
    pub(in crate::dat::ep) fn clear(&mut self) {
        *self = Self::new();
    }
}

/// Fills the scatter/gather list with the segments of a receive, if it may use them.
fn fill(list: &mut SgList, pz: &Pz, segments: &[Segment]) -> DatResult {
    segments
        .iter()
        .filter(|segment| segment.length != 0)
        .try_for_each(|segment| pz.add(list, segment, Use::Write))
}

impl Ep {
    /// Posts a receive where no connection is made yet, as far as is known.
    pub(in crate::dat::ep) fn post_for_later(&self, post: &Post<'_>) -> DatResult {
        let mut preposted = self.preposted.lock();
        let dto = {
            let mut inner = self.inner.lock();
            let Some(waiting) = inner.waiting else {
                // The connection was quicker.
                return self.post_now(&mut inner, post);
            };
            may_post_recv(inner.phase)?;
            let dto = self.examine(post.operation, &inner, post, &mut SgList::new())?;
            if inner.receives_outstanding() >= inner.attr.max_recv_dtos {
                return Err(super::post::no_slot());
            }
            inner.waiting = Some(waiting.saturating_add(1));
            dto
        };
        // The lock is still ours: nobody hands over one more than there are.
        preposted.push(dto, post.local).inspect_err(|_| {
            let mut inner = self.inner.lock();
            inner.waiting = inner.waiting.map(|waiting| waiting.saturating_sub(1));
        })
    }

    /// Hands what waits to the QP, if the attempt is still that of this id; from now on receives are
    /// posted to it right away. Returns whether the route was there first, so that the request is the
    /// caller's to send.
    ///
    /// Takes long where there is much. Context: process, of the consumer; sleeps.
    pub(in crate::dat::ep) fn hand_over(&self, id: &Arc<CmId>) -> bool {
        let mut preposted = self.preposted.lock();
        // Nobody can begin another attempt before the lock is free.
        let owned = self.inner.lock().owns_arc(id);
        if owned {
            self.hand_over_locked(&mut preposted);
        }
        let mut inner = self.inner.lock();
        inner.owns_arc(id) && core::mem::take(&mut inner.connection.request_waits)
    }

    /// The route of this id is there: returns whether the receives are, too. If not, the thread that
    /// hands them over sends the request.
    pub(in crate::dat::ep) fn receives_are_there(&self, id: &IdRef<'_>) -> bool {
        let mut inner = self.inner.lock();
        let there = inner.waiting.is_none();
        if inner.owns(id) {
            inner.connection.request_waits = !there;
        }
        there
    }

    /// Makes the QP ready for the connection of this id.
    ///
    /// It has come to its end when the QP is taken away: that takes the same lock.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the attempt is no longer that of this id, or the device is gone; whatever the
    /// provider says.
    pub(in crate::dat::ep) fn connect_qp(&self, id: &IdRef<'_>) -> Result<Ready> {
        let _preposted = self.preposted.lock();
        let (qp, attr, life) = {
            let inner = self.inner.lock();
            let qp = inner.qp.clone().filter(|_| inner.owns(id));
            (qp.ok_or(ENODEV)?, inner.attr, inner.life)
        };
        Ok(Ready {
            depth: qp.connect(id, attr.read_depth(), attr.peer_timeout_ms)?,
            qp,
            life,
        })
    }

    /// As [`Ep::hand_over`], with the lock of what waits.
    fn hand_over_locked(&self, preposted: &mut Preposted) {
        for (dto, segments) in preposted.iter() {
            let mut inner = self.inner.lock();
            if inner.phase == Phase::Freed {
                // Nobody hears of them any more.
                break;
            }
            let Some(waiting) = inner.waiting.filter(|waiting| *waiting != 0) else {
                // Given up meanwhile.
                break;
            };
            inner.waiting = Some(waiting.saturating_sub(1));
            self.hand_over_one(&mut inner, dto, segments);
        }
        preposted.clear();
        // With the lock of the queue: whoever wants to add one looks again.
        self.inner.lock().waiting = None;
    }

    /// Ends the call that connects the Endpoint in this life, if there is one. There will be no other.
    fn give_up_attempt(&self, life: u32) {
        let id = {
            let inner = self.inner.lock();
            inner.connection.id.clone().filter(|_| inner.life == life)
        };
        // It may be the last to have the id: no lock is held.
        if let Some(id) = id {
            id.give_up();
        }
    }

    /// Moves the QP of this life to ERR, with what waits for it, so that all flush alike.
    ///
    /// It has come to its end when the QP is taken away: that takes the same lock.
    ///
    /// Takes long where much waits. Context: process; sleeps. Not in a handler, see
    /// [`Ep::fail_qp_later`].
    pub(in crate::dat::ep) fn fail_qp(&self, life: u32) {
        // A QP that is being connected does not fail before that is over.
        self.give_up_attempt(life);
        let mut preposted = self.preposted.lock();
        let qp = {
            let inner = self.inner.lock();
            if inner.life != life {
                return;
            }
            inner.qp.clone()
        };
        self.hand_over_locked(&mut preposted);
        // Fails if the device is dead already, and then there is nothing to stop.
        let _ = qp.map(|qp| qp.fail());
    }

    /// As [`Ep::fail_qp`], by the work item. Context: any that may take a spinlock.
    pub(in crate::dat::ep) fn fail_qp_later(self: &Arc<Self>, life: u32) {
        let mut inner = self.inner.lock();
        if inner.life == life {
            self.enact_later(&mut inner, Effects::FLUSH);
        }
    }

    /// Takes QP and id away, once nobody is about to do anything with them. Both are gone when what
    /// this returns is dropped.
    ///
    /// Context: process; sleeps. Never in a handler of the id.
    pub(in crate::dat::ep) fn take_connection(&self) -> (Option<Arc<CmId>>, Option<Arc<EpQp>>) {
        let (id, qp, due) = {
            let _preposted = self.preposted.lock();
            let mut inner = self.inner.lock();
            (
                inner.connection.id.take(),
                inner.qp.take(),
                inner.due.take(),
            )
        };
        // Over iWARP the id may keep it: what becomes of it concerns no later connection.
        if let Some(qp) = &qp {
            qp.ignore_failures();
        }
        // What the work item has not come to. Of all that only the peer is still concerned.
        if let Some(due) = due {
            due.give_up();
            due.hang_up();
        }
        // Another thread may have the id for a moment yet. Of what its handler hears from now on the
        // Endpoint takes no notice, and the QP it no longer finds.
        if let Some(id) = &id {
            id.give_up();
            id.wait_for_handler();
        }
        (id, qp)
    }

    /// Posts one that has waited.
    fn hand_over_one(&self, inner: &mut Inner, dto: Dto, segments: &[Segment]) {
        // An LMR may have been freed since. What then arrives finds no memory and fails; keys that
        // were checked once may by now belong to somebody else.
        let mut list = SgList::new();
        let filled = inner
            .parts
            .pz()
            .and_then(|pz| fill(&mut list, pz, segments));
        if filled.is_err() {
            list.clear();
        }
        if self.post_to_qp(inner, dto, &list).is_err() {
            // There is no QP any more, or it takes nothing: the receive never will be.
            if inner.phase != Phase::Freed {
                inner.parts.report_receive(&dto.flushed(self.handle()));
            }
        }
    }
}
