// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sessions that follow another: after a break, and after a restart of the client or the server.

use super::{
    data::RAILS,
    pair::{
        pattern,
        Pair,
        CLIENT,
        SERVER, //
    },
    sessions::phase, //
};
use crate::{
    bmi::engine::{
        Cookie,
        Error,
        Meaning,
        Phase,
        Role, //
    },
    sim::{
        Buffers,
        SMALL, //
    },
};

#[test]
fn a_break_fails_operations_and_the_next_post_connects_again() {
    for settings in [SMALL, RAILS] {
        for broken in 0..usize::from(settings.rails) {
            let mut pair = Pair::new(2, settings);
            let long = pair.send(CLIENT, 1, &pattern(1, 5000), 1);
            let waiting = pair.receive(CLIENT, 2, 10, 1);
            let served = pair.receive(SERVER, 3, 10, 1);
            pair.world.run();
            let connection = pair.world.established()[broken];
            pair.world.break_connection(connection);
            pair.world.run();
            for (node, id) in [(CLIENT, long), (CLIENT, waiting), (SERVER, served)] {
                assert_eq!(pair.error_of(node, id), Some(Error::Reset));
            }
            assert_eq!(phase(&pair, CLIENT), Some(Phase::Idle));
            let refused = pair.try_post(SERVER, Role::Send, 1, Buffers::divide(b"", 1));
            assert_eq!(
                refused,
                Err(Error::NotConnected),
                "only the client can connect"
            );
            // The server keeps the client's address.
            assert_eq!(pair.introduce(), pair.peers[SERVER]);
            pair.transfer(SERVER, 1, 5000, (1, 1));
        }
    }
}

#[test]
fn messages_of_a_broken_session_are_not_matched_later() {
    let mut pair = Pair::new(3, SMALL);
    pair.send(CLIENT, 1, b"of the first session", 1);
    pair.world.run();
    let connection = pair.world.established()[0];
    pair.world.break_connection(connection);
    pair.world.run();
    pair.introduce();
    pair.transfer(CLIENT, 1, 30, (1, 1));
}

#[test]
fn a_connection_that_the_server_has_not_missed_is_replaced() {
    let mut pair = Pair::new(4, SMALL);
    let receive = pair.receive(SERVER, 1, 10, 1);
    // Only the client learns that the connection has broken.
    pair.world.nodes[SERVER].frozen = true;
    let connection = pair.world.established()[0];
    pair.world.break_connection(connection);
    pair.world.run();
    let send = pair.send(CLIENT, 1, b"0123456789", 1);
    pair.world.run();
    pair.world.nodes[SERVER].frozen = false;
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::Reset));
    assert_eq!(pair.error_of(CLIENT, send), None);
    assert_eq!(phase(&pair, SERVER), Some(Phase::Up));
    let receive = pair.receive(SERVER, 1, 10, 1);
    pair.world.run();
    assert!(pair.result_of(SERVER, receive).1 == b"0123456789");
}

#[test]
fn a_client_that_has_missed_an_answer_keeps_its_number() {
    for steps in 0..40 {
        let mut pair = Pair::new(14, SMALL);
        pair.world.break_connection(0);
        pair.world.run();
        pair.unexpected(CLIENT, 1, b"may be lost");
        pair.world.run_some(steps);
        for connection in 0..pair.world.ends.len() {
            pair.world.break_connection(connection);
        }
        pair.world.run();
        pair.take();
        let _ = pair.world.nodes[SERVER].take_unexpected();
        assert_eq!(pair.introduce(), pair.peers[SERVER], "after {steps} steps");
    }
}

#[test]
fn a_client_that_has_restarted_is_another_peer() {
    let mut pair = Pair::new(5, SMALL);
    let served = pair.receive(SERVER, 3, 10, 1);
    let earlier = pair.peers[SERVER];
    pair.world.restart(CLIENT);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, served), Some(Error::Reset));
    pair.peers[CLIENT] = pair.world.address(CLIENT, SERVER);
    pair.peers[SERVER] = pair.introduce();
    assert_ne!(pair.peers[SERVER], earlier);
    pair.transfer(CLIENT, 1, 5000, (1, 1));
}

#[test]
fn a_server_that_has_restarted_is_reached_by_the_same_address() {
    let mut pair = Pair::new(6, RAILS);
    pair.world.restart(SERVER);
    pair.world.run();
    pair.peers[SERVER] = pair.introduce();
    pair.transfer(CLIENT, 1, 20_000, (1, 1));
}

#[test]
fn late_events_of_an_earlier_session_are_ignored() {
    let mut pair = Pair::new(7, SMALL);
    let connection = pair.world.established()[0];
    let earlier = pair.world.ends[connection][CLIENT].rail.expect("a rail");
    pair.world.break_connection(connection);
    pair.world.run();
    pair.introduce();
    let node = &mut pair.world.nodes[CLIENT];
    let cookie = Cookie {
        op: None,
        meaning: Meaning::Message,
    };
    node.engine
        .completed(&mut node.home, earlier, cookie, false);
    node.engine
        .arrived(&mut node.home, earlier, b"not a message");
    node.engine
        .established(&mut node.home, earlier, b"not private data");
    node.engine.closed(&mut node.home, earlier, None);
    assert_eq!(phase(&pair, CLIENT), Some(Phase::Up));
    pair.transfer(CLIENT, 1, 1000, (1, 1));
}
