// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Credits that a side lends to several peers.

use super::pair::{
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        OpId,
        PeerId,
        Role, //
    },
    sim::{
        Buffers,
        Settings,
        World,
        SMALL, //
    },
};

/// Node that lends. The others send to it.
const LENDER: usize = 0;
/// Messages of each peer that find no receive.
const UNMATCHED: i32 = 100;
/// Fewer than two peers may have, and more than one may have.
const ALL: u32 = SMALL.lend + 6;

/// A lender, and the numbers that its peers have there.
struct Loans {
    world: World,
    peers: Vec<PeerId>,
}

impl Loans {
    /// Lets each peer send more than it may, and the lender wait for a message that never comes.
    fn new(seed: u64, peers: usize) -> Self {
        let settings = Settings {
            lend_all: ALL,
            ..SMALL
        };
        let mut world = World::new(seed, &vec![settings; peers + 1]);
        let connect = |node| {
            let [lender, peer] = world.introduce(node, LENDER);
            for tag in 0..UNMATCHED {
                let bytes = Buffers::divide(b"bytes", 1);
                let sent = world.nodes[node].post(Role::Send, lender, tag, bytes);
                sent.expect("an operation");
            }
            world.run();
            peer
        };
        let peers = (1..=peers).map(connect).collect();
        let mut loans = Self { world, peers };
        for peer in 0..loans.peers.len() {
            loans.receive(peer, UNMATCHED);
            loans.world.run();
        }
        loans
    }

    fn receive(&mut self, peer: usize, tag: i32) -> OpId {
        let memory = Buffers::divide(&[0; 5], 1);
        let node = &mut self.world.nodes[LENDER];
        let receive = node.post(Role::Receive, self.peers[peer], tag, memory);
        receive.expect("an operation")
    }

    fn receive_all(&mut self, peer: usize) {
        for tag in 0..UNMATCHED {
            self.receive(peer, tag);
        }
        self.world.run();
    }

    /// Returns the messages that no receive has taken, and the credits that are lent.
    fn stashed_and_lent(&self) -> (u32, u32) {
        let node = &self.world.nodes[LENDER];
        (node.home.stash.len() as u32, node.engine.lent())
    }
}

#[test]
fn loans_to_all_peers_have_a_limit() {
    let window = u32::from(SMALL.window.data);
    let mut loans = Loans::new(40, 1);
    assert_eq!(loans.stashed_and_lent(), (SMALL.lend + window, SMALL.lend));
    loans.receive_all(0);
    assert_eq!(loans.stashed_and_lent(), (0, 0));
    for peers in [2, 4] {
        let mut loans = Loans::new(41, peers);
        let all = peers as u32 * window + ALL;
        assert_eq!(loans.stashed_and_lent(), (all, ALL));
        for peer in (0..peers).rev() {
            loans.receive_all(peer);
        }
        assert_eq!(loans.stashed_and_lent(), (0, 0), "all is paid back");
    }
}

#[test]
fn loans_of_a_broken_connection_are_forgotten() {
    let mut loans = Loans::new(42, 2);
    let broken = loans.world.established()[0];
    loans.world.break_connection(broken);
    loans.world.run();
    let (_, lent) = loans.stashed_and_lent();
    assert!(lent < ALL, "{lent}");
    // The other peer gets credits with its answer to PING.
    for _ in 0..10 {
        loans.world.tick(SMALL.silence);
        loans.world.run();
    }
    let left = u32::from(SMALL.window.data) + SMALL.lend;
    assert_eq!(loans.stashed_and_lent(), (left, SMALL.lend));
}

#[test]
fn a_session_survives_loans_beside_a_slow_rail() {
    const MESSAGES: i32 = 100;
    for seed in 0..20 {
        let settings = Settings { rails: 2, ..SMALL };
        let mut pair = Pair::new(seed, settings);
        pair.world.slow = Some(pair.world.established()[seed as usize % 2]);
        let last = pair.receive(SERVER, MESSAGES - 1, 5, 1);
        pair.world.run();
        let sends: Vec<_> = (0..MESSAGES)
            .map(|tag| pair.send(CLIENT, tag, b"bytes", 1))
            .collect();
        pair.world.run();
        let rest: Vec<_> = (0..MESSAGES - 1)
            .map(|tag| pair.receive(SERVER, tag, 5, 1))
            .collect();
        pair.world.run();
        for receive in rest.into_iter().chain([last]) {
            assert_eq!(pair.error_of(SERVER, receive), None, "seed {seed}");
        }
        for send in sends {
            assert_eq!(pair.error_of(CLIENT, send), None, "seed {seed}");
        }
    }
}
