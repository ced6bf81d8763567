// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Common properties of the Event Dispatchers (EVD) of an Interface Adapter, and the Endpoints that
//! report to them.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::direct_event::DirectEvent,
    rdma::wc::Wc,
    sys::user::User, //
};

/// Passes completions to the Endpoints that have posted the DTOs.
pub(in crate::dat) trait CompletionTarget: Send + Sync {
    /// Passes a completion to the Endpoint that posted the work request. `wr_id` names the
    /// Endpoint. The completion is dropped if the Endpoint was freed.
    ///
    /// Context: that of the EVD's consumer, whose lock is held. It may be a spinlock.
    fn complete(&self, evd: &Evd, completion: &Wc, direct: &mut DirectEvent<'_>);

    /// Passes completions to their Endpoints, in their order: [`CompletionTarget::complete`].
    fn complete_all(&self, evd: &Evd, completions: &[Wc], direct: &mut DirectEvent<'_>);

    /// Does what a completion requires before there is room for its event. Returns whether it has
    /// no event, and was passed on. Otherwise [`CompletionTarget::complete`] follows.
    ///
    /// Context: as for [`CompletionTarget::complete`].
    fn complete_early(&self, evd: &Evd, completion: &Wc) -> bool;

    /// Reports to an Endpoint that the consumer has taken the event of one of its receives. Called
    /// only while there are [`ReceiveReports`](super::ReceiveReports).
    ///
    /// Context: as for [`CompletionTarget::complete`].
    fn receive_taken(&self, ep: u64);
}

/// Common properties of the EVDs of an Interface Adapter.
pub(in crate::dat) struct EvdContext {
    pub(super) target: Arc<dyn CompletionTarget>,
    /// EVD that gets the reports of overflows; `None` for this asynchronous EVD itself.
    pub(super) async_evd: Option<Arc<Evd>>,
    /// User that is charged for the memory of the EVDs.
    pub(super) user: User,
}

impl EvdContext {
    /// Creates the context of the asynchronous EVD (`async_evd` is `None`), or that of all other
    /// EVDs.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(in crate::dat) fn new(
        target: Arc<dyn CompletionTarget>,
        async_evd: Option<Arc<Evd>>,
        user: User,
    ) -> DatResult<Arc<Self>> {
        let this = Self {
            target,
            async_evd,
            user,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }
}
