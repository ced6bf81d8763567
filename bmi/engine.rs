// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The protocol engine of BMI, the messaging layer of PVFS and OrangeFS, on DAT.
//!
//! The engine is pure: `core` only, no allocation, no lock, no clock. Its *home* owns the objects
//! of DAT and the memory. It calls the engine with posts, completions, messages, connection events
//! and the time, and the engine acts through [`Home`]. A lock of the home protects an engine.
//! `docs/bmi.md` and `docs/bmi/rails.md` describe the protocol.
//!
//! Storage is the home's ([`Storage`]): slices that it may replace by larger ones, so that there is
//! no fixed limit.
//!
//! | file | contents |
//! |---|---|
//! | `post.rs`, `cancel.rs`, `take.rs` | calls of the consumer |
//! | `arrive.rs`, `matching.rs`, `answers.rs` | messages of peers |
//! | `pump.rs`, `transfer.rs` | messages and RDMA to peers |
//! | `credit.rs`, `lend.rs` | flow control |
//! | `session.rs`, `accept.rs`, `close.rs`, `idle.rs` | connections |
//! | `devices.rs`, `ways.rs`, `routes.rs` | sessions over several devices |
//! | `connects.rs` | connects by one way after the other |
//! | `postponed.rs`, `shortage.rs` | connects that wait for Endpoints |
//! | `endings.rs` | Endpoints that are disconnected and freed without the lock of the home |
//! | `receives.rs`, `events.rs` | the count of shared receives, and the length of the event queue |
//! | `finish.rs` | the end of operations |
//! | `op.rs`, `peer.rs`, `lists.rs` | states, and the lists that operations are in |
//! | `home.rs` | what the home does for the engine |
//! | `table.rs`, `ranges.rs`, `pieces.rs`, `binds.rs`, `wire.rs` | parts that do not depend on the engine |

mod accept;
mod answers;
mod arrive;
mod binds;
mod cancel;
mod close;
mod connects;
mod credit;
mod devices;
mod endings;
mod error;
mod events;
mod finish;
mod home;
mod idle;
mod lend;
mod lists;
mod matching;
mod op;
mod peer;
mod pieces;
mod post;
mod postponed;
mod pump;
mod ranges;
mod receives;
mod routes;
mod session;
mod shortage;
mod table;
mod take;
mod transfer;
mod ways;
mod wire;

pub(crate) use self::{
    connects::Connects,
    credit::{
        Class,
        Credits,
        Window, //
    },
    devices::{
        Groups,
        Rails, //
    },
    endings::{
        ending_places,
        Ending,
        Endings,
        EndsEndpoints,
        Next,
        Task, //
    },
    error::Error,
    events::longer_queue,
    home::{
        Body,
        Close,
        ConnectRequest,
        Cookie,
        Home,
        Meaning,
        Place,
        Posted,
        Rdma,
        Source,
        Transfer,
        Wanted, //
    },
    matching::Bucket,
    op::{
        Completion,
        Op,
        OpId,
        Post,
        Role,
        LINKS, //
    },
    peer::{
        Peer,
        PeerId,
        Phase,
        RailId,
        MAX_RAILS, //
    },
    pieces::{
        described,
        of_rail,
        Descriptor,
        Pieces, //
    },
    post::LONGEST,
    postponed::{
        Postponed,
        Waiter,
        Waiters, //
    },
    ranges::Ranges,
    receives::SharedReceives,
    routes::{
        Destination,
        Route, //
    },
    shortage::Shortage,
    table::{
        Entry,
        Key,
        List,
        Table, //
    },
    ways::{
        Attempts,
        Short,
        Ways, //
    },
    wire::{
        descriptors,
        encode_descriptor,
        encode_group,
        reason_of,
        rejection,
        Header,
        Hello,
        Kind,
        ABORTED,
        FEATURE_DEVICES,
        FEATURE_PULL,
        GROUPS,
        HEADER, //
    },
};
use core::ops::DerefMut;
use lists::Shared;

/// Number of contexts.
pub(crate) const MAX_CONTEXTS: usize = 16;

/// Types of the home's storage.
pub(crate) trait Storage {
    /// Operations, all [`Entry::vacant`] at first.
    type Ops: DerefMut<Target = [Entry<Op, LINKS>]>;
    /// Peers, all [`Entry::vacant`] at first.
    type Peers: DerefMut<Target = [Entry<Peer, 1>]>;
    /// Buckets, at least one, all [`Bucket::new`] at first. The number stays.
    type Buckets: DerefMut<Target = [Bucket]>;
}

/// Parameters of an engine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Identity of this engine: random, and another one after each start.
    pub(crate) instance: u64,
    /// Bytes of the largest message: the size of a receive buffer.
    pub(crate) message: u32,
    /// Receives that the home posts for each rail before it connects or accepts. A receive is
    /// posted again, or another one, before its message is passed to the engine.
    pub(crate) window: Window,
    /// Messages of each rail that a peer may have here beyond the window, while a receive waits for
    /// a later one.
    pub(crate) lend: u32,
    /// The same, of all peers together.
    pub(crate) lend_all: u32,
    /// Requests that the send queue of a rail can hold.
    pub(crate) queue: u16,
    /// Rails of a session, at most [`MAX_RAILS`].
    pub(crate) rails: u8,
    /// Devices of the home, at most [`MAX_RAILS`].
    pub(crate) devices: u8,
    /// Bytes from which on a transfer is striped over all rails.
    pub(crate) stripe_from: u64,
    /// Receivers read offered messages, if they can.
    pub(crate) pull: bool,
    /// Time without a message after which a peer is asked for one, and then taken for dead. Its
    /// unit is that of `tick`.
    pub(crate) silence: u64,
    /// Time that a cancelled operation waits for its peer.
    pub(crate) patience: u64,
}

impl Config {
    /// Returns the number of arrivals that a session may hold.
    fn promise(&self) -> u32 {
        self.window.sum().wrapping_mul(u32::from(self.rails))
    }
}

/// The engine.
pub(crate) struct Engine<S: Storage> {
    config: Config,
    ops: Table<Op, S::Ops, LINKS>,
    peers: Table<Peer, S::Peers, 1>,
    shared: Shared<S::Buckets>,
    /// Contexts that are open, a bit for each.
    open: u16,
    /// Cancelled operations that wait for their peers, by their deadlines.
    deadlines: List,
    /// Peers with an open session, by the time of their last message.
    sessions: List,
    /// When the session that was asked last to leave has to have answered.
    asked: Option<u64>,
    /// A session that was asked to leave stays, or has not answered.
    stays: bool,
    /// Free entries that are reserved for arrivals of open sessions.
    reserved: u32,
    /// Data credits that are lent to all peers.
    lent: u32,
    now: u64,
}

impl<S: Storage> Engine<S> {
    /// Creates an engine.
    pub(crate) fn new(
        config: Config,
        ops: S::Ops,
        peers: S::Peers,
        buckets: S::Buckets,
    ) -> Result<Self, Error> {
        let valid = usize::from(config.rails) <= MAX_RAILS
            && config.rails > 0
            && usize::from(config.devices) <= MAX_RAILS
            && config.devices > 0
            && config.queue > 2
            && config.window.data > 0
            && config.window.control >= Window::MIN_CONTROL
            && usize::try_from(config.message).is_ok_and(|message| message >= 2 * HEADER)
            && !buckets.is_empty();
        if !valid {
            return Err(Error::Invalid);
        }
        Ok(Self {
            config,
            ops: Table::new(ops),
            peers: Table::new(peers),
            shared: Shared::new(buckets),
            open: 0,
            deadlines: List::new(),
            sessions: List::new(),
            asked: None,
            stays: false,
            reserved: 0,
            lent: 0,
            now: 0,
        })
    }

    /// Replaces the storage of operations by a larger one. Returns the one that is not needed.
    pub(crate) fn grow_ops(&mut self, storage: S::Ops) -> S::Ops {
        self.ops.grow(storage)
    }

    /// Replaces the storage of peers by a larger one. Returns the one that is not needed.
    pub(crate) fn grow_peers(&mut self, storage: S::Peers) -> S::Peers {
        self.peers.grow(storage)
    }

    /// Returns how many operations can be posted before the storage has to grow. A new session
    /// takes [`Config::window`] of them for each rail.
    pub(crate) fn room(&self) -> u32 {
        let taken = self.ops.used().saturating_add(self.reserved);
        self.ops.capacity().saturating_sub(taken)
    }

    /// Returns the numbers of operations and arrivals, of peers, and of entries that are reserved.
    pub(crate) const fn census(&self) -> (u32, u32, u32) {
        (self.ops.used(), self.peers.used(), self.reserved)
    }

    /// Returns the phase of a peer's session.
    pub(crate) fn phase(&self, peer: PeerId) -> Option<Phase> {
        self.peers.get(peer.0).map(|peer| peer.phase)
    }

    /// Returns the credits of a rail that is established.
    pub(crate) fn credits(&self, rail: RailId) -> Option<Credits> {
        let peer = self.peers.get(rail.peer.0)?;
        let state = peer.rails.get(usize::from(rail.rail))?;
        (peer.session == rail.session && state.link == peer::Link::Up).then_some(state.credits)
    }
}
