// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints of a Reserved Service Point, or of a connection request.

use crate::{
    dat::{
        ep::{
            Ep,
            EpAttr,
            EpContext,
            Parts, //
        },
        prelude::*, //
    },
    model::ep::{
        Call,
        Configuration,
        Phase, //
    },
};
use kernel::alloc::Flags;

impl Ep {
    /// Creates an Endpoint for a request, without Protection Zone and Event Dispatchers. The
    /// consumer adds the former, and those of the latter that it wants, by `dat_ep_modify` before
    /// it accepts. The memory is allocated with `flags`.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn tentative(
        context: &Arc<EpContext>,
        flags: Flags,
    ) -> DatResult<Arc<Self>> {
        let attr = EpAttr::resolve(None, context.ia.attr())?;
        let phase = Phase::Tentative(Configuration::Incomplete);
        Self::build(
            context,
            Parts::without_evds(&context.sink),
            attr,
            phase,
            flags,
        )
    }

    /// Reserves the Endpoint for a Reserved Service Point (`dat_rsp_create`).
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype unless the Endpoint is unconnected.
    pub(in crate::dat) fn reserve(&self) -> DatResult {
        self.advance(&mut self.inner.lock(), Call::Reserve)
            .map(|_| ())
    }

    /// Marks the Endpoint as requested: a request has arrived on its Reserved Service Point.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless the Endpoint is reserved.
    pub(in crate::dat) fn requested(&self) -> DatResult {
        self.advance(&mut self.inner.lock(), Call::Requested)
            .map(|_| ())
    }

    /// Releases the Endpoint, because its Reserved Service Point was freed or the request was
    /// rejected. The consumer's Endpoint is unconnected again. One that was created for the request
    /// is freed.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn release(self: &Arc<Self>) {
        // Another thread may free the consumer's Endpoint, and ends it then.
        let is_of_request = matches!(self.inner.lock().phase, Phase::Tentative(_));
        let _ = self.feed(Call::Release, None);
        if is_of_request && self.is_freed() {
            let freeing = self.context.eps.begin_free();
            // On an error another thread has taken the Endpoint out of the table, and ends it.
            let taken = self.context.eps.take(self.handle(), |_| Ok(()));
            let _ = taken.map(|ep| ep.end(freeing));
        }
    }
}
