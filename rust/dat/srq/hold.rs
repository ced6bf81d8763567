// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives that Endpoints have taken from a Shared Receive Queue (SRQ), and whose events they hold
//! back.
//!
//! A held receive counts for the length of the SRQ as if it were posted. So the Endpoint needs room
//! for as many events as the SRQ is long, also if the consumer posts further receives meanwhile.

use super::Srq;
use crate::dat::prelude::*;

/// Count of the receives that an Endpoint holds back, until the drop.
pub(in crate::dat) struct Holder {
    srq: Arc<Srq>,
    held: u32,
}

impl Holder {
    /// Counts a receive that is being held back. Context: any.
    pub(in crate::dat) fn hold(&mut self) {
        self.held = self.held.saturating_add(1);
        self.srq.inner.lock().receives.hold();
    }

    /// Subtracts receives that were reported. Context: any.
    pub(in crate::dat) fn release(&mut self, count: u32) {
        let count = count.min(self.held);
        self.held = self.held.wrapping_sub(count);
        self.srq.inner.lock().receives.release(count);
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.release(u32::MAX);
        let mut inner = self.srq.inner.lock();
        inner.holders = inner.holders.saturating_sub(1);
    }
}

/// A receive between its completion and its report, which counts as held.
pub(in crate::dat) struct ReportedReceive<'a>(&'a Srq);

impl Drop for ReportedReceive<'_> {
    fn drop(&mut self) {
        self.0.inner.lock().receives.release(1);
    }
}

impl Srq {
    /// Lets an Endpoint hold receives back. `prepare` gets the number of those that it may have to
    /// hold, which a resize does not change meanwhile.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// Errors of `prepare`.
    pub(in crate::dat) fn hold_back(
        self: &Arc<Self>,
        prepare: impl FnOnce(u32, Holder) -> DatResult,
    ) -> DatResult {
        let _slots = self.slots.lock();
        let limit = {
            let mut inner = self.inner.lock();
            inner.holders = inner.holders.saturating_add(1);
            inner.receives.limit()
        };
        let holder = Holder {
            srq: self.clone(),
            held: 0,
        };
        prepare(limit, holder)
    }

    /// Keeps a receive that [`Srq::complete`] has counted as held in that count, until the returned
    /// value is dropped.
    pub(in crate::dat) fn hold_until_reported(
        &self,
        is_counted: bool,
    ) -> Option<ReportedReceive<'_>> {
        is_counted.then(|| ReportedReceive(self))
    }
}
