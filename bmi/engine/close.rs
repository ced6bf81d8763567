// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of sessions.
//!
//! A session ends as a whole: when one of its rails breaks, the others are closed. Its operations
//! fail after the last rail is closed, since then nothing of them is outstanding. Operations that
//! were posted meanwhile belong to the next session.

use super::{
    error::Error,
    home::{
        Close,
        Home, //
    },
    op::{
        Op,
        OpId,
        Queue,
        Role,
        State,
        BY_PEER, //
    },
    peer::{
        Link,
        Notices,
        PeerId,
        Phase,
        RailId,
        MAX_RAILS, //
    },
    pump::rail_id,
    wire::Kind,
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Ends the session of a peer at once. Its operations fail with `Reset`.
    pub(crate) fn disconnect(&mut self, home: &mut impl Home, id: PeerId) {
        self.fail(home, id, Error::Reset);
    }

    /// Ends a session because of an error.
    pub(super) fn fail(&mut self, home: &mut impl Home, id: PeerId, error: Error) {
        self.close(home, id, Close::Abrupt, Some(error));
    }

    /// Closes all rails of a session.
    pub(super) fn close(
        &mut self,
        home: &mut impl Home,
        id: PeerId,
        how: Close,
        error: Option<Error>,
    ) {
        let Some(peer) = self.peers.get_mut(id.0) else {
            return;
        };
        if matches!(peer.phase, Phase::Idle | Phase::Closing) {
            return;
        }
        // After LEAVE, the session has ended by agreement.
        peer.error = error.filter(|_| peer.phase != Phase::Left);
        peer.phase = Phase::Closing;
        for rail in 0..MAX_RAILS {
            let is_down = peer
                .rails
                .get(rail)
                .is_none_or(|rail| rail.link == Link::Down);
            if !is_down {
                home.disconnect(rail_id(id, peer, rail), how);
            }
        }
        let is_down = peer.is_down();
        self.unlist(id);
        if is_down {
            self.ended(home, id);
        }
    }

    /// Reports the end of a rail, or that it was not established, and why. No request of it is
    /// outstanding.
    pub(crate) fn closed(&mut self, home: &mut impl Home, id: RailId, reason: Option<Error>) {
        if self.rail_peer(id).is_none() {
            return;
        }
        let link = self.take_down(id.peer, usize::from(id.rail));
        let (Some(link), Some(peer)) = (link, self.peers.get(id.peer.0)) else {
            return;
        };
        match peer.phase {
            Phase::Connecting if peer.is_down() => {
                self.fail(home, id.peer, reason.unwrap_or(Error::Refused));
            }
            Phase::Closing if peer.is_down() => self.ended(home, id.peer),
            // Otherwise the session goes on without a rail that was not established.
            phase if phase.is_open() && link == Link::Up => {
                self.fail(home, id.peer, reason.unwrap_or(Error::Reset));
            }
            // The peer has named a rail that it took for established.
            phase if phase.is_open() && self.has_op(id.peer, |op| op.moves_over(id.rail)) => {
                self.fail(home, id.peer, reason.unwrap_or(Error::Reset));
            }
            _ => {}
        }
    }

    /// Ends a session whose rails are closed.
    pub(super) fn ended(&mut self, home: &mut impl Home, id: PeerId) {
        let Some(peer) = self.peers.get_mut(id.0) else {
            return;
        };
        let unused = peer.promise.saturating_sub(peer.arrivals);
        self.reserved = self.reserved.saturating_sub(unused);
        (peer.promise, peer.arrivals) = (0, 0);
        peer.phase = Phase::Idle;
        peer.notices = Notices::default();
        let (error, session) = (peer.error.take(), peer.session);
        match error {
            Some(error) => self.abandon_all(home, id, session, error),
            None => self.keep_all(home, id, session),
        }
        self.begin_next(home, id);
        self.settle(home, id);
    }

    /// Begins the next session, if there are operations for it.
    fn begin_next(&mut self, home: &mut impl Home, id: PeerId) {
        let Some(peer) = self
            .peers
            .get_mut(id.0)
            .filter(|peer| peer.phase == Phase::Idle)
        else {
            return;
        };
        let (active, next) = (peer.active, peer.session_of_post());
        if let Some((request, hello)) = peer.request.take() {
            return self.begin_accept(home, id, (request, &hello));
        }
        if !self.has_op(id, |op| op.session == next) {
            return;
        }
        if active {
            self.connect(home, id);
        } else {
            self.abandon_all(home, id, next, Error::NotConnected);
        }
    }

    /// Returns the operation after another one of a peer, or the first one.
    fn next_of_peer(&self, id: PeerId, after: Option<OpId>) -> Option<OpId> {
        let next = match after {
            Some(after) => self.ops.next(BY_PEER, after.0),
            None => self.ops.first(&self.peers.get(id.0)?.ops),
        };
        next.map(OpId)
    }

    /// Returns whether a peer has an operation for which `condition` holds.
    fn has_op(&self, id: PeerId, condition: impl Fn(&Op) -> bool) -> bool {
        let mut next = self.next_of_peer(id, None);
        while let Some(op) = next {
            if self.op(op).is_some_and(&condition) {
                return true;
            }
            next = self.next_of_peer(id, Some(op));
        }
        false
    }

    /// Returns whether a peer without references is in use: the consumer has operations, or takes
    /// an unexpected message, and so gets a reference.
    pub(super) fn has_use(&self, id: PeerId) -> bool {
        self.has_op(id, |op| op.queue != Queue::Arrivals)
    }

    /// Frees the messages that a consumer without a reference to the peer cannot receive.
    pub(super) fn free_arrivals(&mut self, home: &mut impl Home, id: PeerId) {
        while let Some(op) = self.next_of_peer(id, None) {
            self.free_arrival(home, op);
        }
    }

    /// Fails the operations of a session, and frees its messages.
    fn abandon_all(&mut self, home: &mut impl Home, id: PeerId, session: u32, error: Error) {
        let mut next = self.next_of_peer(id, None);
        while let Some(op) = next {
            next = self.next_of_peer(id, Some(op));
            let state = self.op(op).filter(|op| op.session == session);
            match state.map(|op| op.post.role) {
                Some(Role::Arrival) => self.free_arrival(home, op),
                Some(_) => self.abandon(home, op, error),
                None => {}
            }
        }
    }

    /// Keeps complete messages, and operations posted during the end, of a session that both sides
    /// have ended.
    fn keep_all(&mut self, home: &mut impl Home, id: PeerId, session: u32) {
        let mut next = self.next_of_peer(id, None);
        while let Some(op) = next {
            next = self.next_of_peer(id, Some(op));
            let Some(state) = self.op_mut(op).filter(|op| op.session == session) else {
                continue;
            };
            match (state.post.role, state.state) {
                (Role::Arrival, State::Unmatched) if is_whole(state) => {}
                (Role::Arrival, _) => self.free_arrival(home, op),
                (_, State::Queued | State::Posted) => state.session = session.wrapping_add(1),
                _ => self.abandon(home, op, Error::Reset),
            }
        }
    }
}

/// Returns whether an arrival needs nothing more from its sender.
pub(super) fn is_whole(op: &Op) -> bool {
    op.header()
        .is_some_and(|header| matches!(header.kind, Kind::Eager | Kind::Unexpected))
}
