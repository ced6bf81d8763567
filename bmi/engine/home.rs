// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Operations that the engine requires of its home: the module or library that owns the DAT
//! objects, the memory and the locks.
//!
//! The engine calls these methods from within its own calls, so the home cannot call the engine in
//! them. It reports results later, by a call of the engine. A message that cannot be posted is
//! reported as one that has failed.

use super::{
    devices::{
        Groups,
        Rails, //
    },
    op::OpId,
    peer::RailId,
    wire::{
        Header,
        Hello, //
    }, //
};

/// Meaning of a request's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A control message, or an offer.
    Message,
    /// An eager message: the operation is complete, if it was not before.
    Eager,
    /// All RDMA requests of one call.
    Rdma,
    /// DONE after RDMA writes: all of them have completed.
    Done,
}

/// Identity of a request, which its completion returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cookie {
    /// Operation, if the request belongs to one.
    pub(crate) op: Option<OpId>,
    /// Meaning of the completion.
    pub(crate) meaning: Meaning,
}

/// Body of a message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// None.
    Empty,
    /// The buffers of an operation.
    Payload(OpId),
    /// Descriptors of the exposed memory of an operation, by devices.
    Descriptors(OpId, Groups),
}

/// Location of a peer's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is the message that was passed with this call.
    Message,
    /// The home has stashed it under this number.
    Stash(OpId),
}

/// Direction of RDMA, and of the access that the peer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rdma {
    /// Write to the receiver.
    Write,
    /// Read from the sender.
    Read,
}

/// Requests that were posted for a range of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Number of requests. The last one is signalled, and reports for all.
    pub(crate) requests: u16,
    /// Byte after the last one that they move.
    pub(crate) next: u64,
}

/// Range of a transfer to post.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Direction.
    pub(crate) rdma: Rdma,
    /// Operation, of whose peer the home keeps descriptors.
    pub(crate) op: OpId,
    /// First byte of the message.
    pub(crate) from: u64,
    /// Byte after the last one.
    pub(crate) to: u64,
    /// Largest number of requests.
    pub(crate) requests: u16,
}

/// Memory of an operation on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Operation.
    pub(crate) op: OpId,
    /// Number of the device.
    pub(crate) device: u8,
}

impl Place {
    /// Returns the place on the only device of a home.
    pub(crate) const fn on_one(op: OpId) -> Self {
        Self { op, device: 0 }
    }
}

/// Connection request of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectRequest {
    /// Number that the home has given it.
    pub(crate) number: u64,
    /// Number of the device at which it has arrived, less than [`Config::devices`].
    ///
    /// [`Config::devices`]: super::Config::devices
    pub(crate) device: u8,
}

/// Memory of an operation to expose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Access that the peer gets.
    pub(crate) rdma: Rdma,
    /// Bytes of the message. The memory of a receive may be longer.
    pub(crate) length: u64,
    /// Largest number of descriptors.
    pub(crate) descriptors: u16,
}

/// Manner of closing a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// After the outstanding requests.
    Graceful,
    /// At once.
    Abrupt,
}

/// The home.
pub(crate) trait Home {
    /// Connects a rail, with this private data, and gives up after a time-out. Returns the number
    /// of the device, less than [`Config::devices`]. Unless `anywhere`, that is the device of rail
    /// 0, and the rail goes to the same device of the peer. Answers: `established`, `closed`.
    ///
    /// [`Config::devices`]: super::Config::devices
    fn connect(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8;

    /// Accepts a connection request as a rail, with this private data. Answers: `established`,
    /// `closed`.
    fn accept(&mut self, request: u64, rail: RailId, hello: &Hello);

    /// Rejects a connection request, with [`rejection`](super::rejection) as private data.
    fn reject(&mut self, request: u64);

    /// Closes a rail. Answer: `closed`.
    fn disconnect(&mut self, rail: RailId, close: Close);

    /// Posts a message. Returns whether it was posted and its payload copied: then the buffers of
    /// the operation are no longer used. Answer: `completed`.
    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) -> bool;

    /// Posts RDMA requests, as many as `transfer` allows ([`Pieces`](super::Pieces) divides the
    /// range). Answer: `completed`, once for all. The session ends if none can be posted.
    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted;

    /// Prepares the memory of an operation for RDMA on a device. Returns whether it can be used
    /// there. Called only if the session has rails on other devices, too.
    fn prepare(&mut self, place: Place) -> bool;

    /// Returns the bytes of one bind at most.
    fn longest_bind(&self) -> u64;

    /// Lets the peer access the memory of an operation on a device, which `rail` is on. Answer:
    /// `exposed`.
    fn expose(&mut self, place: Place, rail: RailId, wanted: Wanted);

    /// Takes the access back. Answer: `withdrawn`. From then on nothing can land, on a connection
    /// that has ended, too.
    fn withdraw(&mut self, place: Place);

    /// Keeps the [`descriptors`](super::descriptors) of a message, which names their rails or not,
    /// for an operation. Returns the rails that can use them.
    fn keep(&mut self, op: OpId, from: Source, named: bool) -> Rails;

    /// Copies the body of a message to the buffers of an operation.
    fn deliver(&mut self, op: OpId, from: Source);

    /// Stashes the message that was passed with this call.
    fn stash(&mut self, op: OpId);

    /// Frees a stashed message.
    fn discard(&mut self, op: OpId);

    /// Wakes the waiters of a context, which has one more complete operation.
    fn wake(&mut self, context: u8);

    /// Wakes the waiters for unexpected messages.
    fn wake_unexpected(&mut self);

    /// Returns a random number.
    fn random(&mut self) -> u64;
}
