// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Descriptors of a hostile peer that name rails.

use super::peer::Hostile;
use crate::{
    bmi::engine::{
        encode_descriptor,
        encode_group,
        Descriptor,
        Error,
        Header,
        Hello,
        Kind,
        OpId,
        RailId,
        Rails,
        GROUPS, //
    },
    sim::{
        Node,
        Settings,
        SMALL, //
    },
    tests::{
        pair::{
            pattern,
            CLIENT,
            SERVER, //
        },
        requests::{
            accepts,
            of_session, //
        },
    },
};

/// Bytes of the message that the server sends.
const LENGTH: u32 = 9000;

const RAILS: Settings = Settings { rails: 2, ..SMALL };

/// Returns the entries of a group with descriptors of these lengths.
fn group(rails: u8, count: u16, lengths: &[u32]) -> Vec<u8> {
    let rails = Rails::from_bits(rails).expect("possible rails");
    let descriptors = lengths.iter().flat_map(|length| {
        encode_descriptor(Descriptor {
            address: 1 << 32,
            length: *length,
            context: 1,
            rails,
        })
    });
    encode_group(rails, count)
        .into_iter()
        .chain(descriptors)
        .collect()
}

/// Lets the server offer a message. Returns the send.
fn offered(hostile: &mut Hostile) -> OpId {
    let length = LENGTH as usize;
    let send = hostile.pair.send(SERVER, 5, &pattern(1, length), 1);
    hostile.pair.world.run();
    send
}

/// Sends CTS for the message, with this body.
fn clear(hostile: &mut Hostile, send: OpId, body: &[u8]) {
    let header = Header {
        peers_operation: send.0.raw(),
        flags: GROUPS,
        length: LENGTH.into(),
        descriptors: (body.len() / 16) as u16,
        ..hostile.header(Kind::Cts)
    };
    hostile.send(header, body);
}

#[test]
fn groups_that_are_valid() {
    for groups in [
        group(1, 1, &[LENGTH]),
        [group(1, 2, &[LENGTH - 1, 1]), group(2, 1, &[LENGTH])].concat(),
    ] {
        let mut hostile = Hostile::with(RAILS);
        let send = offered(&mut hostile);
        clear(&mut hostile, send, &groups);
        assert!(hostile.pair.world.rdma > 0);
        // The memory does not exist, so the first write breaks its connection.
        hostile.pair.world.nodes[CLIENT].frozen = false;
        hostile.pair.world.run();
        assert!(hostile.pair.world.violations > 0);
    }
}

#[test]
fn groups_that_are_malformed() {
    let mut unknown_rail = group(1, 1, &[LENGTH]);
    unknown_rail[0] = 0x11;
    let whole = || group(1, 1, &[LENGTH]);
    for body in [
        vec![],
        unknown_rail,
        // No rails, and one in two groups.
        group(0, 1, &[LENGTH]),
        [whole(), group(0, 1, &[LENGTH])].concat(),
        [whole(), group(3, 1, &[LENGTH])].concat(),
        // Less or more than the message, although the sum of all may be right.
        group(1, 1, &[LENGTH - 1]),
        group(1, 1, &[LENGTH + 1]),
        [group(1, 1, &[LENGTH / 2]), group(2, 1, &[LENGTH / 2])].concat(),
        [whole(), group(2, 1, &[1])].concat(),
        // Fewer and more descriptors than the count.
        group(1, 2, &[LENGTH]),
        group(1, 0, &[LENGTH]),
        group(1, u16::MAX, &[LENGTH]),
        [whole(), vec![0; 16]].concat(),
    ] {
        let mut hostile = Hostile::with(RAILS);
        let send = offered(&mut hostile);
        clear(&mut hostile, send, &body);
        assert_eq!(
            hostile.pair.error_of(SERVER, send),
            Some(Error::Protocol),
            "{body:?}"
        );
        assert_eq!(hostile.pair.world.rdma, 0);
        hostile.expect_end();
    }
}

#[test]
fn messages_that_have_no_groups() {
    for kind in [Kind::Eager, Kind::Rts, Kind::Done, Kind::Credit] {
        let mut hostile = Hostile::with(RAILS);
        let header = Header {
            flags: GROUPS,
            length: u64::from(kind == Kind::Rts),
            ..hostile.header(kind)
        };
        hostile.send(header, &[]);
        hostile.expect_end();
    }
}

#[test]
fn groups_of_a_peer_that_does_not_know_devices() {
    let mut hostile = Hostile::new();
    hostile.pair.world.nodes[SERVER].is_old = true;
    // The server gets another hello.
    let connection = hostile.connection;
    hostile.pair.world.break_connection(connection);
    hostile.pair.world.nodes[CLIENT].frozen = false;
    hostile.pair.world.run();
    hostile.pair.take();
    hostile.pair.peers[SERVER] = hostile.pair.introduce();
    hostile.pair.world.nodes[CLIENT].frozen = true;
    hostile.connection = hostile.pair.world.established()[0];
    let send = offered(&mut hostile);
    clear(&mut hostile, send, &group(1, 1, &[LENGTH]));
    assert_eq!(hostile.pair.error_of(SERVER, send), Some(Error::Protocol));
    hostile.expect_end();
}

#[test]
fn a_cts_names_a_rail_that_is_there() {
    let mut hostile = Hostile::with(RAILS);
    let send = offered(&mut hostile);
    // Rails 2 and 3 are possible ones.
    clear(&mut hostile, send, &group(0xc, 1, &[LENGTH]));
    assert_eq!(hostile.pair.error_of(SERVER, send), Some(Error::Reset));
    assert_eq!(hostile.pair.world.rdma, 0);
    hostile.expect_end();
}

#[test]
fn a_transfer_over_a_rail_that_is_never_established_ends() {
    let mut hostile = Hostile::with_each([SMALL, RAILS]);
    let send = offered(&mut hostile);
    let joins = Hello {
        rails: 2,
        rail: 1,
        ..of_session(&hostile.pair)
    };
    assert!(accepts(&mut hostile.pair, &joins.encode()));
    clear(&mut hostile, send, &group(2, 1, &[LENGTH]));
    // It may be established at the client already.
    assert!(hostile.is_up());
    assert_eq!(hostile.pair.world.rdma, 0);
    let rail = hostile.pair.world.ends[hostile.connection][1].rail;
    let rail = RailId {
        rail: 1,
        ..rail.expect("rail 0")
    };
    let Node { engine, home, .. } = &mut hostile.pair.world.nodes[SERVER];
    engine.closed(home, rail, None);
    hostile.pair.world.run();
    assert_eq!(hostile.pair.error_of(SERVER, send), Some(Error::Reset));
    hostile.expect_end();
}
