// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the length of an EVD's ring and the use of its slots.

use crate::rust::model::{
    atomic::AtomicU64,
    ring::{
        words_for,
        Ring, //
    },
    ring_size::{
        batch,
        slots,
        PendingEvents,
        BATCH, //
    },
};

#[test]
fn connection_events_find_room_after_a_batch() {
    for qlen in (0..31).map(|shift| 1 << shift) {
        let (slots, batch) = (slots(qlen).unwrap(), batch(qlen) as u32);
        assert!(words_for(slots).is_some(), "{qlen}");
        let left = slots - qlen - batch;
        assert!(
            left >= qlen - qlen.div_ceil(4),
            "{left} of {slots} after {qlen} and {batch}"
        );
        assert!(left >= 2, "{left} of {slots} after {qlen} and {batch}");
    }
}

#[test]
fn a_batch_is_between_one_and_the_queue_length() {
    for qlen in (0..32).map(|shift| 1_u32 << shift) {
        assert!(
            (1..=BATCH.min(qlen as usize)).contains(&batch(qlen)),
            "{qlen}"
        );
    }
    assert_eq!((batch(32), batch(u32::MAX)), (BATCH, BATCH));
}

#[test]
fn an_impossible_length_gives_no_ring() {
    assert_eq!(slots(1 << 31), None);
    assert_eq!(slots(u32::MAX), None);
}

#[test]
fn an_expected_event_counts_until_it_is_queued() {
    let storage: Vec<_> = (0..words_for(4).unwrap())
        .map(|_| AtomicU64::new(0))
        .collect();
    let (ring, mut producer, _) = Ring::new(&*storage, 4).unwrap();
    let pending = PendingEvents::none();
    assert_eq!((pending.count(), pending.total_with(&ring)), (0, 0));
    pending.reserve();
    pending.reserve();
    assert_eq!((pending.count(), pending.total_with(&ring)), (2, 2));
    ring.push(&mut producer, &[0; 8]).unwrap();
    pending.release();
    assert_eq!((pending.count(), pending.total_with(&ring)), (1, 2));
    pending.release();
    assert_eq!((pending.count(), pending.total_with(&ring)), (0, 1));
}
