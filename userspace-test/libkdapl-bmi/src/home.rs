// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Home of the engine over `libkdapl`: executes the engine's requests with DAT objects.
//!
//! The engine calls [`DatHome`] while it changes its own state, so results are collected in
//! `reports` and passed to the engine afterwards.

mod binds;
mod buffers;
mod connections;
mod devices;
mod endings;
mod exposures;
mod memory;
mod messages;
mod receives;
mod routes;
mod transfers;
mod unsignalled;

pub(crate) use connections::EpId;
pub(crate) use devices::{Device, Devices};
pub(crate) use endings::EpTask;
pub(crate) use memory::{Held, Parts};
pub(crate) use messages::Sent;
pub(crate) use receives::RECEIVE;
pub(crate) use routes::Place as PeerPlace;
pub(crate) use transfers::SILENT;

use crate::bmi::engine::{
    rejection, Body, Close, Connects, Cookie, Error, Header, Hello, Home, OpId, Place, Posted,
    Postponed, RailId, Rails, Source, Transfer, Waiter, Wanted, HEADER,
};
use crate::memory::Memory;
use crate::options::Options;
use crate::wait::UNEXPECTED_PLACE;
use binds::Binds;
use connections::Connections;
use endings::Endings;
use exposures::Exposures;
use libkdapl::{Cr, Ep, Evd, Ia, IaQuery, Pz};
use memory::Scratch;
use rustc_hash::FxHashMap;
use slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use unsignalled::Unsignalled;

/// Segments of an RDMA request, also of devices that can have more.
const SEGMENTS: u32 = 16;

/// Length of the queue for asynchronous errors.
const ASYNC_EVENTS: i32 = 16;

/// Result of a request, to be passed to the engine.
#[derive(Debug)]
pub(crate) enum Report {
    Closed(RailId, Option<Error>),
    Completed(RailId, Cookie, bool),
    Exposed(Place, Result<u16, Error>),
    Withdrawn(Place),
    /// The first rail of a session connects from another device.
    Moved(RailId, u8),
}

/// Request that is posted on an Endpoint. Its number is the cookie of the DTO.
#[derive(Debug)]
pub(crate) enum Request {
    /// Messages in send buffers. The last one is signalled, and reports for all.
    Messages(RailId, Vec<Sent>),
    /// The last of several RDMA requests.
    Rdma(RailId, Cookie),
    /// A bind or an unbind for an operation.
    Bind(RailId, Place),
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

/// The home.
pub(crate) struct DatHome {
    pub(crate) devices: Devices,
    pub(crate) connections: Connections,
    pub(crate) postponed: Postponed<Vec<Waiter>>,
    started: Instant,
    pub(crate) endings: Endings,
    exposures: Exposures,
    binds: Binds,
    scratch: Scratch,
    unsignalled: Unsignalled,
    pub(crate) requests: Slab<Request>,
    /// Connection requests that the engine has not answered, and the devices that they are at.
    pub(crate) crs: Slab<(u8, Cr)>,
    /// Memory of the operations.
    pub(crate) held: FxHashMap<OpId, Held>,
    /// Messages that no receive has taken.
    pub(crate) stash: FxHashMap<OpId, Arc<Vec<u8>>>,
    /// The message that is being passed to the engine.
    pub(crate) message: Arc<Vec<u8>>,
    pub(crate) reports: VecDeque<Report>,
    /// Places with waiters to wake, a bit for each: the contexts, and unexpected messages.
    pub(crate) wakes: u32,
}

impl DatHome {
    pub(crate) fn open(names: &[String], options: &Options) -> libkdapl::Result<Self> {
        Ok(Self {
            devices: Devices::open(names, options)?,
            connections: Connections::new(options),
            postponed: Postponed::new(Vec::new(), options.connect_timeout.as_millis() as u64),
            started: Instant::now(),
            endings: endings::queue(options.rails),
            exposures: Exposures::default(),
            binds: Binds::default(),
            scratch: Scratch::default(),
            unsignalled: Unsignalled::default(),
            requests: Slab::new(),
            crs: Slab::new(),
            held: FxHashMap::default(),
            stash: FxHashMap::default(),
            message: Arc::default(),
            reports: VecDeque::new(),
            wakes: 0,
        })
    }

    /// Returns whether all devices were removed.
    pub(crate) fn is_lost(&self) -> bool {
        self.devices.living().next().is_none()
    }

    /// Registers memory on each device, as far as possible.
    ///
    /// # Errors
    /// Those of the last device, if it is registered on none.
    pub(crate) fn register(&self, memory: &mut Memory) -> libkdapl::Result<()> {
        let devices = (0..self.devices.count()).map(|device| self.devices.on(device));
        let outcomes: Vec<_> = devices.map(|on| memory.register(on)).collect();
        match outcomes.iter().any(Result::is_ok) {
            true => Ok(()),
            false => outcomes.into_iter().collect(),
        }
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
    fn connect(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let device = self.choose(rail, hello, anywhere);
        self.begin_connect(rail, hello);
        device
    }

    fn accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        self.begin_accept(request, rail, hello);
    }

    fn reject(&mut self, request: u64) {
        if let Some((_, mut cr)) = self.crs.try_remove(request as usize) {
            // The peer may have given up.
            let _ = cr.reject(&rejection());
        }
    }

    fn disconnect(&mut self, rail: RailId, close: Close) {
        self.leave(rail, close);
    }

    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) -> bool {
        self.send_message(rail, cookie, header, body)
    }

    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted {
        self.post_transfer(rail, cookie, transfer)
    }

    fn prepare(&mut self, place: Place) -> bool {
        self.for_transfer(place).is_some()
    }

    fn longest_bind(&self) -> u64 {
        self.binds.longest as u64
    }

    fn expose(&mut self, place: Place, rail: RailId, wanted: Wanted) {
        self.begin_expose(place, rail, wanted);
    }

    fn withdraw(&mut self, place: Place) {
        self.begin_withdraw(place);
    }

    fn keep(&mut self, op: OpId, from: Source, named: bool) -> Rails {
        let body = self.message_of(from).get(HEADER..).unwrap_or_default();
        let remote: Vec<_> = crate::bmi::engine::descriptors(body, named).collect();
        let rails = remote.iter().fold(Rails::NONE, |rails, part| rails.or(part.rails));
        if let Some(held) = self.held.get_mut(&op) {
            held.remote = remote;
        }
        rails
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
