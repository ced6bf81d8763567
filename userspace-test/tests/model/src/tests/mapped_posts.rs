// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The ring of mapped DTOs: what a process writes is taken once and in order, and it may write
//! anything.

use crate::rust::model::{
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    event::Operation,
    mapped_posts::{
        MappedDto,
        MappedPosts,
        MappedSegment,
        PostMemory,
        PostWords,
        DTO_WORDS, //
    },
};
use proptest::prelude::*;
use std::collections::VecDeque;

struct Memory {
    words: [AtomicU32; 3],
    dtos: Vec<AtomicU64>,
}

impl PostMemory for Memory {
    fn words(&self) -> PostWords<'_> {
        let [tail, promise, room] = &self.words;
        PostWords {
            tail,
            promise,
            room,
            dtos: &self.dtos,
        }
    }
}

impl Memory {
    fn for_dtos(count: usize) -> Self {
        let words = [0; 3].map(AtomicU32::new);
        let dtos = (0..count * DTO_WORDS).map(|_| AtomicU64::new(0)).collect();
        Self { words, dtos }
    }
}

fn ring(slots: usize) -> MappedPosts<Memory> {
    MappedPosts::new(Memory::for_dtos(slots)).expect("a ring")
}

/// Writes a DTO as a process does.
fn map(ring: &MappedPosts<Memory>, dto: [u64; DTO_WORDS]) {
    let words = ring.memory().words();
    let tail = words.tail.load();
    let start = (tail % ring.slots()) as usize * DTO_WORDS;
    for (cell, word) in words.dtos[start..].iter().zip(dto) {
        cell.store(word);
    }
    words.tail.store_release(tail.wrapping_add(1));
}

/// Returns the first two fields of 32 bits as a word.
fn pair(first: u32, second: u32) -> u64 {
    let [a, b, c, d] = first.to_ne_bytes();
    let [e, f, g, h] = second.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

#[test]
fn slots_are_a_power_of_two() {
    for (memory, slots) in [(1, 1), (2, 2), (3, 2), (64, 64), (100, 64)] {
        assert_eq!(ring(memory).slots(), slots, "{memory}");
    }
    assert!(MappedPosts::new(Memory::for_dtos(0)).is_none());
}

#[test]
fn each_field_is_decoded() {
    let local = MappedSegment {
        address: 0x1111_2222_3333,
        length: 44,
        context: 55,
    };
    let remote = MappedSegment {
        address: 0x6666_7777_8888,
        length: 99,
        context: 1010,
    };
    let words = |operation| {
        [
            pair(operation, 7),
            8,
            local.address,
            pair(local.length, local.context),
            remote.address,
            pair(remote.length, remote.context),
            u64::MAX,
            u64::MAX,
        ]
    };
    let known = [Operation::Send, Operation::RdmaWrite, Operation::RdmaRead];
    for operation in known {
        let decoded = MappedDto::decode(words(operation.number()));
        let expected = MappedDto {
            operation: Some(operation),
            flags: 7,
            cookie: 8,
            local,
            remote,
        };
        assert_eq!(decoded, expected);
    }
    for other in [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0x100, 0x101, u32::MAX] {
        assert_eq!(MappedDto::decode(words(other)).operation, None, "{other}");
    }
}

#[test]
fn a_promise_has_another_number_each_time_and_never_0() {
    let mut ring = ring(8);
    let mut seen = Vec::new();
    for _ in 0..5 {
        ring.promise(3);
        let words = ring.memory().words();
        seen.push(words.promise.load());
        assert_eq!(words.room.load(), 3);
        ring.withdraw();
        assert_eq!(ring.memory().words().promise.load(), 0);
    }
    assert_eq!(seen, [1, 2, 3, 4, 5]);
}

#[test]
fn room_is_limited_by_the_slots() {
    let mut ring = ring(8);
    ring.promise(100);
    assert_eq!(ring.memory().words().room.load(), 8);
}

#[test]
fn promises_skip_0() {
    let mut ring = MappedPosts::numbered_after(Memory::for_dtos(1), u32::MAX).expect("a ring");
    ring.promise(1);
    assert_eq!(ring.memory().words().promise.load(), 1);
}

#[test]
fn a_tail_beyond_the_ring_drops_all() {
    for beyond in [9, 10, 1 << 31, u32::MAX] {
        let mut ring = ring(8);
        ring.memory().words().tail.store_release(beyond);
        assert_eq!(ring.count(), 0, "{beyond}");
        // The ring works from there on.
        map(&ring, [pair(0, 0), 42, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ring.count(), 1, "{beyond}");
        assert_eq!(ring.take().cookie, 42, "{beyond}");
        assert_eq!(ring.count(), 0, "{beyond}");
    }
    let mut ring = ring(8);
    ring.memory().words().tail.store_release(8);
    assert_eq!(ring.count(), 8, "a full ring is valid");
}

proptest! {
    #[test]
    fn dtos_are_taken_once_and_in_order(steps in prop::collection::vec(0_usize..9, 0..40)) {
        let (mut ring, mut model, mut next) = (ring(8), VecDeque::new(), 0);
        for (number, count) in steps.into_iter().enumerate() {
            if number % 2 == 0 {
                for _ in 0..count.min(8 - model.len()) {
                    map(&ring, [pair(3, 0), next, 0, 0, 0, 0, 0, 0]);
                    model.push_back(next);
                    next += 1;
                }
            } else {
                prop_assert_eq!(ring.count() as usize, model.len());
                for _ in 0..count.min(model.len()) {
                    prop_assert_eq!(Some(ring.take().cookie), model.pop_front());
                }
            }
        }
    }
}
