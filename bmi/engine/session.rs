// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses of peers, and the sessions that this side begins.
//!
//! ```text
//!   Idle --post--> Connecting --established--> Up --BYE--> Asked --LEAVE--> Closing --> Idle
//!                      |                        |            |                ^
//!                      +-- refused, broken -----+------------+----------------+
//! ```
//!
//! An address stays valid when its session ends: the next post begins another one. Rail 0 begins a
//! session. The others join it when messages flow already.

use super::{
    credit::Credits,
    error::Error,
    home::{
        Close,
        Home, //
    },
    peer::{
        Link,
        Peer,
        PeerId,
        Phase,
        Rail,
        RailId, //
    },
    pump::rail_id,
    wire::{
        Hello,
        FEATURE_DEVICES,
        FEATURE_PULL, //
    },
    Config,
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Creates a peer, to which this side connects. The caller has one reference to it.
    pub(crate) fn add_peer(&mut self) -> Result<PeerId, Error> {
        let mut peer = Peer::new(true);
        peer.references = 1;
        self.peers.insert(peer).map(PeerId).ok_or(Error::NoMemory)
    }

    /// Adds a reference to a peer.
    pub(crate) fn retain(&mut self, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id.0) {
            peer.references = peer.references.saturating_add(1);
        }
    }

    /// Drops a reference to a peer. Without references, its session is closed if this side has made
    /// it, after the last operation. One that the peer has made stays until the peer ends it.
    pub(crate) fn release(&mut self, home: &mut impl Home, id: PeerId) {
        if let Some(peer) = self.peers.get_mut(id.0) {
            peer.references = peer.references.saturating_sub(1);
            self.settle(home, id);
        }
    }

    /// Frees a peer that has no use any more, or ends its session.
    pub(super) fn settle(&mut self, home: &mut impl Home, id: PeerId) {
        let Some(peer) = self.peers.get(id.0).filter(|peer| peer.references == 0) else {
            return;
        };
        let (phase, active) = (peer.phase, peer.active);
        let ends = phase == Phase::Idle || active && phase.may_send();
        if !ends || peer.request.is_some() || self.has_use(id) {
            return;
        }
        self.free_arrivals(home, id);
        if phase == Phase::Idle {
            self.peers.remove(id.0);
        } else {
            self.close(home, id, Close::Graceful, None);
        }
    }

    /// Begins a session.
    pub(super) fn connect(&mut self, home: &mut impl Home, id: PeerId) {
        let Some(peer) = self.peers.get(id.0) else {
            return;
        };
        let (secret, token) = (peer.secret, peer.token);
        if self.begin_session(id).is_err() {
            return self.refuse_session(home, id, Error::NoMemory);
        }
        let hello = hello(&self.config, 0, secret, token);
        let Some(peer) = self.peers.get_mut(id.0) else {
            return;
        };
        if let Some(rail) = peer.rails.first_mut() {
            rail.link = Link::Connecting;
        }
        let rail = rail_id(id, peer, 0);
        let device = home.connect(rail, &hello, true);
        self.place(rail, device);
    }

    /// Records the device of a rail, also if the home connects rail 0 from another one than it has
    /// said.
    pub(crate) fn place(&mut self, id: RailId, device: u8) {
        if let Some(rail) = self.rail_mut(id.peer, usize::from(id.rail)) {
            rail.device = device;
        }
    }

    /// Reserves what a session needs. Each call begins another session, also if it fails.
    pub(super) fn begin_session(&mut self, id: PeerId) -> Result<(), Error> {
        let (promise, room) = (self.config.promise(), self.room());
        let peer = self.peers.get_mut(id.0).ok_or(Error::Invalid)?;
        peer.session = peer.session.wrapping_add(1);
        peer.phase = Phase::Connecting;
        peer.stays = 0;
        (peer.next_in, peer.next_out) = (0, 0);
        if room < promise {
            return Err(Error::NoMemory);
        }
        (peer.promise, peer.arrivals) = (promise, 0);
        self.reserved = self.reserved.saturating_add(promise);
        Ok(())
    }

    fn refuse_session(&mut self, home: &mut impl Home, id: PeerId, error: Error) {
        if let Some(peer) = self.peers.get_mut(id.0) {
            peer.phase = Phase::Closing;
            peer.error = Some(error);
            self.ended(home, id);
        }
    }

    /// Reports that a rail is established, with the private data of the side that has accepted.
    pub(crate) fn established(&mut self, home: &mut impl Home, id: RailId, private_data: &[u8]) {
        let Some(peer) = self.rail_peer(id) else {
            return;
        };
        let rail = peer.rails.get(usize::from(id.rail));
        if rail.is_none_or(|rail| rail.link != Link::Connecting) || peer.phase == Phase::Closing {
            return;
        }
        let (active, first) = (peer.active, id.rail == 0);
        let hello = match Hello::decode(private_data) {
            Ok(hello) => Some(hello),
            Err(error) if active => return self.fail(home, id.peer, error),
            // The side that has accepted had the hello with the request.
            Err(_) => None,
        };
        match (hello.filter(|_| active), first) {
            (Some(hello), true) => self.open_session(home, id, &hello),
            (Some(hello), false) => self.join(home, id, &hello),
            (None, _) => self.open(id),
        }
        self.pump(home, id.peer);
    }

    /// Opens a session that the peer has accepted, and connects the other rails.
    fn open_session(&mut self, home: &mut impl Home, id: RailId, hello: &Hello) {
        self.negotiate(id, hello);
        self.open(id);
        let rails = self.config.rails.min(hello.rails);
        let anywhere = hello.knows_devices();
        for rail in 1..rails {
            let hello = self::hello(&self.config, rail, hello.session, hello.peer);
            if let Some(rail) = self.rail_mut(id.peer, usize::from(rail)) {
                rail.link = Link::Connecting;
            }
            let id = RailId { rail, ..id };
            let device = home.connect(id, &hello, anywhere);
            self.place(id, device);
        }
    }

    /// Adds a rail to the session, if the peer has answered for the same one.
    fn join(&mut self, home: &mut impl Home, id: RailId, hello: &Hello) {
        let same = self
            .rail_peer(id)
            .is_some_and(|peer| (peer.secret, peer.instance) == (hello.session, hello.instance));
        if same {
            self.give_credits(id, hello);
            self.set_up(id);
        } else {
            home.disconnect(id, Close::Abrupt);
        }
    }

    /// Applies the peer's parameters from the hello of rail 0.
    pub(super) fn negotiate(&mut self, id: RailId, hello: &Hello) {
        let (message, pull) = (self.config.message, self.config.pull);
        if let Some(peer) = self.peers.get_mut(id.peer.0) {
            peer.message = message.min(hello.message);
            peer.pull = pull && hello.features & FEATURE_PULL != 0;
            peer.groups = hello.knows_devices();
            peer.instance = hello.instance;
            if peer.active {
                peer.secret = hello.session;
                peer.token = hello.peer;
            }
        }
        self.give_credits(id, hello);
    }

    /// Sets the flow control of a rail that is not up yet.
    pub(super) fn give_credits(&mut self, id: RailId, hello: &Hello) {
        let (window, queue) = (self.config.window, self.config.queue);
        if let Some(rail) = self.rail_mut(id.peer, usize::from(id.rail)) {
            *rail = Rail {
                credits: Credits::new(window, hello.window),
                device: rail.device,
                queue,
                ..Rail::DOWN
            };
            rail.link = Link::Connecting;
        }
    }

    /// Opens the session with its first rail. On the side that has accepted, that may be another
    /// rail than rail 0.
    fn open(&mut self, id: RailId) {
        self.set_up(id);
        let peer = self.peers.get_mut(id.peer.0);
        if let Some(peer) = peer.filter(|peer| peer.phase == Phase::Connecting) {
            peer.phase = Phase::Up;
            self.heard(id.peer);
        }
    }

    fn set_up(&mut self, id: RailId) {
        if let Some(rail) = self.rail_mut(id.peer, usize::from(id.rail)) {
            rail.link = Link::Up;
        }
    }

    /// Returns the peer of a rail of its present session.
    pub(super) fn rail_peer(&mut self, id: RailId) -> Option<&mut Peer> {
        let peer = self.peers.get_mut(id.peer.0)?;
        (peer.session == id.session).then_some(peer)
    }

    /// Returns a rail.
    pub(super) fn rail_mut(&mut self, id: PeerId, rail: usize) -> Option<&mut Rail> {
        self.peers.get_mut(id.0)?.rails.get_mut(rail)
    }

    /// Returns whether a rail carries messages.
    pub(super) fn is_up(&mut self, id: RailId) -> bool {
        self.rail_peer(id).is_some_and(|peer| {
            let rail = peer.rails.get(usize::from(id.rail));
            peer.phase.is_open() && rail.is_some_and(|rail| rail.link == Link::Up)
        })
    }
}

/// Returns the private data of a rail.
pub(super) fn hello(config: &Config, rail: u8, session: u64, peer: u64) -> Hello {
    Hello {
        features: FEATURE_DEVICES | if config.pull { FEATURE_PULL } else { 0 },
        message: config.message,
        window: config.window,
        rails: config.rails,
        rail,
        instance: config.instance,
        session,
        peer,
    }
}
