// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Event Dispatchers (EVD).
//!
//! An EVD is a ring of events. If it carries completions of Data Transfer Operations (DTO), it also
//! has one or more completion queues (CQ). A completion stays in its CQ until a thread drains it
//! into the ring:
//!
//! * the waiter, after it was woken;
//! * a consumer that finds the ring empty. It takes the event of the first completion directly,
//!   without the ring;
//! * a work item of the EVD, the [pump](pump), when events are needed that no consumer drains. For
//!   example, an Endpoint that disconnects reports its last event only after all its completions.
//!
//! All other events are pushed into the ring at once. An adapter has one more EVD, the
//! [sink](sink), which discards its events.
//!
//! ```text
//!   provider --comp_handler--> doorbell, wake --------------+
//!      |                                                    v
//!     CQ  ------ drain (consumer lock) ------> ring -----> waiter: pop
//!                                               ^
//!   rdma_cm, post_se, async --- post -----------+--> doorbell, wake
//! ```

mod async_wait;
mod callback;
mod cno_link;
mod cqs;
mod dequeue;
mod drain;
mod end;
mod file;
mod flags;
mod mapped;
mod post_se;
mod pump;
mod queue;
mod receives;
mod resize;
mod share;
mod sink;
mod spill;
mod stream;
mod threshold;
mod upcall;
mod wait;
mod wakeup;

pub(crate) use self::{
    async_wait::EvdAsyncWait,
    file::EvdFile,
    flags::Flags,
    upcall::{
        Policy,
        Upcall,
        UpcallReason, //
    },
    wait::deadline,
};

pub(super) use self::{
    cqs::{
        place,
        queue_length, //
    },
    pump::Demand,
    queue::{
        no_room,
        EventReservation, //
    },
    receives::ReceiveReports,
    share::CqShare,
    stream::{
        CompletionStream,
        JoinPermit, //
    },
};

use self::{
    cqs::{
        CqState,
        Cqs, //
    },
    queue::EventQueue,
    resize::Words,
    wakeup::Wakeup, //
};
use super::base::{
    Freeing,
    Object,
    Objects,
    Usable,
    UseCount, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicBool,
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
    sys::{
        census::{
            self,
            Counted, //
        },
        user::User, //
    },
};
use kernel::{
    new_mutex,
    new_work,
    sync::Mutex,
    workqueue::Work, //
};

/// Fields of [`Evd`] for the consumer side, protected by its lock.
struct Consumer {
    slots: ring::RingConsumer<Words>,
    /// Empty if the EVD carries no completions, after it was freed, or after the device was
    /// removed.
    cqs: Cqs,
    /// Index after the newest mapped event that is known to be taken.
    known_taken: u32,
    /// The last event was taken from the ring, and the completion queues were not drained.
    skipped_drain: bool,
}

/// Event Dispatcher.
#[pin_data]
pub(crate) struct Evd {
    handle: u64,
    flags: Flags,
    #[pin]
    queue: EventQueue,
    /// Right to take events from the ring, and to poll the completion queues.
    #[pin]
    consumer: Mutex<Consumer>,
    cqs: CqState,
    #[pin]
    wakeup: Wakeup,
    #[pin]
    pump: Work<Evd>,
    context: Arc<EvdContext>,
    users: UseCount,
    /// The EVD was freed. It is in the table until no upcall is in progress.
    is_freed: AtomicBool,
    _counted: Counted,
}

/// Endpoints whose DTOs report to an EVD.
pub(super) trait Endpoints: Send + Sync {
    /// Passes a completion to the Endpoint that posted the work request. `wr_id` names the
    /// Endpoint. The completion is dropped if the Endpoint was freed.
    ///
    /// Context: process, with the lock of the EVD's consumer held.
    fn complete(&self, evd: &Evd, completion: &Wc, direct: &mut DirectEvent<'_>);

    /// Passes completions to their Endpoints, in their order: [`Endpoints::complete`].
    fn complete_all(&self, evd: &Evd, completions: &[Wc], direct: &mut DirectEvent<'_>);

    /// Does what a completion requires before there is room for its event. Returns whether it has
    /// no event, and was passed on. Otherwise [`Endpoints::complete`] follows.
    ///
    /// Context: as for [`Endpoints::complete`].
    fn complete_early(&self, evd: &Evd, completion: &Wc) -> bool;

    /// Reports to an Endpoint that the consumer has taken the event of one of its receives. Called
    /// only while there are [`ReceiveReports`].
    ///
    /// Context: as for [`Endpoints::complete`].
    fn receive_taken(&self, ep: u64);
}

/// Common properties of the EVDs of an Interface Adapter.
pub(super) struct EvdContext {
    endpoints: Arc<dyn Endpoints>,
    /// EVD that gets the reports of overflows; `None` for this asynchronous EVD itself.
    async_evd: Option<Arc<Evd>>,
    /// User that is charged for the memory of the EVDs.
    user: User,
}

impl EvdContext {
    /// Creates the context of the asynchronous EVD (`async_evd` is `None`), or that of all other
    /// EVDs.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(super) fn new(
        endpoints: Arc<dyn Endpoints>,
        async_evd: Option<Arc<Evd>>,
        user: User,
    ) -> DatResult<Arc<Self>> {
        let this = Self {
            endpoints,
            async_evd,
            user,
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }
}

/// Configuration of a new EVD.
pub(super) struct Config<'a> {
    pub(super) device: &'a Arc<Device>,
    pub(super) context: Arc<EvdContext>,
    /// Queue length, as [`queue_length`] returns it.
    pub(super) qlen: u32,
    pub(super) flags: Flags,
    pub(super) placement: Placement,
}

/// Result of [`Evd::query`].
pub(crate) struct Param {
    pub(crate) qlen: u32,
    pub(crate) flags: Flags,
    pub(crate) queued: u32,
    /// Handle of the CNO, or 0.
    pub(crate) cno: u64,
    /// `DAT_EVD_STATE`.
    pub(crate) state: u32,
    /// Completion vector of the first completion queue.
    pub(crate) vector: u32,
    /// Number of completion queues.
    pub(crate) queues: u32,
}

impl Evd {
    /// Creates an EVD and puts it into the table: `dat_evd_create`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(super) fn create(evds: &Arc<Objects<Self>>, config: Config<'_>) -> DatResult<Arc<Self>> {
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
    fn build(handle: u64, config: Config<'_>) -> DatResult<Arc<Self>> {
        let (storage, length) = Words::for_queue(&config.context.user, config.qlen)?;
        let (ring, producer, slots) = Ring::new(storage, length).ok_or(DatError::internal())?;
        Ok(Arc::pin_init(
            pin_init!(Self {
                handle,
                flags: config.flags,
                queue <- EventQueue::new(config.qlen, ring, producer),
                consumer <- new_mutex!(
                    Consumer {
                        slots,
                        cqs: Cqs::none(),
                        known_taken: 0,
                        skipped_drain: false,
                    },
                    "Evd::consumer"
                ),
                cqs: CqState::new(config.placement),
                wakeup <- Wakeup::new(),
                pump <- new_work!("Evd::pump"),
                context: config.context,
                users: UseCount::none(),
                is_freed: AtomicBool::new(false),
                _counted: Counted::new(census::Kind::Evd),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Returns whether a thread waits.
    pub(in crate::dat) fn has_waiter(&self) -> bool {
        self.wakeup.waiter.is_taken()
    }

    /// Returns the parameters: `dat_evd_query`.
    pub(crate) fn query(self: &Arc<Self>) -> Param {
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
        // No call takes an event with the lock held, so the count is exact.
        let mut consumer = self.consumer.lock();
        self.note_taken(&mut consumer);
        // Another call may have noted what the process has taken, without queueing the pump.
        self.queue_pump_if_needed();
        Param {
            qlen: self.qlen(),
            flags: self.flags,
            queued: self.queued(),
            cno,
            state: enabled | waitable | self.config(),
            vector: self.cqs.placement.first(),
            queues: consumer.cqs.count(),
        }
    }

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Returns the streams that may feed the EVD.
    pub(super) fn flags(&self) -> Flags {
        self.flags
    }

    /// Returns the queue length: the limit on the events that a consumer lets queue up.
    fn qlen(&self) -> u32 {
        self.queue.qlen.load_acquire()
    }
}

impl Object for Evd {
    const KIND: HandleKind = HandleKind::Evd;
    const INVALID: Subtype = Subtype::InvalidHandleEvdRequest;

    /// Checks whether the EVD is unused.
    ///
    /// # Errors
    ///
    /// INVALID_STATE
    ///
    /// * for the asynchronous EVD of the adapter;
    /// * while an object reports to the EVD, or if the caller is in an upcall of the EVD;
    /// * while a thread waits.
    fn may_free(&self) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        if self.context.async_evd.is_none() {
            refused(Subtype::InvalidStateEvdAsync)
        } else if self.users.any() || self.is_called_by_me() {
            refused(Subtype::InvalidStateEvdInUse)
        } else if self.wakeup.waiter.is_taken() {
            refused(Subtype::InvalidStateEvdWaiter)
        } else {
            Ok(())
        }
    }

    fn is_freed(&self) -> bool {
        self.is_freed.load_acquire()
    }

    fn hide(&self) -> bool {
        self.is_freed.swap(true);
        true
    }

    /// Implements `dat_evd_free`. The EVD stays in the table until no upcall is in progress, so
    /// that a close of the adapter waits for these upcalls, too.
    fn free(objects: &Objects<Self>, handle: u64) -> DatResult {
        let freeing = objects.begin_free();
        let evd = objects.check(handle, |evd| {
            evd.may_free()?;
            evd.hide();
            Ok(())
        })?;
        evd.shutdown(freeing);
        objects.remove_freed(handle);
        Ok(())
    }

    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.end();
    }
}

impl Usable for Evd {
    fn users(&self) -> &UseCount {
        &self.users
    }
}
