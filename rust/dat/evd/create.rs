// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Creates an Event Dispatcher (EVD).

use super::{
    queue::{
        Producer,
        FOR_REMOVAL, //
    },
    Consumer,
    CqState,
    Cqs,
    Evd,
    EvdContext,
    EventQueue,
    Flags,
    UpcallContext,
    Wakeup,
    Words, //
};
use crate::{
    dat::{
        base::{
            Objects,
            UseCount, //
        },
        prelude::*, //
    },
    model::{
        atomic::AtomicBool,
        ring::Ring,
        vector::Placement, //
    },
    rdma::device::Device,
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::new_context_lock,
    },
};
use kernel::new_work;

/// Configuration of a new EVD.
pub(in crate::dat) struct Config<'a> {
    pub(in crate::dat) device: &'a Arc<Device>,
    pub(in crate::dat) context: Arc<EvdContext>,
    /// Queue length, as [`queue_length`](super::queue_length) returns it.
    pub(in crate::dat) qlen: u32,
    pub(in crate::dat) flags: Flags,
    pub(in crate::dat) placement: Placement,
    /// Context in which upcalls are made.
    pub(in crate::dat) upcalls: UpcallContext,
}

impl Evd {
    /// Creates an EVD and puts it into the table: `dat_evd_create`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn create(
        evds: &Arc<Objects<Self>>,
        config: Config<'_>,
    ) -> DatResult<Arc<Self>> {
        let entry = Objects::reserve(evds)?;
        let device = config.device;
        let this = Self::build(entry.handle().into_raw(), config)?;
        if this.flags.has(Flags::DTO) {
            this.open_cqs(device)?;
        }
        if let Err(error) = entry.commit(this.clone()) {
            this.end();
            return Err(error);
        }
        Ok(this)
    }

    /// Creates an EVD without completion queues.
    pub(super) fn build(handle: u64, config: Config<'_>) -> DatResult<Arc<Self>> {
        let memory = config.context.user.hold_memory_of::<Self>()?;
        let (storage, length) = Words::for_queue(&config.context.user, config.qlen)?;
        let (ring, producer, slots) = Ring::new(storage, length).ok_or(DatError::internal())?;
        let reserved = match &config.context.async_evd {
            Some(_) => 0,
            None => FOR_REMOVAL,
        };
        let producer = Producer::new(producer, reserved);
        Ok(Arc::pin_init(
            pin_init!(Self {
                handle,
                flags: config.flags,
                queue <- EventQueue::new(config.qlen, ring, producer),
                consumer <- new_context_lock!(
                    Consumer {
                        slots,
                        cqs: Cqs::none(config.upcalls.lock_context()),
                        known_taken: 0,
                        skipped_drain: false,
                    },
                    config.upcalls.lock_context(),
                    "Evd::consumer"
                ),
                cqs: CqState::new(config.placement),
                wakeup <- Wakeup::new(config.upcalls),
                pump <- new_work!("Evd::pump"),
                context: config.context,
                uses: UseCount::none(),
                is_freed: AtomicBool::new(false),
                _counted: Counted::new(census::Kind::Evd),
                _memory: memory,
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}
