// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connection requests of peers.
//!
//! A peer that connects again names the number that it had here, its instance, and the number of
//! its last session, which no other peer knows. So it keeps its address, also if this side has not
//! noticed the end of the earlier session. A peer that has restarted has another instance, and so
//! another address.

use super::{
    home::{
        ConnectRequest,
        Home, //
    },
    peer::{
        Link,
        Peer,
        PeerId,
        Phase,
        RailId, //
    },
    pump::rail_id,
    session::hello,
    table::Key,
    wire::Hello,
    Engine,
    Error,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Reports a connection request, with its private data.
    pub(crate) fn requested(
        &mut self,
        home: &mut impl Home,
        request: ConnectRequest,
        private_data: &[u8],
    ) {
        match Hello::decode(private_data) {
            Ok(hello) if hello.rail == 0 => self.accept_session(home, request, &hello),
            Ok(hello) => self.accept_rail(home, request, &hello),
            Err(_) => home.reject(request.number),
        }
    }

    /// Accepts rail 0, now, or when the peer's earlier session has ended.
    fn accept_session(&mut self, home: &mut impl Home, request: ConnectRequest, hello: &Hello) {
        let Some((id, phase)) = self.caller(hello) else {
            return home.reject(request.number);
        };
        if phase == Phase::Idle {
            return self.begin_accept(home, id, (request, hello));
        }
        let earlier = self
            .peers
            .get_mut(id.0)
            .and_then(|peer| peer.request.replace((request, *hello)));
        if let Some((earlier, _)) = earlier {
            home.reject(earlier.number);
        }
        self.fail(home, id, Error::Reset);
    }

    /// Finds the peer that connects again, or creates one.
    fn caller(&mut self, hello: &Hello) -> Option<(PeerId, Phase)> {
        let key = Key::from_raw(hello.peer);
        let known = self.peers.get(key).filter(|peer| !peer.active);
        if let Some(peer) = known.filter(|peer| peer.is_client(hello)) {
            return Some((PeerId(key), peer.phase));
        }
        let key = self.peers.insert(Peer::new(false))?;
        Some((PeerId(key), Phase::Idle))
    }

    /// Accepts rail 0 of a peer without a session.
    pub(super) fn begin_accept(
        &mut self,
        home: &mut impl Home,
        id: PeerId,
        (request, hello): (ConnectRequest, &Hello),
    ) {
        let secret = home.random();
        let begun = self.begin_session(id);
        let Some(peer) = self.peers.get_mut(id.0) else {
            return;
        };
        (peer.secret, peer.earlier_secret) = (secret, hello.session);
        let rail = rail_id(id, peer, 0);
        if begun.is_err() {
            home.reject(request.number);
            peer.phase = Phase::Closing;
            peer.error = Some(Error::NoMemory);
            return self.ended(home, id);
        }
        self.negotiate(rail, hello);
        self.place(rail, request.device);
        home.accept(request.number, rail, &self.answer(rail, secret));
    }

    /// Accepts another rail of a session.
    fn accept_rail(&mut self, home: &mut impl Home, request: ConnectRequest, hello: &Hello) {
        let id = PeerId(Key::from_raw(hello.peer));
        let within = hello.rail < self.config.rails;
        let peer = self.peers.get(id.0).filter(|_| within);
        let rail = peer.and_then(|peer| {
            let state = peer.rails.get(usize::from(hello.rail))?;
            let same = (peer.secret, peer.instance) == (hello.session, hello.instance);
            // The peer may know that rail 0 is established before this side does.
            let begun = peer.phase == Phase::Connecting || peer.phase.may_send();
            let free = !peer.active && begun && state.link == Link::Down;
            let free = free && peer.may_use(request.device);
            (same && free).then(|| rail_id(id, peer, usize::from(hello.rail)))
        });
        let Some(rail) = rail else {
            return home.reject(request.number);
        };
        self.give_credits(rail, hello);
        self.place(rail, request.device);
        home.accept(request.number, rail, &self.answer(rail, hello.session));
    }

    fn answer(&self, rail: RailId, secret: u64) -> Hello {
        hello(&self.config, rail.rail, secret, rail.peer.0.raw())
    }
}
