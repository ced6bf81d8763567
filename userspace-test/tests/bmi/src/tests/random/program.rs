// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A random program and what it has posted.

use crate::{
    bmi::engine::{
        Completion,
        OpId,
        PeerId,
        Role, //
    },
    sim::{
        Buffers,
        Settings,
        World, //
    },
    tests::pair::pattern,
};

/// Node that both clients connect to.
const SERVER: usize = 2;

/// A link and a direction: `true` is from the client to the server.
pub type Way = (usize, bool);

/// An act of a program.
#[derive(Clone, Debug)]
pub enum Act {
    /// Way, tag, length, fragments.
    Send(Way, i32, usize, usize),
    /// Way of the message, tag, room, fragments.
    Receive(Way, i32, usize, usize),
    Unexpected(Way, usize),
    TakeUnexpected,
    /// Cancels one of the operations.
    Cancel(usize),
    Run(usize),
    /// A node gives up an idle session.
    GiveUp(usize),
    /// Whether a node fails to expose memory.
    Exposure(usize, bool),
    /// The devices on which a node fails to expose memory, or has none, a bit for each.
    ExposureOn(usize, u8),
    MemoryOn(usize, u8),
    /// Removes a device of a node that has another one.
    Remove(usize, u8),
    /// Breaks one of the connections.
    Break(usize),
    Freeze(usize),
    Thaw,
    Tick(u64),
    /// Whether the server refuses connections.
    Refuse(bool),
}

/// Operation that the program has posted.
pub struct Posted {
    pub role: Role,
    pub way: Way,
    pub tag: i32,
    pub node: usize,
    pub op: OpId,
    /// Bytes of a send.
    pub bytes: Vec<u8>,
    pub result: Option<(Completion, Vec<u8>)>,
}

impl Posted {
    pub fn is_send(&self) -> bool {
        self.role == Role::Send
    }
}

/// A program.
pub struct Program {
    pub world: World,
    pub posted: Vec<Posted>,
    /// Unexpected messages that were taken, by way.
    pub unexpected: Vec<(Way, Vec<u8>)>,
    /// Numbers of the peers of each link, at the client and at the server.
    peers: [[PeerId; 2]; 2],
}

impl Program {
    pub fn new(settings: [Settings; 3], seed: u64) -> Self {
        let mut world = World::new(seed, &settings);
        let peers = [0, 1].map(|client| world.introduce(client, SERVER));
        Self {
            world,
            posted: Vec::new(),
            unexpected: Vec::new(),
            peers,
        }
    }

    /// Returns the nodes that send and receive on a way, with their numbers of the other one.
    fn sides(&self, (link, up): Way) -> [(usize, PeerId); 2] {
        let client = (link, self.peers[link][0]);
        let server = (SERVER, self.peers[link][1]);
        if up {
            [client, server]
        } else {
            [server, client]
        }
    }

    pub fn execute(&mut self, acts: &[Act]) {
        for act in acts {
            self.act(act);
            self.take();
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Send(way, tag, length, fragments) => {
                let bytes = pattern(self.posted.len() as u64, length);
                self.post(Role::Send, way, tag, bytes, fragments);
            }
            Act::Receive(way, tag, room, fragments) => self.receive(way, tag, room, fragments),
            Act::Unexpected(way, length) => {
                let bytes = pattern(self.posted.len() as u64, length);
                self.post(Role::SendUnexpected, way, 9, bytes, 1);
            }
            Act::TakeUnexpected => self.take_unexpected(),
            Act::Cancel(which) => self.cancel(which),
            Act::Run(steps) => self.world.run_some(steps),
            Act::GiveUp(node) => {
                let node = &mut self.world.nodes[node];
                node.engine.give_up_idle(&mut node.home);
            }
            Act::Exposure(node, fails) => self.world.nodes[node].home.no_exposure = fails,
            Act::ExposureOn(node, devices) => {
                self.world.nodes[node].home.no_exposure_on = devices;
            }
            Act::MemoryOn(node, devices) => self.world.nodes[node].home.no_memory_on = devices,
            Act::Remove(node, device) => {
                let living = self.world.nodes[node].home.living();
                if living.len() > 1 && living.contains(&device) {
                    self.world.remove_device(node, device);
                }
            }
            Act::Break(which) => self.break_one(which),
            Act::Freeze(node) => self.world.nodes[node].frozen = true,
            Act::Thaw => self.thaw(),
            Act::Tick(time) => self.world.tick(time),
            Act::Refuse(refuses) => self.world.nodes[SERVER].refuses = refuses,
        }
    }

    fn post(&mut self, role: Role, way: Way, tag: i32, bytes: Vec<u8>, fragments: usize) {
        let sides = self.sides(way);
        let (node, peer) = match role {
            Role::Receive => sides[1],
            _ => sides[0],
        };
        if self.world.nodes[node].frozen {
            return;
        }
        let buffers = Buffers::divide(&bytes, fragments);
        // The server cannot connect to its clients.
        let Ok(op) = self.world.nodes[node].post(role, peer, tag, buffers) else {
            return;
        };
        self.posted.push(Posted {
            role,
            way,
            tag,
            node,
            op,
            bytes,
            result: None,
        });
    }

    pub fn receive(&mut self, way: Way, tag: i32, room: usize, fragments: usize) {
        self.post(Role::Receive, way, tag, vec![0; room], fragments);
    }

    fn cancel(&mut self, which: usize) {
        if self.posted.is_empty() {
            return;
        }
        let posted = &self.posted[which % self.posted.len()];
        let node = &mut self.world.nodes[posted.node];
        if posted.result.is_none() && !node.frozen {
            node.engine.cancel(&mut node.home, posted.op);
        }
    }

    pub fn cancel_all(&mut self) {
        for which in 0..self.posted.len() {
            self.cancel(which);
        }
    }

    fn break_one(&mut self, which: usize) {
        let connections = self.world.established();
        if !connections.is_empty() {
            self.world
                .break_connection(connections[which % connections.len()]);
        }
    }

    pub fn thaw(&mut self) {
        for node in &mut self.world.nodes {
            node.frozen = false;
        }
    }

    /// Takes the results of all operations.
    pub fn take(&mut self) {
        for node in 0..self.world.nodes.len() {
            for (result, buffers) in self.world.nodes[node].take() {
                let is_it = |posted: &&mut Posted| (posted.node, posted.op) == (node, result.op);
                let posted = self
                    .posted
                    .iter_mut()
                    .find(is_it)
                    .expect("a posted operation");
                assert!(posted.result.is_none(), "an operation completes twice");
                posted.result = Some((result, buffers.bytes()));
            }
        }
    }

    pub fn take_unexpected(&mut self) {
        for node in 0..self.world.nodes.len() {
            while let Some((peer, _, bytes)) = self.world.nodes[node].take_unexpected() {
                let link = match node {
                    SERVER => self.peers.iter().position(|peers| peers[1] == peer),
                    client => Some(client),
                };
                let way = (link.expect("a known client"), node == SERVER);
                self.unexpected.push((way, bytes));
                let node = &mut self.world.nodes[node];
                node.engine.release(&mut node.home, peer);
            }
        }
    }

    /// Drops the program's references to all peers.
    pub fn release(&mut self) {
        for link in 0..2 {
            for (node, peer) in self.sides((link, true)) {
                let node = &mut self.world.nodes[node];
                node.engine.release(&mut node.home, peer);
            }
        }
    }
}
