// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Replaces an Endpoint's Protection Zone (PZ), Event Dispatchers (EVDs), queue pair (QP) and
//! attributes before a connection.
//!
//! A QP is bound to a Protection Domain, to completion queues and to sizes when it is created, and
//! cannot change them. So a change of those creates a new QP. Nothing is lost with the old one,
//! since nothing was posted to it (see [`preposted`](crate::dat::ep::data::preposted)).

use crate::{
    dat::{
        base::SlotStorage,
        ep::{
            receive_slots,
            receives,
            requests,
            Ep,
            EpAttr,
            EpChange,
            EpContext,
            EpQp,
            Inner,
            Kept,
            Named,
            Parts,
            PastLives,
            Plan,
            Preposted,
            QpParts,
            Shares, //
        },
        evd::no_room,
        prelude::*,
        srq::Srq, //
    },
    model::{
        dto::DtoSlots,
        ep::{
            step,
            Call, //
        },
        handle::Direction,
        requests::Requests, //
    },
    rdma::qp::Qp, //
};

/// Slots of requests and of receives, and the LMR contexts of both.
struct NewSlots {
    requests: Requests<SlotStorage>,
    receives: DtoSlots<SlotStorage>,
    named: Named,
}

impl NewSlots {
    /// Allocates the slots that an Endpoint with these attributes needs.
    fn new(context: &EpContext, attr: &EpAttr, srq: Option<&Srq>) -> DatResult<Self> {
        let flags = GFP_KERNEL_ACCOUNT;
        Ok(Self {
            requests: requests(attr.max_request_dtos, context, flags)?,
            receives: receives(receive_slots(srq, context, attr), context, flags)?,
            named: Named::new(context, attr, srq, flags)?,
        })
    }

    /// Exchanges the slots with those of an Endpoint.
    fn exchange(mut self, inner: &mut Inner) -> Self {
        core::mem::swap(&mut inner.requests, &mut self.requests);
        core::mem::swap(&mut inner.receives, &mut self.receives);
        core::mem::swap(&mut inner.named, &mut self.named);
        self
    }
}

/// Converts the error of a posted receive: the call has no segments among its arguments.
fn as_parameter(error: DatError) -> DatError {
    match error {
        DatError::Invalid(_) => DatError::Invalid(Arg::Param),
        DatError::Code(..) => error,
    }
}

impl Ep {
    /// Creates a QP on these shares of completion queues.
    pub(in crate::dat::ep) fn make_qp(
        self: &Arc<Self>,
        parts: &QpParts,
        attr: &EpAttr,
        shares: &Arc<Shares>,
    ) -> DatResult<Arc<EpQp>> {
        let pd = parts.pz.pd()?;
        let life = self.inner.lock().life;
        let member = shares.member(self.handle, life)?;
        let srq = parts.srq.as_ref().map(|srq| srq.reference()).transpose()?;
        let qp = Qp::new(
            self.clone(),
            Kept::new(shares.clone(), member.clone()),
            pd,
            shares.cqs(),
            srq,
            attr.capacity(),
            self.context.ia.port(),
        )?;
        if let Some(member) = member {
            member.enter(qp.id())?;
        }
        Ok(qp)
    }

    /// Creates a QP that replaces an unused one. It takes over the old one's shares of completion
    /// queues if the change does not concern them. Otherwise the new shares are returned with it.
    fn make_another_qp(
        self: &Arc<Self>,
        parts: &QpParts,
        attr: &EpAttr,
    ) -> DatResult<(Arc<EpQp>, Option<Arc<Shares>>)> {
        let kept = {
            let inner = self.inner.lock();
            let fits = inner.parts.dto_evds().is_some_and(|evds| {
                Arc::ptr_eq(&evds.receives, &parts.recv_evd)
                    && Arc::ptr_eq(&evds.requests, &parts.request_evd)
                    && inner.attr.needs_same_cqs(attr)
            });
            inner.shares.clone().filter(|_| fits)
        };
        if let Some(shares) = kept {
            return Ok((self.make_qp(parts, attr, &shares)?, None));
        }
        let shares = Shares::take(parts, &self.context.ia, attr)?;
        let qp = self.make_qp(parts, attr, &shares)?;
        Ok((qp, Some(shares)))
    }

    /// Implements `dat_ep_modify`: changes the Endpoint's objects and attributes before a
    /// connection. On failure nothing has changed. Receives that are posted stay posted. Returns
    /// the new attributes.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_STATE with the state's subtype once connecting, or if the completion flags of
    ///   receives are to change and some are posted; (watermark) for another EVD for receives while
    ///   the Endpoint has a high watermark.
    /// - Errors of [`Ep::create`] for handles.
    /// - INVALID_PARAMETER (attributes) for attributes beyond the adapter's, or for queues that are
    ///   too short for the posted receives.
    /// - PROTECTION_VIOLATION or PRIVILEGES_VIOLATION for a zone that does not hold the memory of
    ///   the posted receives.
    /// - INSUFFICIENT_RESOURCES (EVD) for a new EVD without room for the Endpoint's completions, or
    ///   for an old one that is so full that completions of an earlier connection cannot be taken
    ///   from it.
    pub(in crate::dat) fn modify(
        self: &Arc<Self>,
        change: &EpChange,
        mut new: Parts,
    ) -> DatResult<EpAttr> {
        // Objects that were replaced, or not put in place, are dropped after the locks.
        let mut qp;
        let old;
        let attr = {
            let past_lives = self.past_lives.lock();
            let (attr, next) = self.plan(change, &new)?;
            let attr = EpAttr::resolve(Some(attr), self.context.ia.attr())?;
            self.check_receives(&self.preposted.lock(), &attr, &new)?;
            // The driver, and memory of a full cgroup, may take long. Handlers of `rdma_cm` wait
            // for `preposted`, so it is not held meanwhile. The removal of the device waits for
            // the QP, so that comes last.
            let srq = self.srq();
            let new_slots = (change.mask != 0)
                .then(|| NewSlots::new(&self.context, &attr, srq.as_deref()))
                .transpose()?;
            qp = next
                .as_ref()
                .map(|parts| self.make_another_qp(parts, &attr))
                .transpose()?;
            self.drain_evds();
            let preposted = self.preposted.lock();
            // Another thread may have posted receives.
            self.check_receives(&preposted, &attr, &new)?;
            old = self
                .context
                .evds
                .with_lock(|| self.reconfigure(&mut new, attr, &mut qp, new_slots, &past_lives))?;
            attr
        };
        drop(old);
        self.unless_removed()?;
        Ok(attr)
    }

    /// Checks that the receives that wait for a connection fit the new attributes and objects.
    fn check_receives(&self, preposted: &Preposted, attr: &EpAttr, new: &Parts) -> DatResult {
        if !preposted.fit_queues(attr.max_recv_dtos, attr.max_recv_iov) {
            return Err(DatError::Invalid(Arg::Attr));
        }
        self.inner.lock().parts.check_zone_of(new)?;
        new.pz
            .as_ref()
            .map_or(Ok(()), |pz| preposted.fit_zone(pz).map_err(as_parameter))
    }

    /// Returns the attributes after a change, and the objects of another QP if the change needs
    /// one.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype once connecting, or (watermark) for another EVD for
    /// receives while the Endpoint has a high watermark.
    fn plan(&self, change: &EpChange, new: &Parts) -> DatResult<(EpAttr, Option<QpParts>)> {
        let inner = self.inner.lock();
        step(inner.phase, Call::Configured.into())?;
        if inner.watch.is_some() && inner.parts.moves_receives(new) {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateEpRecvWatermark,
            ));
        }
        let attr = inner.attr.changed(change.mask, &change.attr);
        let next = inner.parts.objects_with(new);
        let keep = inner.qp.is_some() && !change.concerns_qp();
        Ok((attr, next.filter(|_| !keep)))
    }

    /// Puts the new objects in place, or changes nothing on failure. Returns the old ones, which
    /// the caller drops after the locks. The caller holds the lock of the EVD table.
    fn reconfigure(
        self: &Arc<Self>,
        new: &mut Parts,
        attr: EpAttr,
        qp: &mut Option<(Arc<EpQp>, Option<Arc<Shares>>)>,
        new_slots: Option<NewSlots>,
        past_lives: &PastLives,
    ) -> DatResult<impl Sized> {
        let mut inner = self.inner.lock();
        let (phase, _) = step(inner.phase, Call::Configured.into())?;
        // Refuse to leave a full EVD that may hold completions of an earlier life: life numbers
        // repeat, and those completions could be taken for those of a later life.
        if inner.parts.moves_dtos(new) && past_lives.any() && inner.parts.evds_have_given_up_dtos()
        {
            return Err(no_room());
        }
        let modes = [inner.attr, attr].map(|attr| attr.mode(Direction::Receive));
        let [before, after] = modes;
        if before != after && inner.receives_outstanding() != 0 {
            // The posted receives have the old flags.
            return Err(inner.phase.invalid_state_error());
        }
        let streams = Plan::new(&inner.parts, new, &inner.streams, &attr)?.join();
        let old_streams = core::mem::replace(&mut inner.streams, streams);
        let old_parts = inner.parts.replace(core::mem::take(new));
        let old_qp = qp.take().map(|(qp, shares)| {
            self.enter(&mut inner, Call::Configured.into(), phase);
            let old_shares = shares.and_then(|shares| inner.shares.replace(shares));
            (inner.qp.replace(qp), old_shares)
        });
        inner.attr = attr;
        // Nothing is posted to the QP, so both the old and the new slots are empty.
        let old_slots = new_slots.map(|new| new.exchange(&mut inner));
        Ok((old_qp, old_streams, old_parts, old_slots))
    }

    /// Removes a QP that was just put in place, if the device was removed meanwhile: the teardown
    /// of the device may have passed this Endpoint before. A connection that another thread has
    /// begun with this QP ends, too.
    pub(super) fn unless_removed(self: &Arc<Self>) -> DatResult {
        if !self.context.eps.is_closed() {
            return Ok(());
        }
        self.break_for_removal();
        self.release_device();
        Err(Self::gone())
    }
}
