// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The end of operations.
//!
//! An operation completes when nothing can access its buffers any more. If its memory is exposed,
//! the home withdraws it first.

use super::{
    error::Error,
    home::{
        Home,
        Place,
        Source, //
    },
    op::{
        Answer,
        Exposure,
        Op,
        OpId,
        Queue,
        State,
        BY_DEADLINE,
        BY_PEER, //
    },
    peer::{
        PeerId,
        Phase, //
    },
    Class,
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Completes an operation, after its memory was withdrawn.
    pub(super) fn conclude(&mut self, home: &mut impl Home, id: OpId) {
        self.dequeue(id);
        self.clear_deadline(id);
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        op.state = State::Withdrawing;
        for (device, exposure) in (0_u8..).zip(&mut op.exposures) {
            if let Exposure::Exposed(_) = exposure {
                *exposure = Exposure::Ending;
                home.withdraw(Place { op: id, device });
            }
        }
        self.finish_if_withdrawn(home, id);
    }

    /// Completes an operation with an error, unless another one came first.
    pub(super) fn conclude_with(&mut self, home: &mut impl Home, id: OpId, error: Error) {
        if let Some(op) = self.ops.get_mut(id.0) {
            op.fail(error);
            self.conclude(home, id);
        }
    }

    /// Ends an operation whose connection has ended, so that nothing of it is outstanding.
    pub(super) fn abandon(&mut self, home: &mut impl Home, id: OpId, error: Error) {
        let Some(op) = self.op(id) else { return };
        match op.state {
            State::Withdrawing | State::Complete => {}
            _ => self.conclude_with(home, id, error),
        }
    }

    /// Sends a refusal, and then completes the operation.
    pub(super) fn refuse(&mut self, id: OpId, error: Error) {
        if let Some(op) = self.ops.get_mut(id.0) {
            op.fail(error);
            op.state = State::Refusing;
            op.answer = Answer::Refuse;
            self.enqueue(id, Queue::Control);
        }
    }

    /// Reports that the home has exposed the memory of an operation on a device, by so many
    /// descriptors, or that it cannot.
    pub(crate) fn exposed(
        &mut self,
        home: &mut impl Home,
        place: Place,
        result: Result<u16, Error>,
    ) {
        let id = place.op;
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let exposure = op.exposures.get_mut(usize::from(place.device));
        let Some(exposure) = exposure.filter(|exposure| **exposure == Exposure::Pending) else {
            return;
        };
        // Without a descriptor, an offer would be one of a message that is not to be read.
        let result = result.and_then(|count| match count {
            0 => Err(Error::NoMemory),
            _ => Ok(count),
        });
        *exposure = result.map_or(Exposure::None, Exposure::Exposed);
        let (peer, state) = (op.post.peer, op.state);
        // One device is enough.
        let result = result.or_else(|error| op.is_exposed().then_some(0).ok_or(error));
        match (state, result) {
            (State::Withdrawing, _) => self.conclude(home, id),
            _ if op.is_being_exposed() => {}
            (State::Queued, Err(_)) => op.pull = Some(false),
            (State::Matched, Ok(_)) => {
                op.answer = Answer::Cts;
                self.enqueue(id, Queue::Control);
            }
            (State::Matched, Err(error)) => {
                if !self.expose_again(home, id, error) {
                    self.refuse(id, error);
                }
            }
            _ => {}
        }
        self.pump(home, peer);
    }

    /// Reports that the peer can no longer access the memory of an operation on a device.
    pub(crate) fn withdrawn(&mut self, home: &mut impl Home, place: Place) {
        let Some(op) = self.ops.get_mut(place.op.0) else {
            return;
        };
        let exposure = op.exposures.get_mut(usize::from(place.device));
        if let Some(exposure) = exposure.filter(|exposure| **exposure == Exposure::Ending) {
            *exposure = Exposure::None;
            self.finish_if_withdrawn(home, place.op);
        }
    }

    /// Completes an operation whose memory is exposed on no device any more.
    fn finish_if_withdrawn(&mut self, home: &mut impl Home, id: OpId) {
        let exposed = |op: &Op| op.is_exposed_as(|exposure| exposure != Exposure::None);
        if self.op(id).is_some_and(|op| !exposed(op)) {
            self.finish(home, id);
        }
    }

    fn finish(&mut self, home: &mut impl Home, id: OpId) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        op.state = State::Complete;
        let post = op.post;
        self.unlink_from_peer(post.peer, id);
        self.enqueue(id, Queue::Complete);
        home.wake(post.context);
        self.settle(home, post.peer);
    }

    /// Frees an arrival, which was taken or is given up, and returns its credit to the peer.
    pub(super) fn free_arrival(&mut self, home: &mut impl Home, id: OpId) {
        home.discard(id);
        self.forget_arrival(id);
    }

    /// The same, for an arrival whose stash the consumer takes over.
    pub(super) fn forget_arrival(&mut self, id: OpId) {
        self.dequeue(id);
        let Some(op) = self.ops.get(id.0) else { return };
        let (post, session, rail, header) = (op.post, op.session, op.rail, op.header());
        self.unlink_from_peer(post.peer, id);
        self.ops.remove(id.0);
        let Some(peer) = self.peers.get_mut(post.peer.0) else {
            return;
        };
        if session != peer.session || peer.phase == Phase::Idle {
            return;
        }
        peer.arrivals = peer.arrivals.saturating_sub(1);
        let class = header.map(|header| header.kind.class());
        let lender = peer.rails.get_mut(usize::from(rail));
        let lender = lender.filter(|rail| rail.lent > 0 && class == Some(Class::Data));
        if let Some(lender) = lender {
            lender.lent = lender.lent.saturating_sub(1);
            self.lent = self.lent.saturating_sub(1);
            peer.promise = peer.promise.saturating_sub(1);
            return;
        }
        self.reserved = self.reserved.saturating_add(1);
        if let Some(class) = class {
            self.taken(post.peer, rail, class);
        }
    }

    /// Records that a message was taken which is in `source`.
    pub(super) fn consume(
        &mut self,
        home: &mut impl Home,
        peer: PeerId,
        rail: u8,
        class: Class,
        source: Source,
    ) {
        match source {
            Source::Message => self.taken(peer, rail, class),
            Source::Stash(id) => self.free_arrival(home, id),
        }
    }

    fn taken(&mut self, peer: PeerId, rail: u8, class: Class) {
        let peer = self.peers.get_mut(peer.0);
        if let Some(rail) = peer.and_then(|peer| peer.rails.get_mut(usize::from(rail))) {
            rail.credits.taken(class);
        }
    }

    fn unlink_from_peer(&mut self, peer: PeerId, id: OpId) {
        self.unlist_offer(id);
        if let Some(peer) = self.peers.get_mut(peer.0) {
            self.ops.unlink(&mut peer.ops, BY_PEER, id.0);
        }
    }

    /// Removes an operation from the list of deadlines.
    pub(super) fn clear_deadline(&mut self, id: OpId) {
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        if op.deadline.take().is_some() {
            self.ops.unlink(&mut self.deadlines, BY_DEADLINE, id.0);
        }
    }
}
