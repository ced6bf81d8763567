// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State that all service points and requests of an Interface Adapter share.

use super::Cr;
use crate::dat::{
    base::{
        IaBase,
        Objects, //
    },
    ep,
    prelude::*, //
};
use kernel::sync::atomic::{
    Atomic,
    Relaxed, //
};

/// Limit on the waiting requests of an adapter, independent of the backlogs of its service points.
const MAX_REQUESTS: i32 = 4096;

/// State that all service points and requests of an Interface Adapter share.
pub(crate) struct PassiveContext {
    pub(in crate::dat) ep_context: Arc<ep::EpContext>,
    pub(in crate::dat) crs: Arc<Objects<Cr>>,
    /// Number of requests that wait for an answer, over all service points.
    requests: Atomic<i32>,
}

impl PassiveContext {
    /// Creates the state that all service points of an adapter share.
    pub(in crate::dat) fn new(
        ep_context: Arc<ep::EpContext>,
        crs: Arc<Objects<Cr>>,
    ) -> DatResult<Arc<Self>> {
        let this = Self {
            ep_context,
            crs,
            requests: Atomic::new(0),
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the adapter.
    pub(super) fn ia(&self) -> &Arc<IaBase> {
        &self.ep_context.ia
    }

    /// Counts a new request, and returns whether the adapter has room for it. The caller undoes
    /// this by [`PassiveContext::end_request`] in either case.
    pub(super) fn begin_request(&self) -> bool {
        self.requests.fetch_add(1, Relaxed) < MAX_REQUESTS
    }

    /// Counts the end of a request.
    pub(super) fn end_request(&self) {
        self.requests.fetch_sub(1, Relaxed);
    }
}
