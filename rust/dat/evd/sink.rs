// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sink of an adapter: the EVD that takes the events which the consumer does not want.
//!
//! An Endpoint whose consumer has passed DAT_HANDLE_NULL for an EVD uses the sink in its place. So
//! it gets shares of completion queues and a queue pair like every other Endpoint. There is always
//! demand for drains, so that the [pump](super::pump) takes the completions as they arrive. They
//! free their slots, and their events are discarded instead of queued.
//!
//! The sink has no handle: queries return DAT_HANDLE_NULL, and no call can name it. It gets its
//! first completion queue with the first Endpoint that needs it.

use super::{
    placement,
    Config,
    Evd,
    EvdContext,
    Flags,
    UpcallContext, //
};
use crate::{
    dat::prelude::*,
    model::{
        ring_size,
        vector::Placement, //
    },
    rdma::device::Device,
};
use kernel::sync::atomic::Full;

/// Handle of the sink: DAT_HANDLE_NULL.
const NO_HANDLE: u64 = 0;

impl Evd {
    /// Creates the sink of an adapter.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(in crate::dat) fn sink(
        device: &Arc<Device>,
        context: Arc<EvdContext>,
    ) -> DatResult<Arc<Self>> {
        let this = Self::build(
            NO_HANDLE,
            Config {
                device,
                context,
                // The ring stays empty.
                qlen: 1,
                flags: Flags::DISCARD,
                placement: placement(Placement::ANY, device)?,
                upcalls: UpcallContext::Process,
            },
        )?;
        // The queue length limits the completions of one poll.
        this.queue.qlen.store_release(ring_size::LONGEST_BATCH_QLEN);
        this.consumer.lock().cqs.open();
        this.wakeup.demand.fetch_add(1, Full);
        Ok(this)
    }

    /// Returns whether the EVD is the sink.
    pub(in crate::dat) fn discards(&self) -> bool {
        self.flags.has(Flags::DISCARD)
    }
}
