// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The memory that a peer can access: whose, when and how much.

use super::{
    data::PULL,
    pair::{
        pattern,
        Pair,
        CLIENT,
        SERVER, //
    },
};
use crate::{
    bmi::engine::{
        Error,
        Post,
        Role,
        LONGEST, //
    },
    sim::SMALL, //
};

#[test]
fn memory_is_exposed_during_transfers_only() {
    for settings in [SMALL, PULL] {
        let mut pair = Pair::new(13, settings);
        let receive = pair.receive(SERVER, 1, 5000, 2);
        pair.world.run();
        assert!(
            pair.world.nodes[SERVER].home.exposed.is_empty(),
            "before a message"
        );
        let send = pair.send(CLIENT, 1, &pattern(1, 5000), 2);
        let mut exposed = 0;
        while pair.world.step() {
            let nodes = pair.world.nodes.iter();
            exposed += nodes.map(|node| node.home.exposed.len()).sum::<usize>();
        }
        assert!(exposed > 0);
        assert_eq!(pair.error_of(SERVER, receive), None);
        assert_eq!(pair.error_of(CLIENT, send), None);
        assert!(pair
            .world
            .nodes
            .iter()
            .all(|node| node.home.exposed.is_empty()));
    }
}

#[test]
fn without_memory_to_expose_a_receive_fails_and_a_send_is_pushed() {
    let mut pair = Pair::new(14, PULL);
    pair.world.nodes[CLIENT].home.no_exposure = true;
    pair.transfer(CLIENT, 1, 5000, (2, 2));
    pair.world.nodes[SERVER].home.no_exposure = true;
    let receive = pair.receive(SERVER, 1, 5000, 1);
    let send = pair.send(CLIENT, 1, &pattern(1, 5000), 1);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::NoMemory));
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::NoMemory));
    pair.transfer(SERVER, 1, 100, (1, 1));
}

/// Sends a message, and returns the number of fragments and bytes that its receive exposes.
fn exposed_for(
    pair: &mut Pair,
    length: usize,
    (room, fragments): (usize, usize),
) -> (usize, usize) {
    let bytes = pattern(1, length);
    let receive = pair.receive(SERVER, 1, room, fragments);
    let send = pair.send(CLIENT, 1, &bytes, 1);
    let mut most = (0, 0);
    while pair.world.step() {
        let exposed = pair.world.nodes[SERVER].home.exposed.values();
        let lengths: Vec<_> = exposed.map(|part| part.length).collect();
        most = most.max((lengths.len(), lengths.iter().sum()));
    }
    assert_eq!(pair.error_of(CLIENT, send), None);
    let (result, received) = pair.result_of(SERVER, receive);
    assert_eq!((result.error, result.actual), (None, length as u64));
    assert_eq!(received[..length], bytes);
    most
}

#[test]
fn a_receive_exposes_the_bytes_of_its_message() {
    // A message has room for 13 descriptors.
    let mut pair = Pair::new(16, SMALL);
    assert_eq!(exposed_for(&mut pair, 500, (5000, 10)), (1, 500));
    assert_eq!(exposed_for(&mut pair, 1000, (5000, 40)), (8, 1000));
}

#[test]
fn a_receive_of_too_many_fragments_takes_a_message() {
    let mut pair = Pair::new(17, SMALL);
    assert_eq!(exposed_for(&mut pair, 5000, (5000, 13)), (13, 5000));
    assert_eq!(exposed_for(&mut pair, 5000, (6000, 40)), (1, 5000));
}

#[test]
fn only_a_receive_may_be_longer_than_the_longest_message() {
    let mut pair = Pair::new(18, SMALL);
    let peer = pair.peers[CLIENT];
    let engine = &mut pair.world.nodes[CLIENT].engine;
    let mut post = |role, length| {
        let post = Post {
            role,
            peer,
            tag: 1,
            length,
            fragments: 1,
            context: 0,
            user: 7,
        };
        engine.post(post).err()
    };
    assert_eq!(post(Role::Send, LONGEST), None);
    assert_eq!(post(Role::Send, LONGEST + 1), Some(Error::TooLong));
    assert_eq!(post(Role::Receive, u64::MAX), None);
}
