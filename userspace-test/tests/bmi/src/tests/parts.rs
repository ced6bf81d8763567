// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables, ranges, pieces and binds, compared with simpler models.

use crate::bmi::engine::{
    described,
    of_rail,
    Descriptor,
    Entry,
    Error,
    Key,
    List,
    Pieces,
    Rails,
    Ranges,
    Rdma,
    Table,
    Wanted, //
};
use proptest::prelude::*;
use std::collections::VecDeque;

type Numbers = Table<u32, Vec<Entry<u32, 2>>, 2>;

fn vacant(count: usize) -> Vec<Entry<u32, 2>> {
    (0..count).map(|_| Entry::vacant()).collect()
}

#[derive(Clone, Debug)]
enum Act {
    Insert,
    Remove(usize),
    Push(usize),
    Unlink(usize),
    Grow(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::Insert),
        3 => any::<usize>().prop_map(Act::Remove),
        5 => any::<usize>().prop_map(Act::Push),
        3 => any::<usize>().prop_map(Act::Unlink),
        1 => (0_usize..20).prop_map(Act::Grow),
    ]
}

/// Returns the values of a list.
fn listed(table: &Numbers, list: &List) -> Vec<u32> {
    let mut next = table.first(list);
    let mut values = Vec::new();
    while let Some(key) = next {
        values.push(*table.get(key).expect("a value"));
        next = table.next(1, key);
    }
    values
}

proptest! {
    #[test]
    fn a_table_is_like_maps_and_deques(acts in prop::collection::vec(act(), 0..200)) {
        let mut table = Numbers::new(vacant(5));
        let mut capacity = 5;
        let mut list = List::new();
        let mut alive: Vec<(Key, u32)> = Vec::new();
        let mut dead: Vec<Key> = Vec::new();
        let mut order: VecDeque<u32> = VecDeque::new();
        for (number, act) in acts.into_iter().enumerate() {
            let number = number as u32;
            match act {
                Act::Insert => {
                    let key = table.insert(number);
                    prop_assert_eq!(key.is_some(), alive.len() < capacity);
                    alive.extend(key.map(|key| (key, number)));
                }
                Act::Grow(size) => {
                    table.grow(vacant(size));
                    capacity = capacity.max(size);
                }
                _ if alive.is_empty() => {}
                Act::Remove(which) => {
                    let (key, value) = alive[which % alive.len()];
                    if !order.contains(&value) {
                        prop_assert_eq!(table.remove(key), Some(value));
                        alive.retain(|entry| entry.0 != key);
                        dead.push(key);
                    }
                }
                Act::Push(which) => {
                    let (key, value) = alive[which % alive.len()];
                    if !order.contains(&value) {
                        table.push(&mut list, 1, key);
                        order.push_back(value);
                    }
                }
                Act::Unlink(which) => {
                    let (key, value) = alive[which % alive.len()];
                    if order.contains(&value) {
                        table.unlink(&mut list, 1, key);
                        order.retain(|entry| *entry != value);
                    }
                }
            }
            prop_assert_eq!(table.used() as usize, alive.len());
            prop_assert_eq!(listed(&table, &list), order.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(list.is_empty(), order.is_empty());
            for (key, value) in &alive {
                prop_assert_eq!(table.get(*key), Some(value));
                prop_assert_eq!(Key::from_raw(key.raw()), *key);
                prop_assert!(key.raw() > 0 && i64::try_from(key.raw()).is_ok());
            }
            prop_assert!(dead.iter().all(|key| table.get(*key).is_none()));
        }
    }

    #[test]
    fn ranges_are_like_a_set(inserts in prop::collection::vec((0_u64..20, 0_u64..8), 0..20)) {
        let mut ranges = Ranges::<3>::new();
        let mut bytes = [false; 40];
        for (start, length) in inserts {
            let place = start as usize..(start + length) as usize;
            let mut merged = bytes;
            merged[place.clone()].fill(true);
            let gaps = merged.windows(2).filter(|pair| pair[0] && !pair[1]).count();
            let valid = length > 0 && !bytes[place].contains(&true) && gaps <= 3;
            prop_assert_eq!(ranges.insert(start, length), valid);
            if valid {
                bytes = merged;
            }
            for whole in 1..40 {
                let expected = (0..40).all(|at| bytes[at] == (at < whole));
                prop_assert_eq!(ranges.is_whole(whole as u64), expected);
            }
        }
        prop_assert!(!ranges.insert(u64::MAX, 1));
    }

    #[test]
    fn pieces_move_each_byte_once(
        local in prop::collection::vec(0_u64..9, 1..8),
        remote in prop::collection::vec(0_u32..9, 1..8),
        segments in 1_usize..4,
        from in 0_u64..20,
        length in 0_u64..20,
    ) {
        let descriptors: Vec<_> = remote.iter().enumerate().map(|(index, length)| Descriptor {
            address: 1000 * index as u64,
            length: *length,
            context: index as u32,
            rails: Rails::ALL,
        }).collect();
        let both = local.iter().sum::<u64>().min(remote.iter().map(|l| u64::from(*l)).sum());
        let from = from.min(both);
        let to = (from + length).min(both);
        let mut next = from;
        for piece in Pieces::new(&local, &descriptors, from, to, segments) {
            prop_assert_eq!(piece.offset, next);
            prop_assert!(piece.length > 0);
            // The first byte of the piece, by counting.
            let before: u64 = local[..piece.fragment].iter().sum();
            prop_assert_eq!(before + piece.skip, piece.offset);
            let context = piece.context as usize;
            let before: u64 = remote[..context].iter().map(|l| u64::from(*l)).sum();
            let inside = piece.address - 1000 * context as u64;
            prop_assert_eq!(before + inside, piece.offset);
            prop_assert!(inside + u64::from(piece.length) <= u64::from(remote[context]));
            let held: u64 = local[piece.fragment..].iter().take(segments).sum();
            prop_assert!(u64::from(piece.length) <= held - piece.skip);
            next += u64::from(piece.length);
        }
        prop_assert_eq!(next, to);
    }
}

#[test]
fn pieces_of_64_regions() {
    // A gather of 64 regions of 4 KiB into one buffer, 16 at a time.
    let remote = [Descriptor {
        address: 0x10_0000,
        length: 256 << 10,
        context: 5,
        rails: Rails::ALL,
    }];
    let pieces: Vec<_> = Pieces::new(&[4096; 64], &remote, 0, 256 << 10, 16).collect();
    let addresses = [0, 64, 128, 192].map(|offset| 0x10_0000 + (offset << 10));
    assert!(pieces.iter().map(|piece| piece.address).eq(addresses));
    assert!(pieces.iter().all(|piece| piece.length == 64 << 10));
}

#[test]
fn pieces_end_where_a_side_ends() {
    let remote = [Descriptor {
        address: u64::MAX - 1,
        length: 9,
        context: 5,
        rails: Rails::ALL,
    }];
    let one = Pieces::new(&[4], &remote, 0, 100, 16).map(|piece| piece.length);
    assert_eq!(one.collect::<Vec<_>>(), [4]);
    assert_eq!(
        Pieces::new(&[9], &remote, 2, 9, 16).count(),
        0,
        "addresses that wrap"
    );
}

proptest! {
    #[test]
    fn binds_cover_each_byte_of_a_message_once(
        lengths in prop::collection::vec(0..20_usize, 0..8),
        length in 0..100_u64,
        longest in 1..9_usize,
    ) {
        let wanted = Wanted { rdma: Rdma::Write, length, descriptors: 0 };
        let ranges: Vec<_> = wanted.divide(lengths.iter().copied(), longest).collect();
        prop_assert!(ranges.iter().all(|range| (1..=longest).contains(&range.length)));
        let bytes = lengths.iter().enumerate();
        let bytes = bytes.flat_map(|(fragment, length)| (0..*length).map(move |at| (fragment, at)));
        let bound = ranges.iter().flat_map(|range| {
            (range.offset..range.offset + range.length).map(|at| (range.fragment, at))
        });
        prop_assert!(bound.eq(bytes.take(length as usize)));
    }
}

#[test]
fn a_send_of_more_than_four_binds_is_written() {
    let most = |rdma, descriptors| {
        Wanted {
            rdma,
            length: 1,
            descriptors,
        }
        .most_binds()
    };
    assert_eq!([most(Rdma::Read, 3), most(Rdma::Read, 1000)], [3, 4]);
    assert_eq!([most(Rdma::Write, 3), most(Rdma::Write, 1000)], [3, 1000]);
}

#[test]
fn a_message_longer_than_all_binds_is_too_long() {
    let refusal = |length| {
        Wanted {
            rdma: Rdma::Write,
            length,
            descriptors: 3,
        }
        .refusal(1000)
    };
    assert_eq!(refusal(3000), Error::NoMemory);
    assert_eq!(refusal(3001), Error::TooLong);
    assert_eq!(refusal(u64::MAX), Error::TooLong);
}

#[test]
fn storage_is_small() {
    use crate::bmi::engine::{Op, Peer, LINKS};
    let op = size_of::<Entry<Op, LINKS>>();
    let peer = size_of::<Entry<Peer, 1>>();
    assert!(op <= 384, "{op} bytes for an operation");
    assert!(peer <= 640, "{peer} bytes for a peer");
}

#[test]
fn each_rail_has_descriptors_of_its_own() {
    let descriptor = |rails, length| Descriptor {
        address: 0,
        length,
        context: length,
        rails: Rails::from_bits(rails).expect("possible rails"),
    };
    let list = [
        descriptor(5, 10),
        descriptor(5, 20),
        descriptor(2, 14),
        descriptor(2, 7),
        descriptor(2, 9),
    ];
    assert_eq!(described(&list), 30);
    assert_eq!(described(&[]), 0);
    for (rail, expected) in [(0, &list[..2]), (1, &list[2..]), (2, &list[..2]), (3, &[])] {
        assert_eq!(of_rail(&list, rail), expected);
    }
    assert_eq!(of_rail(&list, u8::MAX), &[]);
}
