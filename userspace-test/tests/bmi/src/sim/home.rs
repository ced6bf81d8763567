// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The home of a simulated engine: memory, and requests that the network takes afterwards.

use super::memory::Buffers;
use crate::bmi::engine::{
    encode_descriptor,
    Body,
    Close,
    Cookie,
    Descriptor,
    Header,
    Hello,
    Home,
    OpId,
    PeerId,
    Pieces,
    Posted,
    RailId,
    Rdma,
    Source,
    Transfer,
    Wanted,
    HEADER, //
};
use std::collections::HashMap;

/// Fragments that one RDMA request can have: few, so that lists need several requests.
const SEGMENTS: usize = 3;

/// Fragment of an operation's memory that a peer can access.
#[derive(Clone, Copy, Debug)]
pub struct Exposed {
    pub op: OpId,
    pub offset: usize,
    pub length: usize,
    pub rdma: Rdma,
}

/// RDMA request.
#[derive(Clone, Copy, Debug)]
pub struct RdmaRequest {
    pub rdma: Rdma,
    pub op: OpId,
    pub offset: usize,
    pub length: usize,
    pub address: u64,
    pub context: u32,
    /// The request of its call that reports for all.
    pub last: bool,
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    /// Header and descriptors.
    pub start: Vec<u8>,
    /// Operation whose bytes follow, and their number.
    pub payload: Option<(OpId, usize)>,
}

/// A request of the engine that the network carries out.
#[derive(Clone, Debug)]
pub enum Request {
    Connect(RailId, Vec<u8>),
    Accept(u64, RailId, Vec<u8>),
    Reject(u64),
    Disconnect(RailId, Close),
    Send(RailId, Cookie, Message),
    Rdma(RailId, Cookie, Vec<RdmaRequest>),
    Expose(OpId, Wanted),
    Withdraw(OpId),
}

/// The home.
#[derive(Default)]
pub struct SimHome {
    pub requests: Vec<Request>,
    pub buffers: HashMap<OpId, Buffers>,
    pub remote: HashMap<OpId, Vec<Descriptor>>,
    pub stash: HashMap<OpId, Vec<u8>>,
    /// The message that is being reported.
    pub message: Vec<u8>,
    pub exposed: HashMap<u32, Exposed>,
    pub addresses: HashMap<PeerId, usize>,
    /// Exposures fail.
    pub no_exposure: bool,
    /// RDMA requests cannot be posted.
    pub no_rdma: bool,
    pub wakes: [usize; 16],
    pub wakes_unexpected: usize,
    next_context: u32,
    random: u64,
}

impl SimHome {
    fn body(&self, from: Source) -> &[u8] {
        let message = match from {
            Source::Message => &self.message,
            Source::Stash(id) => self.stash.get(&id).expect("a stash"),
        };
        &message[HEADER..]
    }

    /// Exposes the fragments of an operation that a message has bytes in, or contiguous memory in
    /// place of too many. Returns the number of descriptors.
    pub fn expose_now(&mut self, op: OpId, wanted: Wanted) -> Option<u16> {
        let Wanted { rdma, length, .. } = wanted;
        let mut fragments = self.buffers.get(&op).expect("buffers").first(length);
        let too_many = fragments.len() > usize::from(wanted.descriptors);
        if self.no_exposure || too_many && rdma == Rdma::Read {
            return None;
        }
        if too_many {
            fragments = vec![length];
        }
        let mut offset = 0;
        for length in &fragments {
            let length = *length as usize;
            self.next_context += 1;
            let exposed = Exposed {
                op,
                offset,
                length,
                rdma,
            };
            self.exposed.insert(self.next_context, exposed);
            offset += length;
        }
        u16::try_from(fragments.len()).ok()
    }

    pub fn withdraw_now(&mut self, op: OpId) {
        self.exposed.retain(|_, exposed| exposed.op != op);
    }

    /// Returns the bytes of a message, whose payload the network takes from the buffers when it
    /// delivers the message.
    pub fn encode(&self, message: &Message) -> Vec<u8> {
        let mut bytes = message.start.clone();
        if let Some((op, length)) = message.payload {
            let buffers = self.buffers.get(&op).expect("buffers that are used still");
            bytes.extend(buffers.read(0, length));
        }
        bytes
    }

    /// The addresses of a fragment begin with its context, so that each has addresses of its own.
    fn descriptors(&self, op: OpId, header: &Header) -> Vec<Descriptor> {
        let mut parts: Vec<_> = self.exposed.iter().filter(|part| part.1.op == op).collect();
        parts.sort_by_key(|part| part.1.offset);
        let mut left = header.length;
        let mut descriptors = Vec::new();
        for (context, part) in parts {
            let length = left.min(part.length as u64);
            left -= length;
            descriptors.push(Descriptor {
                address: u64::from(*context) << 32,
                length: length as u32,
                context: *context,
            });
        }
        assert_eq!(descriptors.len(), usize::from(header.descriptors));
        descriptors
    }
}

impl Home for SimHome {
    fn connect(&mut self, rail: RailId, hello: &Hello) {
        let hello = hello.encode().to_vec();
        self.requests.push(Request::Connect(rail, hello));
    }

    fn accept(&mut self, request: u64, rail: RailId, hello: &Hello) {
        let hello = hello.encode().to_vec();
        self.requests.push(Request::Accept(request, rail, hello));
    }

    fn reject(&mut self, request: u64) {
        self.requests.push(Request::Reject(request));
    }

    fn disconnect(&mut self, rail: RailId, close: Close) {
        self.requests.push(Request::Disconnect(rail, close));
    }

    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) {
        let mut start = header.encode().to_vec();
        let payload = match body {
            Body::Empty => None,
            Body::Payload(op) => Some((op, header.length as usize)),
            Body::Descriptors(op) => {
                let descriptors = self.descriptors(op, header);
                start.extend(descriptors.into_iter().flat_map(encode_descriptor));
                None
            }
        };
        let message = Message { start, payload };
        self.requests.push(Request::Send(rail, cookie, message));
    }

    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted {
        let local = self.buffers.get(&transfer.op).expect("buffers").lengths();
        let remote = self.remote.get(&transfer.op).expect("descriptors");
        let pieces = Pieces::new(&local, remote, transfer.from, transfer.to, SEGMENTS);
        let pieces: Vec<_> = pieces.take(transfer.requests.into()).collect();
        let count = pieces.len();
        assert!(count > 0, "a transfer without bytes");
        if self.no_rdma {
            return Posted {
                requests: 0,
                next: transfer.from,
            };
        }
        let next = pieces[count - 1].offset + u64::from(pieces[count - 1].length);
        let requests = pieces.iter().enumerate().map(|(index, piece)| RdmaRequest {
            rdma: transfer.rdma,
            op: transfer.op,
            offset: piece.offset as usize,
            length: piece.length as usize,
            address: piece.address,
            context: piece.context,
            last: index + 1 == count,
        });
        let requests = requests.collect();
        self.requests.push(Request::Rdma(rail, cookie, requests));
        Posted {
            requests: count as u16,
            next,
        }
    }

    fn expose(&mut self, op: OpId, _: RailId, wanted: Wanted) {
        self.requests.push(Request::Expose(op, wanted));
    }

    fn withdraw(&mut self, op: OpId) {
        self.requests.push(Request::Withdraw(op));
    }

    fn keep(&mut self, op: OpId, from: Source) {
        let descriptors = crate::bmi::engine::descriptors(self.body(from)).collect();
        self.remote.insert(op, descriptors);
    }

    fn deliver(&mut self, op: OpId, from: Source) {
        let bytes = self.body(from).to_vec();
        self.buffers.get_mut(&op).expect("buffers").write(0, &bytes);
    }

    fn stash(&mut self, op: OpId) {
        assert!(!self.message.is_empty(), "a message to stash");
        let earlier = self.stash.insert(op, self.message.clone());
        assert_eq!(earlier, None);
    }

    fn discard(&mut self, op: OpId) {
        assert!(self.stash.remove(&op).is_some(), "a stash to discard");
    }

    fn wake(&mut self, context: u8) {
        self.wakes[usize::from(context)] += 1;
    }

    fn wake_unexpected(&mut self) {
        self.wakes_unexpected += 1;
    }

    fn random(&mut self) -> u64 {
        self.random += 1;
        self.random.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
