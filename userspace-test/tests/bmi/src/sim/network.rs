// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connections: what is on its way, and what has completed.

use super::home::{
    Message,
    RdmaRequest, //
};
use crate::bmi::engine::{
    Cookie,
    RailId, //
};
use std::collections::VecDeque;

/// A packet on its way.
#[derive(Clone, Debug)]
pub enum Packet {
    Message(Message),
    /// Bytes of a hostile peer.
    Forged(Vec<u8>),
    Rdma(RdmaRequest),
}

/// State of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// Not established on this side.
    Waiting,
    Up,
    /// Broken; completions are left to report.
    Flushing,
    Closed,
}

/// One end of a connection.
pub struct End {
    pub node: usize,
    /// Device of the node.
    pub device: u8,
    /// The rail of the node, once the node knows of it.
    pub rail: Option<RailId>,
    pub state: EndState,
    pub inbound: VecDeque<Packet>,
    /// Requests that have not completed, and how many entries of the queue each frees.
    pub outstanding: VecDeque<(Cookie, u16)>,
    /// Completions that are not reported, and whether they are successes.
    pub completions: VecDeque<(Cookie, u16, bool)>,
    /// Messages that were delivered to this end.
    pub received: u32,
    /// Entries of the send queue in use.
    pub queue: u16,
    /// The connection is closed after the outstanding requests.
    pub closing: bool,
    /// The free of the Endpoint has returned.
    pub freed: bool,
    pub private_data: Vec<u8>,
}

impl End {
    pub fn new(node: usize, rail: Option<RailId>) -> Self {
        Self {
            node,
            device: 0,
            rail,
            state: EndState::Waiting,
            inbound: VecDeque::new(),
            outstanding: VecDeque::new(),
            completions: VecDeque::new(),
            received: 0,
            queue: 0,
            closing: false,
            freed: false,
            private_data: Vec::new(),
        }
    }

    /// Returns the number of messages on their way to this end.
    pub fn messages(&self) -> usize {
        let is_message = |packet: &&Packet| !matches!(packet, Packet::Rdma(_));
        self.inbound.iter().filter(is_message).count()
    }
}

/// A step that can be executed.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    /// Delivers the next packet to an end.
    Deliver(usize, usize),
    /// Reports the next completion of an end.
    Complete(usize, usize),
    /// Passes a connection request to the node.
    Request(usize),
    Established(usize, usize),
    Closed(usize, usize),
    /// Executes a request of a node that concerns its memory.
    Memory(usize),
    /// The worker of a node begins the call that is queued first.
    End(usize),
    /// The worker's call for a rail returns.
    Ended(usize, RailId),
}
