// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State that all Endpoints of an Interface Adapter (IA) share.

use super::{
    watch::WATCH,
    Ep, //
};
use crate::{
    dat::{
        base::{
            IaBase,
            Objects, //
        },
        evd::{
            self,
            CompletionTarget,
            Evd, //
        },
        prelude::*,
        srq::Srq, //
    },
    model::{
        direct_event::DirectEvent,
        event::Event,
        handle::{
            SrqWrId,
            WrId, //
        },
        stat::ConnectionCounts,
        traffic::{
            Totals,
            Traffic, //
        },
    },
    rdma::wc::Wc,
    sys::lock::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
};
use kernel::{
    new_delayed_work,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    workqueue::DelayedWork, //
};

/// State that all Endpoints of an Interface Adapter share.
#[pin_data]
pub(crate) struct EpContext {
    pub(in crate::dat) ia: Arc<IaBase>,
    pub(in crate::dat) eps: Arc<Objects<Ep>>,
    pub(in crate::dat) srqs: Arc<Objects<Srq>>,
    pub(in crate::dat) evds: Arc<Objects<Evd>>,
    /// Asynchronous EVD of the adapter.
    pub(in crate::dat) async_evd: Arc<Evd>,
    /// EVD of the events that the consumer does not want.
    pub(in crate::dat) sink: Arc<Evd>,
    /// Context of all EVDs but the asynchronous one.
    pub(in crate::dat) evd_context: Arc<evd::EvdContext>,
    /// Number of connections.
    pub(super) connections: Atomic<i32>,
    /// Number of connections that were established.
    pub(super) established: Atomic<i64>,
    /// Number of connections that have ended with BROKEN.
    pub(super) broken: Atomic<i64>,
    /// Counts of the DTOs of all Endpoints.
    #[pin]
    pub(super) totals: SpinLockIrq<Totals>,
    #[pin]
    pub(super) watch: DelayedWork<EpContext, WATCH>,
}

impl EpContext {
    /// Creates the state that all Endpoints of an adapter share.
    pub(in crate::dat) fn new(
        ia: Arc<IaBase>,
        receivers: Arc<Receivers>,
        evds: Arc<Objects<Evd>>,
        async_evd: Arc<Evd>,
    ) -> DatResult<Arc<Self>> {
        let (eps, srqs) = (receivers.eps.clone(), receivers.srqs.clone());
        let evd_context =
            evd::EvdContext::new(receivers, Some(async_evd.clone()), ia.user().clone())?;
        let sink = Evd::sink(&ia.device()?, evd_context.clone())?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                ia,
                eps,
                srqs,
                evds,
                async_evd,
                sink,
                evd_context,
                connections: Atomic::new(0),
                established: Atomic::new(0),
                broken: Atomic::new(0),
                totals <- new_spinlock_irq!(Totals::default(), "EpContext::totals"),
                watch <- new_delayed_work!("EpContext::watch"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Returns the numbers of connections.
    pub(in crate::dat) fn connection_counts(&self) -> ConnectionCounts {
        let total = |count: &Atomic<i64>| u64::try_from(count.load(Relaxed)).unwrap_or(0);
        ConnectionCounts {
            current: u32::try_from(self.connections.load(Relaxed)).unwrap_or(0),
            established: total(&self.established),
            broken: total(&self.broken),
        }
    }

    /// Returns the counts of the Endpoints that were freed.
    pub(in crate::dat) fn past_traffic(&self) -> Traffic {
        self.totals.lock().past()
    }

    /// Returns the counts to report for this sum: see [`Totals`].
    pub(in crate::dat) fn report_traffic(&self, sum: &Traffic) -> Traffic {
        self.totals.lock().report(sum)
    }

    /// Reports an asynchronous event. Context: any, including hard IRQ.
    pub(in crate::dat) fn report(&self, event: &Event) {
        self.async_evd.report(event);
    }
}

/// Objects that take completions.
pub(in crate::dat) struct Receivers {
    pub(in crate::dat) eps: Arc<Objects<Ep>>,
    pub(in crate::dat) srqs: Arc<Objects<Srq>>,
}

impl Receivers {
    /// Passes a completion of a receive from a Shared Receive Queue to the Endpoint that has taken
    /// it.
    // Kept out of the drain, whose other completions need no SRQ.
    #[inline(never)]
    fn complete_shared(
        &self,
        evd: &Evd,
        wr: SrqWrId,
        completion: &Wc,
        direct: &mut DirectEvent<'_>,
    ) {
        let Some(srq) = self.srqs.find_by_short_generation(wr.srq, wr.generation) else {
            return;
        };
        let Some(taken) = srq.complete(wr.slot, completion.qp()) else {
            return;
        };
        let _held = srq.hold_until_reported(taken.is_counted);
        if let Some(ep) = self.eps.find(taken.ep.into_raw()) {
            ep.complete_shared(evd, &taken, completion, direct);
        }
    }
}

impl Receivers {
    /// Passes a completion of a shared receive on if the Endpoint was freed or reset: the slot is
    /// free for the others. Returns whether it did.
    fn complete_shared_early(&self, evd: &Evd, wr: SrqWrId, completion: &Wc) -> bool {
        let srq = self.srqs.find_by_short_generation(wr.srq, wr.generation);
        let member = srq.and_then(|srq| srq.member_of(completion.qp()));
        let is_over = member.is_none_or(|(ep, life)| {
            let ep = self.eps.find(ep.into_raw());
            !ep.is_some_and(|ep| ep.is_in_life(life))
        });
        if is_over {
            self.complete_shared(evd, wr, completion, &mut DirectEvent::none());
        }
        is_over
    }
}

impl CompletionTarget for Receivers {
    fn complete(&self, evd: &Evd, completion: &Wc, direct: &mut DirectEvent<'_>) {
        let raw = completion.wr_id();
        if let Some(wr) = SrqWrId::from_raw(raw) {
            return self.complete_shared(evd, wr, completion, direct);
        }
        let wr = WrId::from_raw(raw);
        self.eps.with_short_generation(wr.ep, wr.generation, |ep| {
            ep.complete(evd, wr, completion, direct);
        });
    }

    fn complete_all(&self, evd: &Evd, completions: &[Wc], direct: &mut DirectEvent<'_>) {
        // Completions of one Endpoint often follow each other, and it is found once for all.
        let mut last: Option<(u32, u32, Arc<Ep>)> = None;
        for completion in completions {
            let raw = completion.wr_id();
            if let Some(wr) = SrqWrId::from_raw(raw) {
                self.complete_shared(evd, wr, completion, direct);
                continue;
            }
            let wr = WrId::from_raw(raw);
            let is_same = |(ep, generation, _): &(u32, u32, Arc<Ep>)| {
                (*ep, *generation) == (wr.ep, wr.generation)
            };
            if !last.as_ref().is_some_and(is_same) {
                last = self
                    .eps
                    .find_by_short_generation(wr.ep, wr.generation)
                    .map(|ep| (wr.ep, wr.generation, ep));
            }
            if let Some((.., ep)) = &last {
                ep.complete(evd, wr, completion, direct);
            }
        }
    }

    fn complete_early(&self, evd: &Evd, completion: &Wc) -> bool {
        let raw = completion.wr_id();
        if let Some(wr) = SrqWrId::from_raw(raw) {
            return self.complete_shared_early(evd, wr, completion);
        }
        let wr = WrId::from_raw(raw);
        let ep = self.eps.find_by_short_generation(wr.ep, wr.generation);
        ep.is_none_or(|ep| ep.complete_early(evd, wr, completion))
    }

    fn receive_taken(&self, ep: u64) {
        if let Some(ep) = self.eps.find(ep) {
            ep.receive_taken();
        }
    }
}
