// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls of kernel consumers on Local Memory Regions (LMR) that requests register and invalidate,
//! and on the reserved LMR.

use super::{
    Ep,
    Ia,
    Lmr, //
};
use crate::{
    dat::{
        ep::{
            LocalAction,
            LocalRequest, //
        },
        lmr::{
            FastLmr,
            Fmr, //
        },
        prelude::*,
    },
    rdma::dma_pages::DmaPages,
    sys::task::CallContext,
};

impl Ia {
    /// Implements `dat_lmr_allocate`: [`Lmr::allocate`].
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (PZ).
    /// - Errors of [`Lmr::allocate`].
    pub(crate) fn allocate_lmr(&self, pz: u64, max_pages: u32) -> DatResult<u64> {
        Lmr::allocate(&self.lmrs, self.use_pz(pz)?, max_pages)
    }

    /// Implements `dat_lmr_fmr`. `map` maps the pages for the device. Returns the LMR context and
    /// the RMR context, which are valid for each later request of the Endpoint.
    ///
    /// Context: any. Sleeps in [`CallContext::Process`] only.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (LMR) for an LMR that [`Ia::allocate_lmr`] has not created.
    /// - RESERVED_LMR.
    /// - MODEL_NOT_SUPPORTED for the privilege of remote atomic operations if the device does not
    ///   support them.
    /// - Errors of [`FastLmr::prepare`] and [`Ep::post_local`].
    pub(crate) fn register_lmr(
        &self,
        (lmr, ep): (&Lmr, &Ep),
        fmr: &Fmr,
        map: impl FnOnce(&mut DmaPages) -> Result,
        context: CallContext,
    ) -> DatResult<(u32, u32)> {
        let fast = lmr.fast()?;
        if fmr.has_remote_atomics() && !self.attr().extensions.has_atomics() {
            return Err(Kind::ModelNotSupported.into());
        }
        self.drain_suppressed(fast, context);
        let registered = fast.prepare(fmr, map, context).and_then(|mut prepared| {
            let (pz, contexts) = (prepared.pz(), prepared.contexts());
            let mut request = LocalRequest {
                action: LocalAction::Register(&mut prepared),
                pz,
                cookie: fmr.cookie,
                flags: fmr.flags,
            };
            // If it was flushed at once, the drop abandons it.
            ep.post_local(&mut request, context)?;
            Ok(contexts)
        });
        registered.map_err(|error| self.error_in(error, context))
    }

    /// Returns the error to report: the removal of the device, if it was removed. In atomic context
    /// the device cannot be asked.
    fn error_in(&self, error: DatError, context: CallContext) -> DatError {
        match context {
            CallContext::Process => self.base.removal_or(error),
            CallContext::Atomic => error,
        }
    }

    /// Implements `dat_lmr_invalidate`.
    ///
    /// Context: as for [`Ia::register_lmr`].
    ///
    /// # Errors
    ///
    /// - As for [`Ia::register_lmr`].
    /// - Errors of [`Ep::post_local`].
    pub(crate) fn invalidate_lmr(
        &self,
        (lmr, ep): (&Lmr, &Ep),
        cookie: u64,
        flags: u32,
        context: CallContext,
    ) -> DatResult {
        let fast = lmr.fast()?;
        self.drain_suppressed(fast, context);
        let mut request = LocalRequest {
            action: LocalAction::Invalidate(fast),
            pz: lmr.query().pz,
            cookie,
            flags,
        };
        let posted = ep.post_local(&mut request, context);
        posted
            .map(|_| ())
            .map_err(|error| self.error_in(error, context))
    }

    /// Implements `dat_lmr_free`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_HANDLE (LMR).
    /// - RESERVED_LMR.
    /// - INVALID_STATE while an RMR is bound to the memory, a request is outstanding, or a DTO in
    ///   flight names memory of the kernel.
    pub(crate) fn free_lmr(&self, lmr: u64) -> DatResult {
        let ep_context = &self.passive.ep_context;
        self.free_lmr_unless(lmr, |context| ep_context.is_memory_used(context))
    }

    /// Implements `kdapl_lmr_free_unused`: as [`Self::free_lmr`], but the caller knows that no DTO
    /// in flight names the memory.
    pub(crate) fn free_unused_lmr(&self, lmr: u64) -> DatResult {
        self.free_lmr_unless(lmr, |_| false)
    }

    fn free_lmr_unless(&self, lmr: u64, is_used: impl Fn(u32) -> bool) -> DatResult {
        let lmr = self.get::<Lmr>(lmr)?;
        if let Ok(fast) = lmr.fast() {
            self.drain_suppressed(fast, CallContext::Process);
        }
        lmr.free(&self.lmrs, is_used)
    }

    /// Implements `dat_ia_reserved_lmr`. Returns the handle, the same in each call.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(crate) fn reserved_lmr(&self) -> DatResult<u64> {
        match self.base.reserved_lmr() {
            0 => self.reserve_lmr(),
            lmr => Ok(lmr),
        }
    }

    fn reserve_lmr(&self) -> DatResult<u64> {
        let own = Lmr::reserve(&self.lmrs)?;
        let lmr = self.base.reserve_lmr(own);
        if lmr != own {
            // A concurrent call was faster.
            self.lmrs.take(own, |_| Ok(()))?;
        }
        Ok(lmr)
    }

    /// Drains the completion of a suppressed request that the state of an LMR waits for. The
    /// consumer may never dequeue it. If no request has followed one that is to be reported with
    /// the next, a later call finds its end. Does nothing in a context that cannot sleep.
    fn drain_suppressed(&self, fast: &FastLmr, context: CallContext) {
        if !context.may_sleep() {
            return;
        }
        let ep = fast.suppressed_on();
        if let Some(Ok(ep)) = ep.map(|ep| self.get::<Ep>(ep.into_raw())) {
            ep.close_end_now();
            ep.drain_evds();
        }
    }
}
