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
            Endpoints,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        direct_event::DirectEvent,
        event::Event,
        handle::WrId, //
    },
    rdma::wc::Wc, //
};
use kernel::{
    new_delayed_work,
    sync::atomic::Atomic,
    workqueue::DelayedWork, //
};

/// State that all Endpoints of an Interface Adapter share.
#[pin_data]
pub(crate) struct EpContext {
    pub(in crate::dat) ia: Arc<IaBase>,
    pub(in crate::dat) eps: Arc<Objects<Ep>>,
    pub(in crate::dat) evds: Arc<Objects<Evd>>,
    /// Asynchronous EVD of the adapter.
    pub(in crate::dat) async_evd: Arc<Evd>,
    /// EVD of the events that the consumer does not want.
    pub(in crate::dat) sink: Arc<Evd>,
    /// EpContext of the other EVDs.
    pub(in crate::dat) evd_domain: Arc<evd::EvdContext>,
    /// Number of connections.
    pub(super) connections: Atomic<i32>,
    #[pin]
    pub(super) watch: DelayedWork<EpContext, WATCH>,
}

impl EpContext {
    /// Creates the domain of an adapter.
    pub(in crate::dat) fn new(
        ia: Arc<IaBase>,
        eps: Arc<Objects<Ep>>,
        evds: Arc<Objects<Evd>>,
        async_evd: Arc<Evd>,
    ) -> DatResult<Arc<Self>> {
        let evd_domain = evd::EvdContext::new(eps.clone(), Some(async_evd.clone()))?;
        let sink = Evd::sink(&ia.device()?, evd_domain.clone())?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                ia,
                eps,
                evds,
                async_evd,
                sink,
                evd_domain,
                connections: Atomic::new(0),
                watch <- new_delayed_work!("EpContext::watch"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Reports an asynchronous event. Context: any, including hard IRQ.
    pub(in crate::dat) fn report(&self, event: &Event) {
        self.async_evd.report(event);
    }
}

impl Endpoints for Objects<Ep> {
    fn complete(&self, evd: &Evd, completion: &Wc, direct: &mut DirectEvent<'_>) {
        let wr = WrId::from_raw(completion.wr_id());
        if let Some(ep) = self.get_by_short_generation(wr.ep, wr.generation) {
            ep.complete(evd, wr, completion, direct);
        }
    }
}
