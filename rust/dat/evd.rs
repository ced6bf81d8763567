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

mod drain;
mod end;
mod flags;
mod link;
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
    link::Link,
    post::Producer,
    queue::Queues,
    resize::Words,
    upcall::Upcalls, //
};
use super::{
    ia::Ia,
    objects::Objects,
    users::{
        Shared,
        Users, //
    },
};
use crate::{
    model::{
        atomic::{
            AtomicBool,
            AtomicU32, //
        },
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        event::Event,
        handle::HandleKind,
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
    rdma::device::Device,
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::{
            new_spinlock_irq,
            SpinLockIrq, //
        },
        wait::LoneWaiter,
    },
};
use kernel::{
    new_mutex,
    new_work,
    prelude::*,
    sync::{
        atomic::Atomic,
        Arc,
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
    objects: Arc<Objects>,
    /// Where to report an overflow; `None` for the asynchronous EVD itself.
    async_evd: Option<Arc<Evd>>,
    users: Users,
    _counted: Counted,
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
    /// `dat_evd_create`; a `vector` of -1 is no wish. Returns the handle and the queue length.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 2) for a queue length below 1 or above the adapter's maximum,
    /// (argument 4) for unknown or no streams, (argument 6, DAT has none) for a completion vector that
    /// is not there; INVALID_HANDLE (CNO), where 0 is none.
    pub(crate) fn create(
        ia: &Ia,
        qlen: i32,
        cno: u64,
        flags: u32,
        vector: i32,
    ) -> DatResult<(u64, u32)> {
        let flags = Flags::from_bits(flags).ok_or(DatError::invalid_parameter(4))?;
        let qlen = queue_length(qlen, ia.attr().max_evd_qlen)?;
        let device = ia.device()?;
        let placement = place(vector, &device)?;
        let async_evd = Some(ia.async_evd());
        let evd = Self::build(ia.objects(), async_evd, &device, qlen, flags, placement)?;
        if let Err(error) = Self::modify_cno(&evd, ia, cno) {
            Self::free(ia, evd.handle)?;
            return Err(error);
        }
        Ok((evd.handle, evd.qlen()))
    }

    /// Makes an EVD and puts it into the table.
    pub(super) fn build(
        objects: &Arc<Objects>,
        async_evd: Option<Arc<Self>>,
        device: &Arc<Device>,
        qlen: u32,
        flags: Flags,
        placement: Placement,
    ) -> DatResult<Arc<Self>> {
        let place = Objects::reserve(objects, HandleKind::Evd)?;
        let handle = place.handle().into_raw();
        let (storage, length) = Words::for_queue(qlen)?;
        let (ring, producer, slots) = Ring::new(storage, length).ok_or(DatError::internal())?;
        let queues = Queues::none();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                flags,
                qlen: AtomicU32::new(qlen),
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
                placement,
                due: Due::none(),
                given_up: AtomicU32::new(0),
                demand: Atomic::new(0),
                pump <- new_work!("Evd::pump"),
                told: AtomicU32::new(0),
                untold: AtomicBool::new(false),
                objects: objects.clone(),
                async_evd,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Evd),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if flags.has(Flags::DTO) {
            Self::open_queues(&this, device)?;
        }
        if let Err(error) = place.commit(this.clone()) {
            this.shutdown();
            return Err(error);
        }
        Ok(this)
    }

    /// `dat_evd_free`.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while something feeds it, while somebody waits, if the caller is in an upcall of it,
    /// or if it is the asynchronous EVD of the adapter.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        let evd = ia.objects().take::<Self>(handle, |evd| {
            if evd.async_evd.is_none() {
                refused(Subtype::InvalidStateEvdAsync)
            } else if evd.users.any() || evd.is_called_by_me() {
                refused(Subtype::InvalidStateEvdInUse)
            } else if evd.waiter.is_taken() {
                refused(Subtype::InvalidStateEvdWaiter)
            } else {
                Ok(())
            }
        })?;
        evd.shutdown();
        Ok(())
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

impl Shared for Evd {
    fn users(&self) -> &Users {
        &self.users
    }
}
