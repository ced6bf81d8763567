// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The engine and its home, under one lock.

use crate::{
    engine::{
        Bucket,
        Completion,
        Connects,
        EndsEndpoints,
        Engine,
        Entry,
        OpId,
        PeerId,
        Post,
        RailId,
        Role,
        MAX_CONTEXTS, //
    },
    home::{
        EpTask,
        Fragment,
        Held,
        KernelHome,
        Report,
        Stashed,
        Step,
        UNEXPECTED_PLACE, //
    },
    options::Options,
    storage::{
        filled,
        Vectors, //
    },
};
use kernel::prelude::*;

/// Buckets for matching. The number stays, so it is that of a busy server.
const BUCKETS: usize = 4096;

/// All of the instance that its lock protects.
pub(crate) struct State {
    pub(crate) engine: Engine<Vectors>,
    pub(crate) home: KernelHome,
    /// Operations of each context that were not taken.
    posted: [usize; MAX_CONTEXTS],
    /// Contexts that are closing, a bit for each. Their results are discarded, and they are free
    /// after the last one.
    closing: u32,
    /// Entries of the engine's storage.
    ops: usize,
    peers: usize,
    /// Entries of operations that a session needs.
    session: u32,
}

/// Unexpected message.
pub(crate) struct Unexpected {
    pub(crate) peer: PeerId,
    pub(crate) tag: i32,
    pub(crate) message: Stashed,
}

impl State {
    pub(crate) fn new(home: KernelHome, options: &Options) -> Result<Self> {
        // Some devices want more rights than local ones for the target of a read over iWARP.
        let config = options.config(!home.devices.use_iwarp(), home.devices.count());
        let buckets = filled(BUCKETS, Bucket::new)?;
        let engine = Engine::new(config, KVVec::new(), KVVec::new(), buckets);
        Ok(Self {
            engine: engine.map_err(|_| EINVAL)?,
            home,
            posted: [0; MAX_CONTEXTS],
            closing: 0,
            ops: 0,
            peers: 0,
            session: options.session(),
        })
    }

    /// Makes room for an operation, a peer and a session.
    pub(crate) fn make_room(&mut self) -> Result {
        while self.engine.room() <= self.session {
            let ops = self.ops * 2 + 256;
            let storage = filled(ops, Entry::vacant)?;
            self.home.make_room(ops, self.peers)?;
            self.engine.grow_ops(storage);
            self.ops = ops;
        }
        if self.engine.census().1 as usize >= self.peers {
            let peers = self.peers * 2 + 16;
            let storage = filled(peers, Entry::vacant)?;
            self.home.make_room(self.ops, peers)?;
            self.engine.grow_peers(storage);
            self.peers = peers;
        }
        Ok(())
    }

    /// Posts an operation, unless its context is closing. It may be complete on return.
    pub(crate) fn post(&mut self, post: Post, fragments: KVec<Fragment>) -> Result<OpId> {
        if self.is_closing(post.context) {
            return Err(EINVAL);
        }
        if self.home.is_lost() {
            return Err(ENODEV);
        }
        self.make_room()?;
        let mut held = Held::new(fragments, post.role != Role::Receive);
        let limit = self.engine.unexpected_limit();
        self.home.prepare_early(&mut held, limit)?;
        let post = Post {
            length: held.length() as u64,
            fragments: held.count(),
            ..post
        };
        let posted = self.engine.post(post);
        let id = posted.map_err(|error| Error::from_errno(-error.errno()))?;
        if let Some(count) = self.posted.get_mut(usize::from(post.context)) {
            *count += 1;
        }
        self.home.insert_held(id, held);
        self.engine.start(&mut Step::new(&mut self.home), id);
        self.settle();
        Ok(id)
    }

    /// Takes the result of an operation.
    pub(crate) fn test(&mut self, op: OpId, context: u8) -> Option<Completion> {
        if self.engine.context_of(op) != Some(context) {
            return None;
        }
        let completion = self.engine.test(op)?;
        Some(self.complete(completion, context))
    }

    /// Returns whether a context is open.
    pub(crate) fn has_context(&self, context: u8) -> bool {
        self.engine.is_open(context) && !self.is_closing(context)
    }

    /// Takes the oldest result of a context.
    pub(crate) fn test_context(&mut self, context: u8) -> Option<Completion> {
        let completion = self.engine.test_context(context)?;
        Some(self.complete(completion, context))
    }

    fn complete(&mut self, done: Completion, context: u8) -> Completion {
        let copied = done.error.is_none() && !self.is_closing(context);
        self.home
            .finish(done.op, if copied { done.actual as usize } else { 0 });
        if let Some(count) = self.posted.get_mut(usize::from(context)) {
            *count = count.saturating_sub(1);
        }
        done
    }

    /// Cancels an operation of a context, which has to be taken nevertheless.
    pub(crate) fn cancel(&mut self, op: OpId, context: u8) -> Result {
        if self.engine.context_of(op) != Some(context) {
            return Err(EINVAL);
        }
        self.engine.cancel(&mut Step::new(&mut self.home), op);
        self.settle();
        Ok(())
    }

    /// Takes the oldest unexpected message.
    pub(crate) fn take_unexpected(&mut self) -> Option<Unexpected> {
        let taken = self
            .engine
            .take_unexpected(&mut Step::new(&mut self.home))?;
        let message = self.home.take_stashed(taken.op);
        self.settle();
        Some(Unexpected {
            peer: taken.peer,
            tag: taken.tag,
            message: message.unwrap_or(Stashed::Copy(KVVec::new())),
        })
    }

    /// Drops a reference to a peer.
    pub(crate) fn release(&mut self, peer: PeerId) {
        self.engine.release(&mut Step::new(&mut self.home), peer);
        self.settle();
    }

    /// Ends what waits for a device, which was removed.
    pub(crate) fn lose_device(&mut self, device: u8) {
        self.home.lose_device(device);
        self.settle();
    }

    /// Returns whether all devices were removed, and no result of a context will come.
    pub(crate) fn expects_nothing(&self, context: u8) -> bool {
        self.home.is_lost() && self.posted.get(usize::from(context)) == Some(&0)
    }

    /// Ends the connection of a peer at once.
    pub(crate) fn disconnect(&mut self, peer: PeerId) {
        self.engine.disconnect(&mut Step::new(&mut self.home), peer);
        self.settle();
    }

    /// Closes a context: cancels its operations, and frees it when they have ended.
    pub(crate) fn close_context(&mut self, context: u8) {
        self.closing |= 1 << context;
        for place in 0..self.home.places() {
            let op = self.home.op_at(place);
            if let Some(op) = op.filter(|op| self.engine.context_of(*op) == Some(context)) {
                self.engine.cancel(&mut Step::new(&mut self.home), op);
            }
        }
        self.settle();
        self.discard(context);
    }

    /// Discards the results of a closing context.
    fn discard(&mut self, context: u8) {
        self.home.wakes |= 1 << context;
        while self.test_context(context).is_some() {}
        if self.posted.get(usize::from(context)) == Some(&0) {
            self.closing &= !(1 << context);
            self.home.wakes |= 1 << UNEXPECTED_PLACE;
            self.engine.close_context(context);
        }
    }

    /// Returns whether a context waits for the ends of its operations.
    pub(crate) fn is_closing(&self, context: u8) -> bool {
        self.closing & (1 << context) != 0
    }

    /// Discards the results of contexts that are closing.
    pub(crate) fn discard_closing(&mut self) {
        let mut left = self.closing;
        while left != 0 {
            self.discard(left.trailing_zeros() as u8);
            left &= left - 1;
        }
    }

    /// Passes all results of requests to the engine.
    pub(crate) fn settle(&mut self) {
        loop {
            while !self.home.reports.is_empty() {
                if let Ok(report) = self.home.reports.remove(0) {
                    self.pass_on(report);
                }
            }
            if self.home.retry_if_freed() {
                continue;
            }
            if self.engine.take_stay() {
                self.home.session_stays();
            }
            if !self.home.postponed.shortage.take() {
                return;
            }
            if !self.engine.give_up_idle(&mut Step::new(&mut self.home)) {
                self.home.fail_postponed();
            }
        }
    }

    fn pass_on(&mut self, report: Report) {
        let Self { engine, home, .. } = self;
        let home = &mut Step::new(home);
        match report {
            Report::Closed(rail, reason) => engine.closed(home, rail, reason),
            Report::Completed(rail, cookie, success) => {
                engine.completed(home, rail, cookie, success);
            }
            Report::Exposed(place, result) => engine.exposed(home, place, result),
            Report::Withdrawn(place) => engine.withdrawn(home, place),
            Report::Moved(rail, device) => engine.place(rail, device),
        }
    }

    /// Continues after a task of the work item. Returns the next task.
    pub(crate) fn next_task(&mut self, done: Option<(RailId, bool)>) -> Option<(RailId, EpTask)> {
        if let Some((rail, succeeded)) = done {
            self.home.task_done(rail, succeeded);
            self.settle();
        }
        self.home.endings.take()
    }

    /// Lets time pass. `now` is in milliseconds.
    pub(crate) fn tick(&mut self, now: u64) {
        self.home.now = now;
        self.home.tick_postponed();
        self.engine.tick(&mut Step::new(&mut self.home), now);
        self.settle();
    }
}
