// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages: lengths, order, flow control, and what they cost.

use super::pair::{
    pattern,
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        Error,
        Role,
        Window, //
    },
    sim::{
        Buffers,
        Settings,
        SMALL, //
    },
};

/// Receivers read long messages.
pub const PULL: Settings = Settings {
    pull: true,
    ..SMALL
};

/// Sessions of four rails.
pub const RAILS: Settings = Settings { rails: 4, ..SMALL };

#[test]
fn all_lengths() {
    for settings in [
        SMALL,
        PULL,
        RAILS,
        Settings {
            pull: true,
            ..RAILS
        },
    ] {
        let mut pair = Pair::new(1, settings);
        for length in [0, 1, 207, 208, 209, 4096, 100_000] {
            for fragments in [(1, 1), (7, 2), (1, 9), (11, 13)] {
                pair.transfer(CLIENT, 5, length, fragments);
                pair.transfer(SERVER, 5, length, fragments);
            }
        }
        assert_eq!(pair.world.violations, 0);
    }
}

/// Returns the messages and RDMA requests of one transfer in one fragment.
fn cost(settings: Settings, length: usize) -> (usize, usize) {
    // Large windows, so that no CREDIT is needed.
    let window = Window {
        data: 64,
        control: 64,
    };
    let mut pair = Pair::new(1, Settings { window, ..settings });
    let before = (pair.world.messages, pair.world.rdma);
    pair.transfer(CLIENT, 5, length, (1, 1));
    (pair.world.messages - before.0, pair.world.rdma - before.1)
}

#[test]
fn messages_on_the_wire() {
    assert_eq!(cost(SMALL, 208), (1, 0), "eager");
    assert_eq!(cost(SMALL, 209), (3, 1), "RTS, CTS, a write, DONE");
    assert_eq!(cost(PULL, 209), (2, 1), "RTS, a read, DONE");
    assert_eq!(
        cost(RAILS, 4 * 4096),
        (6, 4),
        "RTS, CTS, four stripes with DONE"
    );
    let pulled = Settings {
        pull: true,
        ..RAILS
    };
    assert_eq!(cost(pulled, 4 * 4096), (2, 4), "RTS, four reads, DONE");
}

#[test]
fn a_list_of_regions_lands_at_the_right_place() {
    // 64 regions of 4 KiB into one buffer and back.
    for settings in [SMALL, PULL] {
        let settings = Settings {
            message: 16 << 10,
            ..settings
        };
        let mut pair = Pair::new(3, settings);
        pair.transfer(CLIENT, 1, 64 << 12, (64, 1));
        pair.transfer(CLIENT, 1, 64 << 12, (1, 64));
        pair.transfer(SERVER, 1, 64 << 12, (64, 63));
    }
}

#[test]
fn a_receive_that_is_too_short_fails_on_both_sides() {
    for settings in [SMALL, PULL] {
        for late in [false, true] {
            let mut pair = Pair::new(4, settings);
            let mut receive = (!late).then(|| pair.receive(SERVER, 2, 999, 1));
            let send = pair.send(CLIENT, 2, &pattern(1, 1000), 1);
            pair.world.run();
            let receive = *receive.get_or_insert_with(|| pair.receive(SERVER, 2, 999, 1));
            pair.world.run();
            assert_eq!(pair.error_of(SERVER, receive), Some(Error::TooLong));
            assert_eq!(pair.error_of(CLIENT, send), Some(Error::TooLong));
            pair.transfer(CLIENT, 2, 1000, (1, 1));
        }
    }
}

#[test]
fn an_eager_message_that_is_too_long_fails_the_receive() {
    let mut pair = Pair::new(4, SMALL);
    let receive = pair.receive(SERVER, 2, 9, 1);
    let send = pair.send(CLIENT, 2, &pattern(1, 10), 1);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::TooLong));
    assert_eq!(pair.error_of(CLIENT, send), None);
}

#[test]
fn short_messages_report_their_length() {
    for (settings, length) in [(SMALL, 3), (SMALL, 3000), (PULL, 3000)] {
        let mut pair = Pair::new(5, settings);
        let receive = pair.receive(SERVER, 2, 5000, 4);
        let bytes = pattern(1, length);
        pair.send(CLIENT, 2, &bytes, 2);
        pair.world.run();
        let (result, received) = pair.result_of(SERVER, receive);
        assert_eq!((result.error, result.actual), (None, length as u64));
        assert!(received[..length] == bytes);
        assert!(
            received[length..].iter().all(|byte| *byte == 0),
            "bytes after the message"
        );
    }
}

#[test]
fn tags_and_directions_do_not_mix() {
    let mut pair = Pair::new(6, SMALL);
    let sends = [(CLIENT, 1), (CLIENT, -1), (SERVER, 1)].map(|(node, tag)| {
        let bytes = pattern(node as u64 * 10 + tag as u64, 50);
        (pair.send(node, tag, &bytes, 1), bytes)
    });
    let receives = [(CLIENT, 1), (SERVER, -1), (SERVER, 1)];
    let receives = receives.map(|(node, tag)| pair.receive(node, tag, 50, 1));
    pair.world.run();
    assert!(pair.result_of(SERVER, receives[2]).1 == sends[0].1);
    assert!(pair.result_of(SERVER, receives[1]).1 == sends[1].1);
    assert!(pair.result_of(CLIENT, receives[0]).1 == sends[2].1);
}

#[test]
fn a_send_does_not_overtake_those_that_wait() {
    for settings in [SMALL, PULL, RAILS] {
        let mut pair = Pair::new(7, settings);
        let lengths = [10, 300, 20, 5000, 30, 40, 50, 300, 60, 70, 80, 90];
        for (number, length) in lengths.into_iter().enumerate() {
            pair.send(CLIENT, 3, &pattern(number as u64, length), 1);
            // A credit comes back between two sends.
            pair.world.run_some(number);
        }
        for (number, length) in lengths.into_iter().enumerate() {
            let receive = pair.receive(SERVER, 3, 5000, 1);
            pair.world.run();
            let (result, bytes) = pair.result_of(SERVER, receive);
            assert_eq!(result.actual, length as u64);
            assert!(bytes[..length] == pattern(number as u64, length));
        }
    }
}

#[test]
fn unmatched_messages_do_not_stop_the_other_direction() {
    let mut pair = Pair::new(8, SMALL);
    // More than the window, of both kinds, so that no data credit is left.
    for number in 0..30 {
        pair.send(CLIENT, 4, &pattern(number, 100), 1);
        pair.unexpected(CLIENT, 4, &pattern(number, 100));
    }
    pair.world.run();
    for _ in 0..5 {
        // These need CTS and DONE of both sides.
        pair.transfer(SERVER, 5, 5000, (3, 2));
    }
}

#[test]
fn a_receive_does_not_wait_behind_unmatched_messages() {
    for taken in 0..4 {
        for settings in [SMALL, RAILS] {
            let mut pair = Pair::new(20 + taken, settings);
            let sends: Vec<_> = (0..25)
                .map(|tag| pair.send(CLIENT, tag, b"bytes", 1))
                .collect();
            pair.world.run();
            // Fewer than the credits that a CREDIT message returns of itself.
            for tag in 0..taken as i32 {
                pair.receive(SERVER, tag, 5, 1);
            }
            pair.world.run();
            for tag in (taken as i32..25).rev() {
                let receive = pair.receive(SERVER, tag, 5, 1);
                pair.world.run();
                assert!(pair.is_complete(SERVER, receive), "tag {tag}");
            }
            assert!(sends.iter().all(|send| pair.is_complete(CLIENT, *send)));
        }
    }
}

#[test]
fn loans_have_a_limit() {
    let mut pair = Pair::new(30, SMALL);
    for tag in 0..200 {
        pair.send(CLIENT, tag, b"bytes", 1);
    }
    pair.world.run();
    // Its message never comes.
    pair.receive(SERVER, 1000, 5, 1);
    pair.world.run();
    let limit = SMALL.lend + u32::from(SMALL.window.data);
    let stashed = pair.world.nodes[SERVER].home.stash.len() as u32;
    assert_eq!(stashed, limit);
    for tag in 0..200 {
        pair.receive(SERVER, tag, 5, 1);
    }
    pair.world.run();
    assert!(pair.world.nodes[SERVER].home.stash.is_empty());
}

#[test]
fn messages_wait_for_credits_and_go_on() {
    let mut pair = Pair::new(9, SMALL);
    let sends: Vec<_> = (0..30).map(|_| pair.send(CLIENT, 4, b"bytes", 1)).collect();
    pair.world.run();
    let window = usize::from(SMALL.window.data);
    let complete = sends
        .iter()
        .filter(|send| pair.is_complete(CLIENT, **send))
        .count();
    assert!(
        complete <= window,
        "{complete} messages for a window of {window}"
    );
    for _ in &sends {
        pair.receive(SERVER, 4, 5, 1);
    }
    pair.world.run();
    assert!(sends.iter().all(|send| pair.is_complete(CLIENT, *send)));
}

#[test]
fn a_peer_that_stops_does_not_hold_others() {
    let mut world = crate::sim::World::new(10, &[SMALL; 3]);
    let [slow, quick] = [1, 2].map(|node| world.address(0, node));
    for peer in [slow, quick] {
        let buffers = Buffers::divide(b"", 1);
        world.nodes[0]
            .post(Role::SendUnexpected, peer, 0, buffers)
            .expect("a send");
    }
    world.run();
    world.nodes[1].frozen = true;
    for _ in 0..50 {
        for (role, peer) in [(Role::Send, slow), (Role::SendUnexpected, quick)] {
            let buffers = Buffers::divide(&pattern(1, 200), 1);
            world.nodes[0].post(role, peer, 1, buffers).expect("a send");
        }
        world.run();
        while world.nodes[2].take_unexpected().is_some() {}
    }
    world.run();
    let complete = world.nodes[0].take().len();
    assert!(
        (52..60).contains(&complete),
        "{complete} sends are complete"
    );
}

#[test]
fn each_completion_wakes_its_context() {
    let mut pair = Pair::new(11, PULL);
    let before = pair.world.nodes[SERVER].home.wakes[0];
    for number in 0..7 {
        pair.receive(SERVER, 1, 500, 1);
        pair.send(CLIENT, 1, &pattern(number, 500), 1);
    }
    pair.world.run();
    assert_eq!(pair.world.nodes[SERVER].home.wakes[0], before + 7);
    let unexpected = pair.world.nodes[SERVER].home.wakes_unexpected;
    pair.unexpected(CLIENT, 1, b"");
    pair.world.run();
    assert_eq!(
        pair.world.nodes[SERVER].home.wakes_unexpected,
        unexpected + 1
    );
}

#[test]
fn all_unexpected_messages_are_there_at_once() {
    let mut pair = Pair::new(12, SMALL);
    for number in 0..3 {
        pair.unexpected(CLIENT, number, &pattern(number as u64, 30));
    }
    pair.world.run();
    for number in 0..3 {
        let message = pair.world.nodes[SERVER]
            .take_unexpected()
            .expect("a message");
        assert_eq!((message.0, message.1), (pair.peers[SERVER], number));
        assert!(message.2 == pattern(number as u64, 30));
    }
    assert!(pair.world.nodes[SERVER].take_unexpected().is_none());
}

#[test]
fn tens_of_thousands_of_operations() {
    let mut pair = Pair::new(15, SMALL);
    let count = 20_000;
    for tag in 0..count {
        pair.receive(SERVER, tag % 1000, 8, 1);
    }
    for tag in 0..count {
        pair.send(CLIENT, tag % 1000, &tag.to_le_bytes(), 1);
    }
    pair.world.run();
    pair.take();
    let done = pair
        .results
        .iter()
        .filter(|result| result.1.error.is_none());
    assert_eq!(done.count(), 2 * count as usize);
}
