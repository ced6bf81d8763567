// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Peers: an address, its session, and the rails of the session.

use super::{
    credit::{
        Class,
        Credits, //
    },
    error::Error,
    home::ConnectRequest,
    table::{
        Key,
        List, //
    },
    wire::{
        Hello,
        Kind, //
    }, //
};

use core::cmp::Reverse;

/// Largest number of rails of a session.
pub(crate) const MAX_RAILS: usize = 4;

/// Requests of a send queue that RDMA leaves to messages.
const FOR_MESSAGES: u16 = 2;

/// Identity of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PeerId(pub(crate) Key);

/// Identity of a rail: a connection, by one Endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RailId {
    /// Peer.
    pub(crate) peer: PeerId,
    /// Session, so that late events of an earlier one are recognised.
    pub(crate) session: u32,
    /// Number in the session.
    pub(crate) rail: u8,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// There is none.
    Idle,
    /// Rail 0 connects, or is being accepted.
    Connecting,
    /// Messages flow.
    Up,
    /// BYE is sent, or will be: no data is sent until the peer has answered. At this time it is
    /// late.
    Asked(u64),
    /// LEAVE will be sent, which agrees to the peer's BYE.
    Agreeing,
    /// LEAVE is sent. The peer closes the rails.
    Left,
    /// The rails are closing.
    Closing,
}

impl Phase {
    /// Returns whether messages arrive.
    pub(super) const fn is_open(self) -> bool {
        self.may_send() || matches!(self, Self::Left)
    }

    /// Returns whether control messages may be sent.
    pub(super) const fn may_send(self) -> bool {
        matches!(self, Self::Up | Self::Asked(_) | Self::Agreeing)
    }

    /// Returns whether the peer has said BYE, and this side has agreed: no data follow.
    pub(super) const fn has_bye(self) -> bool {
        matches!(self, Self::Agreeing | Self::Left)
    }
}

/// State of a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// There is no Endpoint.
    Down,
    /// This side connects, or accepts.
    Connecting,
    /// The connection is established.
    Up,
}

/// A rail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rail {
    pub(super) link: Link,
    pub(super) credits: Credits,
    /// Number of the device of this side.
    pub(super) device: u8,
    /// Free entries of the send queue.
    pub(super) queue: u16,
    /// Data credits that are lent: messages that give back no credit when they are taken.
    pub(super) lent: u32,
    /// The peer waits for a CREDIT.
    pub(super) asked: bool,
}

impl Rail {
    pub(super) const DOWN: Self = Self {
        link: Link::Down,
        device: 0,
        credits: Credits::new(
            super::credit::Window {
                data: 0,
                control: 0,
            },
            super::credit::Window {
                data: 0,
                control: 0,
            },
        ),
        queue: 0,
        lent: 0,
        asked: false,
    };

    /// Returns how many messages of a class the rail can take now.
    pub(super) fn room(&self, class: Class) -> u16 {
        match self.link {
            Link::Up => self.credits.available(class).min(self.queue),
            Link::Down | Link::Connecting => 0,
        }
    }

    /// Returns whether a CREDIT message has to be sent now.
    pub(super) fn must_return(&self) -> bool {
        self.link == Link::Up && self.queue > 0 && self.credits.must_return(self.asked)
    }

    /// Returns how many RDMA requests the rail can take now.
    pub(super) fn room_for_rdma(&self) -> u16 {
        match self.link {
            Link::Up => self.queue.saturating_sub(FOR_MESSAGES),
            Link::Down | Link::Connecting => 0,
        }
    }
}

/// Messages that a peer has to be sent besides those of operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notices {
    pub(super) ping: bool,
    pub(super) bye: bool,
    pub(super) leave: bool,
    pub(super) stay: bool,
}

impl Notices {
    /// Takes the next message.
    pub(super) fn take(&mut self) -> Option<Kind> {
        let notices = [
            (&mut self.ping, Kind::Ping),
            (&mut self.stay, Kind::Stay),
            (&mut self.bye, Kind::Bye),
            (&mut self.leave, Kind::Leave),
        ];
        let mut notices = notices.into_iter();
        notices.find_map(|(flag, kind)| core::mem::take(flag).then_some(kind))
    }

    /// Returns whether there is a message.
    pub(super) const fn any(self) -> bool {
        self.ping | self.bye | self.leave | self.stay
    }
}

/// A peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(super) phase: Phase,
    /// This side connects. Otherwise the peer does.
    pub(super) active: bool,
    /// References of the consumer to the address.
    pub(super) references: u32,
    /// Number of the session, counted on this side.
    pub(super) session: u32,
    /// Number of the latest session that both sides know. The client proves by it that it is the
    /// same one when it connects again.
    pub(super) secret: u64,
    /// The number before that, with which the client has begun the latest session. It is valid,
    /// too: the client may not have got the answer.
    pub(super) earlier_secret: u64,
    /// The peer's instance and, if this side connects, the number of this side in the peer's table.
    pub(super) instance: u64,
    pub(super) token: u64,
    pub(super) rails: [Rail; MAX_RAILS],
    /// Bytes of the largest message that both sides take.
    pub(super) message: u32,
    /// The receiver may read an offered message.
    pub(super) pull: bool,
    /// The peer can tell devices apart, so rails may be on several ones.
    pub(super) groups: bool,
    /// Sequence numbers of the next message in each direction.
    pub(super) next_out: u32,
    pub(super) next_in: u32,
    /// Error that closes the session; `None` if both sides have agreed on the end.
    pub(super) error: Option<Error>,
    /// Time of the last message from the peer, or of the PING since.
    pub(super) heard: u64,
    pub(super) pinged: bool,
    pub(super) notices: Notices,
    /// The peer has answered STAY: it is not asked to leave again until this time.
    pub(super) stays: u64,
    /// The peer is in the list of open sessions.
    pub(super) listed: bool,
    /// Entries that the session has reserved for arrivals, and that it uses.
    pub(super) promise: u32,
    pub(super) arrivals: u32,
    /// Receives that no message has matched.
    pub(super) receives: u32,
    /// Request of the peer for a new session, which waits for the end of this one.
    pub(super) request: Option<(ConnectRequest, Hello)>,
    /// Lists of its operations.
    pub(super) ops: List,
    pub(super) sends: List,
    pub(super) control: List,
    pub(super) data: List,
    pub(super) held: List,
}

impl Peer {
    /// Creates a peer without a session.
    pub(super) const fn new(active: bool) -> Self {
        Self {
            phase: Phase::Idle,
            active,
            references: 0,
            session: 0,
            secret: 0,
            earlier_secret: 0,
            instance: 0,
            token: 0,
            rails: [Rail::DOWN; MAX_RAILS],
            message: 0,
            pull: false,
            groups: false,
            next_out: 0,
            next_in: 0,
            error: None,
            heard: 0,
            pinged: false,
            notices: Notices {
                ping: false,
                bye: false,
                leave: false,
                stay: false,
            },
            stays: 0,
            listed: false,
            promise: 0,
            arrivals: 0,
            receives: 0,
            request: None,
            ops: List::new(),
            sends: List::new(),
            control: List::new(),
            data: List::new(),
            held: List::new(),
        }
    }

    /// Returns the session to which a new operation belongs: the next one, if there is
    /// none or it is closing.
    pub(super) const fn session_of_post(&self) -> u32 {
        match self.phase {
            Phase::Idle | Phase::Closing => self.session.wrapping_add(1),
            _ => self.session,
        }
    }

    /// Returns whether a request for a new session comes from the peer itself.
    pub(super) fn is_client(&self, hello: &Hello) -> bool {
        self.instance == hello.instance
            && hello.session != 0
            && [self.secret, self.earlier_secret].contains(&hello.session)
    }

    /// Returns whether the peer was asked to leave, and its answer is late.
    pub(super) fn owes_answer(&self, now: u64) -> bool {
        matches!(self.phase, Phase::Asked(until) if until <= now)
    }

    /// Returns whether the peer has no operations, and nothing else to send.
    pub(super) fn is_idle(&self) -> bool {
        self.ops.is_empty() && !self.notices.any()
    }

    /// Returns the rail with the most room for a message of a class, if any has room. The rails of
    /// the first device come first: a home may need longer to process the events of another one.
    pub(super) fn rail_for(&self, class: Class) -> Option<usize> {
        let rails = self.rails.iter().enumerate();
        let free = rails.filter(|(_, rail)| rail.room(class) > 0);
        let best = free.max_by_key(|(index, rail)| {
            // The first one of equal rails.
            let place = MAX_RAILS.wrapping_sub(*index);
            (Reverse(rail.device), rail.room(class), place)
        });
        best.map(|(index, _)| index)
    }

    /// Returns whether all rails are down.
    pub(super) fn is_down(&self) -> bool {
        self.rails.iter().all(|rail| rail.link == Link::Down)
    }
}
