// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Creates Endpoints.

use super::{Ep, EpAttr, EpContext, Inner, LazyRing, Parts, PastLives, Preposted, Shares};
use crate::{
    dat::{
        base::{
            Objects,
            Reservation, //
        },
        prelude::*, //
    },
    model::{
        atomic::AtomicBool,
        ep::Phase,
        shortest_delay::ShortestDelay, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::new_spinlock_irq,
        memcg::charged_to_caller, //
    },
};
use kernel::{
    alloc::Flags,
    new_delayed_work,
    new_mutex,
    new_work, //
};

impl Ep {
    /// Implements `dat_ep_create`. Returns the handle and the attributes that the Endpoint got.
    ///
    /// Without a Protection Zone the Endpoint is unconfigured, until [`Ep::modify`] adds it.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE, with the subtype of the invalid handle.
    /// - INVALID_PARAMETER for an EVD that does not take the stream, or not with these completion
    ///   flags, or for impossible attributes.
    /// - INSUFFICIENT_RESOURCES (EVD) for an EVD whose completion queues are full of completions of
    ///   freed Endpoints.
    pub(in crate::dat) fn create(
        context: &Arc<EpContext>,
        parts: Parts,
        attr: Option<EpAttr>,
    ) -> DatResult<(u64, EpAttr)> {
        let attr = EpAttr::resolve(attr, context.ia.attr())?;
        parts.check_zone()?;
        let configuration = parts.configuration();
        let this = Self::build(
            context,
            parts,
            attr,
            Phase::Unconnected(configuration),
            GFP_KERNEL_ACCOUNT,
        )?;
        Ok((this.handle.into_raw(), attr))
    }

    /// Creates an Endpoint and puts it into the table.
    pub(super) fn build(
        context: &Arc<EpContext>,
        parts: Parts,
        attr: EpAttr,
        phase: Phase,
        flags: Flags,
    ) -> DatResult<Arc<Self>> {
        let entry = Objects::reserve_with(&context.eps, flags)?;
        let handle = entry.handle();
        let inner = Inner::new(context, parts, attr, phase, flags)?;
        let memory = context.ia.user().hold_memory_of::<Self>()?;
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                context: context.clone(),
                past_lives <- new_mutex!(PastLives::default(), "Ep::past_lives"),
                old_qp <- new_mutex!(None, "Ep::old_qp"),
                preposted <- new_mutex!(Preposted::new(), "Ep::preposted"),
                inner <- new_spinlock_irq!(inner, "Ep::inner"),
                mapped: LazyRing::new(),
                timer <- new_delayed_work!("Ep::timer"),
                failure <- new_delayed_work!("Ep::failure"),
                failure_delay: ShortestDelay::new(),
                peer_disconnect_work <- new_delayed_work!("Ep::peer_disconnect_work"),
                last_receive_work <- new_delayed_work!("Ep::last_receive_work"),
                awaits_last_receive: AtomicBool::new(false),
                effects_work <- new_work!("Ep::effects_work"),
                _counted: Counted::new(census::Kind::Ep),
                _memory: memory,
            }),
            flags,
        )?;
        this.finish_build(entry)
            .inspect_err(|_| this.end(context.eps.begin_free()))?;
        Ok(this)
    }

    /// Creates the QP and the trace file of a new Endpoint, and publishes its handle.
    ///
    /// On failure the caller ends the Endpoint.
    fn finish_build(self: &Arc<Self>, entry: Reservation<Self>) -> DatResult {
        let (parts, attr) = {
            let inner = self.inner.lock();
            (inner.parts.objects(), inner.attr)
        };
        if let Some(parts) = parts {
            let shares = Shares::take(&parts, &self.context.ia, &attr)?;
            let qp = self.make_qp(&parts, &attr, &shares)?;
            let mut inner = self.inner.lock();
            inner.qp = Some(qp);
            inner.shares = Some(shares);
        }
        // `debugfs` chooses its own allocation flags: see [`memcg`](crate::sys::memcg).
        charged_to_caller(|| self.show_trace())?;
        entry.commit(self.clone())
    }
}
