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
//!   provider --comp_handler--> bell, wake ------------------+
//!      |                                                    v
//!     CQ  ------ drain (consumer lock) ------> ring -----> waiter: pop
//!                                               ^
//!   rdma_cm, post_se, async --- post -----------+--> bell, wake
//! ```

mod cno_link;
mod drain;
mod end;
mod flags;
mod post;
mod queue;
mod resize;
mod stream;
mod take;
mod upcall;
mod wait;

pub(crate) use self::{
    flags::Flags,
    upcall::{
        Policy,
        Tidings,
        Upcall, //
    },
    wait::deadline,
};

pub(super) use self::{
    drain::Demand,
    post::{
        no_room,
        Room, //
    },
    queue::{
        place,
        queue_length,
        Share, //
    },
    stream::{
        Joining,
        Stream, //
    },
};

use self::{
    cno_link::Link,
    post::Producer,
    queue::Queues,
    resize::Words,
    upcall::Upcalls, //
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
        atomic::{
            AtomicBool,
            AtomicU32, //
        },
        event::Event,
        hand::Hand,
        handle::{
            HandleKind,
            WrId, //
        },
        length::Due,
        ring::{
            self,
            Ring, //
        },
        streams::Streams,
        vector::Placement,
        wait::{
            Doorbell,
            Wanted, //
        },
    },
    rdma::{
        device::Device,
        wc::Wc, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
        wait::LoneWaiter, //
    },
};
use kernel::{
    new_mutex,
    new_work,
    sync::{
        atomic::Atomic,
        Mutex, //
    },
    workqueue::Work, //
};

/// What the consumer side of an EVD owns.
struct Consumer {
    slots: ring::Consumer<Words>,
    /// None if no DTO reports here, once freed, or once the device is gone.
    queues: Queues,
    /// The last event came from the ring, without a look at the completion queues.
    passed_by: bool,
}

/// An Event Dispatcher.
#[pin_data]
pub(crate) struct Evd {
    handle: u64,
    flags: Flags,
    /// How many events a consumer may let lie here. Changes under both locks.
    qlen: AtomicU32,
    /// [Longer](crate::model::length): what was drained, and what happens to connections, finds room even
    /// if others have filled the queue in the meantime.
    ring: Ring,
    /// The right to push.
    #[pin]
    producer: SpinLockIrq<Producer>,
    /// The right to pop, and to poll the completion queues.
    #[pin]
    consumer: Mutex<Consumer>,
    bell: Doorbell,
    wanted: Wanted,
    /// There is one waiter at a time.
    #[pin]
    waiter: LoneWaiter,
    /// Whether it was freed: nobody waits any more.
    closed: AtomicBool,
    /// `dat_evd_set_unwaitable`: nobody may wait.
    unwaitable: AtomicBool,
    #[pin]
    link: Link,
    #[pin]
    upcalls: Upcalls,
    /// The completion streams of Endpoints that report here, and how they wake: see [`stream`].
    streams: Atomic<u32>,
    /// On which completion vectors the completion queues notify.
    placement: Placement,
    /// How many DTOs are given up, and may have left a completion that lies in a queue.
    given_up: AtomicU32,
    /// How many events are to find room here yet: those of completions that were drained, which an
    /// Endpoint keeps back for now, and those that a [`Room`](post::Room) was set aside for.
    due: Due,
    /// How many reasons there are to drain the completion queues without a waiter.
    demand: Atomic<i32>,
    #[pin]
    pump: Work<Evd>,
    /// The newest event when anybody was told last.
    told: AtomicU32,
    /// The pump is to tell of what it finds, for nobody else has or will.
    untold: AtomicBool,
    endpoints: Arc<dyn Endpoints>,
    /// Where to report an overflow; `None` for the asynchronous EVD itself.
    async_evd: Option<Arc<Evd>>,
    users: Users,
    _counted: Counted,
}

/// The Endpoints whose DTOs report to an EVD.
pub(super) trait Endpoints: Send + Sync {
    /// Passes a completion to the Endpoint that posted the work request. Drops it if the Endpoint
    /// was freed.
    ///
    /// Context: process, with the lock of the EVD's consumer.
    fn complete(&self, evd: &Evd, wr: WrId, completion: &Wc, hand: &mut Hand<'_>);
}

/// Configuration of a new EVD.
pub(super) struct Config<'a> {
    pub(super) device: &'a Arc<Device>,
    pub(super) endpoints: Arc<dyn Endpoints>,
    /// `None` for the asynchronous EVD itself.
    pub(super) async_evd: Option<Arc<Evd>>,
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
        let queues = Queues::none();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                flags: config.flags,
                qlen: AtomicU32::new(config.qlen),
                ring,
                producer <- new_spinlock_irq!(Producer::new(producer), "Evd::producer"),
                consumer <- new_mutex!(
                    Consumer {
                        slots,
                        queues,
                        passed_by: false,
                    },
                    "Evd::consumer"
                ),
                bell: Doorbell::new(),
                wanted: Wanted::any(),
                waiter <- LoneWaiter::new(),
                closed: AtomicBool::new(false),
                unwaitable: AtomicBool::new(false),
                link <- Link::new(),
                upcalls <- Upcalls::new(),
                streams: Atomic::new(Streams::NONE.word()),
                placement: config.placement,
                due: Due::none(),
                given_up: AtomicU32::new(0),
                demand: Atomic::new(0),
                pump <- new_work!("Evd::pump"),
                told: AtomicU32::new(0),
                untold: AtomicBool::new(false),
                endpoints: config.endpoints,
                async_evd: config.async_evd,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Evd),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if config.flags.has(Flags::DTO) {
            Self::open_queues(&this, config.device)?;
        }
        if let Err(error) = entry.commit(this.clone()) {
            this.end();
            return Err(error);
        }
        Ok(this)
    }

    /// `dat_evd_query`.
    pub(crate) fn query(&self) -> Param {
        let (cno, enabled) = self.link.query();
        let enabled = if enabled {
            kdapl_bindings::KDAPL_EVD_ENABLED
        } else {
            kdapl_bindings::KDAPL_EVD_DISABLED
        };
        let waitable = if self.unwaitable.load_acquire() {
            kdapl_bindings::KDAPL_EVD_UNWAITABLE
        } else {
            kdapl_bindings::KDAPL_EVD_WAITABLE
        };
        // Nobody pops meanwhile: the count is right.
        let consumer = self.consumer.lock();
        Param {
            qlen: self.qlen(),
            flags: self.flags,
            queued: self.ring.len(),
            cno,
            state: enabled | waitable | self.config(),
            vector: self.placement.first(),
            queues: consumer.queues.count(),
        }
    }

    /// `dat_evd_post_se`.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 1) if the EVD takes no software events, QUEUE_FULL.
    pub(crate) fn post_se(&self, pointer: u64) -> DatResult {
        if !self.flags.has(Flags::SOFTWARE) {
            return Err(DatError::invalid_parameter(1));
        }
        self.post(&Event::Software { pointer })
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
        self.qlen.load_acquire()
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
        if self.async_evd.is_none() {
            refused(Subtype::InvalidStateEvdAsync)
        } else if self.users.any() || self.is_called_by_me() {
            refused(Subtype::InvalidStateEvdInUse)
        } else if self.waiter.is_taken() {
            refused(Subtype::InvalidStateEvdWaiter)
        } else {
            Ok(())
        }
    }

    fn shutdown(this: &Arc<Self>) {
        this.end();
    }
}

impl Shared for Evd {
    fn users(&self) -> &Users {
        &self.users
    }
}
