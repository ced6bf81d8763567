// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages to peers, as far as credits and send queues allow.
//!
//! Each event that may have freed a credit or an entry of a send queue pumps its peer, so that the
//! operation that waits longest goes on at once. Control messages go first, and never wait for data
//! credits.

use super::{
    credit::Class,
    devices::groups_of,
    error::Error,
    home::{
        Body,
        Cookie,
        Home,
        Meaning,
        Rdma, //
    },
    op::{
        Answer,
        Op,
        OpId,
        Part,
        Role,
        State, //
    },
    peer::{
        Peer,
        PeerId,
        Phase,
        RailId,
        MAX_RAILS, //
    },
    ranges::Ranges,
    wire::{
        Header,
        Kind,
        HEADER, //
    },
    Config,
    Engine,
    Storage, //
};

impl<S: Storage> Engine<S> {
    /// Sends what can be sent to a peer.
    pub(super) fn pump(&mut self, home: &mut impl Home, peer: PeerId) {
        while self.has(peer, |peer| peer.notices.any()) && self.send_notice(home, peer) {}
        while self.has(peer, |peer| !peer.control.is_empty()) && self.send_answer(home, peer) {}
        self.pump_data(home, peer);
        while self.has(peer, |peer| !peer.sends.is_empty()) && self.send_next(home, peer) {}
        self.lend(peer);
        self.return_credits(home, peer);
    }

    /// Returns whether a peer has something to send.
    fn has(&self, id: PeerId, condition: impl Fn(&Peer) -> bool) -> bool {
        self.peers.get(id.0).is_some_and(condition)
    }

    /// Returns an open peer, and the rail for its next message of a class.
    fn open_peer(&self, id: PeerId, class: Class) -> Option<(&Peer, usize)> {
        let peer = self.peers.get(id.0).filter(|peer| peer.phase.may_send())?;
        Some((peer, peer.rail_for(class)?))
    }

    /// Posts a message. Returns whether the buffers of its operation are no longer used.
    pub(super) fn post_message(
        &mut self,
        home: &mut impl Home,
        id: PeerId,
        rail: usize,
        (mut header, body): (Header, Body),
        cookie: Cookie,
    ) -> bool {
        let Some(peer) = self.peers.get_mut(id.0) else {
            return false;
        };
        let Some(state) = peer.rails.get_mut(rail) else {
            return false;
        };
        header.sequence = peer.next_out;
        peer.next_out = peer.next_out.wrapping_add(1);
        header.returned = state.credits.send(header.kind.class());
        state.queue = state.queue.saturating_sub(1);
        state.asked = false;
        home.send(rail_id(id, peer, rail), cookie, &header, body)
    }

    fn post_control(&mut self, home: &mut impl Home, id: PeerId, rail: usize, kind: Kind) {
        let cookie = Cookie {
            op: None,
            meaning: Meaning::Message,
        };
        let message = (Header::new(kind), Body::Empty);
        self.post_message(home, id, rail, message, cookie);
    }

    /// Sends a message that belongs to no operation. Returns whether it did.
    fn send_notice(&mut self, home: &mut impl Home, id: PeerId) -> bool {
        let Some((_, rail)) = self.open_peer(id, Class::Control) else {
            return false;
        };
        let Some(kind) = self
            .peers
            .get_mut(id.0)
            .and_then(|peer| peer.notices.take())
        else {
            return false;
        };
        self.post_control(home, id, rail, kind);
        if let Some(peer) = self.peers.get_mut(id.0).filter(|_| kind == Kind::Leave) {
            peer.phase = Phase::Left;
        }
        true
    }

    /// Returns credits of each rail on which enough are owed, or the peer has asked.
    fn return_credits(&mut self, home: &mut impl Home, id: PeerId) {
        for rail in 0..MAX_RAILS {
            let peer = self.peers.get(id.0).filter(|peer| peer.phase.may_send());
            let state = peer.and_then(|peer| peer.rails.get(rail));
            if state.is_some_and(|rail| rail.must_return()) {
                self.post_control(home, id, rail, Kind::Credit);
            }
        }
    }

    /// Sends the next control message of an operation. Returns whether it did.
    fn send_answer(&mut self, home: &mut impl Home, peer: PeerId) -> bool {
        let Some((state, rail)) = self.open_peer(peer, Class::Control) else {
            return false;
        };
        let Some(id) = self.ops.first(&state.control).map(OpId) else {
            return false;
        };
        let Some(op) = self.op(id) else { return false };
        let (answer, message) = (op.answer, answer_message(id, op, state, &self.config));
        let cookie = Cookie {
            op: Some(id),
            meaning: Meaning::Message,
        };
        self.dequeue(id);
        self.post_message(home, peer, rail, message, cookie);
        self.answered(home, id, answer);
        true
    }

    /// Continues an operation whose control message is posted.
    fn answered(&mut self, home: &mut impl Home, id: OpId, answer: Answer) {
        let Some(op) = self.op_mut(id) else { return };
        match answer {
            Answer::Cts => {
                op.state = State::Cleared;
                op.part = Part::Ranges(Ranges::new());
            }
            Answer::Done => self.conclude(home, id),
            // The receive that has sent CTS before waits for DONE.
            Answer::Refuse if op.state == State::Cleared => {}
            Answer::Refuse if op.post.role == Role::Arrival => self.free_arrival(home, id),
            Answer::Refuse => self.conclude(home, id),
            // The peer may be reading, and answers.
            Answer::Cancel if op.pull == Some(true) => {}
            Answer::Cancel => self.conclude_with(home, id, Error::Cancelled),
        }
    }

    /// Decides how a send that waits for its turn is sent, and exposes its memory if the peer is to
    /// read it.
    pub(super) fn prepare(&mut self, home: &mut impl Home, id: OpId) {
        let Some(post) = self.op(id).map(|op| op.post) else {
            return;
        };
        let Some(peer) = self.peers.get(post.peer.0) else {
            return;
        };
        let long = post.role == Role::Send && post.length > payload_limit(peer);
        let undecided = self.op(id).is_some_and(|op| op.pull.is_none());
        if peer.phase != Phase::Up || !long || !undecided {
            return;
        }
        let pull = peer.pull
            && self
                .wanted(home, id, Rdma::Read)
                .is_some_and(|(wanted, _)| post.fragments <= wanted.descriptors.into());
        if let Some(op) = self.op_mut(id) {
            op.pull = Some(pull);
        }
        if pull {
            self.expose(home, id, Rdma::Read);
        }
    }

    /// Sends the next message of the consumer. Returns whether it did.
    fn send_next(&mut self, home: &mut impl Home, peer: PeerId) -> bool {
        let Some((state, rail)) = self.open_peer(peer, Class::Data) else {
            return false;
        };
        let Some(id) = self
            .ops
            .first(&state.sends)
            .filter(|_| state.phase == Phase::Up)
        else {
            return false;
        };
        let (id, limit) = (OpId(id), payload_limit(state));
        let Some(op) = self.op(id) else { return false };
        match op.post.role {
            _ if op.post.length <= limit => self.send_eager(home, id, rail),
            Role::Send => return self.send_offer(home, id, rail),
            _ => self.conclude_with(home, id, Error::TooLong),
        }
        true
    }

    fn send_eager(&mut self, home: &mut impl Home, id: OpId, rail: usize) {
        self.dequeue(id);
        let Some(op) = self.op_mut(id) else { return };
        op.state = State::Sent;
        let kind = match op.post.role {
            Role::SendUnexpected => Kind::Unexpected,
            _ => Kind::Eager,
        };
        let peer = op.post.peer;
        let header = Header {
            tag: op.post.tag,
            length: op.post.length,
            ..Header::new(kind)
        };
        let cookie = Cookie {
            op: Some(id),
            meaning: Meaning::Eager,
        };
        if self.post_message(home, peer, rail, (header, Body::Payload(id)), cookie) {
            self.sent(home, id);
        }
    }

    /// Completes an eager send, whose buffers are no longer used.
    pub(super) fn sent(&mut self, home: &mut impl Home, id: OpId) {
        if let Some(op) = self.op_mut(id).filter(|op| op.state == State::Sent) {
            op.actual = op.post.length;
            self.conclude(home, id);
        }
    }

    /// Offers a long message. Returns `false` while its memory is being exposed: later messages
    /// must not overtake it.
    fn send_offer(&mut self, home: &mut impl Home, id: OpId, rail: usize) -> bool {
        self.prepare(home, id);
        let Some(op) = self.op(id).filter(|op| !op.is_being_exposed()) else {
            return false;
        };
        let post = op.post;
        let Some(peer) = self.peers.get(post.peer.0) else {
            return false;
        };
        let (flags, descriptors, body) = descriptors_of(id, op, peer, &self.config);
        let header = Header {
            flags,
            descriptors,
            tag: post.tag,
            length: post.length,
            operation: id.0.raw(),
            ..Header::new(Kind::Rts)
        };
        let cookie = Cookie {
            op: Some(id),
            meaning: Meaning::Message,
        };
        self.dequeue(id);
        if let Some(op) = self.op_mut(id) {
            op.state = State::Offered;
        }
        self.post_message(home, post.peer, rail, (header, body), cookie);
        true
    }
}

/// Returns the identity of a rail.
pub(super) fn rail_id(id: PeerId, peer: &Peer, rail: usize) -> RailId {
    RailId {
        peer: id,
        session: peer.session,
        rail: u8::try_from(rail).unwrap_or(u8::MAX),
    }
}

/// Returns the number of bytes that an eager message can have.
fn payload_limit(peer: &Peer) -> u64 {
    let message = usize::try_from(peer.message).unwrap_or(0);
    u64::try_from(message.saturating_sub(HEADER)).unwrap_or(0)
}

/// Returns the flags, the number of entries and the body for the exposed memory of an operation.
fn descriptors_of(id: OpId, op: &Op, peer: &Peer, config: &Config) -> (u8, u16, Body) {
    if !op.is_exposed() {
        return (0, 0, Body::Empty);
    }
    let (flags, entries, groups) = groups_of(op, peer, config);
    (flags, entries, Body::Descriptors(id, groups))
}

/// Returns the control message of an operation.
fn answer_message(id: OpId, op: &Op, peer: &Peer, config: &Config) -> (Header, Body) {
    let kind = match op.answer {
        Answer::Cts => Kind::Cts,
        Answer::Done => Kind::Done,
        Answer::Refuse => Kind::Refuse,
        Answer::Cancel => Kind::Cancel,
    };
    let mut header = Header {
        operation: id.0.raw(),
        peers_operation: op.peers,
        ..Header::new(kind)
    };
    match op.answer {
        Answer::Cts => {
            let (flags, descriptors, body) = descriptors_of(id, op, peer, config);
            (header.flags, header.descriptors) = (flags, descriptors);
            header.length = op.actual;
            return (header, body);
        }
        Answer::Done => header.length = op.actual,
        Answer::Refuse => header.tag = op.error.unwrap_or(Error::Cancelled).errno(),
        Answer::Cancel => {}
    }
    (header, Body::Empty)
}
