// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Random messages of a hostile peer.

use super::pair::{
    Pair,
    CLIENT,
    SERVER, //
};
use crate::{
    bmi::engine::{
        encode_descriptor,
        Descriptor,
        Header,
        Kind,
        Rails,
        Role,
        Window, //
    },
    sim::{
        Buffers,
        Settings,
        SMALL, //
    },
};
use proptest::prelude::*;

/// A message that looks valid, with small numbers so that it names what exists.
fn forged() -> impl Strategy<Value = (Header, Vec<u8>)> {
    let kind = prop::sample::select(&Kind::ALL[..]);
    let number = || (0_u64..3, 0_u64..8).prop_map(|(generation, index)| (generation << 32) | index);
    let small = || prop::sample::select(&[0_u64, 1, 100, 700, 1000, 1 << 40][..]);
    let credits = (0_u16..2, 0_u16..2).prop_map(|(data, control)| Window { data, control });
    let numbers = (number(), number(), small(), small());
    (kind, numbers, 0_i32..3, credits, 0_u8..2, 0_u16..3).prop_map(
        |(kind, (operation, peers_operation, length, offset), tag, returned, flags, count)| {
            let describes = matches!(kind, Kind::Rts | Kind::Cts) && length < 1 << 32;
            let payload = matches!(kind, Kind::Eager | Kind::Unexpected);
            let length = if payload { length.min(200) } else { length };
            let mut body = vec![7; if payload { length as usize } else { 0 }];
            let descriptors = if describes { count } else { 0 };
            for index in 0..u32::from(descriptors) {
                let part = length as u32 / u32::from(descriptors);
                let rest = if index == 0 {
                    length as u32 % u32::from(descriptors)
                } else {
                    0
                };
                body.extend(encode_descriptor(Descriptor {
                    address: 1 << 32,
                    length: part + rest,
                    context: 1,
                    rails: Rails::ALL,
                }));
            }
            let header = Header {
                flags,
                returned,
                descriptors,
                tag,
                length,
                operation,
                peers_operation,
                offset,
                ..Header::new(kind)
            };
            (header, body)
        },
    )
}

proptest! {
    #[test]
    fn random_messages_harm_no_other_peer(
        messages in prop::collection::vec((forged(), any::<bool>(), any::<bool>(), 0_usize..30), 1..30),
        pull in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut pair = Pair::new(seed, Settings { pull, ..SMALL });
        let connection = pair.world.established()[0];
        pair.world.nodes[CLIENT].frozen = true;
        let mut posted = Vec::new();
        for (number, ((header, body), receive, send, steps)) in messages.into_iter().enumerate() {
            let tag = number as i32 % 3;
            let zeros = Buffers::divide(&[0; 1000], 2);
            if receive {
                posted.extend(pair.try_post(SERVER, Role::Receive, tag, zeros.clone()));
            }
            if send {
                posted.extend(pair.try_post(SERVER, Role::Send, tag, zeros));
            }
            let sequence = pair.world.ends[connection][1].received;
            let bytes = [&Header { sequence, ..header }.encode()[..], &body].concat();
            pair.world.forge(connection, 1, bytes);
            pair.world.run_some(steps);
        }
        pair.world.run();
        for id in &posted {
            pair.cancel(SERVER, *id);
        }
        pair.world.nodes[CLIENT].frozen = false;
        let earlier = pair.peers;
        pair.world.break_connection(connection);
        pair.world.run();
        pair.take();
        prop_assert_eq!(pair.results.iter().filter(|result| result.0 == SERVER).count(), posted.len());
        while pair.world.nodes[SERVER].take_unexpected().is_some() {}
        // An honest client of the same server.
        pair.peers[CLIENT] = pair.world.address(CLIENT, SERVER);
        pair.peers[SERVER] = pair.introduce();
        prop_assert_ne!(pair.peers[SERVER], earlier[SERVER]);
        pair.transfer(CLIENT, 1, 1000, (1, 1));
        pair.transfer(SERVER, 1, 1000, (1, 1));
        prop_assert!(pair.world.nodes[SERVER].home.exposed.is_empty());
        prop_assert!(pair.world.nodes[SERVER].home.stash.is_empty());
        prop_assert!(pair.world.nodes[SERVER].home.buffers.is_empty());
    }
}
