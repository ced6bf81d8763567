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
        Parts,
        QpParts, //
    },
    slots,
    streams::{
        Plan,
        Shares, //
    },
    Change,
    Ep,
    EpQp,
    SlotStorage,
    CONNECT,
    FAILURE,
    LEFT, //
};
use crate::{
    dat::evd::no_room,
    model::{
        code::{
            DatError,
            DatResult, //
        },
        dto::Slots,
        ep::{
            step,
            Input,
            Phase, //
        },
        handle::Direction,
    },
    rdma::{
        addr::SockAddr,
        qp::Qp, //
    },
    sys::workqueue::cancel_delayed_sync,
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Position of the parameters among the arguments of `dat_ep_modify`.
const ARGUMENT_PARAM: u8 = 3;

impl Ep {
    /// A new QP, with these shares of completion queues.
    pub(super) fn make_qp(
        this: &Arc<Self>,
        parts: &QpParts,
        attr: &Attr,
        shares: &Arc<Shares>,
    ) -> DatResult<Arc<EpQp>> {
        let pd = parts.pz.pd()?;
        let (requests, receives) = shares.cqs();
        Ok(Qp::new(
            this.clone(),
            shares.clone(),
            pd,
            requests,
            receives,
            attr.capacity(),
        )?)
    }

    /// A new QP in the place of another, which is to be unused. It goes on with the other's shares of
    /// completion queues where nothing has changed for those.
    fn make_another_qp(
        this: &Arc<Self>,
        parts: &QpParts,
        attr: &Attr,
    ) -> DatResult<(Arc<EpQp>, Option<Arc<Shares>>)> {
        let kept = {
            let inner = this.inner.lock();
            let fits = inner.parts.dto_evds().is_some_and(|(receives, requests)| {
                Arc::ptr_eq(&receives, &parts.recv_evd)
                    && Arc::ptr_eq(&requests, &parts.request_evd)
                    && inner.attr.needs_like(attr)
            });
            inner.shares.clone().filter(|_| fits)
        };
        if let Some(shares) = kept {
            return Ok((Self::make_qp(this, parts, attr, &shares)?, None));
        }
        let shares = Shares::take(parts, &this.ia.device()?, attr)?;
        let qp = Self::make_qp(this, parts, attr, &shares)?;
        Ok((qp, Some(shares)))
    }

    /// `dat_ep_modify`: changes what the Endpoint is made of, before a connection. All or nothing;
    /// receives that are posted stay posted. Returns the attributes as they are now.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype once connecting, or if the completion flags of receives are
    /// to change and some are posted; as for [`Ep::create`] for handles;
    /// INVALID_PARAMETER (argument 3) for attributes beyond the adapter's or for queues that are too
    /// short for what is posted; PROTECTION_VIOLATION or PRIVILEGES_VIOLATION for a zone that does not
    /// hold what is posted; INSUFFICIENT_RESOURCES (EVD) for a new EVD without room for it, or an old
    /// one that is so full that completions of an earlier connection cannot be taken from it.
    pub(crate) fn modify(this: &Arc<Self>, change: &Change) -> DatResult<Attr> {
        let mut new = Parts::resolve(&this.ia, &change.handles)?;
        // What is replaced is dropped behind the locks, and so is what is not put in place.
        let mut qp;
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
            qp = next
                .as_ref()
                .map(|parts| Self::make_another_qp(this, parts, &attr))
                .transpose()?;
            let new_slots = match change.mask {
                0 => None,
                _ => Some((
                    slots(attr.max_request_dtos, GFP_KERNEL_ACCOUNT)?,
                    slots(attr.max_recv_dtos, GFP_KERNEL_ACCOUNT)?,
                )),
            };
            this.drain();
            old = this
                .ia
                .objects()
                .arrange(|| this.reconfigure(&mut new, attr, &mut qp, new_slots))?;
            attr
        };
        drop(old);
        Self::unless_removed(this)?;
        Ok(attr)
    }

    /// The part of [`Ep::modify`] in which everything changes, or nothing. Returns what was replaced, to
    /// be dropped behind the locks. With the lock of the table.
    fn reconfigure(
        self: &Arc<Self>,
        new: &mut Parts,
        attr: Attr,
        qp: &mut Option<(Arc<EpQp>, Option<Arc<Shares>>)>,
        new_slots: Option<(Slots<SlotStorage>, Slots<SlotStorage>)>,
    ) -> DatResult<impl Sized> {
        let mut inner = self.inner.lock();
        let (phase, _) = step(inner.phase, Input::Configured)?;
        // The EVD that is left would not tell its completions from those of another life.
        if inner.parts.moves_dtos(new) && inner.past_lives != 0 && inner.parts.have_given_up() {
            return Err(no_room());
        }
        let modes = [inner.attr, attr].map(|attr| attr.mode(Direction::Receive));
        let [before, after] = modes;
        if before != after && inner.receives_outstanding() != 0 {
            // What is posted was posted under the other flags.
            return Err(inner.phase.wrong());
        }
        let streams = Plan::new(&inner.parts, new, &inner.streams, &attr)?.join();
        let old_streams = core::mem::replace(&mut inner.streams, streams);
        let old_parts = inner.parts.replace(core::mem::take(new));
        let old_qp = qp.take().map(|(qp, shares)| {
            self.enter(&mut inner, Input::Configured, phase);
            let old_shares = shares.and_then(|shares| inner.shares.replace(shares));
            (inner.qp.replace(qp), old_shares)
        });
        inner.attr = attr;
        // Empty ones for empty ones.
        let old_slots = new_slots.map(|(requests, receives)| {
            (
                core::mem::replace(&mut inner.requests, requests),
                core::mem::replace(&mut inner.receives, receives),
            )
        });
        Ok((old_qp, old_streams, old_parts, old_slots))
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
        cancel_delayed_sync::<_, LEFT>(this);
        {
            let _preposted = this.preposted.lock();
            let (parts, attr) = {
                let inner = this.inner.lock();
                (inner.parts.objects(), inner.attr)
            };
            let parts = parts.ok_or(Phase::Freed.wrong())?;
            // An Endpoint that was freed meanwhile has none; they are dropped behind the lock.
            let shares = Shares::take(&parts, &this.ia.device()?, &attr)?;
            let mut new = Some(Self::make_qp(this, &parts, &attr, &shares)?);
            let mut shares = Some(shares);
            let mut inner = this.inner.lock();
            let effects = this.advance(&mut inner, Input::Reset)?;
            if effects.qp_reset {
                inner.qp = new.take();
                inner.shares = shares.take();
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
