// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages of peers: their order over all rails, and their processing.
//!
//! Each message has a sequence number. A rail delivers its messages in order, and another rail may
//! be faster. A message that is too early is stashed until the earlier ones have come. These are on
//! their way already, so it waits for nothing that a peer or consumer may withhold.

use super::{
    credit::Class,
    error::Error,
    home::{
        Home,
        Source, //
    },
    op::{
        Op,
        OpId,
        Part,
        Post,
        Queue,
        Role,
        State,
        BY_STATE, //
    },
    peer::{
        PeerId,
        RailId, //
    },
    wire::{
        Header,
        Kind, //
    },
    Engine,
    Storage, //
};

/// A message that is processed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) peer: PeerId,
    pub(super) rail: u8,
    pub(super) header: Header,
    pub(super) source: Source,
}

impl<S: Storage> Engine<S> {
    /// Reports a message. The home may post its receive again before this call, if it keeps the
    /// bytes, and does not keep them after it.
    ///
    /// A message that violates the protocol ends the session of its peer.
    pub(crate) fn arrived(&mut self, home: &mut impl Home, rail: RailId, bytes: &[u8]) {
        if !self.is_up(rail) {
            return;
        }
        match self.receive(home, rail, bytes) {
            Ok(()) => self.pump(home, rail.peer),
            Err(error) => self.fail(home, rail.peer, error),
        }
    }

    fn receive(&mut self, home: &mut impl Home, id: RailId, bytes: &[u8]) -> Result<(), Error> {
        self.heard(id.peer);
        let header = Header::decode(bytes)?;
        let now = self.now;
        let peer = self.peers.get_mut(id.peer.0).ok_or(Error::Invalid)?;
        if peer.owes_answer(now) && !header.kind.answers_bye() {
            return Err(Error::TimedOut);
        }
        if header.names_rails() && !peer.groups {
            return Err(Error::Protocol);
        }
        let rail = peer.rails.get_mut(usize::from(id.rail));
        let rail = rail.ok_or(Error::Invalid)?;
        if !rail.credits.arrive(header.kind.class(), header.returned) {
            return Err(Error::Protocol);
        }
        let message = Message {
            peer: id.peer,
            rail: id.rail,
            header,
            source: Source::Message,
        };
        match header.sequence.wrapping_sub(peer.next_in) {
            0 => self.process_in_order(home, message),
            // The peer cannot have sent more than the session has promised and lent.
            early if early < peer.promise => self.hold(home, message),
            _ => Err(Error::Protocol),
        }
    }

    /// Stashes a message that is too early.
    fn hold(&mut self, home: &mut impl Home, message: Message) -> Result<(), Error> {
        if self
            .find_held(message.peer, message.header.sequence)
            .is_some()
        {
            return Err(Error::Protocol);
        }
        let id = self.new_arrival(home, &message)?;
        self.enqueue(id, Queue::Held);
        Ok(())
    }

    fn find_held(&self, peer: PeerId, sequence: u32) -> Option<(OpId, Message)> {
        let mut next = self.ops.first(&self.peers.get(peer.0)?.held);
        while let Some(key) = next {
            let op = self.ops.get(key)?;
            let header = op.header().filter(|header| header.sequence == sequence);
            if let Some(header) = header {
                let (rail, source) = (op.rail, Source::Stash(OpId(key)));
                let message = Message {
                    peer,
                    rail,
                    header,
                    source,
                };
                return Some((OpId(key), message));
            }
            next = self.ops.next(BY_STATE, key);
        }
        None
    }

    /// Processes a message, and the held ones that follow it.
    fn process_in_order(&mut self, home: &mut impl Home, message: Message) -> Result<(), Error> {
        let mut message = message;
        loop {
            let peer = self.peers.get_mut(message.peer.0).ok_or(Error::Invalid)?;
            peer.next_in = peer.next_in.wrapping_add(1);
            let next_in = peer.next_in;
            self.process(home, &message)?;
            let open = self
                .phase(message.peer)
                .is_some_and(|phase| phase.is_open());
            match self.find_held(message.peer, next_in).filter(|_| open) {
                Some((id, held)) => {
                    self.dequeue(id);
                    message = held;
                }
                None => return Ok(()),
            }
        }
    }

    fn process(&mut self, home: &mut impl Home, message: &Message) -> Result<(), Error> {
        let (phase, class) = (self.phase(message.peer), message.header.kind.class());
        if class == Class::Data && phase.is_some_and(|phase| phase.has_bye()) {
            return Err(Error::Protocol);
        }
        match message.header.kind {
            Kind::Eager | Kind::Rts => return self.process_data(home, message),
            Kind::Unexpected => {
                self.keep_arrival(home, message, Queue::Unexpected)?;
                home.wake_unexpected();
                return Ok(());
            }
            Kind::Cts => self.cleared(home, message)?,
            Kind::Done => self.done(home, message)?,
            Kind::Refuse => self.refused(home, message),
            Kind::Cancel => self.cancelled(home, message),
            Kind::Credit => {}
            Kind::Ping => self.answer_ping(message),
            Kind::Bye | Kind::Leave | Kind::Stay => self.process_farewell(home, message),
        }
        self.consume(home, message.peer, message.rail, class, message.source);
        Ok(())
    }

    /// Matches a message with the oldest receive, or keeps it.
    fn process_data(&mut self, home: &mut impl Home, message: &Message) -> Result<(), Error> {
        let header = &message.header;
        let offers = header.kind == Kind::Rts;
        if offers && (header.length == 0 || header.descriptors > 0 && !self.config.pull) {
            return Err(Error::Protocol);
        }
        match self.find_receive(message.peer, header.tag) {
            Some(id) => {
                self.take(home, id, header, message.rail, message.source);
                Ok(())
            }
            None => self.keep_arrival(home, message, Queue::Arrivals),
        }
    }

    /// Keeps a message that no receive has matched.
    fn keep_arrival(
        &mut self,
        home: &mut impl Home,
        message: &Message,
        queue: Queue,
    ) -> Result<(), Error> {
        let id = match message.source {
            Source::Stash(id) => id,
            Source::Message => self.new_arrival(home, message)?,
        };
        if let Some(op) = self.op_mut(id) {
            op.state = State::Unmatched;
        }
        self.enqueue(id, queue);
        Ok(())
    }

    /// Stashes a message, in an entry that its session has reserved.
    fn new_arrival(&mut self, home: &mut impl Home, message: &Message) -> Result<OpId, Error> {
        let peer = self.peers.get_mut(message.peer.0).ok_or(Error::Invalid)?;
        if peer.arrivals >= peer.promise {
            return Err(Error::Protocol);
        }
        let (header, session) = (&message.header, peer.session);
        let post = Post {
            role: Role::Arrival,
            peer: message.peer,
            tag: header.tag,
            length: header.length,
            fragments: 0,
            context: 0,
            user: 0,
        };
        let op = Op {
            rail: message.rail,
            peers: header.operation,
            part: Part::Header(*header),
            ..Op::new(post, session)
        };
        peer.arrivals = peer.arrivals.saturating_add(1);
        self.reserved = self.reserved.saturating_sub(1);
        let id = self.link(op)?;
        self.list_offer(id);
        home.stash(id);
        Ok(id)
    }
}
