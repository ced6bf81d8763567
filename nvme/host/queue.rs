// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queues: each is a connection with one Endpoint and one Event Dispatcher.
//!
//! A command has a slot, by its tag: a buffer for its capsule, and an LMR for its data.
//!
//! ```text
//!   submit()      register the data, send the capsule
//!   sent()        the capsule's buffer is back
//!   answered()    the response has come. It has invalidated the key, or invalidate() is posted
//!   invalidated() the invalidation has completed
//!
//!   The request is completed after the send and the response, when no registration is left.
//! ```

use crate::{
    core::{
        Answer,
        Data,
        Request, //
    },
    device::Device, //
};
use kdat::{
    Buffer,
    Ep,
    Evd,
    Fmr, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Release, //
        },
        Arc,
        Mutex, //
    },
};

/// Queue of a controller, connected or not.
#[pin_data]
pub(crate) struct Queue {
    /// Number of the queue; 0 is the admin queue.
    pub(crate) number: u16,
    /// The controller has accepted the Connect command.
    is_live: Atomic<bool>,
    /// Protects all of a connection. Not held while a request is completed, which may submit
    /// another one.
    #[pin]
    link: Mutex<Option<Link>>,
}

/// State of the command for asynchronous events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum AsyncEvent {
    /// The NVMe core has not asked for it.
    Unused,
    /// It is to be sent as soon as its capsule is back, or the queue has room.
    Wanted,
    /// The controller has it.
    Sent,
}

/// Connection of a queue. Fields are dropped in their order: after the Endpoint no device accesses
/// the memory of requests, and after the Event Dispatcher no handler runs.
pub(crate) struct Link {
    pub(crate) ep: Ep,
    _evd: Evd,
    pub(crate) slots: KVec<Slot>,
    /// Number of commands that may be sent before one ends.
    pub(crate) room: u16,
    pub(crate) async_event: AsyncEvent,
    /// The connection has ended or failed, so it takes no more commands.
    pub(crate) has_ended: bool,
    _device: Arc<Device>,
}

impl Link {
    /// Creates the connection of a queue with room for this number of commands.
    pub(crate) fn new(
        ep: Ep,
        evd: Evd,
        (slots, room): (KVec<Slot>, u16),
        device: Arc<Device>,
    ) -> Self {
        Self {
            ep,
            _evd: evd,
            slots,
            room,
            async_event: AsyncEvent::Unused,
            has_ended: false,
            _device: device,
        }
    }

    /// Takes the command of a tag if it has ended.
    pub(crate) fn finish(&mut self, tag: usize) -> Option<Done> {
        let done = self.slots.get_mut(tag)?.finish()?;
        self.room = self.room.saturating_add(1);
        Some(done)
    }
}

/// Slot of a command.
pub(crate) struct Slot {
    /// Memory of the capsule. A send has it while it is outstanding.
    pub(crate) capsule: Option<Buffer>,
    /// LMR for the data.
    pub(crate) fmr: Fmr<Data>,
    /// Command that is outstanding.
    pub(crate) busy: Option<Busy>,
}

/// Command that was sent.
pub(crate) struct Busy {
    pub(crate) request: Request,
    pub(crate) is_sent: bool,
    pub(crate) answer: Option<Answer>,
}

/// Command that has ended: its request is to be completed, without the queue's lock.
pub(crate) struct Done(Request, Answer);

impl Done {
    pub(crate) fn complete(self) {
        self.0.complete(self.1);
    }
}

impl Slot {
    /// Takes the command if it has ended.
    fn finish(&mut self) -> Option<Done> {
        let is_registered = self.fmr.is_registered();
        let has_ended = |busy: &mut Busy| busy.is_sent && busy.answer.is_some() && !is_registered;
        let busy = self.busy.take_if(has_ended)?;
        Some(Done(busy.request, busy.answer?))
    }
}

impl Queue {
    pub(crate) fn new(number: u16) -> Result<Arc<Self>> {
        let queue = pin_init!(Self {
            number,
            is_live: Atomic::new(false),
            link <- new_mutex!(None, "nvme_kdapl::Queue::link"),
        });
        Arc::pin_init(queue, GFP_KERNEL)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.is_live.load(Acquire)
    }

    /// Lets requests reach the queue.
    pub(crate) fn go_live(&self) {
        self.is_live.store(true, Release);
    }

    /// Notes that the connection has ended or failed. Context: process; sleeps.
    pub(crate) fn note_end(&self) {
        self.with_link(|link| link.has_ended = true);
    }

    /// Returns whether the queue has no connection, or one that has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.with_link(|link| link.has_ended).unwrap_or(true)
    }

    /// Stores the connection.
    pub(crate) fn set_link(&self, link: Link) {
        let former = self.link.lock().replace(link);
        drop(former);
    }

    /// Calls a function with the connection, if there is one.
    pub(crate) fn with_link<R>(&self, call: impl FnOnce(&mut Link) -> R) -> Option<R> {
        let mut link = self.link.lock();
        Option::as_mut(&mut link).map(call)
    }

    /// Ends the connection.
    pub(crate) fn stop(&self) {
        self.is_live.store(false, Release);
        // Not under the lock, which handlers take: the drop waits for them.
        let link = self.link.lock().take();
        drop(link);
    }
}
