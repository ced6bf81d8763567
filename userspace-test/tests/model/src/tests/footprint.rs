// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the memory estimates with the allocations of soft-RoCE.

use crate::rust::model::footprint::{
    allocation,
    completion_queue,
    identifier,
    listener,
    object,
    queue_pair,
    region,
    WorkQueue, //
};

fn work(dtos: u32, segments: u32) -> WorkQueue {
    WorkQueue { dtos, segments }
}

/// Returns the bytes that `rxe_queue_init()` allocates with `vmalloc_user()`.
fn rxe_queue(count: u64, entry: u64) -> u64 {
    512 + (count + 1).next_power_of_two() * entry.max(64).next_power_of_two()
}

#[test]
fn queues_are_as_long_as_those_of_soft_roce() {
    for count in [1, 2, 100, 255, 256, 1024, 32_767] {
        let rxe = rxe_queue(count.into(), 72) / 1024;
        let ours = u64::from(completion_queue(count));
        assert!(
            (rxe..rxe + 10).contains(&ours),
            "{count} completions: {ours} for {rxe}"
        );
    }
}

#[test]
fn queue_pairs_are_as_large_as_those_of_soft_roce() {
    for (dtos, segments) in [(1, 1), (16, 1), (256, 4), (256, 32), (16_384, 32)] {
        let segment_bytes = u64::from(segments) * 16;
        let sends = rxe_queue(dtos.into(), 208 + segment_bytes);
        let receives = rxe_queue(dtos.into(), 40 + segment_bytes);
        let (rxe, ours) = (
            (sends + receives) / 1024,
            queue_pair(work(dtos, segments), work(dtos, segments)),
        );
        assert!(
            (rxe..rxe + 32).contains(&ours.into()),
            "{dtos} of {segments}: {ours} for {rxe}"
        );
    }
}

#[test]
fn each_queue_of_a_queue_pair_counts() {
    let small = queue_pair(work(1, 1), work(1, 1));
    assert!(queue_pair(work(1000, 1), work(1, 1)) > small);
    assert!(queue_pair(work(1, 1), work(1000, 1)) > small);
    assert!(queue_pair(work(100, 32), work(1, 1)) > queue_pair(work(100, 1), work(1, 1)));
    assert!(queue_pair(work(1, 1), work(100, 32)) > queue_pair(work(1, 1), work(100, 1)));
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    assert!(completion_queue(u32::MAX) >= completion_queue(1 << 30));
    assert_eq!(
        queue_pair(work(u32::MAX, u32::MAX), work(u32::MAX, u32::MAX)),
        u32::MAX
    );
    assert_eq!(region(u64::MAX), u32::MAX);
}

#[test]
fn a_region_grows_with_its_pages() {
    assert_eq!(region(0), 2);
    assert_eq!(region(1 << 20), 10);
    assert_eq!(region(1 << 30), (1 << 13) + 2);
}

#[test]
fn small_objects_count_too() {
    assert_eq!((object(), identifier()), (1, 4));
    assert_eq!((listener(false), listener(true)), (4, 104));
}

#[test]
fn an_allocation_is_a_power_of_two() {
    for (bytes, kilobytes) in [
        (0, 0),
        (1, 1),
        (1024, 1),
        (1025, 2),
        (2049, 4),
        (5 << 20, 8 << 10),
        (usize::MAX, u32::MAX),
    ] {
        assert_eq!(allocation(bytes), kilobytes, "{bytes}");
    }
}
