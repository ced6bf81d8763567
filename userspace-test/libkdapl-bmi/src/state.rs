// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The engine and its home, under one lock.

use crate::bmi::engine::{
    Bucket, Connects, EndsEndpoints, Engine, Entry, Op, OpId, Peer, Post, RailId, Storage, LINKS,
    MAX_CONTEXTS,
};
use crate::context::Completion;
use crate::error::{Failure, Result};
use crate::home::{DatHome, EpTask, Parts, Report};
use crate::options::{milliseconds, Options};
use crate::wait::UNEXPECTED_PLACE;
use libkdapl::{AsyncEvent, Event};
use std::time::Instant;

/// Buckets for matching. The number stays, so it is that of a busy server.
const BUCKETS: usize = 4096;

/// Milliseconds between two ticks of the engine.
pub(crate) const TICK: u64 = 500;

/// Storage in vectors.
pub(crate) struct Vectors;

impl Storage for Vectors {
    type Ops = Vec<Entry<Op, LINKS>>;
    type Peers = Vec<Entry<Peer, 1>>;
    type Buckets = Vec<Bucket>;
}

/// All of an instance that its lock protects.
pub(crate) struct State {
    pub(crate) engine: Engine<Vectors>,
    pub(crate) home: DatHome,
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
    start: Instant,
    ticked: u64,
}

impl State {
    pub(crate) fn new(home: DatHome, options: &Options) -> Result<Self> {
        // Some devices want more rights than local ones for the target of a read over iWARP.
        let pull = options.pull && !home.devices.use_iwarp();
        let config = options.config(pull, home.devices.count());
        let buckets = vec![Bucket::new(); BUCKETS];
        Ok(Self {
            engine: Engine::new(config, Vec::new(), Vec::new(), buckets)?,
            home,
            posted: [0; MAX_CONTEXTS],
            closing: 0,
            ops: 0,
            peers: 0,
            session: config.window.sum() * u32::from(config.rails),
            start: Instant::now(),
            ticked: 0,
        })
    }

    /// Makes room for an operation, a peer and a session.
    pub(crate) fn make_room(&mut self) {
        while self.engine.room() <= self.session {
            self.ops = self.ops * 2 + 256;
            self.engine.grow_ops((0..self.ops).map(|_| Entry::vacant()).collect());
        }
        if self.engine.census().1 as usize >= self.peers {
            self.peers = self.peers * 2 + 16;
            self.engine.grow_peers((0..self.peers).map(|_| Entry::vacant()).collect());
        }
    }

    /// Posts an operation. It may be complete on return.
    pub(crate) fn post(&mut self, post: Post, parts: Parts, sends: bool) -> Result<OpId> {
        if self.home.is_lost() {
            return Err(Failure::DeviceLost.into());
        }
        self.engine.check(&Post { length: parts.length() as u64, ..post })?;
        self.make_room();
        let limit = self.engine.unexpected_limit();
        let held = self.home.hold(parts, sends, limit);
        let held = held.map_err(|error| self.home.post_error(error))?;
        let post = Post { length: held.parts.length() as u64, fragments: held.fragments(), ..post };
        let id = match self.engine.post(post) {
            Ok(id) => id,
            Err(error) => {
                self.home.release(held, 0);
                return Err(error.into());
            }
        };
        self.posted[usize::from(post.context)] += 1;
        self.home.held.insert(id, held);
        self.engine.start(&mut self.home, id);
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

    /// Takes the result of an operation, if it has succeeded.
    pub(crate) fn test_successful(&mut self, op: OpId, context: u8) -> Option<Completion> {
        self.engine.has_succeeded(op).then(|| self.test(op, context))?
    }

    /// Takes the oldest result of a context.
    pub(crate) fn test_context(&mut self, context: u8) -> Option<Completion> {
        let completion = self.engine.test_context(context)?;
        Some(self.complete(completion, context))
    }

    fn complete(&mut self, done: crate::bmi::engine::Completion, context: u8) -> Completion {
        let copied = done.error.is_none() && !self.is_closing(context);
        self.home.finish(done.op, if copied { done.actual as usize } else { 0 });
        let posted = &mut self.posted[usize::from(context)];
        *posted = posted.saturating_sub(1);
        done.into()
    }

    /// Closes a context: cancels its operations, and frees it when they have ended.
    pub(crate) fn close_context(&mut self, context: u8) {
        self.closing |= 1 << context;
        let of_context = |op: &&OpId| self.engine.context_of(**op) == Some(context);
        let ops: Vec<_> = self.home.held.keys().filter(of_context).copied().collect();
        for op in ops {
            self.engine.cancel(&mut self.home, op);
        }
        self.settle();
        self.discard(context);
    }

    /// Discards the results of a closing context.
    fn discard(&mut self, context: u8) {
        while self.test_context(context).is_some() {}
        if self.posted[usize::from(context)] == 0 {
            self.closing &= !(1 << context);
            self.home.wakes |= 1 << UNEXPECTED_PLACE;
            self.engine.close_context(context);
        }
    }

    /// Returns whether a context waits for the ends of its operations.
    pub(crate) fn is_closing(&self, context: u8) -> bool {
        self.closing & (1 << context) != 0
    }

    /// Passes all results of requests to the engine.
    pub(crate) fn settle(&mut self) {
        loop {
            while let Some(report) = self.home.reports.pop_front() {
                self.report(report);
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
            if !self.engine.give_up_idle(&mut self.home) {
                self.home.fail_postponed();
            }
        }
    }

    fn report(&mut self, report: Report) {
        let Self { engine, home, .. } = self;
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

    /// Discards the results of contexts that are closing.
    pub(crate) fn discard_closing(&mut self) {
        let mut left = self.closing;
        while left != 0 {
            self.discard(left.trailing_zeros() as u8);
            left &= left - 1;
        }
    }

    /// Continues after a task of the thread. Returns the next task.
    pub(crate) fn next_task(&mut self, done: Option<(RailId, bool)>) -> Option<(RailId, EpTask)> {
        if let Some((rail, succeeded)) = done {
            self.home.task_done(rail, succeeded);
            self.settle();
        }
        self.home.endings.take()
    }

    fn now(&self) -> u64 {
        milliseconds(self.start.elapsed())
    }

    /// Returns the milliseconds until the next tick.
    pub(crate) fn until_tick(&self) -> u64 {
        (self.ticked + TICK).saturating_sub(self.now())
    }

    /// Takes the asynchronous events. Most concern an Endpoint whose connection reports its end,
    /// too.
    fn take_async_events(&mut self) {
        let mut lost = Vec::new();
        for (number, device) in self.home.devices.all() {
            while let Ok((event, _)) = device.adapter.ia.async_evd().dequeue() {
                if matches!(event, Event::Async { event: AsyncEvent::IaCatastrophic, .. }) {
                    lost.push(number);
                }
            }
        }
        for device in lost {
            self.home.lose_device(device);
        }
    }

    /// Gives up a device whose events can no longer be taken: ends its connections.
    pub(crate) fn fail_device(&mut self, device: u8) {
        self.home.lose_device(device);
        self.home.close_rails_of(device);
        self.settle();
    }

    /// Returns whether all devices were removed, and no result of a context will come.
    pub(crate) fn expects_nothing(&self, context: u8) -> bool {
        self.home.is_lost() && self.posted[usize::from(context)] == 0
    }

    /// Lets time pass.
    pub(crate) fn tick(&mut self) {
        let now = self.now();
        if now < self.ticked + TICK {
            return;
        }
        self.ticked = now;
        self.take_async_events();
        self.home.tick_postponed();
        self.engine.tick(&mut self.home, now);
        self.settle();
        let Self { engine, home, .. } = self;
        home.connections.routes.places.retain(|peer, _| engine.phase(*peer).is_some());
    }
}
