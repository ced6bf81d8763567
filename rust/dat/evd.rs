// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event Dispatchers.
//!
//! An EVD is a ring of events and, if DTOs report to it, a completion queue. Completions stay in
//! the completion queue until somebody drains them into the ring: the waiter when it is woken, the
//! consumer that finds the ring empty, or the pump (see [`drain`]) when an Endpoint winds up and
//! its last event must not wait for a consumer. Everything else is pushed into the ring right away.
//! (Seed 001, "Event Storage".)
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
mod resize;
mod wait;

pub(crate) use self::flags::Flags;

pub(super) use self::{
    drain::Demand,
    post::{
        no_room,
        Room, //
    },
};

use self::{
    link::Link,
    post::Producer,
    resize::Words, //
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
        event::{
            Event,
            Record, //
        },
        handle::HandleKind,
        ring::{
            self,
            Ring, //
        },
        wait::{
            Doorbell,
            Wanted, //
        },
    },
    rdma::{
        cq::Cq,
        device::Device, //
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
        wait::{
            new_wait_queue,
            WaitQueue, //
        },
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

/// Completions that every completion queue has room for, twice: a short EVD may serve many receives,
/// of which the consumer takes the events as they come.
const MIN_CQ_DEPTH: u32 = 512;

/// What the consumer side of an EVD owns.
struct Consumer {
    slots: ring::Consumer<Words>,
    /// `None` if no DTO reports here, once freed, or once the device is gone.
    cq: Option<Arc<Cq<Evd>>>,
}

/// An Event Dispatcher.
#[pin_data]
pub(crate) struct Evd {
    handle: u64,
    flags: Flags,
    /// How many events a consumer may let lie here. Changes under both locks.
    qlen: AtomicU32,
    /// Twice as long: what was drained, and what happens to connections, finds room even if others
    /// have filled the queue in the meantime.
    ring: Ring,
    /// The right to push.
    #[pin]
    producer: SpinLockIrq<Producer>,
    /// The right to pop, and to poll the completion queue.
    #[pin]
    consumer: Mutex<Consumer>,
    bell: Doorbell,
    wanted: Wanted,
    #[pin]
    sleepers: WaitQueue,
    /// Whether somebody waits: there is one waiter at a time.
    waited_on: AtomicBool,
    /// Whether it was freed: nobody waits any more.
    closed: AtomicBool,
    /// `dat_evd_set_unwaitable`: nobody may wait.
    unwaitable: AtomicBool,
    #[pin]
    link: Link,
    /// How many DTOs in flight report here: no more than the completion queue can take.
    in_flight: Atomic<i32>,
    /// The most of them.
    depth: u32,
    /// How many of them are given up, and may have left a completion that lies in the queue.
    given_up: Atomic<i32>,
    /// How many completions were drained whose events an Endpoint keeps back for now: they are to find
    /// room here.
    held: Atomic<i32>,
    /// How many reasons there are to drain the completion queue without a waiter.
    demand: Atomic<i32>,
    #[pin]
    pump: Work<Evd>,
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
}

impl Evd {
    /// `dat_evd_create`. Returns the handle and the queue length. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (argument 2) for a queue length below 1 or above the adapter's maximum,
    /// (argument 4) for unknown or no streams; INVALID_HANDLE (CNO), where 0 is none.
    pub(crate) fn create(ia: &Ia, qlen: i32, cno: u64, flags: u32) -> DatResult<(u64, u32)> {
        let flags = Flags::from_bits(flags).ok_or(DatError::invalid_parameter(4))?;
        let qlen = queue_length(qlen, ia.attr().max_evd_qlen)?;
        let evd = Self::build(
            ia.objects(),
            Some(ia.async_evd()),
            &ia.device()?,
            qlen,
            flags,
        )?;
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
    ) -> DatResult<Arc<Self>> {
        let place = Objects::reserve(objects, HandleKind::Evd)?;
        let handle = place.handle().into_raw();
        let (storage, length) = Words::for_queue(qlen)?;
        let (ring, producer, slots) = Ring::new(storage, length).ok_or(DatError::internal())?;
        let depth = qlen
            .max(MIN_CQ_DEPTH)
            .saturating_mul(2)
            .min(device.limits().max_cqe);
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                flags,
                qlen: AtomicU32::new(qlen),
                ring,
                producer <- new_spinlock_irq!(Producer::new(producer), "Evd::producer"),
                consumer <- new_mutex!(Consumer { slots, cq: None }, "Evd::consumer"),
                bell: Doorbell::new(),
                wanted: Wanted::any(),
                sleepers <- new_wait_queue!("Evd::sleepers"),
                waited_on: AtomicBool::new(false),
                closed: AtomicBool::new(false),
                unwaitable: AtomicBool::new(false),
                link <- Link::new(),
                in_flight: Atomic::new(0),
                held: Atomic::new(0),
                given_up: Atomic::new(0),
                depth,
                demand: Atomic::new(0),
                pump <- new_work!("Evd::pump"),
                objects: objects.clone(),
                async_evd,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Evd),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if flags.has(Flags::DTO) {
            let cq = Cq::new(device.clone(), this.clone(), depth)?;
            this.consumer.lock().cq = Some(cq);
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
    /// INVALID_STATE while something feeds it, while somebody waits, or if it is the asynchronous
    /// EVD of the adapter.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        let evd = ia.objects().take::<Self>(handle, |evd| {
            if evd.async_evd.is_none() {
                refused(Subtype::InvalidStateEvdAsync)
            } else if evd.users.any() {
                refused(Subtype::InvalidStateEvdInUse)
            } else if evd.waited_on.load_acquire() {
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
        let _consumer = self.consumer.lock();
        Param {
            qlen: self.qlen(),
            flags: self.flags,
            queued: self.ring.len(),
            cno,
            state: enabled | waitable,
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

    /// Its completion queue.
    pub(super) fn cq(&self) -> DatResult<Arc<Cq<Self>>> {
        self.consumer.lock().cq.clone().ok_or(DatError::device())
    }

    /// How many events a consumer may let lie here.
    fn qlen(&self) -> u32 {
        self.qlen.load_acquire()
    }

    /// Takes the oldest event.
    fn pop(this: &Arc<Self>, consumer: &mut Consumer) -> Option<Record> {
        let mut record = this.ring.pop(&mut consumer.slots);
        if record.is_none() {
            this.drain(consumer);
            record = this.ring.pop(&mut consumer.slots);
        }
        if record.is_some() {
            // The pump stops when the ring is full; now there is room.
            this.pump_again();
        }
        record
    }

    /// `dat_evd_dequeue`. Returns the event and how many are left.
    ///
    /// # Errors
    ///
    /// QUEUE_EMPTY.
    pub(crate) fn dequeue(this: &Arc<Self>) -> DatResult<(Record, u32)> {
        let mut consumer = this.consumer.lock();
        let record = match Self::pop(this, &mut consumer) {
            Some(record) => record,
            None => Self::pop_or_settle(this, &mut consumer).ok_or(Kind::QueueEmpty)?,
        };
        Ok((record, this.ring.len()))
    }

    /// `dat_evd_set_unwaitable`: who waits gets INVALID_STATE (EVD unwaitable), now and later.
    pub(crate) fn set_unwaitable(&self) {
        self.unwaitable.swap(true);
        self.bell.ring();
        self.sleepers.wake_all();
    }

    /// `dat_evd_clear_unwaitable`.
    pub(crate) fn clear_unwaitable(&self) {
        self.unwaitable.swap(false);
    }
}

impl Shared for Evd {
    fn users(&self) -> &Users {
        &self.users
    }
}

/// The queue length that a consumer gets who asked for `qlen`: a power of two.
pub(super) fn queue_length(qlen: i32, max: u32) -> DatResult<u32> {
    u32::try_from(qlen)
        .ok()
        .filter(|qlen| (1..=max).contains(qlen))
        .ok_or(DatError::invalid_parameter(2))?
        .checked_next_power_of_two()
        .ok_or(DatError::memory())
}
