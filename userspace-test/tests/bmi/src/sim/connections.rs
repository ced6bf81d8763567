// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What happens on connections: delivery, completions, RDMA, and the end.

use super::{
    home::{
        Exposed,
        RdmaRequest, //
    },
    network::{
        End,
        EndState,
        Packet,
        Step, //
    },
    node::Node,
    world::World, //
};
use crate::bmi::engine::{
    Cookie,
    Error,
    RailId,
    Rdma, //
};

impl World {
    pub(super) fn find(&self, node: usize, rail: RailId) -> Option<(usize, usize)> {
        self.places.get(&(node, rail)).copied()
    }

    pub(super) fn transmit(
        &mut self,
        node: usize,
        rail: RailId,
        packets: Vec<Packet>,
        cookie: Cookie,
    ) {
        let (connection, index) = self.find(node, rail).expect("a connection");
        let limits = [0, 1].map(|end| self.nodes[self.ends[connection][end].node].settings);
        let [end, other] = self.both(connection, index);
        let count = packets.len() as u16;
        if end.state != EndState::Up {
            // A post to a broken connection is flushed.
            assert_ne!(end.state, EndState::Waiting, "a request before ESTABLISHED");
            if end.state == EndState::Flushing {
                end.completions.push_back((cookie, count, false));
                self.steps.push(Step::Complete(connection, index));
            }
            return;
        }
        end.queue += count;
        assert!(end.queue <= limits[index].queue, "the send queue overflows");
        for packet in &packets {
            if let Packet::Message(message) = packet {
                let most = limits[0].message.min(limits[1].message);
                assert!(
                    message.start.len() <= most as usize,
                    "a message is too long"
                );
            }
        }
        end.outstanding.push_back((cookie, count));
        other.inbound.extend(packets);
        let receives = limits[1 - index].window.sum() as usize;
        assert!(other.messages() <= receives, "a message without a receive");
        self.steps
            .extend((0..count).map(|_| Step::Deliver(connection, 1 - index)));
    }

    /// Puts bytes of a hostile peer on the way to an end.
    pub fn forge(&mut self, connection: usize, end: usize, bytes: Vec<u8>) {
        let inbound = &mut self.ends[connection][end].inbound;
        inbound.push_back(Packet::Forged(bytes));
        self.steps.push(Step::Deliver(connection, end));
    }

    /// Delivers bytes of a hostile peer to an end, before all that is on its way there.
    pub fn forge_now(&mut self, connection: usize, end: usize, bytes: Vec<u8>) {
        let state = &mut self.ends[connection][end];
        state.received += 1;
        let (node, rail) = (state.node, state.rail.expect("a rail"));
        self.arrive(node, rail, bytes);
        self.collect();
    }

    /// Creates a connection to a node, whose other side has given up. Returns its number.
    pub fn given_up(&mut self, node: usize) -> usize {
        let mut ends = [End::new(node, None), End::new(node, None)];
        ends[0].state = EndState::Closed;
        self.ends.push(ends);
        self.ends.len() - 1
    }

    fn both(&mut self, connection: usize, index: usize) -> [&mut End; 2] {
        let [first, second] = &mut self.ends[connection];
        match index {
            0 => [first, second],
            _ => [second, first],
        }
    }

    pub(super) fn deliver(&mut self, connection: usize, index: usize) {
        let sender = self.ends[connection][1 - index].node;
        let end = &mut self.ends[connection][index];
        if end.state != EndState::Up {
            return;
        }
        let Some(packet) = end.inbound.pop_front() else {
            return;
        };
        let (node, rail) = (end.node, end.rail.expect("a rail"));
        end.received += u32::from(!matches!(packet, Packet::Rdma(_)));
        let acknowledges = match packet {
            Packet::Message(message) => {
                self.messages += 1;
                let bytes = self.nodes[sender].home.encode(&message);
                self.arrive(node, rail, bytes);
                true
            }
            Packet::Forged(bytes) => {
                self.arrive(node, rail, bytes);
                false
            }
            Packet::Rdma(request) => {
                let device = self.ends[connection][index].device;
                if !self.access(sender, (node, device), &request) {
                    self.violations += 1;
                    return self.break_connection(connection);
                }
                request.last
            }
        };
        if acknowledges {
            self.acknowledge(connection, 1 - index);
        }
    }

    fn arrive(&mut self, node: usize, rail: RailId, bytes: Vec<u8>) {
        let Node { engine, home, .. } = &mut self.nodes[node];
        home.message = bytes.clone();
        engine.arrived(home, rail, &bytes);
        home.message.clear();
    }

    /// Executes an RDMA request of `from` in the memory of `to`, at a device.
    fn access(&mut self, from: usize, (to, device): (usize, u8), request: &RdmaRequest) -> bool {
        let found = self.nodes[to].home.exposed.get(&request.context).copied();
        let allows = |exposed: &Exposed| (exposed.rdma, exposed.device) == (request.rdma, device);
        let Some(exposed) = found.filter(allows) else {
            return false;
        };
        let base = u64::from(request.context) << 32;
        let Some(inside) = request.address.checked_sub(base) else {
            return false;
        };
        if inside as usize + request.length > exposed.length {
            return false;
        }
        let at = exposed.offset + inside as usize;
        let (source, target) = match request.rdma {
            Rdma::Write => ((from, request.op, request.offset), (to, exposed.op, at)),
            Rdma::Read => ((to, exposed.op, at), (from, request.op, request.offset)),
        };
        self.moved[usize::from(device)] += request.length;
        let read = self.nodes[source.0].home.buffers.get(&source.1);
        let bytes = read
            .expect("buffers to read")
            .read(source.2, request.length);
        let written = self.nodes[target.0].home.buffers.get_mut(&target.1);
        written.expect("buffers to write").write(target.2, &bytes);
        true
    }

    fn acknowledge(&mut self, connection: usize, index: usize) {
        let end = &mut self.ends[connection][index];
        let Some((cookie, count)) = end.outstanding.pop_front() else {
            return;
        };
        end.completions.push_back((cookie, count, true));
        self.steps.push(Step::Complete(connection, index));
        self.close_if_drained(connection, index);
    }

    pub(super) fn close_if_drained(&mut self, connection: usize, index: usize) {
        let end = &self.ends[connection][index];
        if end.closing && end.outstanding.is_empty() {
            self.break_connection(connection);
        }
    }

    pub(super) fn complete(&mut self, connection: usize, index: usize) {
        let end = &mut self.ends[connection][index];
        let Some((cookie, count, success)) = end.completions.pop_front() else {
            return;
        };
        end.queue = end.queue.saturating_sub(count);
        let (node, rail) = (end.node, end.rail.expect("a rail"));
        let closed = end.state == EndState::Flushing && end.completions.is_empty();
        let Node { engine, home, .. } = &mut self.nodes[node];
        engine.completed(home, rail, cookie, success);
        if closed {
            self.steps.push(Step::Closed(connection, index));
        }
    }

    /// Breaks a connection: what is on its way is lost, and what is outstanding is flushed.
    pub fn break_connection(&mut self, connection: usize) {
        for index in [0, 1] {
            let end = &mut self.ends[connection][index];
            end.inbound.clear();
            if matches!(end.state, EndState::Flushing | EndState::Closed) {
                continue;
            }
            end.state = EndState::Flushing;
            let flushed: Vec<_> = end.outstanding.drain(..).collect();
            for (cookie, count) in flushed {
                end.completions.push_back((cookie, count, false));
                self.steps.push(Step::Complete(connection, index));
            }
            if end.completions.is_empty() {
                self.steps.push(Step::Closed(connection, index));
            }
        }
    }

    /// Removes a device of a node: the connections over it break.
    pub fn remove_device(&mut self, node: usize, device: u8) {
        self.nodes[node].home.lost |= 1 << device;
        for connection in 0..self.ends.len() {
            let mut ends = self.ends[connection].iter();
            if ends.any(|end| (end.node, end.device) == (node, device)) {
                self.break_connection(connection);
            }
        }
    }

    pub(super) fn close(&mut self, connection: usize, index: usize, reason: Option<Error>) {
        let end = &mut self.ends[connection][index];
        if end.state == EndState::Closed || !end.completions.is_empty() {
            return;
        }
        end.state = EndState::Closed;
        let node = end.node;
        if let Some(rail) = end.rail {
            self.begin_free(node, rail, (connection, index), reason);
        }
    }
}
