// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The home of a simulated engine: memory, and requests that the network takes afterwards.

use super::memory::Buffers;
use crate::bmi::engine::{
    encode_descriptor,
    encode_group,
    of_rail,
    Body,
    Close,
    Cookie,
    Descriptor,
    Error,
    Groups,
    Header,
    Hello,
    Home,
    OpId,
    PeerId,
    Pieces,
    Place,
    Posted,
    RailId,
    Rails,
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
    /// Device on which its context is valid.
    pub device: u8,
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
    /// The device, and the turn that chooses the one of the peer.
    Connect(RailId, Vec<u8>, u8, u8),
    Accept(u64, RailId, Vec<u8>),
    Reject(u64),
    Disconnect(RailId, Close),
    Send(RailId, Cookie, Message),
    Rdma(RailId, Cookie, Vec<RdmaRequest>),
    Expose(Place, Wanted),
    Withdraw(Place),
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
    /// Number of devices.
    pub devices: u8,
    /// Devices that were removed, a bit for each.
    pub lost: u8,
    /// Devices of the rails.
    pub places: HashMap<RailId, u8>,
    /// Exposures fail.
    pub no_exposure: bool,
    /// Devices on which they do, and those on which operations have no memory.
    pub no_exposure_on: u8,
    pub no_memory_on: u8,
    /// Bytes of one bind at most, as far as the home knows, and in truth.
    pub longest: u64,
    pub bindable: u64,
    /// RDMA requests cannot be posted.
    pub no_rdma: bool,
    pub wakes: [usize; 16],
    pub wakes_unexpected: usize,
    next_context: u32,
    random: u64,
}

impl SimHome {
    pub fn new(devices: u8) -> Self {
        Self {
            devices,
            longest: u64::MAX,
            bindable: u64::MAX,
            ..Self::default()
        }
    }

    fn body(&self, from: Source) -> &[u8] {
        let message = match from {
            Source::Message => &self.message,
            Source::Stash(id) => self.stash.get(&id).expect("a stash"),
        };
        &message[HEADER..]
    }

    /// Exposes the fragments of an operation that a message has bytes in, or contiguous memory in
    /// place of too many. Returns the number of descriptors.
    pub fn expose_now(&mut self, place: Place, wanted: Wanted) -> Result<u16, Error> {
        let Place { op, device } = place;
        if (self.lost | self.no_exposure_on) & (1 << device) != 0 || self.no_exposure {
            return Err(Error::NoMemory);
        }
        self.longest = self.longest.min(self.bindable);
        let rdma = wanted.rdma;
        let lengths = self.buffers.get(&op).expect("buffers").lengths();
        let mut fragments = self.binds(&lengths, wanted);
        let too_many = |binds: &[u64]| binds.len() > usize::from(wanted.descriptors);
        if too_many(&fragments) && rdma == Rdma::Write {
            fragments = self.binds(&[wanted.length], wanted);
        }
        if too_many(&fragments) {
            let longest = self.longest.try_into().expect("a length");
            return Err(wanted.refusal(longest));
        }
        let mut offset = 0;
        for length in &fragments {
            let length = *length as usize;
            self.next_context += 1;
            let exposed = Exposed {
                op,
                device,
                offset,
                length,
                rdma,
            };
            self.exposed.insert(self.next_context, exposed);
            offset += length;
        }
        Ok(u16::try_from(fragments.len()).expect("few binds"))
    }

    /// Returns the lengths of the binds of a message in fragments of these lengths.
    fn binds(&self, lengths: &[u64], wanted: Wanted) -> Vec<u64> {
        let lengths = lengths.iter().map(|length| *length as usize);
        let ranges = wanted.divide(lengths, self.longest as usize);
        ranges.map(|range| range.length as u64).collect()
    }

    pub fn withdraw_now(&mut self, place: Place) {
        self.exposed
            .retain(|_, exposed| (exposed.op, exposed.device) != (place.op, place.device));
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

    /// Returns the devices that were not removed.
    pub fn living(&self) -> Vec<u8> {
        (0..self.devices)
            .filter(|device| self.lost & (1 << device) == 0)
            .collect()
    }

    fn body_of(&self, op: OpId, header: &Header, groups: Groups) -> Vec<u8> {
        let mut body = Vec::new();
        for (device, rails) in groups.devices() {
            let descriptors = self.descriptors(Place { op, device }, rails, header.length);
            if groups.named {
                body.extend(encode_group(rails, descriptors.len() as u16));
            }
            body.extend(descriptors.into_iter().flat_map(encode_descriptor));
        }
        assert_eq!(body.len(), 16 * usize::from(header.descriptors));
        body
    }

    /// The addresses of a fragment begin with its context, so that each has addresses of its own.
    fn descriptors(&self, place: Place, rails: Rails, length: u64) -> Vec<Descriptor> {
        let is_it = |part: &Exposed| (part.op, part.device) == (place.op, place.device);
        let parts = self.exposed.iter();
        let mut parts: Vec<_> = parts.filter(|part| is_it(part.1)).collect();
        parts.sort_by_key(|part| part.1.offset);
        let mut left = length;
        let mut descriptors = Vec::new();
        for (context, part) in parts {
            let length = left.min(part.length as u64);
            left -= length;
            descriptors.push(Descriptor {
                address: u64::from(*context) << 32,
                length: length as u32,
                context: *context,
                rails,
            });
        }
        descriptors
    }
}

impl Home for SimHome {
    fn connect(&mut self, rail: RailId, hello: &Hello, anywhere: bool) -> u8 {
        let hello = hello.encode().to_vec();
        let living = self.living();
        let turn = if anywhere { rail.rail } else { 0 };
        let first = self.places.get(&RailId { rail: 0, ..rail });
        let device = match first.filter(|_| !anywhere) {
            Some(first) => *first,
            None => living[usize::from(turn) % living.len()],
        };
        self.places.insert(rail, device);
        let request = Request::Connect(rail, hello, device, turn);
        self.requests.push(request);
        device
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

    fn send(&mut self, rail: RailId, cookie: Cookie, header: &Header, body: Body) -> bool {
        let copied = self.random() & 1 == 0;
        let mut start = header.encode().to_vec();
        let payload = match body {
            Body::Empty => None,
            Body::Payload(op) => Some((op, header.length as usize)),
            Body::Descriptors(op, groups) => {
                start.extend(self.body_of(op, header, groups));
                None
            }
        };
        let mut message = Message { start, payload };
        if copied {
            message.start = self.encode(&message);
            message.payload = None;
        }
        self.requests.push(Request::Send(rail, cookie, message));
        copied
    }

    fn rdma(&mut self, rail: RailId, cookie: Cookie, transfer: Transfer) -> Posted {
        let local = self.buffers.get(&transfer.op).expect("buffers").lengths();
        let remote = self.remote.get(&transfer.op).expect("descriptors");
        let remote = of_rail(remote, rail.rail);
        let pieces = Pieces::new(&local, remote, transfer.from, transfer.to, SEGMENTS);
        let pieces: Vec<_> = pieces.take(transfer.requests.into()).collect();
        let count = pieces.len();
        assert!(count > 0, "a transfer without bytes");
        let device = self.places[&rail];
        if self.no_rdma || self.no_memory_on & (1 << device) != 0 {
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

    fn prepare(&mut self, place: Place) -> bool {
        self.no_memory_on & (1 << place.device) == 0
    }

    fn longest_bind(&self) -> u64 {
        self.longest
    }

    fn expose(&mut self, place: Place, rail: RailId, wanted: Wanted) {
        assert_eq!(
            self.places.get(&rail),
            Some(&place.device),
            "another device"
        );
        self.requests.push(Request::Expose(place, wanted));
    }

    fn withdraw(&mut self, place: Place) {
        self.requests.push(Request::Withdraw(place));
    }

    fn keep(&mut self, op: OpId, from: Source, named: bool) -> Rails {
        let body = self.body(from);
        let descriptors: Vec<_> = crate::bmi::engine::descriptors(body, named).collect();
        let rails = descriptors.iter().map(|descriptor| descriptor.rails);
        let rails = rails.fold(Rails::NONE, Rails::or);
        self.remote.insert(op, descriptors);
        rails
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
