// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Resizes Shared Receive Queues (SRQ).

use super::{
    unsupported_or,
    Srq, //
};
use crate::dat::{
    base::{
        context_storage,
        slots,
        IaBase, //
    },
    prelude::*, //
};

/// Returns the number of slots whose LMR contexts are kept: those of a process are not.
pub(super) fn slots_named(ia: &IaBase, slots: u32) -> u32 {
    match ia.is_of_kernel {
        true => slots,
        false => 0,
    }
}

impl Srq {
    /// Changes the number of receives that the SRQ holds: `dat_srq_resize`. `lengthen` gets a
    /// larger number, and makes room for the events that the Endpoints may have to hold back.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * INVALID_PARAMETER (queue length) for 0 or above the adapter's maximum;
    /// * INVALID_STATE if more receives are outstanding, or below the low watermark;
    /// * MODEL_NOT_SUPPORTED if the driver cannot lengthen the queue;
    /// * INSUFFICIENT_RESOURCES (EVD) if a completion queue has too little room for the
    ///   completions; (memory) without memory or above a limit of the user.
    pub(in crate::dat) fn resize(
        self: &Arc<Self>,
        max_recv_dtos: u32,
        lengthen: impl FnOnce(u32) -> DatResult,
    ) -> DatResult {
        if !(1..=self.ia.attr().max_recv_per_srq).contains(&max_recv_dtos) {
            return Err(DatError::Invalid(Arg::Qlen));
        }
        let outstanding = self.query()?.outstanding;
        let busy = DatError::new(Kind::InvalidState, Subtype::InvalidStateSrqInUse);
        if max_recv_dtos < outstanding || max_recv_dtos < self.watermark.get() {
            return Err(busy);
        }
        let mut count = self.slots.lock();
        if max_recv_dtos > *count {
            let (user, flags) = (self.ia.user(), GFP_KERNEL_ACCOUNT);
            let storage = slots(user, max_recv_dtos, flags)?;
            let named = slots_named(&self.ia, max_recv_dtos);
            let named = context_storage(user, named, self.max_iov, flags)?;
            self.lengthen_pools(max_recv_dtos)?;
            self.queue()?
                .resize(max_recv_dtos)
                .map_err(unsupported_or)?;
            let old = {
                let mut inner = self.inner.lock();
                (inner.receives.grow(storage), inner.named.grow(named))
            };
            drop(old);
            *count = max_recv_dtos;
        }
        if max_recv_dtos > self.limit() {
            lengthen(max_recv_dtos)?;
        }
        // A shorter queue keeps its memory: the receives keep their slots.
        if self.inner.lock().receives.set_limit(max_recv_dtos) {
            Ok(())
        } else {
            Err(busy)
        }
    }
}
