// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event Dispatchers.
//!
//! An EVD is a ring of events and, if DTOs report to it, one or more completion queues. Completions stay
//! in those until somebody drains them into the ring: the waiter when it is woken, the consumer that
//! finds the ring empty, or the pump (see [`drain`]) when an Endpoint winds up and its last event must
//! not wait for a consumer. Everything else is pushed into the ring right away. (Seed 001, "Event
//! Storage".) Who takes an event and finds the ring empty takes the first completion along.
//!
//! ```text
//!   provider --comp_handler--> doorbell, wake --------------+
//!      |                                                    v
//!     CQ  ------ drain (consumer lock) ------> ring -----> waiter: pop
//!                                               ^
//!   rdma_cm, post_se, async --- post -----------+--> doorbell, wake
//! ```

mod callback;
mod cno_link;
mod cqs;
mod dequeue;
mod drain;
mod end;
mod flags;
mod post_se;
mod pump;
mod queue;
mod resize;
mod stream;
mod threshold;
mod upcall;
mod wait;
mod wakeup;

pub(crate) use self::{
    flags::Flags,
    upcall::{
        Policy,
        Upcall, //
        UpcallReason,
    },
    wait::deadline,
};

pub(super) use self::{
    cqs::{
        place,
        queue_length,
        CqShare, //
    },
    pump::Demand,
    queue::{
        no_room,
        EventReservation, //
    },
    stream::{
        Joining,
        Stream, //
    },
};

use self::{
    cqs::{
        CqState,
        Cqs, //
    },
    queue::Queue,
    resize::Words,
    wakeup::Wakeup, //
};
use super::base::{
    Object,
    Objects,
    Shared,
    Users, //
};
use crate::{
    dat::prelude::*,
    model::{
        direct_event::DirectEvent,
        handle::HandleKind,
        ring::{
            self,
            Ring, //
        },
        vector::Placement, //
    },
    rdma::{
        device::Device,
        wc::Wc, //
    },
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::{
    new_mutex,
    new_work,
    sync::Mutex,
    workqueue::Work, //
};

/// What the consumer side of an EVD owns.
struct Consumer {
    slots: ring::RingConsumer<Words>,
    /// None if no DTO reports here, once freed, or once the device is gone.
    cqs: Cqs,
    /// The last event came from the ring, without a look at the completion queues.
    passed_by: bool,
}

/// An Event Dispatcher.
#[pin_data]
pub(crate) struct Evd {
    handle: u64,
    flags: Flags,
    #[pin]
    queue: Queue,
    /// The right to pop, and to poll the completion queues.
    #[pin]
    consumer: Mutex<Consumer>,
    cqs: CqState,
    #[pin]
    wakeup: Wakeup,
    #[pin]
    pump: Work<Evd>,
    domain: Arc<Domain>,
    users: Users,
    _counted: Counted,
}

/// The Endpoints whose DTOs report to an EVD.
pub(super) trait Endpoints: Send + Sync {
    /// Passes a completion to the Endpoint that posted the work request, which `wr_id` names. Drops
    /// it if the Endpoint was freed.
    ///
    /// Context: process, with the lock of the EVD's consumer.
    fn complete(&self, evd: &Evd, completion: &Wc, direct: &mut DirectEvent<'_>);
}

/// What the EVDs of an Interface Adapter share.
pub(super) struct Domain {
    endpoints: Arc<dyn Endpoints>,
    /// Receives reports of overflows; `None` for the asynchronous EVD itself.
    async_evd: Option<Arc<Evd>>,
}

impl Domain {
    /// Creates the domain of the asynchronous EVD, or that of the other EVDs.
    pub(super) fn new(
        endpoints: Arc<dyn Endpoints>,
        async_evd: Option<Arc<Evd>>,
    ) -> DatResult<Arc<Self>> {
        let this = Self {
            endpoints,
            async_evd,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }
}

/// Configuration of a new EVD.
pub(super) struct Config<'a> {
    pub(super) device: &'a Arc<Device>,
    pub(super) domain: Arc<Domain>,
    /// As [`queue_length`] returns it.
    pub(super) qlen: u32,
    pub(super) flags: Flags,
    pub(super) placement: Placement,
}

/// What [`Evd::query`] tells.
pub(crate) struct Param {
    pub(crate) qlen: u32,
    pub(crate) flags: Flags,
    pub(crate) queued: u32,
    /// Handle of the CNO, or 0.
    pub(crate) cno: u64,
    /// `DAT_EVD_STATE`.
    pub(crate) state: u32,
    /// The completion vector that the first completion queue notifies on.
    pub(crate) vector: u32,
    /// How many completion queues there are.
    pub(crate) queues: u32,
}

impl Evd {
    /// `dat_evd_create`: makes an EVD and puts it into the table. Returns it with its queue length.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(super) fn create(evds: &Arc<Objects<Self>>, config: Config<'_>) -> DatResult<Arc<Self>> {
        let entry = Objects::reserve(evds)?;
        let handle = entry.handle().into_raw();
        let (storage, length) = Words::for_queue(config.qlen)?;
        let (ring, producer, slots) = Ring::new(storage, length).ok_or(DatError::internal())?;
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                flags: config.flags,
                queue <- Queue::new(config.qlen, ring, producer),
                consumer <- new_mutex!(
                    Consumer {
                        slots,
                        cqs: Cqs::none(),
                        passed_by: false,
                    },
                    "Evd::consumer"
                ),
                cqs: CqState::new(config.placement),
                wakeup <- Wakeup::new(),
                pump <- new_work!("Evd::pump"),
                domain: config.domain,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Evd),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if config.flags.has(Flags::DTO) {
            this.open_cqs(config.device)?;
        }
        if let Err(error) = entry.commit(this.clone()) {
            this.end();
            return Err(error);
        }
        Ok(this)
    }

    /// `dat_evd_query`.
    pub(crate) fn query(&self) -> Param {
        let (cno, enabled) = self.wakeup.link.query();
        let enabled = if enabled {
            kdapl_bindings::KDAPL_EVD_ENABLED
        } else {
            kdapl_bindings::KDAPL_EVD_DISABLED
        };
        let waitable = if self.wakeup.unwaitable.load_acquire() {
            kdapl_bindings::KDAPL_EVD_UNWAITABLE
        } else {
            kdapl_bindings::KDAPL_EVD_WAITABLE
        };
        // Nobody pops meanwhile: the count is right.
        let consumer = self.consumer.lock();
        Param {
            qlen: self.qlen(),
            flags: self.flags,
            queued: self.queue.ring.len(),
            cno,
            state: enabled | waitable | self.config(),
            vector: self.cqs.placement.first(),
            queues: consumer.cqs.count(),
        }
    }

    /// Its handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Its streams.
    pub(super) fn flags(&self) -> Flags {
        self.flags
    }

    /// How many events a consumer may let lie here.
    fn qlen(&self) -> u32 {
        self.queue.qlen.load_acquire()
    }
}

impl Object for Evd {
    const KIND: HandleKind = HandleKind::Evd;
    const INVALID: Subtype = Subtype::InvalidHandleEvdRequest;

    /// # Errors
    ///
    /// INVALID_STATE while something feeds the EVD, while a thread waits, if the caller is in an
    /// upcall of the EVD, or for the asynchronous EVD of the adapter.
    fn may_free(&self) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        if self.domain.async_evd.is_none() {
            refused(Subtype::InvalidStateEvdAsync)
        } else if self.users.any() || self.is_called_by_me() {
            refused(Subtype::InvalidStateEvdInUse)
        } else if self.wakeup.waiter.is_taken() {
            refused(Subtype::InvalidStateEvdWaiter)
        } else {
            Ok(())
        }
    }

    fn shutdown(self: &Arc<Self>) {
        self.end();
    }
}

impl Shared for Evd {
    fn users(&self) -> &Users {
        &self.users
    }
}
