// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Messages and private data that no engine sends.

mod groups;
mod peer;

use super::pair::{
    pattern,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        encode_descriptor,
        Descriptor,
        Error,
        Header,
        Kind,
        Rails,
        Role,
        Window,
        ABORTED, //
    },
    sim::{
        Buffers,
        SMALL, //
    },
};
use peer::Hostile;

#[test]
fn the_helper_forges_valid_messages() {
    let mut hostile = Hostile::new();
    let receive = hostile.pair.receive(SERVER, 5, 4, 1);
    let header = Header {
        tag: 5,
        length: 4,
        ..hostile.header(Kind::Eager)
    };
    hostile.send(header, b"good");
    assert!(hostile.pair.result_of(SERVER, receive).1 == b"good");
    let (receive, number) = hostile.cleared();
    hostile.send(hostile.done(number, (400, 600)), &[]);
    assert!(!hostile.pair.is_complete(SERVER, receive));
    hostile.send(hostile.done(number, (0, 400)), &[]);
    assert_eq!(hostile.pair.error_of(SERVER, receive), None);
    assert!(hostile.is_up());
}

#[test]
fn data_after_a_bye() {
    let mut hostile = Hostile::new();
    // Both arrive before the server has answered the first one.
    let bye = hostile.header(Kind::Bye);
    let late = Header {
        sequence: bye.sequence.wrapping_add(1),
        ..Header::new(Kind::Unexpected)
    };
    let world = &mut hostile.pair.world;
    world.forge(hostile.connection, 1, bye.encode().to_vec());
    world.forge(hostile.connection, 1, late.encode().to_vec());
    world.run();
    let kept = hostile.pair.world.nodes[SERVER].take_unexpected();
    assert!(kept.is_none(), "a message of a session that has ended");
    hostile.expect_end();
}

#[test]
fn malformed_messages() {
    let rts = |length, descriptors| Header {
        length,
        descriptors,
        ..Header::new(Kind::Rts)
    };
    let eager = |length, descriptors| Header {
        length,
        descriptors,
        ..Header::new(Kind::Eager)
    };
    let descriptor = encode_descriptor(Descriptor {
        address: 0,
        length: 9,
        context: 1,
        rails: Rails::ALL,
    });
    let bodies: [(Header, &[u8]); 10] = [
        (eager(5, 0), b"four"),
        (eager(3, 0), b"four"),
        (eager(16, 1), &descriptor),
        (rts(0, 0), &[]),
        (rts(9, 0), &descriptor),
        (rts(9, 2), &descriptor),
        (rts(8, 1), &descriptor),
        // Valid, but the server has not announced that it reads.
        (rts(9, 1), &descriptor),
        (Header::new(Kind::Credit), b"more"),
        (
            Header {
                descriptors: 1,
                ..Header::new(Kind::Ping)
            },
            &descriptor,
        ),
    ];
    for (header, body) in bodies {
        let mut hostile = Hostile::new();
        let sequence = hostile.header(Kind::Ping).sequence;
        hostile.send(Header { sequence, ..header }, body);
        hostile.expect_end();
    }
}

#[test]
fn unknown_types_and_short_messages() {
    for bytes in [
        vec![],
        vec![1; 47],
        [vec![13], vec![0; 47]].concat(),
        vec![0; 48],
    ] {
        let mut hostile = Hostile::new();
        hostile.pair.world.forge(hostile.connection, 1, bytes);
        hostile.pair.world.run();
        hostile.expect_end();
    }
}

#[test]
fn more_messages_than_credits() {
    let mut hostile = Hostile::new();
    // The client has sent one message, whose credit is owed still.
    for _ in 1..SMALL.window.data {
        let header = hostile.header(Kind::Eager);
        hostile.send(header, &[]);
        assert!(hostile.is_up());
    }
    let header = hostile.header(Kind::Eager);
    hostile.send(header, &[]);
    hostile.expect_end();
}

#[test]
fn more_credits_than_were_used() {
    for (data, control) in [(u16::MAX, 0), (0, u16::MAX), (SMALL.window.data + 1, 0)] {
        let mut hostile = Hostile::new();
        let returned = Window { data, control };
        let header = Header {
            returned,
            ..hostile.header(Kind::Credit)
        };
        hostile.send(header, &[]);
        hostile.expect_end();
    }
}

#[test]
fn wrong_sequence_numbers() {
    for ahead in [u32::MAX, 8, 1 << 31] {
        let mut hostile = Hostile::new();
        let header = hostile.header(Kind::Ping);
        let sequence = header.sequence.wrapping_add(ahead);
        hostile.send(Header { sequence, ..header }, &[]);
        hostile.expect_end();
    }
    // The same early message twice.
    let mut hostile = Hostile::new();
    let header = hostile.header(Kind::Ping);
    let early = Header {
        sequence: header.sequence + 1,
        ..header
    };
    hostile.send(early, &[]);
    assert!(hostile.is_up());
    hostile.send(early, &[]);
    hostile.expect_end();
}

#[test]
fn ranges_that_overlap_or_exceed() {
    for ranges in [
        [(0, 600), (500, 500)],
        [(0, 600), (0, 600)],
        [(0, 0), (0, 1)],
    ] {
        let mut hostile = Hostile::new();
        let (_, number) = hostile.cleared();
        for range in ranges {
            if hostile.is_up() {
                hostile.send(hostile.done(number, range), &[]);
            }
        }
        hostile.expect_end();
    }
    // Ranges beyond the end never make a message whole.
    let mut hostile = Hostile::new();
    let (receive, number) = hostile.cleared();
    hostile.send(hostile.done(number, (0, u64::MAX)), &[]);
    assert!(!hostile.pair.is_complete(SERVER, receive));
}

#[test]
fn a_length_of_64_bits_is_compared_whole() {
    let mut hostile = Hostile::new();
    let receive = hostile.pair.receive(SERVER, 5, 1000, 1);
    let offer = Header {
        tag: 5,
        length: (1 << 32) + 10,
        ..hostile.header(Kind::Rts)
    };
    hostile.send(offer, &[]);
    assert_eq!(hostile.pair.error_of(SERVER, receive), Some(Error::TooLong));
}

#[test]
fn messages_about_invented_operations_are_ignored() {
    for kind in [
        Kind::Cts,
        Kind::Done,
        Kind::Refuse,
        Kind::Cancel,
        Kind::Leave,
        Kind::Stay,
    ] {
        for number in [0, 1, u64::MAX, 1 << 32, (1 << 32) + 5] {
            let mut hostile = Hostile::new();
            let header = Header {
                operation: number,
                peers_operation: number,
                ..hostile.header(kind)
            };
            hostile.send(header, &[]);
            assert!(hostile.is_up());
        }
    }
}

#[test]
fn messages_about_operations_in_another_state_are_ignored() {
    for kind in [Kind::Cts, Kind::Done, Kind::Refuse] {
        let mut hostile = Hostile::new();
        let posted = hostile.pair.receive(SERVER, 9, 10, 1);
        let (cleared, _) = hostile.cleared();
        let targets = if kind == Kind::Done {
            vec![posted]
        } else {
            vec![posted, cleared]
        };
        for id in targets {
            let header = Header {
                peers_operation: id.0.raw(),
                length: 10,
                flags: if kind == Kind::Done { ABORTED } else { 0 },
                ..hostile.header(kind)
            };
            let header = if kind == Kind::Cts {
                Header {
                    length: 0,
                    ..header
                }
            } else {
                header
            };
            hostile.send(header, &[]);
        }
        assert!(hostile.is_up());
        assert!(!hostile.pair.is_complete(SERVER, posted));
        assert!(!hostile.pair.is_complete(SERVER, cleared));
    }
}

#[test]
fn cts_has_to_clear_the_whole_message() {
    for length in [0, 999, 1001] {
        let mut hostile = Hostile::new();
        hostile.pair.send(SERVER, 5, &pattern(1, 1000), 1);
        // The client does not answer: it has no receive. The number is guessed.
        hostile.pair.world.run();
        let number =
            (1..4).flat_map(|generation| (0..8).map(move |index| (generation << 32) | index));
        for number in number {
            let descriptor = encode_descriptor(Descriptor {
                address: 1 << 32,
                length,
                context: 1,
                rails: Rails::ALL,
            });
            if hostile.is_up() {
                let header = Header {
                    peers_operation: number,
                    length: length.into(),
                    descriptors: 1,
                    ..hostile.header(Kind::Cts)
                };
                hostile.send(header, &descriptor);
            }
        }
        hostile.expect_end();
    }
}

#[test]
fn operations_of_another_peer_are_out_of_reach() {
    let mut hostile = Hostile::new();
    hostile.pair.world.nodes[CLIENT].frozen = false;
    // The same server has a receive for another client.
    let other = hostile.pair.world.address(CLIENT, SERVER);
    let node = &mut hostile.pair.world.nodes[CLIENT];
    let buffers = Buffers::divide(b"", 1);
    node.post(Role::SendUnexpected, other, 0, buffers)
        .expect("a send");
    hostile.pair.world.run();
    let (peer, ..) = hostile.pair.world.nodes[SERVER]
        .take_unexpected()
        .expect("a message");
    hostile.pair.world.run();
    let mine = std::mem::replace(&mut hostile.pair.peers[SERVER], peer);
    let client = std::mem::replace(&mut hostile.pair.peers[CLIENT], other);
    let victim = hostile.pair.receive(SERVER, 5, 1000, 1);
    let send = hostile.pair.send(CLIENT, 5, &pattern(1, 1000), 1);
    while hostile.pair.world.nodes[SERVER].home.exposed.is_empty() {
        assert!(hostile.pair.world.step());
    }
    hostile.pair.peers = [client, mine];
    for kind in [Kind::Done, Kind::Cancel] {
        let header = Header {
            peers_operation: victim.0.raw(),
            operation: send.0.raw(),
            length: 1000,
            ..hostile.header(kind)
        };
        hostile.send(header, &[]);
    }
    let (result, bytes) = hostile.pair.result_of(SERVER, victim);
    assert_eq!(result.error, None);
    assert!(bytes == pattern(1, 1000));
}
