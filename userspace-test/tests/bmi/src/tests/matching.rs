// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Matching of messages and receives that are in the same bucket.

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
        PeerId,
        Role, //
    },
    sim::{
        Buffers,
        World,
        SMALL, //
    },
};

/// Tags, and peers: more than there are buckets.
const MANY: i32 = 20;

/// Lengths of messages that are eager, and that are offered.
const LENGTHS: [usize; 2] = [100, 1000];

#[test]
fn messages_match_by_tag() {
    for (settings, length) in [SMALL, PULL].into_iter().zip(LENGTHS) {
        let bytes = |tag| pattern(tag as u64, length);
        // The receives are first, or the messages.
        for late in [false, true] {
            let mut pair = Pair::new(1, settings);
            let receives = |pair: &mut Pair| -> Vec<_> {
                (0..MANY)
                    .map(|tag| pair.receive(SERVER, tag, length, 1))
                    .collect()
            };
            let early = (!late).then(|| receives(&mut pair));
            let sends = (0..MANY).rev();
            let sends: Vec<_> = sends
                .map(|tag| pair.send(CLIENT, tag, &bytes(tag), 1))
                .collect();
            pair.world.run();
            let receives = early.unwrap_or_else(|| receives(&mut pair));
            pair.world.run();
            for (tag, receive) in (0..MANY).zip(receives) {
                let (result, received) = pair.result_of(SERVER, receive);
                assert_eq!(result.error, None, "the receive of tag {tag}");
                assert!(received == bytes(tag), "the message of tag {tag}");
            }
            for send in sends {
                assert_eq!(pair.error_of(CLIENT, send), None);
            }
        }
    }
}

#[test]
fn messages_match_by_peer() {
    const TAG: i32 = 5;
    let count = MANY as usize;
    // The last node is the server.
    let mut world = World::new(1, &vec![SMALL; count + 1]);
    let peers: Vec<_> = (0..count)
        .map(|node| world.introduce(node, count))
        .collect();
    for length in LENGTHS {
        for late in [false, true] {
            let receives = |world: &mut World| -> Vec<_> {
                let receive = |[_, client]: &[PeerId; 2]| {
                    let buffers = Buffers::divide(&vec![0; length], 1);
                    let posted = world.nodes[count].post(Role::Receive, *client, TAG, buffers);
                    posted.expect("a receive")
                };
                peers.iter().map(receive).collect()
            };
            let early = (!late).then(|| receives(&mut world));
            for node in (0..count).rev() {
                let buffers = Buffers::divide(&pattern(node as u64, length), 1);
                let posted = world.nodes[node].post(Role::Send, peers[node][0], TAG, buffers);
                posted.expect("a send");
            }
            world.run();
            let receives = early.unwrap_or_else(|| receives(&mut world));
            world.run();
            let taken = world.nodes[count].take();
            assert_eq!(taken.len(), count, "messages");
            for (result, buffers) in taken {
                let node = receives.iter().position(|id| *id == result.op);
                let node = node.expect("one of the receives");
                assert!(
                    buffers.bytes() == pattern(node as u64, length),
                    "of node {node}"
                );
            }
            for node in 0..count {
                assert_eq!(world.nodes[node].take().len(), 1);
            }
        }
    }
}
