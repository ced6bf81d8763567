// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! All nodes and connections, and the steps that can be executed next.

use super::{
    home::Request,
    memory::Buffers,
    network::{
        End,
        EndState,
        Packet,
        Step, //
    },
    node::{
        Node,
        Settings, //
    },
};
use crate::bmi::engine::{
    ConnectRequest,
    Error,
    PeerId,
    Place,
    RailId,
    Role,
    Wanted,
    FEATURE_DEVICES,
    MAX_RAILS, //
};
use fastrand::Rng;
use std::collections::{
    HashMap,
    VecDeque, //
};

/// Bytes of private data that RoCE delivers.
const PRIVATE_DATA: usize = 56;

/// Operation whose memory is exposed, with these limits, or withdrawn.
type Exposure = (Place, Option<Wanted>);

/// All of the simulation.
pub struct World {
    pub nodes: Vec<Node>,
    pub ends: Vec<[End; 2]>,
    pub(super) steps: Vec<Step>,
    /// Connection and end of each rail of a node.
    pub(super) places: HashMap<(usize, RailId), (usize, usize)>,
    /// Requests of nodes that concern their memory.
    memory: Vec<VecDeque<Exposure>>,
    rng: Rng,
    now: u64,
    /// Connection whose messages arrive after all others.
    pub slow: Option<usize>,
    /// Accesses to memory that is not exposed, each of which has broken its connection.
    pub violations: usize,
    /// Messages that were delivered, and RDMA requests.
    pub messages: usize,
    pub rdma: usize,
    /// Bytes that RDMA has moved, by the devices whose memory was exposed.
    pub moved: [usize; MAX_RAILS],
}

impl World {
    pub fn new(seed: u64, settings: &[Settings]) -> Self {
        let nodes = settings.iter().enumerate().map(|(index, settings)| {
            Node::new(Settings {
                instance: index as u64 + 1,
                ..*settings
            })
        });
        Self {
            nodes: nodes.collect(),
            ends: Vec::new(),
            steps: Vec::new(),
            places: HashMap::new(),
            memory: vec![VecDeque::new(); settings.len()],
            rng: Rng::with_seed(seed),
            now: 0,
            slow: None,
            violations: 0,
            messages: 0,
            rdma: 0,
            moved: [0; MAX_RAILS],
        }
    }

    /// Replaces a node by a new one, as a restart does. Its connections break.
    pub fn restart(&mut self, node: usize) {
        for connection in 0..self.ends.len() {
            if self.ends[connection].iter().any(|end| end.node == node) {
                self.shut(connection, node);
            }
        }
        let mut settings = self.nodes[node].settings;
        settings.instance += 1000;
        self.nodes[node] = Node::new(settings);
        self.memory[node].clear();
        self.places.retain(|place, _| place.0 != node);
    }

    fn shut(&mut self, connection: usize, node: usize) {
        self.break_connection(connection);
        for end in &mut self.ends[connection] {
            if end.node == node {
                end.state = EndState::Closed;
                end.completions.clear();
            }
        }
    }

    /// Creates a peer at `node` for the node `to`.
    pub fn address(&mut self, node: usize, to: usize) -> PeerId {
        self.nodes[node].make_room();
        let peer = self.nodes[node].engine.add_peer().expect("a peer");
        self.nodes[node].home.addresses.insert(peer, to);
        peer
    }

    /// Connects a node to another one, and lets that one know it by a message. Returns the number
    /// of the other one here, and of this one there.
    pub fn introduce(&mut self, node: usize, to: usize) -> [PeerId; 2] {
        let other = self.address(node, to);
        self.nodes[node]
            .post(Role::SendUnexpected, other, 0, Buffers::divide(b"", 1))
            .expect("a send");
        self.run();
        let (peer, _, _) = self.nodes[to].take_unexpected().expect("a message");
        self.run();
        assert_eq!(self.nodes[node].take().len(), 1);
        [other, peer]
    }

    /// Executes random steps until nothing is left to do.
    pub fn run(&mut self) {
        let mut limit = 2_000_000;
        while self.step() {
            limit -= 1;
            assert!(limit > 0, "the nodes never come to rest");
        }
    }

    /// Executes at most so many random steps.
    pub fn run_some(&mut self, steps: usize) {
        for _ in 0..steps {
            if !self.step() {
                break;
            }
        }
    }

    /// Lets time pass on all nodes that are not frozen.
    pub fn tick(&mut self, time: u64) {
        self.now += time;
        for node in 0..self.nodes.len() {
            if !self.nodes[node].frozen {
                let Node { engine, home, .. } = &mut self.nodes[node];
                engine.tick(home, self.now);
            }
        }
        self.collect();
    }

    /// Executes a random step. Returns `false` if there is none.
    pub fn step(&mut self) -> bool {
        self.collect();
        let Some(index) = self.choose() else {
            return false;
        };
        let step = self.steps.swap_remove(index);
        self.execute(step);
        self.collect();
        true
    }

    /// Chooses a step of a node that is not frozen.
    fn choose(&mut self) -> Option<usize> {
        if self.slow.is_none() && !self.nodes.iter().any(|node| node.frozen) {
            return (!self.steps.is_empty()).then(|| self.rng.usize(..self.steps.len()));
        }
        let runnable: Vec<_> = (0..self.steps.len())
            .filter(|index| self.can_run(self.steps[*index]))
            .collect();
        let is_slow = |index: &usize| matches!(self.steps[*index], Step::Deliver(connection, _) if Some(connection) == self.slow);
        let (slow, fast): (Vec<_>, Vec<_>) = runnable.into_iter().partition(is_slow);
        let runnable = if fast.is_empty() { slow } else { fast };
        (!runnable.is_empty()).then(|| runnable[self.rng.usize(..runnable.len())])
    }

    /// Returns whether the node that executes a step runs.
    fn can_run(&self, step: Step) -> bool {
        let node = match step {
            Step::Deliver(connection, end)
            | Step::Complete(connection, end)
            | Step::Established(connection, end)
            | Step::Closed(connection, end) => self.ends[connection][end].node,
            Step::Request(connection) => self.ends[connection][1].node,
            Step::Memory(node) | Step::End(node) | Step::Ended(node, _) => node,
        };
        // A device answers RDMA without its node.
        let rdma = match step {
            Step::Deliver(connection, end) => {
                matches!(
                    self.ends[connection][end].inbound.front(),
                    Some(Packet::Rdma(_))
                )
            }
            _ => false,
        };
        rdma || !self.nodes[node].frozen
    }

    fn execute(&mut self, step: Step) {
        match step {
            Step::Deliver(connection, end) => self.deliver(connection, end),
            Step::Complete(connection, end) => self.complete(connection, end),
            Step::Request(connection) => self.request(connection),
            Step::Established(connection, end) => self.establish(connection, end),
            Step::Closed(connection, end) => self.close(connection, end, None),
            Step::Memory(node) => self.change_memory(node),
            Step::End(node) => self.begin_task(node),
            Step::Ended(node, rail) => self.end_task(node, rail),
        }
    }

    /// Turns the requests of all engines into packets and steps.
    pub fn collect(&mut self) {
        for node in 0..self.nodes.len() {
            let requests = std::mem::take(&mut self.nodes[node].home.requests);
            for request in requests {
                self.accept_request(node, request);
            }
        }
    }

    fn accept_request(&mut self, node: usize, request: Request) {
        match request {
            Request::Connect(rail, hello, device, turn) => {
                self.connect(node, rail, hello, (device, turn));
            }
            Request::Accept(connection, rail, hello) => {
                let connection = connection as usize;
                let gone = self.ends[connection][0].state != EndState::Waiting;
                self.places.insert((node, rail), (connection, 1));
                self.ends[connection][1].rail = Some(rail);
                let device = self.ends[connection][1].device;
                self.nodes[node].home.places.insert(rail, device);
                self.ends[connection][0].private_data = hello;
                if gone {
                    self.ends[connection][1].state = EndState::Flushing;
                    self.steps.push(Step::Closed(connection, 1));
                } else {
                    self.steps.push(Step::Established(connection, 0));
                }
            }
            Request::Reject(connection) => {
                let connection = connection as usize;
                self.ends[connection][1].state = EndState::Closed;
                self.close(connection, 0, Some(Error::Refused));
            }
            Request::Disconnect(rail, how) => self.begin_disconnect(node, rail, how),
            Request::Send(rail, cookie, message) => {
                let packet = Packet::Message(message);
                self.transmit(node, rail, vec![packet], cookie);
            }
            Request::Rdma(rail, cookie, requests) => {
                self.rdma += requests.len();
                let packets = requests.into_iter().map(Packet::Rdma).collect();
                self.transmit(node, rail, packets, cookie);
            }
            Request::Expose(place, wanted) => self.queue_memory(node, place, Some(wanted)),
            Request::Withdraw(place) => self.queue_memory(node, place, None),
        }
    }

    fn queue_memory(&mut self, node: usize, place: Place, expose: Option<Wanted>) {
        self.memory[node].push_back((place, expose));
        self.steps.push(Step::Memory(node));
    }

    fn change_memory(&mut self, node: usize) {
        let Some((place, expose)) = self.memory[node].pop_front() else {
            return;
        };
        let Node { engine, home, .. } = &mut self.nodes[node];
        match expose {
            Some(wanted) => {
                let result = home.expose_now(place, wanted);
                engine.exposed(home, place, result);
            }
            None => {
                home.withdraw_now(place);
                engine.withdrawn(home, place);
            }
        }
    }

    fn connect(&mut self, node: usize, rail: RailId, hello: Vec<u8>, (device, turn): (u8, u8)) {
        let to = self.nodes[node].home.addresses[&rail.peer];
        let mut ends = [End::new(node, Some(rail)), End::new(to, None)];
        ends[1].private_data = hello;
        ends[0].device = device;
        let living = self.nodes[to].home.living();
        ends[1].device = living[usize::from(turn) % living.len()];
        self.places.insert((node, rail), (self.ends.len(), 0));
        self.ends.push(ends);
        self.steps.push(Step::Request(self.ends.len() - 1));
    }

    fn request(&mut self, connection: usize) {
        let end = &self.ends[connection][1];
        let device = end.device;
        let private_data = self.private_data(connection, 1);
        let end = &self.ends[connection][1];
        let node = &mut self.nodes[end.node];
        if self.ends[connection][0].state != EndState::Waiting {
            return;
        }
        if node.refuses {
            self.ends[connection][1].state = EndState::Closed;
            return self.close(connection, 0, Some(Error::Refused));
        }
        node.make_room();
        let Node { engine, home, .. } = node;
        let call = ConnectRequest {
            number: connection as u64,
            device,
        };
        engine.requested(home, call, &private_data);
    }

    /// Returns the private data that an end gets.
    fn private_data(&self, connection: usize, end: usize) -> Vec<u8> {
        let ends = &self.ends[connection];
        let mut private_data = ends[end].private_data.clone();
        let is_old = ends.iter().any(|end| self.nodes[end.node].is_old);
        if let Some(features) = private_data.get_mut(8).filter(|_| is_old) {
            *features &= !(FEATURE_DEVICES as u8);
        }
        private_data.resize(PRIVATE_DATA, 0);
        private_data
    }

    fn establish(&mut self, connection: usize, end: usize) {
        let state = &mut self.ends[connection][end];
        if state.state != EndState::Waiting {
            return;
        }
        state.state = EndState::Up;
        let parked = state.inbound.len();
        let (node, rail) = (state.node, state.rail.expect("a rail"));
        let private_data = match end {
            0 => self.private_data(connection, 0),
            _ => vec![0; PRIVATE_DATA],
        };
        let Node { engine, home, .. } = &mut self.nodes[node];
        engine.established(home, rail, &private_data);
        if end == 0 {
            self.steps.push(Step::Established(connection, 1));
        }
        self.steps
            .extend((0..parked).map(|_| Step::Deliver(connection, end)));
    }

    /// Returns the connections that are established on both sides.
    pub fn established(&self) -> Vec<usize> {
        let up = |ends: &[End; 2]| ends.iter().all(|end| end.state == EndState::Up);
        (0..self.ends.len())
            .filter(|index| up(&self.ends[*index]))
            .collect()
    }
}
