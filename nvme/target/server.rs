// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handler of a queue's events: receives commands, moves their data, gives them to the NVMe core.

use crate::{
    capsule::Capsule,
    nvmet::{
        Idle,
        Started,
        MAX_TRANSFER, //
    },
    queue::Queue,
    slots::Slots,
    wire::{
        in_capsule,
        is_write,
        Sgl,
        Status,
        COMPLETION_SIZE, //
    },
};
use kdat::{
    Completion,
    Connection,
    Dto,
    Event,
    Handler,
    Operation,
    Remote, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// Handler of a queue's events. They come one at a time.
pub(crate) struct Server {
    queue: Arc<Queue>,
    idle: KVec<Idle>,
    slots: Slots,
    /// Commands that wait for requests, the oldest first.
    waiting: KVec<Started>,
}

impl Handler for Server {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Dto(completion) => self.completed(completion),
            Event::Connection(_, Connection::Established) => {}
            Event::Connection(..) => self.queue.release(),
            _ => {}
        }
    }
}

impl Server {
    /// Creates the handler of a queue whose Endpoint has `requests` requests.
    pub(crate) fn new(queue: Arc<Queue>, idle: KVec<Idle>, requests: u32) -> Self {
        Self {
            queue,
            idle,
            slots: Slots::new(requests),
            waiting: KVec::new(),
        }
    }

    /// Takes the completion of a DTO. One that failed, other than by the end of the connection,
    /// ends the controller.
    fn completed(&mut self, completion: Completion) {
        let has_failed = !completion.is_success() && !completion.is_flushed();
        match completion.operation {
            Operation::Receive => self.received(completion),
            Operation::Read => self.read(completion),
            Operation::Send => self.sent(completion),
            _ => {}
        }
        if has_failed {
            self.fail();
        }
    }

    /// Ends the controller with all its queues, or a queue that has none.
    fn fail(&self) {
        if !self.queue.submission.fatal_error() {
            self.queue.release();
        }
    }

    /// Starts the command of a capsule.
    fn received(&mut self, completion: Completion) {
        if !completion.is_success() {
            return;
        }
        let Some(capsule) = Capsule::of(completion) else {
            return;
        };
        let Some(bytes) = capsule.command() else {
            pr_warn!("a capsule is shorter than a command\n");
            return self.fail();
        };
        let queue = self.queue.clone();
        let Some(idle) = self.take_idle() else {
            // The host times the command out.
            let _ = queue.ep.post(capsule.receive());
            return;
        };
        let port = queue.port.number;
        if let Some(started) = idle.start(&queue.submission, port, capsule, &bytes) {
            self.prepare(started);
        }
    }

    /// Returns an unused command, or allocates one: a host that is slow to receive responses may
    /// have more outstanding than there are receives.
    fn take_idle(&mut self) -> Option<Idle> {
        if let Some(idle) = self.idle.pop() {
            return Some(idle);
        }
        let response = self.queue.adapter.pz.buffer(COMPLETION_SIZE).ok()?;
        Idle::new(response).ok()
    }

    /// Finds the data of a command, and executes it as soon as there are requests for it.
    fn prepare(&mut self, mut started: Started) {
        if let Err(status) = self.describe(&mut started) {
            return self.refuse(started, status);
        }
        let needed = started.transfers().saturating_add(1);
        if self.waiting.is_empty() && self.slots.reserve(needed) {
            started.reserve(needed);
            return self.run(started);
        }
        if self.waiting.reserve(1, GFP_KERNEL).is_err() {
            return self.refuse(started, Status::INTERNAL);
        }
        started.reserve(needed);
        // There is room.
        let _ = self.waiting.push_within_capacity(started);
    }

    /// Answers a command with a status, without executing it.
    fn refuse(&mut self, mut started: Started, status: Status) {
        let reserved = self.slots.reserve(1);
        started.reserve(reserved.into());
        started.complete(status);
    }

    /// Gives a command the memory that its descriptor asks for.
    fn describe(&self, started: &mut Started) -> Result<(), Status> {
        let adapter = &self.queue.adapter;
        match Sgl::of_command(started.bytes())? {
            Sgl::InCapsule { length: 0, .. } | Sgl::Keyed { length: 0, .. } => Ok(()),
            Sgl::InCapsule { offset, length } => {
                if !is_write(started.bytes()) {
                    return Err(Status::INVALID_FIELD);
                }
                let offered = self.queue.port.settings.inline;
                let place = in_capsule(offset, length, started.received(), offered)?;
                started.use_capsule(place)
            }
            Sgl::Keyed { length, .. } if length > MAX_TRANSFER => Err(Status::INVALID_FIELD),
            Sgl::Keyed {
                address,
                length,
                key: context,
                invalidate,
            } => {
                let remote = Remote {
                    address,
                    length,
                    context,
                };
                let segments = adapter.segments();
                started
                    .use_remote(&adapter.pz, remote, invalidate, segments)
                    .map_err(|_| Status::INTERNAL)
            }
        }
    }

    /// Reads the data that a command brings, and executes it otherwise.
    fn run(&mut self, started: Started) {
        match started.remote() {
            Some(remote) if is_write(started.bytes()) => self.start_read(started, remote),
            _ => started.execute(),
        }
    }

    fn start_read(&mut self, started: Started, remote: Remote) {
        let read = Dto::read_memory(started.into_memory(), remote);
        let Err(refused) = self.queue.ep.post(read) else {
            return;
        };
        match refused.memory.and_then(Started::returned) {
            Some(started) => started.complete(Status::DATA_TRANSFER_ERROR),
            // A part was posted, so that the command cannot end before the queue.
            None => self.fail(),
        }
    }

    /// Executes a command whose data have arrived.
    fn read(&mut self, completion: Completion) {
        let is_success = completion.is_success();
        let Some(mut started) = completion.memory.and_then(Started::returned) else {
            return;
        };
        self.slots.release(started.transfers());
        started.reserve(started.reserved().saturating_sub(started.transfers()));
        if is_success {
            started.execute();
        }
        self.run_waiting();
    }

    /// Takes a command back whose response was sent.
    fn sent(&mut self, completion: Completion) {
        let Completion { memory, buffer, .. } = completion;
        let Some((idle, reserved)) = memory.and_then(|memory| Idle::returned(memory, buffer))
        else {
            return;
        };
        self.slots.release(reserved);
        // One that was allocated beyond the first is dropped.
        let _ = self.idle.push_within_capacity(idle);
        self.run_waiting();
    }

    /// Runs the oldest commands that wait, as far as there are requests for them.
    fn run_waiting(&mut self) {
        while let Some(first) = self.waiting.first() {
            if !self.slots.reserve(first.reserved()) {
                return;
            }
            match self.waiting.remove(0) {
                Ok(started) => self.run(started),
                Err(_) => return,
            }
        }
    }
}
