// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! RDMA of long messages, in stripes over the rails of a session.
//!
//! Each rail moves one stripe. After its writes it carries DONE for the stripe: one Endpoint
//! executes its requests in order, so the bytes are in their place when DONE arrives. Reads are
//! over when they complete on this side, and one DONE follows them all.

use super::{
    credit::Class,
    devices::Rails,
    error::Error,
    home::{
        Body,
        Cookie,
        Home,
        Meaning,
        Rdma,
        Transfer, //
    },
    op::{
        Answer,
        Op,
        OpId,
        Part,
        Queue,
        Role,
        State,
        Stripe,
        BY_STATE, //
    },
    peer::{
        Peer,
        PeerId,
        RailId,
        MAX_RAILS, //
    },
    pump::rail_id,
    wire::{
        Header,
        Kind,
        ABORTED, //
    },
    Engine,
    Storage, //
};

/// Stripes begin at multiples of this.
const ALIGNMENT: u64 = 4096;

/// Operations that one call examines, so that its time is bounded.
const SCAN: usize = 16;

/// Divides a message into stripes, over these rails.
fn stripes(peer: &Peer, used: Rails, length: u64, stripe_from: u64) -> [Stripe; MAX_RAILS] {
    let part = match u64::from(used.bits().count_ones()) {
        0 | 1 => length,
        _ if length < stripe_from => length,
        rails => length
            .div_ceil(rails)
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(length),
    };
    let rails = || (0..).zip(&peer.rails).filter(|(index, _)| used.has(*index));
    let most_room = rails().map(|(_, rail)| rail.room_for_rdma()).max();
    let mut stripes = [Stripe::default(); MAX_RAILS];
    for stripe in &mut stripes {
        stripe.finished = true;
    }
    let mut start = 0_u64;
    for (index, rail) in rails() {
        // A message of one stripe takes a rail with the most room.
        let skip = part == length && Some(rail.room_for_rdma()) != most_room;
        let Some(stripe) = stripes.get_mut(index) else {
            continue;
        };
        if start >= length || skip {
            continue;
        }
        let end = start.saturating_add(part).min(length);
        *stripe = Stripe {
            start,
            next: start,
            end,
            ..Stripe::default()
        };
        start = end;
    }
    stripes
}

impl<S: Storage> Engine<S> {
    /// Starts to write a send, or to read into a receive, over rails that the peer has named.
    pub(super) fn begin_transfer(&mut self, home: &mut impl Home, id: OpId, named: Rails) {
        let stripe_from = self.config.stripe_from;
        let rails = self.rails_for(home, id, named).unwrap_or_default();
        let Some(op) = self.ops.get_mut(id.0) else {
            return;
        };
        let peer = op.post.peer;
        if rails.is_empty() {
            return self.fail(home, peer, Error::Reset);
        }
        let Some(peer) = self.peers.get(peer.0) else {
            return;
        };
        op.part = Part::Stripes(stripes(peer, rails, op.actual, stripe_from));
        op.state = State::Moving;
        self.enqueue(id, Queue::Data);
        self.advance(home, id);
    }

    /// Posts no further request of a transfer, and ends it when those that are posted have
    /// completed.
    pub(super) fn stop(&mut self, home: &mut impl Home, id: OpId) {
        if let Some(op) = self.op_mut(id) {
            op.stop = true;
        }
        self.review(home, id);
    }

    /// Continues the transfers of a peer.
    pub(super) fn pump_data(&mut self, home: &mut impl Home, peer: PeerId) {
        let first = self.peers.get(peer.0).map(|peer| peer.data);
        let mut next = first.and_then(|list| self.ops.first(&list));
        for _ in 0..SCAN {
            let Some(key) = next else { break };
            next = self.ops.next(BY_STATE, key);
            self.advance(home, OpId(key));
        }
    }

    /// Posts what the rails can take of a transfer.
    fn advance(&mut self, home: &mut impl Home, id: OpId) {
        for rail in 0..MAX_RAILS {
            self.post_rdma(home, id, rail);
        }
        self.review(home, id);
    }

    /// Ends the stripes that are posted, and the transfer after its last stripe.
    fn review(&mut self, home: &mut impl Home, id: OpId) {
        for rail in 0..MAX_RAILS {
            self.end_stripe(home, id, rail);
        }
        let Some(op) = self.op(id).filter(|op| op.state == State::Moving) else {
            return;
        };
        // A completion continues a stripe with outstanding requests, unless DONE has to be sent.
        let reads = op.post.role == Role::Receive;
        let waits = |stripe: &Stripe| {
            let more = stripe.next < stripe.end && !op.stop;
            stripe.finished || stripe.reported || (stripe.requests > 0 && (reads || more))
        };
        if op.stripes().iter().all(|stripe| stripe.finished) {
            self.moved(home, id);
        } else if op.stripes().iter().all(waits) {
            self.dequeue(id);
        } else if op.queue != Queue::Data {
            self.enqueue(id, Queue::Data);
        }
    }

    /// Returns an operation that moves data, its peer, and whether the peer is open.
    fn moving(&self, id: OpId) -> Option<(&Op, &Peer)> {
        let op = self.op(id).filter(|op| op.state == State::Moving)?;
        let peer = self.peers.get(op.post.peer.0);
        Some((op, peer.filter(|peer| peer.phase.is_open())?))
    }

    /// Posts the next RDMA requests of a stripe. They are outstanding once at a time.
    fn post_rdma(&mut self, home: &mut impl Home, id: OpId, rail: usize) {
        let Some((op, peer)) = self.moving(id) else {
            return;
        };
        let Some((stripe, state)) = op.stripes().get(rail).zip(peer.rails.get(rail)) else {
            return;
        };
        let room = state.room_for_rdma();
        if op.stop || stripe.next >= stripe.end || stripe.requests > 0 || room == 0 {
            return;
        }
        let transfer = Transfer {
            rdma: rdma_of(op),
            op: id,
            from: stripe.next,
            to: stripe.end,
            requests: room,
        };
        let cookie = Cookie {
            op: Some(id),
            meaning: Meaning::Rdma,
        };
        let (peer_id, rail_id) = (op.post.peer, rail_id(op.post.peer, peer, rail));
        let posted = home.rdma(rail_id, cookie, transfer);
        if posted.requests == 0 {
            // Nothing would continue the transfer.
            return self.fail(home, peer_id, Error::Reset);
        }
        if let Some(stripe) = self.op_mut(id).and_then(|op| op.stripe(rail)) {
            stripe.next = posted.next.min(stripe.end);
            stripe.requests = posted.requests;
        }
        if let Some(rail) = self.rail_mut(peer_id, rail) {
            rail.queue = rail.queue.saturating_sub(posted.requests);
        }
    }

    /// Ends a stripe whose requests are posted: sends DONE after writes. Reads have to complete.
    fn end_stripe(&mut self, home: &mut impl Home, id: OpId, rail: usize) {
        let Some((op, peer)) = self.moving(id) else {
            return;
        };
        let Some((stripe, state)) = op.stripes().get(rail).zip(peer.rails.get(rail)) else {
            return;
        };
        let more = stripe.next < stripe.end && !op.stop;
        if stripe.finished || stripe.reported || more {
            return;
        }
        match op.post.role {
            Role::Receive if stripe.requests == 0 => self.finish_stripe(id, rail),
            Role::Receive => {}
            _ if state.room(Class::Control) > 0 => {
                let message = (stripe_done(id, op, stripe), Body::Empty);
                self.report_stripe(home, (id, op.post.peer), rail, message);
            }
            _ => {}
        }
    }

    fn report_stripe(
        &mut self,
        home: &mut impl Home,
        (id, peer): (OpId, PeerId),
        rail: usize,
        message: (Header, Body),
    ) {
        if let Some(stripe) = self.op_mut(id).and_then(|op| op.stripe(rail)) {
            stripe.reported = true;
        }
        let cookie = Cookie {
            op: Some(id),
            meaning: Meaning::Done,
        };
        self.post_message(home, peer, rail, message, cookie);
    }

    fn finish_stripe(&mut self, id: OpId, rail: usize) {
        if let Some(stripe) = self.op_mut(id).and_then(|op| op.stripe(rail)) {
            stripe.finished = true;
        }
    }

    /// Continues an operation of which nothing is outstanding.
    fn moved(&mut self, home: &mut impl Home, id: OpId) {
        let Some(op) = self.op_mut(id) else { return };
        let aborted = op.stripes().iter().any(|stripe| stripe.next < stripe.end);
        match (op.post.role, aborted) {
            (Role::Receive, true) => self.refuse(id, Error::Cancelled),
            (Role::Receive, false) => {
                op.state = State::Matched;
                op.answer = Answer::Done;
                self.clear_deadline(id);
                self.enqueue(id, Queue::Control);
            }
            (_, true) => self.conclude_with(home, id, Error::Cancelled),
            (_, false) => self.conclude(home, id),
        }
    }

    /// Reports the completion of a request, or of all RDMA requests of one call. A request that has
    /// failed ends the session.
    pub(crate) fn completed(
        &mut self,
        home: &mut impl Home,
        id: RailId,
        cookie: Cookie,
        success: bool,
    ) {
        if !self.is_up(id) {
            return;
        }
        if !success {
            return self.fail(home, id.peer, Error::Reset);
        }
        // The peer's device is at work. Messages of this session may have to wait for it.
        if cookie.meaning == Meaning::Rdma {
            self.heard(id.peer);
        }
        let rail = usize::from(id.rail);
        let requests = match cookie.meaning {
            Meaning::Rdma => self.take_requests(cookie.op, rail),
            Meaning::Message | Meaning::Eager | Meaning::Done => 1,
        };
        if let Some(state) = self.rail_mut(id.peer, rail) {
            state.queue = state.queue.saturating_add(requests);
        }
        if let Some(op) = cookie.op {
            self.continue_op(home, op, cookie.meaning, rail);
        }
        self.pump(home, id.peer);
    }

    fn take_requests(&mut self, id: Option<OpId>, rail: usize) -> u16 {
        let stripe = id
            .and_then(|id| self.op_mut(id))
            .and_then(|op| op.stripe(rail));
        stripe.map_or(0, |stripe| core::mem::take(&mut stripe.requests))
    }

    fn continue_op(&mut self, home: &mut impl Home, id: OpId, meaning: Meaning, rail: usize) {
        match meaning {
            Meaning::Message => {}
            Meaning::Eager => self.sent(home, id),
            Meaning::Rdma => self.review(home, id),
            Meaning::Done => {
                self.finish_stripe(id, rail);
                self.review(home, id);
            }
        }
    }
}

/// Returns the direction of a transfer.
fn rdma_of(op: &Op) -> Rdma {
    match op.post.role {
        Role::Receive => Rdma::Read,
        Role::Send | Role::SendUnexpected | Role::Arrival => Rdma::Write,
    }
}

/// Returns DONE for a stripe.
fn stripe_done(id: OpId, op: &Op, stripe: &Stripe) -> Header {
    Header {
        flags: if stripe.next < stripe.end { ABORTED } else { 0 },
        length: stripe.end.saturating_sub(stripe.start),
        operation: id.0.raw(),
        peers_operation: op.peers,
        offset: stripe.start,
        ..Header::new(Kind::Done)
    }
}
