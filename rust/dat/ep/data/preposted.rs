// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that are posted before there is a connection.
//!
//! A correct consumer posts its first receives before it connects. Nothing can arrive for them
//! before, and the consumer may still change the Protection Zone or the Event Dispatchers, which
//! needs another queue pair (QP). A QP cannot return receives that were posted to it. So these
//! receives wait here. They are posted to the QP when it is about to be connected, or to be
//! stopped, so that they flush the same way as all others.
//!
//! There may be thousands of receives, each with many segments. The thread that connects or accepts
//! posts them. A handler of `rdma_cm` never does, since all users of the host share its workers. So
//! the active side needs two things before it sends its request: the posted receives and the
//! resolved route. The thread that completes the second one sends the request.

mod queue;

pub(in crate::dat::ep) use self::queue::Preposted;

use self::queue::{
    fill,
    Capacities, //
};
use crate::{
    dat::{
        base::Segment,
        ep::{
            Ep,
            EpQp,
            Inner,
            Post, //
        },
        prelude::*, //
    },
    model::{
        dto::Dto,
        ep::{
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

/// A QP that is ready for a connection.
pub(in crate::dat::ep) struct Ready {
    pub(in crate::dat::ep) qp: Arc<EpQp>,
    /// Numbers of RDMA reads that both sides support.
    pub(in crate::dat::ep) depth: ReadDepth,
    /// Life of the Endpoint (the number of its resets) that the QP belongs to.
    pub(in crate::dat::ep) life: u32,
}

impl Ep {
    /// Queues a receive until there is a connection, or posts it to the QP if the connection has
    /// just begun.
    pub(in crate::dat::ep) fn post_for_later(&self, post: &Post<'_>) -> DatResult {
        while let Some(needed) = self.post_if_room(post)? {
            // Workers of the module and handlers of `rdma_cm` take the lock, and must not wait for
            // the memory of this process.
            let longer = needed.allocate(self.context.ia.user())?;
            let left = self.preposted.lock().move_to(longer);
            drop(left);
        }
        Ok(())
    }

    /// Queues or posts a receive. Returns the capacities that it needs, and does nothing, if the
    /// queue has no memory for it.
    fn post_if_room(&self, post: &Post<'_>) -> DatResult<Option<Capacities>> {
        let mut preposted = self.preposted.lock();
        let dto = {
            let mut inner = self.inner.lock();
            let Some(waiting) = inner.preposted_count else {
                // The preposted receives were posted meanwhile.
                return self.post_now(&mut inner, post).map(|()| None);
            };
            inner.may_post_recv()?;
            let dto = self.examine(post.operation, &mut inner, post, &mut SgList::new())?;
            if self.flush_if_ended(&mut inner, &dto)? {
                return Ok(None);
            }
            if inner.receives_outstanding() >= inner.attr.max_recv_dtos {
                return Err(super::post::no_slot());
            }
            let needed = preposted.shortage(post.local.len());
            if needed.is_some() {
                return Ok(needed);
            }
            inner.preposted_count = Some(waiting.saturating_add(1));
            dto
        };
        // `preposted` is locked, so no other thread posts the receives that `preposted_count`
        // counts.
        preposted.push(dto, post.local).map(|()| None)
    }

    /// Posts the preposted receives to the QP, if the Endpoint still owns this ID. From now on
    /// receives are posted to the QP at once. Returns whether the route is resolved already, in
    /// which case the caller sends the request.
    ///
    /// Takes long for many receives. Context: process, of the consumer; sleeps.
    pub(in crate::dat::ep) fn post_preposted(&self, id: &Arc<CmId>) -> bool {
        let mut preposted = self.preposted.lock();
        // No other attempt can begin before this lock is released.
        let owned = self.inner.lock().owns_arc(id);
        if owned {
            self.post_preposted_locked(&mut preposted);
        }
        let mut inner = self.inner.lock();
        inner.owns_arc(id) && core::mem::take(&mut inner.connection.attempt.request_waits)
    }

    /// Records that the route of this ID is resolved. Returns whether the receives are posted. If
    /// not, the thread that posts them sends the request.
    pub(in crate::dat::ep) fn note_route_resolved(&self, id: &IdRef<'_>) -> bool {
        let mut inner = self.inner.lock();
        let there = inner.preposted_count.is_none();
        if inner.owns(id) {
            inner.connection.attempt.request_waits = !there;
        }
        there
    }

    /// Makes the QP ready for the connection of this ID.
    ///
    /// [`Ep::take_connection`] takes the same lock, so this call is over before the QP is removed.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - `ENODEV` if the Endpoint no longer owns this ID, or the device was removed.
    /// - Errors of the device driver.
    pub(in crate::dat::ep) fn connect_qp(&self, id: &IdRef<'_>) -> Result<Ready> {
        // A reset takes the ID from the Endpoint, and then waits for the handler mutex, which the
        // caller holds.
        if !self.inner.lock().owns(id) {
            return Err(ENODEV);
        }
        let _preposted = self.preposted.lock();
        let ready = self.connect_qp_locked(id);
        let mut inner = self.inner.lock();
        if inner.owns(id) {
            inner.connection.attempt.readies_qp = false;
            let depth = ready.as_ref().ok().map(|ready| ready.depth);
            inner.connection.read_depth = depth.or(inner.connection.read_depth);
        }
        ready
    }

    /// As [`Ep::connect_qp`], for a caller that holds the lock of the preposted receives.
    fn connect_qp_locked(&self, id: &IdRef<'_>) -> Result<Ready> {
        let (qp, attr, life) = {
            let inner = self.inner.lock();
            let qp = inner.qp.clone().filter(|_| inner.owns(id));
            (qp.ok_or(ENODEV)?, inner.attr, inner.life)
        };
        let depth = qp.connect(id, attr.read_depth(), attr.peer_timeout_ms())?;
        Ok(Ready { qp, depth, life })
    }

    /// As [`Ep::post_preposted`], for a caller that holds the lock of the preposted receives.
    fn post_preposted_locked(&self, preposted: &mut Preposted) {
        for (dto, segments) in preposted.iter() {
            let mut inner = self.inner.lock();
            if inner.phase == Phase::Freed {
                // A freed Endpoint reports no events.
                break;
            }
            let Some(waiting) = inner.preposted_count.filter(|waiting| *waiting != 0) else {
                // The Endpoint has given up the receives meanwhile.
                break;
            };
            inner.preposted_count = Some(waiting.saturating_sub(1));
            self.post_one_preposted(&mut inner, dto, segments);
        }
        preposted.clear();
        // The queue is still locked. A thread that waits to add a receive checks `preposted_count`
        // again.
        self.inner.lock().preposted_count = None;
    }

    /// Interrupts the call that connects the Endpoint in this life, if there is one, and prevents
    /// later ones.
    fn cancel_call_of(&self, life: u32) {
        let id = {
            let inner = self.inner.lock();
            inner.connection.id.clone().filter(|_| inner.life == life)
        };
        // This may be the last reference to the ID, so it is dropped without a lock.
        if let Some(id) = id {
            id.cancel_call();
        }
    }

    /// Moves the QP of this life to ERR, after the preposted receives were posted to it, so that
    /// all flush alike.
    ///
    /// [`Ep::take_connection`] takes the same lock, so this call is over before the QP is removed.
    ///
    /// Takes long for many receives. Context: process; sleeps. Must not be called in a handler, see
    /// [`Ep::fail_qp_later`].
    pub(in crate::dat::ep) fn fail_qp(self: &Arc<Self>, life: u32) {
        // Moving the QP to ERR waits for a call that connects it.
        self.cancel_call_of(life);
        let mut preposted = self.preposted.lock();
        let qp = {
            let inner = self.inner.lock();
            if inner.life != life {
                return;
            }
            inner.qp.clone()
        };
        self.post_preposted_locked(&mut preposted);
        // This fails only if the device is dead, and then there is nothing to stop.
        let _ = qp.map(|qp| qp.fail());
        self.expect_last_receive();
    }

    /// As [`Ep::fail_qp`], in the work item. Context: any that may take a spinlock.
    pub(in crate::dat::ep) fn fail_qp_later(self: &Arc<Self>, life: u32) {
        let mut inner = self.inner.lock();
        if inner.life == life {
            self.perform_later(&mut inner, Effects::FLUSH);
        }
    }

    /// Removes QP and ID from the Endpoint, once no other thread uses them. Both are destroyed when
    /// the result is dropped.
    ///
    /// Context: process; sleeps. Must not be called in a handler of the ID.
    pub(in crate::dat::ep) fn take_connection(&self) -> (Option<Arc<CmId>>, Option<Arc<EpQp>>) {
        let (id, qp, pending) = {
            let _preposted = self.preposted.lock();
            let mut inner = self.inner.lock();
            (
                inner.connection.id.take(),
                inner.qp.take(),
                inner.pending_effects.take(),
            )
        };
        // Over iWARP the ID may keep the QP alive. Its failures do not concern later connections.
        if let Some(qp) = &qp {
            qp.ignore_events();
        }
        // The work item has not carried out these effects. Only those that concern the peer are
        // still needed.
        if let Some(pending) = pending {
            pending.cancel_call();
            pending.disconnect_id();
        }
        // Another thread may hold a reference to the ID for a moment. The Endpoint ignores the ID's
        // events from now on, and its handler no longer finds the QP.
        if let Some(id) = &id {
            id.cancel_call();
            id.wait_for_handler();
        }
        (id, qp)
    }

    /// Posts a receive that has waited.
    fn post_one_preposted(&self, inner: &mut Inner, dto: Dto, segments: &[Segment]) {
        // An LMR of a process may have been freed since the receive was checked, and its key may
        // now belong to another one. So the segments are checked again. If they are invalid, the
        // receive is posted without memory, and a message for it fails.
        let mut list = SgList::new();
        let filled = inner
            .parts
            .pz()
            .and_then(|pz| fill(&mut list, pz, segments));
        if filled.is_err() {
            list.clear();
        }
        if self.post_to_qp(inner, dto, segments, &list).is_err() {
            // There is no QP, or it has refused the receive, which is thus never posted.
            if inner.phase != Phase::Freed {
                inner.parts.report_receive(&dto.flushed(self.handle()));
                self.count_flushed(inner, 1);
            }
        }
    }
}
