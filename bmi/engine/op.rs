// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Operations: sends and receives that the consumer has posted, and messages that have arrived.
//!
//! ```text
//! send, eager:       Queued -> Sent -> Complete
//! send, pushed:      Queued -> Offered -> Moving -> Complete
//! send, pulled:      Queued -> Offered -> Withdrawing -> Complete
//! receive, eager:    Posted -> Complete
//! receive, pushed:   Posted -> Matched -> Cleared -> Withdrawing -> Complete
//! receive, pulled:   Posted -> Moving -> Matched -> Complete
//! arrival:           Held -> Unmatched -> taken over by a receive
//! ```

use super::{
    error::Error,
    peer::{
        PeerId,
        MAX_RAILS, //
    },
    ranges::Ranges,
    table::Key,
    wire::{
        Header,
        Kind, //
    },
};

/// Links of an operation: one list by its state, the list of its peer, the list of deadlines, and
/// the list of offers with the same hash.
pub(crate) const LINKS: usize = 4;
/// Link of the list by state ([`Queue`]).
pub(super) const BY_STATE: usize = 0;
/// Link of the list of all operations of a peer, oldest first.
pub(super) const BY_PEER: usize = 1;
/// Link of the list of deadlines.
pub(super) const BY_DEADLINE: usize = 2;
/// Link of the list of offers with the same hash.
pub(super) const BY_OFFER: usize = 3;

/// Identity of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct OpId(pub(crate) Key);

/// Type of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A message to the peer.
    Send,
    /// A message to the peer for which no receive is posted.
    SendUnexpected,
    /// A receive.
    Receive,
    /// A message of the peer that no consumer has taken.
    Arrival,
}

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Send: waits for its turn.
    Queued,
    /// Send: the eager message is posted.
    Sent,
    /// Send: the offer (RTS) is posted.
    Offered,
    /// RDMA writes of a send, or reads of a receive, are in progress.
    Moving,
    /// Receive: no message has matched.
    Posted,
    /// Receive: a message has matched, and an answer has to be sent: CTS before the data, or DONE
    /// after a read.
    Matched,
    /// Receive: CTS is posted.
    Cleared,
    /// A refusal or a withdrawn offer has to be sent, then the operation completes.
    Refusing,
    /// The exposed memory has to be withdrawn, then the operation completes.
    Withdrawing,
    /// The consumer can take the result.
    Complete,
    /// Arrival: an earlier message is still on its way, on another rail.
    Held,
    /// Arrival: waits for a receive, or for a consumer of unexpected messages.
    Unmatched,
}

/// List by state that an operation is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// None.
    Nowhere,
    /// Sends of the peer that wait for their turn.
    Sends,
    /// Operations of the peer that have a control message to send.
    Control,
    /// Operations of the peer with RDMA requests to post.
    Data,
    /// Messages of the peer that have arrived too early.
    Held,
    /// Receives of a bucket.
    Receives,
    /// Arrivals of a bucket.
    Arrivals,
    /// Unexpected messages.
    Unexpected,
    /// Complete operations of a context.
    Complete,
}

/// Exposure of the operation's memory to its peer, on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// The peer cannot access the memory.
    None,
    /// The home exposes the memory.
    Pending,
    /// The peer can access the memory, by so many descriptors.
    Exposed(u16),
    /// The home withdraws the memory.
    Ending,
}

/// Control message that an operation has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// CTS with the descriptors of the memory.
    Cts,
    /// DONE after reads.
    Done,
    /// REFUSE.
    Refuse,
    /// CANCEL.
    Cancel,
}

/// Part of a transfer that one rail carries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stripe {
    /// First byte.
    pub(super) start: u64,
    /// First byte that is not posted.
    pub(super) next: u64,
    /// Byte after the last one.
    pub(super) end: u64,
    /// Requests that are outstanding.
    pub(super) requests: u16,
    /// DONE is posted.
    pub(super) reported: bool,
    /// Nothing of the stripe is outstanding, or will be.
    pub(super) finished: bool,
}

/// Data of an operation that only some states need.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// Nothing.
    None,
    /// Moving: the parts of the transfer.
    Stripes([Stripe; MAX_RAILS]),
    /// Cleared: the ranges that have arrived.
    Ranges(Ranges<MAX_RAILS>),
    /// Arrival: its header.
    Header(Header),
}

/// Parameters of a post.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    /// [`Role::Arrival`] is not allowed.
    pub(crate) role: Role,
    /// Destination or source.
    pub(crate) peer: PeerId,
    /// Tag, which both sides name.
    pub(crate) tag: i32,
    /// Bytes of the message, or room of the receive.
    pub(crate) length: u64,
    /// Number of the fragments that hold them.
    pub(crate) fragments: u32,
    /// Context to whose complete operations this one belongs.
    pub(crate) context: u8,
    /// The consumer's pointer, which the completion returns.
    pub(crate) user: u64,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Op {
    pub(super) post: Post,
    pub(super) state: State,
    pub(super) queue: Queue,
    /// Exposure on each device.
    pub(super) exposures: [Exposure; MAX_RAILS],
    /// Devices on which the memory of a receive was exposed, or was not, without others: a bit for
    /// each; `None` before the first.
    pub(super) tried_alone: Option<u8>,
    /// Control message to send, while the operation is in [`Queue::Control`].
    pub(super) answer: Answer,
    /// The receiver reads the message; `None` while this is undecided.
    pub(super) pull: Option<bool>,
    /// No further RDMA request is posted.
    pub(super) stop: bool,
    /// Time after which a cancelled operation waits no longer for its peer.
    pub(super) deadline: Option<u64>,
    /// First error.
    pub(super) error: Option<Error>,
    /// Bytes of the message.
    pub(super) actual: u64,
    /// Operation of the peer, or 0.
    pub(super) peers: u64,
    /// Session to which the operation belongs.
    pub(super) session: u32,
    /// Rail on which an arrival has come.
    pub(super) rail: u8,
    pub(super) part: Part,
}

impl Op {
    /// Creates an operation that is in no list.
    pub(super) const fn new(post: Post, session: u32) -> Self {
        let state = match post.role {
            Role::Send | Role::SendUnexpected => State::Queued,
            Role::Receive => State::Posted,
            Role::Arrival => State::Held,
        };
        Self {
            post,
            state,
            queue: Queue::Nowhere,
            exposures: [Exposure::None; MAX_RAILS],
            tried_alone: None,
            answer: Answer::Refuse,
            pull: None,
            stop: false,
            deadline: None,
            error: None,
            actual: 0,
            peers: 0,
            session,
            rail: 0,
            part: Part::None,
        }
    }

    /// Returns the error that the operation completes with, after this one.
    pub(super) fn fail(&mut self, error: Error) {
        self.error = self.error.or(Some(error));
    }

    /// Returns whether the exposure on a device is in a state.
    pub(super) fn is_exposed_as(&self, is: impl Fn(Exposure) -> bool) -> bool {
        self.exposures.iter().any(|exposure| is(*exposure))
    }

    /// Returns whether the home exposes the memory.
    pub(super) fn is_being_exposed(&self) -> bool {
        self.is_exposed_as(|exposure| exposure == Exposure::Pending)
    }

    /// Returns whether the peer can access the memory on a device.
    pub(super) fn is_exposed(&self) -> bool {
        self.is_exposed_as(|exposure| matches!(exposure, Exposure::Exposed(_)))
    }

    /// Returns the header of an arrival.
    pub(super) fn header(&self) -> Option<Header> {
        match self.part {
            Part::Header(header) => Some(header),
            Part::None | Part::Stripes(_) | Part::Ranges(_) => None,
        }
    }

    /// Returns whether the operation is the receive or the arrival of an offer.
    pub(super) fn has_offer(&self) -> bool {
        let takes = match self.part {
            Part::Header(header) => header.kind == Kind::Rts,
            Part::None | Part::Stripes(_) | Part::Ranges(_) => self.post.role == Role::Receive,
        };
        takes && self.peers != 0
    }

    /// Returns the stripe of a rail.
    pub(super) fn stripe(&mut self, rail: usize) -> Option<&mut Stripe> {
        match &mut self.part {
            Part::Stripes(stripes) => stripes.get_mut(rail),
            Part::None | Part::Ranges(_) | Part::Header(_) => None,
        }
    }

    /// Returns whether a rail has a part of the transfer.
    pub(super) fn moves_over(&self, rail: u8) -> bool {
        let stripe = self.stripes().get(usize::from(rail));
        stripe.is_some_and(|stripe| !stripe.finished)
    }

    /// Returns the stripes.
    pub(super) fn stripes(&self) -> &[Stripe] {
        match &self.part {
            Part::Stripes(stripes) => stripes,
            Part::None | Part::Ranges(_) | Part::Header(_) => &[],
        }
    }
}

/// Result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// The operation, whose number is no longer valid.
    pub(crate) op: OpId,
    /// The consumer's pointer.
    pub(crate) user: u64,
    /// Bytes of the message.
    pub(crate) actual: u64,
    /// Error, if it has failed.
    pub(crate) error: Option<Error>,
}

/// An unexpected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unexpected {
    /// Number under which the home has stashed the message.
    pub(crate) op: OpId,
    /// Sender. The consumer has a reference to it.
    pub(crate) peer: PeerId,
    /// Tag.
    pub(crate) tag: i32,
    /// Bytes.
    pub(crate) length: u64,
}
