// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A node: an engine, its home, and storage that grows.

use super::{
    home::SimHome,
    memory::Buffers, //
};
use crate::bmi::engine::{
    Bucket,
    Completion,
    Config,
    Ending,
    Endings,
    Engine,
    Entry,
    Error,
    Op,
    OpId,
    Peer,
    PeerId,
    Post,
    Role,
    Storage,
    Window,
    LINKS, //
};
use std::{
    cell::Cell,
    ops::{
        Deref,
        DerefMut, //
    }, //
};

thread_local! {
    /// Accesses of entries of operations.
    static ACCESSES: Cell<u64> = const { Cell::new(0) };
}

/// Returns how often this thread has accessed entries of operations.
pub fn accesses() -> u64 {
    ACCESSES.get()
}

/// Vector that counts how often it is accessed.
pub struct Counted<T>(Vec<T>);

impl<T> Deref for Counted<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        ACCESSES.set(ACCESSES.get() + 1);
        &self.0
    }
}

impl<T> DerefMut for Counted<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        ACCESSES.set(ACCESSES.get() + 1);
        &mut self.0
    }
}

/// Storage in vectors.
pub struct Vectors;

impl Storage for Vectors {
    type Ops = Counted<Entry<Op, LINKS>>;
    type Peers = Vec<Entry<Peer, 1>>;
    type Buckets = Vec<Bucket>;
}

/// Endpoint: a connection, and the end there.
pub type Ep = (usize, usize);

/// Rails that the queue of Endpoints takes: few, so that it is full at times.
const ENDINGS: usize = 3;

/// Parameters of a node, besides its identity.
pub type Settings = Config;

/// A node.
pub struct Node {
    pub engine: Engine<Vectors>,
    pub home: SimHome,
    /// Endpoints that the node's worker disconnects and frees.
    pub endings: Endings<Ep, Vec<Option<Ending<Ep>>>>,
    pub settings: Settings,
    /// Entries of the storage.
    ops: usize,
    peers: usize,
    /// The node executes nothing.
    pub frozen: bool,
    /// The node rejects connections.
    pub refuses: bool,
    /// The node, and its peers with it, knows one device only.
    pub is_old: bool,
}

/// Few receives and short queues, so that each limit is reached.
pub const SMALL: Settings = Settings {
    instance: 0,
    message: 256,
    window: Window {
        data: 4,
        control: 4,
    },
    lend: 24,
    lend_all: 1000,
    queue: 6,
    rails: 1,
    devices: 1,
    stripe_from: 4096,
    pull: false,
    silence: 100,
    patience: 1000,
};

impl Node {
    pub fn new(settings: Settings) -> Self {
        let buckets = vec![Bucket::new(); 7];
        let ops = Counted(Vec::new());
        let mut engine = Engine::new(settings, ops, Vec::new(), buckets).expect("an engine");
        assert_eq!(engine.open_context(), Some(0));
        Self {
            engine,
            home: SimHome::new(settings.devices),
            endings: Endings::new((0..ENDINGS).map(|_| None).collect()),
            settings,
            ops: 0,
            peers: 0,
            frozen: false,
            refuses: false,
            is_old: false,
        }
    }

    /// Makes room for an operation, a peer and a session.
    pub fn make_room(&mut self) {
        let session = self.settings.window.sum() * u32::from(self.settings.rails);
        while self.engine.room() <= session {
            self.ops = self.ops * 2 + 64;
            let ops = (0..self.ops).map(|_| Entry::vacant()).collect();
            self.engine.grow_ops(Counted(ops));
        }
        if self.engine.census().1 as usize >= self.peers {
            self.peers = self.peers * 2 + 2;
            let peers = (0..self.peers).map(|_| Entry::vacant()).collect();
            self.engine.grow_peers(peers);
        }
    }

    pub fn post(
        &mut self,
        role: Role,
        peer: PeerId,
        tag: i32,
        buffers: Buffers,
    ) -> Result<OpId, Error> {
        self.make_room();
        let post = Post {
            role,
            peer,
            tag,
            length: buffers.bytes().len() as u64,
            fragments: buffers.fragments.len() as u32,
            context: 0,
            user: 7,
        };
        let id = self.engine.post(post)?;
        self.home.buffers.insert(id, buffers);
        self.engine.start(&mut self.home, id);
        Ok(id)
    }

    /// Takes the results of all complete operations, with their buffers.
    pub fn take(&mut self) -> Vec<(Completion, Buffers)> {
        let mut taken = Vec::new();
        while let Some(completion) = self.engine.test_context(0) {
            assert_eq!(completion.user, 7);
            let used = self
                .home
                .exposed
                .values()
                .any(|exposed| exposed.op == completion.op);
            assert!(!used, "a complete operation is exposed");
            let buffers = self.home.buffers.remove(&completion.op).expect("buffers");
            self.home.remote.remove(&completion.op);
            taken.push((completion, buffers));
        }
        taken
    }

    /// Takes the next unexpected message.
    pub fn take_unexpected(&mut self) -> Option<(PeerId, i32, Vec<u8>)> {
        let message = self.engine.take_unexpected(&mut self.home)?;
        let bytes = self.home.stash.remove(&message.op).expect("a stash");
        let payload = bytes[crate::bmi::engine::HEADER..].to_vec();
        assert_eq!(payload.len() as u64, message.length);
        Some((message.peer, message.tag, payload))
    }
}
