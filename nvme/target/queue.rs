// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queues of hosts: from the accept to the release.

use crate::{
    adapter::Adapter,
    capsule::Capsule,
    nvmet::{
        cancel_delayed,
        workqueue,
        Answered,
        Answers,
        Idle,
        Queues,
        SubmissionQueue, //
    },
    port::Port,
    server::Server,
    wire::{
        ConnectReply,
        ConnectRequest,
        Depths,
        Reject,
        COMMAND_SIZE,
        COMPLETION_SIZE, //
    },
};
use kdat::{
    Cr,
    Dto,
    Ep,
    Evd,
    Streams, //
};
use kernel::{
    impl_has_delayed_work, impl_has_work, new_delayed_work, new_work,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Full, //
        },
        Arc,
        ArcBorrow, //
    },
    time::msecs_to_jiffies,
    workqueue::{
        DelayedWork,
        Work,
        WorkItem, //
    },
};

/// Events of a queue other than completions.
const CONNECTION_EVENTS: u32 = 8;

/// Work items of a queue.
const RESPOND: u64 = 0;
const RELEASE: u64 = 1;
const WATCH: u64 = 2;

/// Queue of a host.
#[pin_data]
pub(crate) struct Queue {
    /// Queue of the NVMe core, which its requests refer to.
    #[pin]
    pub(crate) submission: SubmissionQueue,
    answers: Answers,
    pub(crate) ep: Ep,
    evd: Evd,
    pub(crate) port: Arc<Port>,
    is_released: Atomic<bool>,
    #[pin]
    respond: Work<Self, RESPOND>,
    #[pin]
    release: Work<Self, RELEASE>,
    #[pin]
    watch: DelayedWork<Self, WATCH>,
    /// After the Endpoint and the dispatcher.
    pub(crate) adapter: Arc<Adapter>,
}

impl_has_work! {
    impl HasWork<Self, RESPOND> for Queue { self.respond }
    impl HasWork<Self, RELEASE> for Queue { self.release }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, WATCH> for Queue { self.watch }
}

impl Queue {
    /// Accepts the request of a host for a queue.
    ///
    /// # Errors
    ///
    /// The status of the reject, and the request if it is not answered.
    pub(crate) fn accept(
        port: &Arc<Port>,
        adapter: &Arc<Adapter>,
        request: Cr,
        connect: &ConnectRequest,
    ) -> Result<(), (Reject, Cr)> {
        let created = connect
            .depths()
            .and_then(|depths| Self::create(port, adapter, depths, connect.qid));
        let (queue, depths) = match created {
            Ok(created) => created,
            Err(reject) => return Err((reject, request)),
        };
        let reply = ConnectReply {
            target_receives: depths.commands,
        };
        if let Err(error) = request.accept(&queue.ep, &reply.to_bytes()) {
            pr_warn!("a queue is not accepted: {error}\n");
            queue.release();
        }
        Ok(())
    }

    /// Creates a queue with its receives.
    fn create(
        port: &Arc<Port>,
        adapter: &Arc<Adapter>,
        depths: Depths,
        qid: u16,
    ) -> Result<(Arc<Self>, Depths), Reject> {
        let requests = adapter.requests(depths).ok_or(Reject::NoResources)?;
        let inline = if qid == 0 { 0 } else { port.settings.inline };
        let made = Self::new(port, adapter, depths, (requests, inline)).and_then(|queue| {
            let started = queue.start(depths, requests, inline);
            match started {
                Ok(()) => Ok((queue, depths)),
                Err(error) => {
                    // The handler has a reference to the queue.
                    queue.release();
                    Err(error)
                }
            }
        });
        made.map_err(|error| {
            pr_warn!("a queue cannot be created: {error:?}\n");
            Reject::NoResources
        })
    }

    fn new(
        port: &Arc<Port>,
        adapter: &Arc<Adapter>,
        depths: Depths,
        (requests, inline): (u32, usize),
    ) -> Result<Arc<Self>> {
        // Responses without a reservation have requests of their own.
        let requests = requests + u32::from(depths.commands);
        let events = u32::from(depths.commands) + requests + CONNECTION_EVENTS;
        let streams = Streams::DTO | Streams::CONNECTION;
        let evd = adapter.ia.create_evd(streams, events)?;
        let attributes = adapter.attributes(depths, requests, inline);
        let ep = adapter.pz.create_ep((&evd).into(), Some(&attributes))?;
        Arc::pin_init(
            try_pin_init!(Self {
                submission <- SubmissionQueue::new(),
                answers: Answers::new(),
                ep,
                evd,
                port: port.clone(),
                is_released: Atomic::new(false),
                respond <- new_work!("Queue::respond"),
                release <- new_work!("Queue::release"),
                watch <- new_delayed_work!("Queue::watch"),
                adapter: adapter.clone(),
            }),
            GFP_KERNEL,
        )
    }

    /// Posts the receives, and starts to handle events.
    fn start(self: &Arc<Self>, depths: Depths, requests: u32, inline: usize) -> Result {
        Queues::add(self)?;
        self.post_receives(depths, inline)?;
        let pz = &self.adapter.pz;
        let responses = pz.buffers(usize::from(depths.commands) * 2, COMPLETION_SIZE)?;
        let mut idle = KVec::with_capacity(responses.len(), GFP_KERNEL)?;
        for response in responses {
            idle.push(Idle::new(response)?, GFP_KERNEL)?;
        }
        let server = Server::new(self.clone(), idle, requests);
        self.evd.set_handler(server)?;
        self.start_watch();
        Ok(())
    }

    /// Starts the watch. A release that has begun may have looked for it before.
    fn start_watch(self: &Arc<Self>) {
        let patience = msecs_to_jiffies(crate::connect_timeout_ms());
        let _ = workqueue().enqueue_delayed::<Arc<Self>, WATCH>(self.clone(), patience);
        if self.is_released.load(Acquire) {
            cancel_delayed::<Self, WATCH>(self);
        }
    }

    fn post_receives(&self, depths: Depths, inline: usize) -> Result {
        let (pz, depth) = (&self.adapter.pz, usize::from(depths.commands));
        let mut data = match inline {
            0 => KVec::new(),
            _ => pz.buffers(depth, inline)?,
        };
        for command in pz.buffers(depth, COMMAND_SIZE)? {
            self.ep.post(Capsule::first(command, data.pop())?)?;
        }
        Ok(())
    }

    /// Queues the response of a command. Context: any.
    pub(crate) fn answer(self: ArcBorrow<'_, Self>, answered: Answered) {
        if self.answers.push(answered) {
            let _ = workqueue().enqueue::<Arc<Self>, RESPOND>(self.into());
        }
    }

    /// Posts the receive that replaces that of a command, and the response, after the data. If that
    /// is not possible the queue ends, as the host would wait for it.
    fn respond(self: &Arc<Self>, mut answered: Answered) {
        if let Some(capsule) = answered.take_capsule() {
            // A queue that is disconnected needs no receives.
            let _ = self.ep.post(capsule.receive());
        }
        let Some(response) = answered.take_response() else {
            return;
        };
        let mut send = Dto::send(response, COMPLETION_SIZE);
        if let Some(key) = answered.key() {
            send = send.invalidating(key);
        }
        if let Some(remote) = answered.destination() {
            send = send.after_writing_to(remote);
        }
        if let Err(refused) = self.ep.post(send.carrying(answered.into_memory())) {
            pr_debug!("a response is not posted: {}\n", refused.error);
            self.release();
        }
    }

    /// Ends the queue, by a work item. Context: any.
    pub(crate) fn release(self: &Arc<Self>) {
        if !self.is_released.xchg(true, Full) {
            let _ = workqueue().enqueue::<Arc<Self>, RELEASE>(self.clone());
        }
    }
}

impl WorkItem<RESPOND> for Queue {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        for answered in this.answers.take() {
            this.respond(answered);
        }
    }
}

impl WorkItem<RELEASE> for Queue {
    type Pointer = Arc<Self>;

    /// Ends the connection, the upcalls, and the queue of the core, in this order: after the first
    /// no DTO has a command, after the second no command is started, and after the third all are
    /// answered.
    fn run(this: Arc<Self>) {
        cancel_delayed::<Self, WATCH>(&this);
        Queues::remove(&this);
        // On an error the close of the adapter frees both.
        let _ = this.ep.free();
        let _ = this.evd.free();
        this.submission.destroy();
    }
}

impl WorkItem<WATCH> for Queue {
    type Pointer = Arc<Self>;

    /// Ends a queue whose host has not connected it to a controller: the controller's keep-alive
    /// does not watch it.
    fn run(this: Arc<Self>) {
        if this.submission.controller().is_none() {
            pr_warn!("a host has connected to no controller in time\n");
            this.release();
        }
    }
}
