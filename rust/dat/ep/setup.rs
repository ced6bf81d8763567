// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How what an Endpoint is made of changes before a connection.
//!
//! The QP of an Endpoint is bound to a Protection Domain, to completion queues and to sizes for
//! life. So a change of those makes a new one; nothing is lost with the old one, since nothing was
//! posted to it (see [`preposted`](super::preposted)). (Seed 000, "EP Query and Modify operations".)

use super::{
    attr::Attr,
    end::flush,
    parts::{
        Handles,
        Parts,
        QpParts, //
    },
    slots,
    Ep,
    EpQp,
    CONNECT,
    FAILURE, //
};
use crate::{
    dat::evd::no_room,
    model::{
        code::{
            DatError,
            DatResult, //
        },
        ep::{
            step,
            Input,
            Phase, //
        },
    },
    rdma::{
        addr::SockAddr,
        qp::{
            Capacity,
            Qp, //
        },
    },
    sys::workqueue::cancel_delayed_sync,
};
use kernel::sync::Arc;

/// What [`Ep::modify`] is to change.
pub(crate) struct Change {
    /// What to take instead; 0 for what stays.
    pub(crate) handles: Handles,
    /// The bits of `DAT_EP_PARAM_MASK` whose attributes change.
    pub(crate) mask: u64,
    /// Those attributes.
    pub(crate) attr: Attr,
}

impl Change {
    /// Whether it takes another QP.
    fn concerns_qp(&self) -> bool {
        let Handles {
            pz,
            recv_evd,
            request_evd,
            connect_evd: _,
        } = self.handles;
        self.mask != 0 || pz != 0 || recv_evd != 0 || request_evd != 0
    }
}

/// Position of the parameters among the arguments of `dat_ep_modify`.
const ARGUMENT_PARAM: u8 = 3;

impl Ep {
    /// A new QP.
    pub(super) fn make_qp(
        this: &Arc<Self>,
        parts: &QpParts,
        capacity: Capacity,
    ) -> DatResult<Arc<EpQp>> {
        Ok(Qp::new(
            this.clone(),
            parts.pz.pd()?,
            parts.request_evd.cq()?,
            parts.recv_evd.cq()?,
            capacity,
        )?)
    }

    /// `dat_ep_modify`: changes what the Endpoint is made of, before a connection. All or nothing;
    /// receives that are posted stay posted. Returns the attributes as they are now.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype once connecting; as for [`Ep::create`] for handles;
    /// INVALID_PARAMETER (argument 3) for attributes beyond the adapter's or for queues that are too
    /// short for what is posted; PROTECTION_VIOLATION or PRIVILEGES_VIOLATION for a zone that does not
    /// hold what is posted; INSUFFICIENT_RESOURCES (EVD) for a new EVD without room for it, or an old
    /// one that is so full that completions of an earlier connection cannot be taken from it.
    pub(crate) fn modify(this: &Arc<Self>, change: &Change) -> DatResult<Attr> {
        let new = Parts::resolve(&this.ia, &change.handles)?;
        // What is replaced is dropped behind the locks.
        let old;
        let attr = {
            let preposted = this.preposted.lock();
            let (attr, next) = {
                let inner = this.inner.lock();
                step(inner.phase, Input::Configured)?;
                let attr = inner.attr.changed(change.mask, &change.attr);
                let next = inner.parts.objects_with(&new);
                // What the QP has nothing to do with leaves it alone.
                let keep = inner.qp.is_some() && !change.concerns_qp();
                (attr, next.filter(|_| !keep))
            };
            let attr = Attr::resolve(Some(attr), this.ia.attr(), ARGUMENT_PARAM)?;
            if !preposted.fit_queues(attr.max_recv_dtos, attr.max_recv_iov) {
                return Err(DatError::invalid_parameter(ARGUMENT_PARAM));
            }
            if let Some(pz) = &new.pz {
                preposted.fit_zone(pz)?;
            }
            let qp = next
                .as_ref()
                .map(|parts| Self::make_qp(this, parts, attr.capacity()))
                .transpose()?;
            let new_slots = match change.mask {
                0 => None,
                _ => Some((slots(attr.max_request_dtos)?, slots(attr.max_recv_dtos)?)),
            };
            this.drain();
            let mut inner = this.inner.lock();
            let (phase, _) = step(inner.phase, Input::Configured)?;
            let (moves_receives, moves_requests) = inner.parts.moves_dtos(&new);
            // The EVD that is left would not tell its completions from those of another life.
            if (moves_receives || moves_requests)
                && inner.past_lives != 0
                && inner.parts.have_given_up()
            {
                return Err(no_room());
            }
            let waiting = inner.waiting.unwrap_or(0);
            if let (Some(evd), true) = (&new.recv_evd, moves_receives) {
                evd.begin_dtos(waiting)?;
                inner.parts.end_receives(waiting);
            }
            let old_parts = inner.parts.replace(new);
            let old_qp = qp.and_then(|qp| {
                this.enter(&mut inner, Input::Configured, phase);
                inner.qp.replace(qp)
            });
            inner.attr = attr;
            // Empty ones for empty ones.
            let old_slots = new_slots.map(|(requests, receives)| {
                (
                    core::mem::replace(&mut inner.requests, requests),
                    core::mem::replace(&mut inner.receives, receives),
                )
            });
            old = (old_qp, old_parts, old_slots);
            attr
        };
        drop(old);
        Self::unless_removed(this)?;
        Ok(attr)
    }

    /// `dat_ep_reset`: makes a disconnected Endpoint ready for another connection.
    ///
    /// What was posted and has not completed is reported as flushed, as far as the EVDs have room.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless disconnected or unconnected; INSUFFICIENT_RESOURCES, and then it is still
    /// disconnected.
    pub(crate) fn reset(this: &Arc<Self>) -> DatResult {
        // Two at once would each make a QP, and take the other's next connection apart.
        let alone = this.resets.lock();
        let life = {
            let inner = this.inner.lock();
            let (_, effects) = step(inner.phase, Input::Reset)?;
            if !effects.qp_reset {
                return Ok(());
            }
            inner.life
        };
        // Whoever made it disconnected may not have come to it yet.
        this.fail_qp(life);
        flush(|| this.unflushed());
        this.may_begin_life()?;
        // In this order: nothing more comes of the old connection.
        let (id, qp) = this.take_connection();
        drop(id);
        drop(qp);
        this.begin_life();
        cancel_delayed_sync::<_, CONNECT>(this);
        cancel_delayed_sync::<_, FAILURE>(this);
        {
            let _preposted = this.preposted.lock();
            let (parts, capacity) = {
                let inner = this.inner.lock();
                (inner.parts.objects(), inner.attr.capacity())
            };
            let parts = parts.ok_or(Phase::Freed.wrong())?;
            let qp = Self::make_qp(this, &parts, capacity)?;
            // An Endpoint that was freed meanwhile has none; it is dropped behind the lock.
            let mut new = Some(qp);
            let mut inner = this.inner.lock();
            let effects = this.advance(&mut inner, Input::Reset)?;
            if effects.qp_reset {
                inner.qp = new.take();
                inner.waiting = Some(0);
                inner.local = this.ia.attr().address;
                inner.remote = SockAddr::default();
                inner.remote_qual = 0;
                inner.target = None;
            }
        }
        drop(alone);
        Self::unless_removed(this)
    }

    /// After a QP was put in place: takes it away again if the device went in the meantime, with the
    /// id of whoever was quick to connect it, since whoever took everything down may have come by
    /// before.
    fn unless_removed(this: &Arc<Self>) -> DatResult {
        if !this.ia.objects().is_closed() {
            return Ok(());
        }
        Self::device_leaves(this);
        Self::device_removed(this);
        Err(Self::gone())
    }
}
