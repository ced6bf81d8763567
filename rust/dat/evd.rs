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
mod context;
mod cqs;
mod create;
mod dequeue;
mod drain;
mod end;
mod file;
mod flags;
mod free;
mod mapped;
mod post_se;
mod pump;
mod query;
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
        Invocation,
        Policy,
        Upcall,
        UpcallContext,
        UpcallReason, //
    },
    wait::deadline,
};

pub(super) use self::{
    context::{
        CompletionTarget,
        EvdContext, //
    },
    cqs::{
        placement,
        queue_length, //
    },
    create::Config,
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
use super::base::UseCount;
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicBool,
        ring, //
    },
    sys::{
        census::Counted,
        lock::ContextLock,
        user::FixedCharge, //
    },
};
use kernel::workqueue::Work;

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
    consumer: ContextLock<Consumer>,
    cqs: CqState,
    #[pin]
    wakeup: Wakeup,
    #[pin]
    pump: Work<Evd>,
    context: Arc<EvdContext>,
    uses: UseCount,
    /// The EVD was freed. It is in the table until no upcall is in progress.
    is_freed: AtomicBool,
    _counted: Counted,
    _memory: FixedCharge,
}

impl Evd {
    /// Returns whether a thread waits.
    pub(in crate::dat) fn has_waiter(&self) -> bool {
        self.wakeup.waiter.is_taken()
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
