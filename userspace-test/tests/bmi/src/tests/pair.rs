// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Two nodes with one connection, which tests of single rules use.

use crate::{
    bmi::engine::{
        Completion,
        Error,
        OpId,
        PeerId,
        Role, //
    },
    sim::{
        Buffers,
        Settings,
        World, //
    },
};

/// Node that connects.
pub const CLIENT: usize = 0;
/// Node that accepts.
pub const SERVER: usize = 1;

/// Returns the bytes of a message, which differ for each number.
pub fn pattern(number: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(number);
    (0..length).map(|_| rng.u8(..)).collect()
}

/// Two nodes.
pub struct Pair {
    pub world: World,
    /// The peer of each node.
    pub peers: [PeerId; 2],
    /// Results that were taken.
    pub results: Vec<(usize, Completion, Buffers)>,
}

impl Pair {
    /// Creates a client and a server, which are connected.
    pub fn new(seed: u64, settings: Settings) -> Self {
        Self::with(seed, [settings, settings])
    }

    pub fn with(seed: u64, settings: [Settings; 2]) -> Self {
        Self::of(World::new(seed, &settings))
    }

    /// Connects the client of a world to its server.
    pub fn of(mut world: World) -> Self {
        let to_server = world.address(CLIENT, SERVER);
        let mut pair = Self {
            world,
            peers: [to_server; 2],
            results: Vec::new(),
        };
        pair.peers[SERVER] = pair.introduce();
        pair
    }

    /// Lets the client send an unexpected message. Returns the server's number of the client.
    pub fn introduce(&mut self) -> PeerId {
        let id = self.unexpected(CLIENT, 1, b"hello");
        self.world.run();
        let message = self.world.nodes[SERVER].take_unexpected();
        let (peer, tag, bytes) = message.expect("the message of the client");
        assert_eq!((tag, &bytes[..]), (1, &b"hello"[..]));
        self.world.run();
        assert_eq!(self.error_of(CLIENT, id), None);
        peer
    }

    pub fn post(&mut self, node: usize, role: Role, tag: i32, buffers: Buffers) -> OpId {
        self.try_post(node, role, tag, buffers)
            .expect("an operation")
    }

    pub fn try_post(
        &mut self,
        node: usize,
        role: Role,
        tag: i32,
        buffers: Buffers,
    ) -> Result<OpId, Error> {
        self.world.nodes[node].post(role, self.peers[node], tag, buffers)
    }

    /// Sends bytes in so many fragments.
    pub fn send(&mut self, node: usize, tag: i32, bytes: &[u8], fragments: usize) -> OpId {
        self.post(node, Role::Send, tag, Buffers::divide(bytes, fragments))
    }

    pub fn unexpected(&mut self, node: usize, tag: i32, bytes: &[u8]) -> OpId {
        self.post(node, Role::SendUnexpected, tag, Buffers::divide(bytes, 1))
    }

    /// Posts a receive of so many fragments.
    pub fn receive(&mut self, node: usize, tag: i32, length: usize, fragments: usize) -> OpId {
        let buffers = Buffers::divide(&vec![0; length], fragments);
        self.post(node, Role::Receive, tag, buffers)
    }

    pub fn cancel(&mut self, node: usize, id: OpId) {
        let node = &mut self.world.nodes[node];
        node.engine.cancel(&mut node.home, id);
    }

    /// Takes all results.
    pub fn take(&mut self) {
        for node in 0..self.world.nodes.len() {
            let taken = self.world.nodes[node].take();
            let taken = taken
                .into_iter()
                .map(|(result, buffers)| (node, result, buffers));
            self.results.extend(taken);
        }
    }

    /// Sends one message and receives it, and checks its bytes.
    pub fn transfer(&mut self, from: usize, tag: i32, length: usize, fragments: (usize, usize)) {
        let bytes = pattern(length as u64, length);
        let send = self.send(from, tag, &bytes, fragments.0);
        let receive = self.receive(1 - from, tag, length, fragments.1);
        self.world.run();
        let (result, _) = self.result_of(from, send);
        assert_eq!((result.error, result.actual), (None, length as u64));
        let (result, received) = self.result_of(1 - from, receive);
        assert_eq!((result.error, result.actual), (None, length as u64));
        assert!(received == bytes, "the bytes of {length}");
    }

    /// Returns the result of a complete operation of one node.
    pub fn result_of(&mut self, node: usize, id: OpId) -> (Completion, Vec<u8>) {
        self.take();
        let is_it = |entry: &(usize, Completion, Buffers)| (entry.0, entry.1.op) == (node, id);
        let index = self.results.iter().position(is_it);
        let (_, result, buffers) = self.results.remove(index.expect("a complete operation"));
        (result, buffers.bytes())
    }

    /// Returns the error of a complete operation.
    pub fn error_of(&mut self, node: usize, id: OpId) -> Option<Error> {
        self.result_of(node, id).0.error
    }

    /// Returns whether an operation is complete.
    pub fn is_complete(&mut self, node: usize, id: OpId) -> bool {
        self.take();
        self.results
            .iter()
            .any(|entry| (entry.0, entry.1.op) == (node, id))
    }
}
