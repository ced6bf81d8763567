// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A thread counts queued and expected events while another one queues an expected event: the event
//! counts at least once.

use super::{
    explore,
    rust::model::{
        atomic::AtomicU64,
        ring::{
            words_for,
            Ring, //
        },
        ring_size::PendingEvents,
    },
};
use loom::{
    sync::Arc,
    thread, //
};

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The event leaves the expected ones before it is queued.
    EndsFirst,
    /// The queued events are counted before the expected ones.
    LooksAtRingFirst,
}

fn counts_at_least_once(flaw: Flaw) {
    explore(move || {
        let words = words_for(4).expect("a length");
        let storage: std::sync::Arc<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, mut producer, _consumer) = Ring::new(storage, 4).expect("a ring");
        let shared = Arc::new((ring, PendingEvents::none()));
        shared.1.reserve();
        let asked = shared.clone();
        let asks = thread::spawn(move || {
            let (ring, pending) = &*asked;
            let count = if flaw == Flaw::LooksAtRingFirst {
                let queued = ring.len();
                queued + pending.count()
            } else {
                pending.total_with(ring)
            };
            assert!((1..=2).contains(&count), "it counts {count} times");
        });
        let queues = thread::spawn(move || {
            let (ring, pending) = &*shared;
            if flaw == Flaw::EndsFirst {
                pending.release();
            }
            ring.push(&mut producer, &[0; 8]).expect("a slot");
            if flaw != Flaw::EndsFirst {
                pending.release();
            }
        });
        asks.join().expect("the thread that counts");
        queues.join().expect("the thread that queues");
    });
}

#[test]
fn an_event_that_is_being_queued_counts_at_least_once() {
    counts_at_least_once(Flaw::None);
}

#[test]
#[should_panic(expected = "it counts 0 times")]
fn an_event_is_missed_if_it_leaves_the_expected_ones_first() {
    counts_at_least_once(Flaw::EndsFirst);
}

#[test]
#[should_panic(expected = "it counts 0 times")]
fn an_event_is_missed_if_the_queued_ones_are_counted_first() {
    counts_at_least_once(Flaw::LooksAtRingFirst);
}
