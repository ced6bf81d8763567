// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Endpoints that a service point or a request has.

use crate::{
    dat::{
        ep::{
            Attr,
            Domain,
            Ep,
            Parts,
            ARGUMENT_ATTR, //
        },
        prelude::*, //
    },
    model::ep::{
        Call,
        Configuration, //
        Phase,
    },
};
use kernel::alloc::Flags;

impl Ep {
    /// Makes an Endpoint for a request, without PZ and EVDs: the consumer brings them by
    /// `dat_ep_modify` before it accepts. (Seed 000, "Provider provided EPs".) Its memory is allocated
    /// with `flags`.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn tentative(domain: &Arc<Domain>, flags: Flags) -> DatResult<Arc<Self>> {
        let attr = Attr::resolve(None, domain.ia.attr(), ARGUMENT_ATTR)?;
        let phase = Phase::Tentative(Configuration::Incomplete);
        Self::build(domain, Parts::default(), attr, phase, flags)
    }

    /// `dat_rsp_create` takes the Endpoint.
    ///
    /// # Errors
    ///
    /// INVALID_STATE with the state's subtype unless it is unconnected.
    pub(in crate::dat) fn reserve(&self) -> DatResult {
        self.advance(&mut self.inner.lock(), Call::Reserve)
            .map(|_| ())
    }

    /// A request came in on its Reserved Service Point.
    ///
    /// # Errors
    ///
    /// INVALID_STATE unless it is reserved.
    pub(in crate::dat) fn requested(&self) -> DatResult {
        self.advance(&mut self.inner.lock(), Call::Requested)
            .map(|_| ())
    }

    /// The Reserved Service Point was freed, or the request turned down: the consumer's Endpoint is
    /// unconnected again, one that was made for the request is gone.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn release(self: &Arc<Self>) {
        let _ = self.feed(Call::Release, None);
        let freed = self.inner.lock().phase == Phase::Freed;
        if freed {
            // An error: whoever took it out of the table shuts it down.
            let taken = self.domain.eps.take(self.handle(), |_| Ok(()));
            let _ = taken.map(|ep| ep.end());
        }
    }
}
