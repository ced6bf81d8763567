// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Home of the engine over the crate `kdat`: executes the engine's requests with DAT objects.
//!
//! The engine calls [`KernelHome`] while it changes itself. So `reports` keeps results for later.

mod binds;
mod connections;
mod devices;
mod endings;
mod exposures;
mod memory;
mod messages;
mod receives;
mod routes;
mod transfers;

pub(crate) use self::{
    connections::{
        EpId,
        PRIVATE_DATA, //
    },
    devices::Adapter,
    endings::EpTask,
    memory::{
        Fragment,
        Held, //
    },
};

use crate::{
    engine::{
        rejection,
        Body,
        Close,
        Connects,
        Cookie,
        Error,
        Header,
        Hello,
        Home,
        OpId,
        Place,
        Posted,
        Postponed,
        RailId,
        Rails,
        Source,
        Transfer,
        Waiter,
        Wanted,
        HEADER, //
    },
    options::Options,
    storage::{
        extend,
        Slab, //
    },
};
use binds::Binds;
use connections::Connections;
use devices::{
    Device,
    Devices, //
};
use endings::Endings;
use exposures::Exposures;
use kdat::{
    Buffer,
    Cr, //
};
use kernel::prelude::*;

/// Result of a request, to be passed to the engine.
pub(crate) enum Report {
    Closed(RailId, Option<Error>),
    Completed(RailId, Cookie, bool),
    Exposed(Place, Result<u16, Error>),
    Withdrawn(Place),
    /// The first rail of a session connects from another device.
    Moved(RailId, u8),
}

/// Work of a request that is posted on an Endpoint.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// A message, or the last RDMA request of a call.
    Last(Cookie),
    /// An RDMA request before it. If one fails, so does the last one.
    Earlier,
    /// A bind or an unbind for an operation.
    Bind(Place),
}

/// Request that is posted on an Endpoint. Its number is the context of the DTO.
pub(crate) struct Request {
    pub(crate) rail: RailId,
    pub(crate) work: Work,
}

/// Places with waiters: the contexts, and unexpected messages.
pub(crate) const PLACES: usize = 17;
/// Place of threads that wait for unexpected messages, or for the end of a context.
pub(crate) const UNEXPECTED_PLACE: usize = PLACES - 1;

/// The home.
pub(crate) struct KernelHome {
    pub(crate) devices: Devices,
    pub(crate) connections: Connections,
    pub(crate) postponed: Postponed<KVVec<Waiter>>,
    /// Milliseconds at the last tick.
    pub(crate) now: u64,
    pub(crate) endings: Endings,
    exposures: Exposures,
    binds: Binds,
    pub(crate) requests: Slab<Request>,
    /// Connection requests that the engine has not answered, and the devices that they are at.
    pub(crate) crs: Slab<(u8, Cr)>,
    /// Memory of the operations, by the indices of their keys.
    held: KVVec<Option<(OpId, Held)>>,
    /// Messages that no receive has taken, in the same way.
    stash: KVVec<Option<Stashed>>,
    pub(crate) reports: KVVec<Report>,
    /// Places with waiters to wake, a bit for each.
    pub(crate) wakes: u32,
}

/// Message that no receive has taken.
pub(crate) enum Stashed {
    Copy(KVVec<u8>),
    /// The receive buffer itself, if there was no memory for a copy.
    Buffer(Buffer, usize),
}

impl Stashed {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Copy(bytes) => bytes,
            Self::Buffer(buffer, length) => buffer.get(..*length).unwrap_or(&[]),
        }
    }
}

impl KernelHome {
    pub(crate) fn new(adapters: KVec<Adapter>, options: &Options) -> Result<Self> {
        let devices = Devices::new(adapters, options)?;
        Ok(Self {
            connections: Connections::new(options),
            postponed: Postponed::new(KVVec::new(), options.connect_timeout.into()),
            now: 0,
            endings: endings::queue(options.rails)?,
            exposures: Exposures::new(devices.count()),
            binds: Binds::new(),
            devices,
            requests: Slab::new(),
            crs: Slab::new(),
            held: KVVec::new(),
            stash: KVVec::new(),
            reports: KVVec::new(),
            wakes: 0,
        })
    }

    /// Makes room for as many operations and peers as the engine has.
    pub(crate) fn make_room(&mut self, ops: usize, peers: usize) -> Result {
        extend(&mut self.held, ops, || None)?;
        extend(&mut self.stash, ops, || None)?;
        self.exposures.make_room(ops)?;
        let rails = self.connections.routes.rails_of(peers);
        let places = ops * usize::from(self.devices.count());
        self.reports.reserve(2 * (places + rails), GFP_KERNEL)?;
        Ok(self.connections.make_room(peers)?)
    }

    /// Returns whether all devices were removed.
    pub(crate) fn is_lost(&self) -> bool {
        self.devices.are_lost()
    }

    /// Returns the number of places for operations.
    pub(crate) fn places(&self) -> usize {
        self.held.len()
    }

    /// Returns the operation at a place.
    pub(crate) fn op_at(&self, place: usize) -> Option<OpId> {
        let (op, _) = self.held.get(place)?.as_ref()?;
        Some(*op)
    }

    /// Posts another receive in place of one that has a message. Returns whether the connection
    /// can go on.
    pub(crate) fn replace_receive(&mut self, rail: RailId) -> bool {
        let device = self.connections.device(rail).unwrap_or(0);
        let Some(ep) = self.connections.ep(rail) else {
            return true;
        };
        let Device {
            receives, adapter, ..
        } = self.devices.get_mut(device);
        let posted = receives.replace(adapter, ep);
        // A connection that has ended refuses receives of its own. The queue lacks one, which
        // the next connection posts.
        let ended = |error: kdat::Error| error.kind() == kdat::kind::INVALID_STATE;
        receives.srq().is_some() || posted.map_or_else(ended, |()| true)
    }

    /// Takes back a receive without a message.
    pub(crate) fn flushed(&mut self, device: u8, buffer: Option<Buffer>) {
        self.devices.get_mut(device).receives.flushed(buffer);
    }

    /// Takes back the buffer of a message that was received.
    pub(crate) fn give_back_receive(&mut self, device: u8, buffer: Buffer) {
        self.devices.get_mut(device).receives.give_back(buffer);
    }

    /// Queues a report. The engine gets all of them before the next event.
    fn report(&mut self, report: Report) {
        // There is room for two reports of each operation on each device, and of each rail. Only
        // failed messages can be more, and their connections end.
        if self.reports.push(report, GFP_KERNEL).is_err() {
            pr_err!("no memory for the result of a message\n");
        }
    }

    /// Returns the memory of an operation.
    fn held(&self, op: OpId) -> Option<&Held> {
        let (found, held) = self.held.get(op.0.index() as usize)?.as_ref()?;
        (*found == op).then_some(held)
    }

    fn held_mut(&mut self, op: OpId) -> Option<&mut Held> {
        let (found, held) = self.held.get_mut(op.0.index() as usize)?.as_mut()?;
        (*found == op).then_some(held)
    }

    /// Stores the memory of an operation.
    pub(crate) fn insert_held(&mut self, op: OpId, held: Held) {
        if let Some(place) = self.held.get_mut(op.0.index() as usize) {
            *place = Some((op, held));
        }
    }

    fn take_held(&mut self, op: OpId) -> Option<Held> {
        let place = self.held.get_mut(op.0.index() as usize)?;
        let (_, held) = place.take_if(|(found, _)| *found == op)?;
        Some(held)
    }

    /// Stores a message that no receive has taken.
    pub(crate) fn put_stashed(&mut self, op: OpId, stashed: Option<Stashed>) {
        if let Some(place) = self.stash.get_mut(op.0.index() as usize) {
            *place = stashed;
        }
    }

    /// Takes a message that no receive has taken.
    pub(crate) fn take_stashed(&mut self, op: OpId) -> Option<Stashed> {
        self.stash.get_mut(op.0.index() as usize)?.take()
    }
}

/// The home during one call of the engine, with the message that is passed in this call.
pub(crate) struct Step<'a> {
    home: &'a mut KernelHome,
    message: &'a [u8],
    /// Operation for which the receive buffer has to be stashed, since there was no memory for a
    /// copy.
    pub(crate) without_copy: Option<OpId>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(home: &'a mut KernelHome) -> Self {
        Self::with(home, &[])
    }

    pub(crate) fn with(home: &'a mut KernelHome, message: &'a [u8]) -> Self {
        Self {
            home,
            message,
            without_copy: None,
        }
    }

    /// Calls `with` with the memory of an operation and the body of a message.
    fn with_body(&mut self, op: OpId, from: Source, with: impl FnOnce(&mut Held, &[u8])) {
        let stashed = match from {
            Source::Stash(stashed) => self.home.take_stashed(stashed),
            Source::Message => None,
        };
        let message = stashed.as_ref().map_or(self.message, Stashed::bytes);
        if let Some(held) = self.home.held_mut(op) {
            with(held, message.get(HEADER..).unwrap_or(&[]));
        }
        if let Source::Stash(place) = from {
            self.home.put_stashed(place, stashed);
        }
    }
}

impl Home for Step<'_> {
    fn connect(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let device = self.home.choose(rail, hello, anywhere);
        self.home.begin_connect(rail, hello);
        device
    }

    fn accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        self.home.begin_accept(request, rail, hello);
    }

    fn reject(&mut self, request: u64) {
        if let Some((_, cr)) = self.home.crs.remove(request) {
            // The peer may have given up.
            let _ = cr.reject(&rejection());
        }
    }

    fn disconnect(&mut self, rail: RailId, close: Close) {
        self.home.leave(rail, close);
    }

    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) -> bool {
        self.home.send_message(rail, cookie, header, body)
    }

    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted {
        self.home.post_transfer(rail, cookie, transfer)
    }

    fn prepare(&mut self, place: Place) -> bool {
        self.home.for_transfer(place).is_some()
    }

    fn longest_bind(&self) -> u64 {
        self.home.binds.longest as u64
    }

    fn expose(&mut self, place: Place, rail: RailId, wanted: Wanted) {
        self.home.begin_expose(place, rail, wanted);
    }

    fn withdraw(&mut self, place: Place) {
        self.home.begin_withdraw(place);
    }

    fn keep(&mut self, op: OpId, from: Source, named: bool) -> Rails {
        let mut rails = Rails::NONE;
        self.with_body(op, from, |held, body| rails = held.keep(body, named));
        rails
    }

    fn deliver(&mut self, op: OpId, from: Source) {
        self.with_body(op, from, Held::write);
    }

    fn stash(&mut self, op: OpId) {
        let mut copy = KVVec::new();
        match copy.extend_from_slice(self.message, GFP_KERNEL) {
            Ok(()) => self.home.put_stashed(op, Some(Stashed::Copy(copy))),
            Err(_) => self.without_copy = Some(op),
        }
    }

    fn discard(&mut self, op: OpId) {
        drop(self.home.take_stashed(op));
    }

    fn wake(&mut self, context: u8) {
        self.home.wakes |= 1 << context;
    }

    fn wake_unexpected(&mut self) {
        self.home.wakes |= 1 << UNEXPECTED_PLACE;
    }

    fn random(&mut self) -> u64 {
        crate::options::random()
    }
}
