// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Home of the engine over `libkdapl`: executes the engine's requests with DAT objects.
//!
//! The engine calls [`DatHome`] while it changes its own state, so results are collected in
//! `reports` and passed to the engine afterwards.

mod binds;
mod buffers;
mod connections;
mod endings;
mod exposures;
mod memory;
mod messages;
mod receives;
mod transfers;

pub(crate) use endings::EpTask;
pub(crate) use memory::{Held, Parts};
pub(crate) use receives::RECEIVE;
pub(crate) use transfers::SILENT;

use crate::bmi::engine::{
    longer_queue, rejection, Body, Close, Cookie, EndsEndpoints, Error, Header, Hello, Home, OpId,
    Posted, RailId, Source, Transfer, Wanted, HEADER,
};
use crate::options::Options;
use crate::wait::UNEXPECTED_PLACE;
use binds::Binds;
use connections::Connections;
use endings::Endings;
use exposures::Exposures;
use libkdapl::{Cr, Ep, Evd, EvdFlags, Ia, IaQuery, Pz, Transport};
use memory::Scratch;
use messages::Messages;
use receives::Receives;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;

/// Segments of an RDMA request, also of devices that can have more.
const SEGMENTS: u32 = 16;

/// Length of the queue for asynchronous errors.
const ASYNC_EVENTS: i32 = 16;

/// Result of a request, to be passed to the engine.
#[derive(Debug)]
pub(crate) enum Report {
    Closed(RailId, Option<Error>),
    Completed(RailId, Cookie, bool),
    Exposed(OpId, Result<u16, Error>),
    Withdrawn(OpId),
}

/// Request that is posted on an Endpoint. Its number is the cookie of the DTO.
#[derive(Debug)]
pub(crate) enum Request {
    /// A message in a send buffer.
    Message(RailId, Cookie, messages::Slot),
    /// The last of several RDMA requests.
    Rdma(RailId, Cookie),
    /// A bind or an unbind for an operation.
    Bind(RailId, OpId),
}

/// An IA with what all connections share.
pub(crate) struct Adapter {
    pub(crate) ia: Ia,
    pub(crate) pz: Pz,
    /// All events: completions, connections, requests of peers.
    pub(crate) evd: Evd,
    /// Length of its queue. Completions beyond it wait in the device's queue.
    events: u32,
    pub(crate) limits: IaQuery,
}

impl Adapter {
    fn open(name: &str, events: u32) -> libkdapl::Result<Self> {
        let ia = Ia::open(name, ASYNC_EVENTS)?;
        let streams = EvdFlags::DTO
            | EvdFlags::CONNECTION
            | EvdFlags::CR
            | EvdFlags::RMR_BIND
            | EvdFlags::SOFTWARE;
        let evd = ia.create_evd(streams, i32::try_from(events).unwrap_or(i32::MAX))?;
        // So that a test that finds nothing is no system call. Without it, each is one.
        evd.map_events();
        Ok(Self { pz: ia.create_pz()?, evd, events, limits: ia.query()?, ia })
    }

    /// Lengthens the event queue if it is too short for so many Endpoints.
    fn make_room_for_events(&mut self, eps: usize) -> libkdapl::Result<()> {
        if let Some(events) = longer_queue(self.events, eps) {
            self.evd.resize(i32::try_from(events).unwrap_or(i32::MAX))?;
            self.events = events;
        }
        Ok(())
    }

    pub(crate) fn is_iwarp(&self) -> bool {
        self.limits.transport == Transport::IWarp
    }

    /// Returns the segments of RDMA writes and of RDMA reads.
    fn rdma_segments(&self) -> (u32, u32) {
        let limits = &self.limits.raw;
        let clamped = |limit: u32| limit.clamp(1, SEGMENTS);
        let writes = clamped(limits.max_iov_segments_per_rdma_write);
        (writes, clamped(limits.max_iov_segments_per_rdma_read))
    }

    /// Returns whether a message without a receive ends its connection, instead of waiting.
    fn needs_own_receives(&self) -> bool {
        self.is_iwarp() || self.limits.raw.max_srqs == 0
    }
}

/// The home.
pub(crate) struct DatHome {
    pub(crate) adapter: Adapter,
    pub(crate) connections: Connections,
    pub(crate) endings: Endings,
    pub(crate) receives: Receives,
    messages: Messages,
    exposures: Exposures,
    binds: Binds,
    scratch: Scratch,
    pub(crate) requests: Slab<Request>,
    /// Connection requests that the engine has not answered.
    pub(crate) crs: Slab<Cr>,
    /// Memory of the operations.
    pub(crate) held: FxHashMap<OpId, Held>,
    /// Messages that no receive has taken.
    pub(crate) stash: FxHashMap<OpId, Arc<Vec<u8>>>,
    /// The message that is being passed to the engine.
    pub(crate) message: Arc<Vec<u8>>,
    pub(crate) reports: VecDeque<Report>,
    /// Places with waiters to wake, a bit for each: the contexts, and unexpected messages.
    pub(crate) wakes: u32,
    /// The device was removed.
    pub(crate) is_lost: bool,
}

impl DatHome {
    pub(crate) fn open(name: &str, options: &Options) -> libkdapl::Result<Self> {
        let adapter = Adapter::open(name, options.events.into())?;
        Ok(Self {
            connections: Connections::new(options),
            endings: endings::queue(options.rails),
            receives: Receives::new(&adapter, options)?,
            messages: Messages::new(options),
            exposures: Exposures::default(),
            binds: Binds::default(),
            scratch: Scratch::default(),
            adapter,
            requests: Slab::new(),
            crs: Slab::new(),
            held: FxHashMap::default(),
            stash: FxHashMap::default(),
            message: Arc::default(),
            reports: VecDeque::new(),
            wakes: 0,
            is_lost: false,
        })
    }

    fn message_of(&self, from: Source) -> &[u8] {
        match from {
            Source::Message => &self.message,
            Source::Stash(op) => self.stash.get(&op).map_or(&[], |message| message.as_slice()),
        }
    }

    /// Returns the Endpoint of a rail, unless it is closed.
    fn ep(&self, rail: RailId) -> Option<Ep> {
        self.connections.ep(rail).cloned()
    }
}

impl Home for DatHome {
    fn connect(&mut self, rail: RailId, hello: &Hello) {
        self.begin_connect(rail, hello);
    }

    fn accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        self.begin_accept(request, rail, hello);
    }

    fn reject(&mut self, request: u64) {
        if let Some(mut cr) = self.crs.try_remove(request as usize) {
            // The peer may have given up.
            let _ = cr.reject(&rejection());
        }
    }

    fn disconnect(&mut self, rail: RailId, close: Close) {
        self.connections.forget_postponed(rail);
        self.begin_disconnect(rail, close);
    }

    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) {
        self.send_message(rail, cookie, header, body);
    }

    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted {
        self.post_transfer(rail, cookie, transfer)
    }

    fn expose(&mut self, op: OpId, rail: RailId, wanted: Wanted) {
        self.begin_expose(op, rail, wanted);
    }

    fn withdraw(&mut self, op: OpId) {
        self.begin_withdraw(op);
    }

    fn keep(&mut self, op: OpId, from: Source) {
        let body = self.message_of(from).get(HEADER..).unwrap_or_default();
        let remote = crate::bmi::engine::descriptors(body).collect();
        if let Some(held) = self.held.get_mut(&op) {
            held.remote = remote;
        }
    }

    fn deliver(&mut self, op: OpId, from: Source) {
        let body = self.message_of(from).get(HEADER..);
        if let (Some(held), Some(body)) = (self.held.get(&op), body) {
            held.parts.write(body);
        }
    }

    fn stash(&mut self, op: OpId) {
        self.stash.insert(op, self.message.clone());
    }

    fn discard(&mut self, op: OpId) {
        self.stash.remove(&op);
    }

    fn wake(&mut self, context: u8) {
        self.wakes |= 1 << context;
    }

    fn wake_unexpected(&mut self) {
        self.wakes |= 1 << UNEXPECTED_PLACE;
    }

    fn random(&mut self) -> u64 {
        crate::options::random()
    }
}
