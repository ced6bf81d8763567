// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Sessions whose rails are on several devices.

use super::{
    data::PULL,
    pair::{
        pattern,
        Pair,
        CLIENT,
        SERVER, //
    },
    requests::of_session,
};
use crate::{
    bmi::engine::{
        ConnectRequest,
        Error,
        Hello,
        Role, //
    },
    sim::{
        Buffers,
        Request,
        Settings,
        SimHome,
        World,
        SMALL, //
    },
};

/// Length of a message that each rail moves a part of.
const LENGTH: usize = 8 * 4096;

/// Four rails on two devices.
const TWO: Settings = Settings {
    rails: 4,
    devices: 2,
    ..SMALL
};

/// The same with both directions of RDMA.
fn both() -> [Settings; 2] {
    [TWO, Settings { pull: true, ..TWO }]
}

/// Returns the bytes that a message of the client moves by each device.
fn moved<const DEVICES: usize>(pair: &mut Pair, fragments: (usize, usize)) -> [usize; DEVICES] {
    let before = pair.world.moved;
    pair.transfer(CLIENT, 1, LENGTH, fragments);
    assert_eq!(pair.world.violations, 0);
    std::array::from_fn(|device| pair.world.moved[device] - before[device])
}

#[test]
fn a_message_is_divided_over_all_devices() {
    for settings in both() {
        let mut pair = Pair::new(1, settings);
        assert_eq!(moved(&mut pair, (1, 1)), [LENGTH / 2; 2]);
    }
}

#[test]
fn all_numbers_of_devices() {
    for pull in [false, true] {
        for (ours, theirs) in (1..4).flat_map(|ours| (1..4).map(move |theirs| (ours, theirs))) {
            let settings = [ours, theirs].map(|devices| Settings {
                pull,
                devices,
                ..TWO
            });
            let mut pair = Pair::with(2, settings);
            for length in [209, 4096, 100_000] {
                for fragments in [(1, 1), (7, 2), (3, 4), (11, 13)] {
                    pair.transfer(CLIENT, 5, length, fragments);
                    pair.transfer(SERVER, 5, length, fragments);
                }
            }
            assert_eq!(pair.world.violations, 0);
        }
    }
}

#[test]
fn a_message_has_room_for_the_descriptors_of_all_devices() {
    for settings in both() {
        let mut pair = Pair::new(3, settings);
        // Of 13 entries, each device has five descriptors and one entry for its rails.
        for fragments in 1..15 {
            let expected = [LENGTH / 2; 2];
            assert_eq!(moved(&mut pair, (fragments, fragments)), expected);
        }
    }
}

/// Returns the bytes of a message that move by each of four devices, if one bind has at most so
/// many bytes.
fn moved_by_binds(devices: u8, longest: u64, change: impl Fn(&mut SimHome)) -> [usize; 4] {
    let settings = Settings { devices, ..TWO };
    let mut pair = Pair::new(11, settings);
    let home = &mut pair.world.nodes[SERVER].home;
    home.longest = longest;
    change(home);
    moved(&mut pair, (3, 2))
}

#[test]
fn a_message_without_room_for_all_devices_takes_fewer() {
    const ALL: usize = LENGTH;
    // Of 13 entries, each of 2, 3 and 4 devices has 5, 3 and 2 descriptors. A single one has 12.
    for (devices, binds, expected) in [
        (2, 5, [ALL / 2, ALL / 2, 0, 0]),
        (2, 6, [ALL, 0, 0, 0]),
        (2, 12, [ALL, 0, 0, 0]),
        (3, 3, [ALL / 2, ALL / 4, ALL / 4, 0]),
        (3, 4, [ALL / 8 * 5, ALL / 8 * 3, 0, 0]),
        (3, 12, [ALL, 0, 0, 0]),
        (4, 2, [ALL / 4; 4]),
        (4, 4, [ALL / 2, ALL / 2, 0, 0]),
        (4, 12, [ALL, 0, 0, 0]),
    ] {
        let longest = (LENGTH as u64).div_ceil(binds);
        let found = moved_by_binds(devices, longest, |_| {});
        assert_eq!(found, expected, "{binds} binds on {devices} devices");
    }
}

#[test]
fn a_device_turns_out_to_have_short_binds() {
    let found = moved_by_binds(4, u64::MAX, |home| home.bindable = LENGTH as u64 / 8);
    assert_eq!(found, [LENGTH, 0, 0, 0]);
}

#[test]
fn the_only_device_with_room_cannot_expose() {
    let longest = LENGTH as u64 / 8;
    let found = moved_by_binds(3, longest, |home| home.no_exposure_on = 3);
    assert_eq!(found, [0, 0, LENGTH, 0]);
}

#[test]
fn a_message_beyond_the_binds_of_one_device() {
    let mut pair = Pair::new(12, TWO);
    pair.world.nodes[SERVER].home.longest = LENGTH as u64 / 13;
    let receive = pair.receive(SERVER, 1, LENGTH, 1);
    let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::TooLong));
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::TooLong));
}

#[test]
fn small_messages_have_room_for_one_device() {
    for (devices, pull) in [(3, false), (3, true)] {
        // It has three entries.
        let settings = Settings {
            message: 96,
            devices,
            pull,
            ..TWO
        };
        let mut pair = Pair::new(13, settings);
        assert_eq!(moved(&mut pair, (1, 1)), [LENGTH, 0, 0]);
    }
}

#[test]
fn memory_that_one_device_cannot_expose() {
    for pull in [false, true] {
        for (device, expected) in [(0, [0, LENGTH]), (1, [LENGTH, 0])] {
            let mut pair = Pair::new(4, Settings { pull, ..TWO });
            let exposes = if pull { CLIENT } else { SERVER };
            pair.world.nodes[exposes].home.no_exposure_on = 1 << device;
            assert_eq!(moved(&mut pair, (1, 1)), expected);
        }
        // The other one reads or writes.
        for (device, expected) in [(0, [0, LENGTH]), (1, [LENGTH, 0])] {
            let mut pair = Pair::new(4, Settings { pull, ..TWO });
            let moves = if pull { SERVER } else { CLIENT };
            pair.world.nodes[moves].home.no_memory_on = 1 << device;
            assert_eq!(moved(&mut pair, (1, 1)), expected);
        }
    }
}

#[test]
fn messages_take_the_first_device() {
    let mut pair = Pair::new(10, TWO);
    for _ in 0..5 {
        pair.transfer(CLIENT, 1, 100, (1, 1));
        pair.transfer(SERVER, 1, 100, (1, 1));
    }
    let received = |device| {
        let ends = pair.world.ends.iter().flatten();
        let of_device = ends.filter(move |end| end.device == device);
        of_device.map(|end| end.received).sum::<u32>()
    };
    assert!(received(0) >= 10);
    assert_eq!(received(1), 0);
}

#[test]
fn memory_that_no_device_can_expose() {
    let mut pair = Pair::new(5, TWO);
    pair.world.nodes[SERVER].home.no_exposure_on = 3;
    let receive = pair.receive(SERVER, 1, LENGTH, 1);
    let send = pair.send(CLIENT, 1, &pattern(1, LENGTH), 1);
    pair.world.run();
    assert_eq!(pair.error_of(SERVER, receive), Some(Error::NoMemory));
    assert_eq!(pair.error_of(CLIENT, send), Some(Error::NoMemory));
    pair.world.nodes[SERVER].home.no_exposure_on = 0;
    assert_eq!(moved(&mut pair, (1, 1)), [LENGTH / 2; 2]);
}

#[test]
fn an_operation_completes_when_no_device_exposes_its_memory() {
    for settings in both() {
        let mut pair = Pair::new(9, settings);
        pair.receive(SERVER, 1, LENGTH, 2);
        pair.send(CLIENT, 1, &pattern(1, LENGTH), 2);
        while pair.world.step() {
            // This checks that nothing of a result is exposed.
            pair.take();
        }
        assert_eq!(pair.results.len(), 2);
    }
}

/// Returns whether a post of a client succeeds, whose other rails join meanwhile, and the number of
/// its rails at the time of the post.
fn early(seed: u64, settings: Settings, from: usize, no_exposure_on: u8) -> usize {
    let mut world = World::new(seed, &[settings; 2]);
    let server = world.address(CLIENT, SERVER);
    let other = 1 - from;
    world.nodes[other].home.no_exposure_on = no_exposure_on;
    let hello = Buffers::divide(b"", 1);
    world.nodes[CLIENT]
        .post(Role::SendUnexpected, server, 0, hello)
        .expect("a send");
    let client = loop {
        assert!(world.step());
        if let Some((peer, ..)) = world.nodes[SERVER].take_unexpected() {
            break peer;
        }
    };
    let rails = world.established().len();
    let peers = [server, client];
    let bytes = pattern(seed, LENGTH);
    let posts = [
        (from, Role::Send, Buffers::divide(&bytes, 1)),
        (other, Role::Receive, Buffers::divide(&vec![0; LENGTH], 1)),
    ];
    for (node, role, buffers) in posts {
        world.nodes[node]
            .post(role, peers[node], 1, buffers)
            .expect("an operation");
    }
    world.run();
    assert_eq!(world.violations, 0, "{seed}");
    let results = [from, other].map(|node| {
        let mut results = world.nodes[node].take().into_iter();
        let of_message = results.find(|result| result.1.bytes().len() == LENGTH);
        of_message.expect("a result")
    });
    let errors = [0, 1].map(|side| results[side].0.error);
    match errors {
        [None, None] => assert!(results[1].1.bytes() == bytes, "{seed}"),
        // There was no other device then.
        [Some(Error::NoMemory), Some(Error::NoMemory)] if no_exposure_on != 0 => {}
        errors => panic!("{seed}: {errors:?}"),
    }
    rails
}

#[test]
fn rails_that_join_during_a_message() {
    let mut numbers = [0; 5];
    for seed in 0..100 {
        for settings in both() {
            for (from, no_exposure_on) in [(CLIENT, 0), (SERVER, 0), (SERVER, 1)] {
                numbers[early(seed, settings, from, no_exposure_on)] += 1;
            }
        }
    }
    assert!(numbers[1] > 0 && numbers[2] > 0, "{numbers:?}");
}

#[test]
fn a_peer_that_does_not_know_devices_uses_one() {
    for old in [CLIENT, SERVER] {
        for settings in both() {
            let mut world = World::new(6, &[settings; 2]);
            world.nodes[old].is_old = true;
            let mut pair = Pair::of(world);
            assert_eq!(pair.world.established().len(), 4);
            for connection in pair.world.established() {
                let ends = &pair.world.ends[connection];
                assert_eq!([ends[0].device, ends[1].device], [0, 0]);
            }
            assert_eq!(moved(&mut pair, (1, 1)), [LENGTH, 0]);
        }
    }
}

#[test]
fn a_rail_of_a_peer_that_does_not_know_devices_is_beside_the_first() {
    for (device, is_accepted) in [(0, true), (1, false)] {
        let mut world = World::new(7, &[SMALL, TWO]);
        world.nodes[CLIENT].is_old = true;
        let mut pair = Pair::of(world);
        let joins = Hello {
            rails: 4,
            rail: 1,
            ..of_session(&pair)
        };
        let request = ConnectRequest {
            number: 1000,
            device,
        };
        let node = &mut pair.world.nodes[SERVER];
        node.engine
            .requested(&mut node.home, request, &joins.encode());
        let answers = std::mem::take(&mut node.home.requests);
        let accepted = matches!(answers[..], [Request::Accept(1000, ..)]);
        assert_eq!(accepted, is_accepted, "{answers:?}");
    }
}

#[test]
fn a_device_is_removed_amid_messages() {
    for seed in 0..60 {
        let pull = seed % 2 == 0;
        let settings = Settings { pull, ..TWO };
        let mut pair = Pair::new(seed, settings);
        let node = usize::from(seed % 4 < 2);
        let mut ops = Vec::new();
        for tag in 0..3 {
            let bytes = pattern(tag, LENGTH);
            ops.push((CLIENT, pair.send(CLIENT, tag as i32, &bytes, 3)));
            ops.push((SERVER, pair.receive(SERVER, tag as i32, LENGTH, 2)));
        }
        let moved = |world: &World| world.moved.iter().sum::<usize>();
        while moved(&pair.world) <= seed as usize * 1000 {
            assert!(pair.world.step());
        }
        assert!(moved(&pair.world) < 3 * LENGTH, "the messages are over");
        pair.world.remove_device(node, (seed % 3 == 0).into());
        pair.world.run();
        let errors: Vec<_> = ops
            .into_iter()
            .map(|(side, op)| pair.error_of(side, op))
            .collect();
        let expected = |error: &Option<Error>| matches!(error, None | Some(Error::Reset));
        assert!(errors.iter().all(expected), "{errors:?}");
        assert!(errors.contains(&Some(Error::Reset)), "no operation fails");
        for node in &pair.world.nodes {
            assert!(node.home.exposed.is_empty(), "memory is exposed");
        }
        // The next session uses the other device.
        pair.introduce();
        pair.transfer(CLIENT, 9, LENGTH, (2, 3));
        pair.transfer(SERVER, 9, LENGTH, (2, 3));
        assert_eq!(pair.world.violations, 0);
    }
}

#[test]
fn a_removed_device_ends_its_sessions_only() {
    let mut world = World::new(8, &[TWO, PULL, PULL]);
    world.nodes[0].home.lost = 0;
    // Each of the servers has one device. The client's first session is on both of its devices.
    let [first, _] = world.introduce(0, 1);
    world.nodes[0].home.lost = 1;
    let [second, at_second] = world.introduce(0, 2);
    world.nodes[0].home.lost = 0;
    let before = world.established().len();
    world.remove_device(0, 0);
    world.run();
    assert!(world.established().len() < before);
    assert_eq!(
        world.nodes[0].engine.phase(first),
        Some(crate::bmi::engine::Phase::Idle)
    );
    assert_eq!(
        world.nodes[0].engine.phase(second),
        Some(crate::bmi::engine::Phase::Up)
    );
    let receive = Buffers::divide(&vec![0; LENGTH], 1);
    world.nodes[2]
        .post(Role::Receive, at_second, 1, receive)
        .expect("a receive");
    let send = Buffers::divide(&pattern(1, LENGTH), 1);
    world.nodes[0]
        .post(Role::Send, second, 1, send)
        .expect("a send");
    world.run();
    assert_eq!(world.nodes[2].take()[0].0.error, None);
}
