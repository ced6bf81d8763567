// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The kernel hands records over, and two threads of a process take them.

use super::{
    explore,
    rust::model::{
        atomic::{
            AtomicU32,
            AtomicU64, //
        },
        event::Record,
        mapped_ring::{
            MappedRing,
            SharedMemory,
            SharedWords,
            EMPTY, //
        },
    },
};
use loom::{
    sync::Arc,
    thread, //
};

struct Memory {
    head: AtomicU32,
    tail: AtomicU32,
    calls_only: AtomicU32,
    empty: AtomicU32,
    records: Vec<AtomicU64>,
}

impl Memory {
    /// Checks whether the kernel claims that it has no other events, as a process does.
    fn claims_empty(&self) -> bool {
        self.empty.load_acquire() == EMPTY
    }
}

impl SharedMemory for Memory {
    fn words(&self) -> SharedWords<'_> {
        SharedWords {
            head: &self.head,
            tail: &self.tail,
            calls_only: &self.calls_only,
            empty: &self.empty,
            records: &self.records,
        }
    }
}

fn ring(slots: u32) -> Arc<MappedRing<Memory>> {
    let [head, tail, calls_only, empty] = [0; 4].map(AtomicU32::new);
    let records = (0..slots * 8).map(|_| AtomicU64::new(0)).collect();
    let memory = Memory {
        head,
        tail,
        calls_only,
        empty,
        records,
    };
    Arc::new(MappedRing::new(memory, slots).expect("a ring"))
}

/// Returns a record that differs from all others in its first and its last word.
fn record(n: u64) -> Record {
    std::array::from_fn(|i| if i == 0 || i == 7 { n + 1 } else { 0 })
}

/// Takes a record as `docs/ioctl/events.md` tells a process to.
fn take(ring: &MappedRing<Memory>) -> Option<u64> {
    let words = ring.memory().words();
    loop {
        let head = words.head.load_acquire();
        if words.tail.load_acquire() == head {
            return None;
        }
        let slot = (head & (ring.slots() - 1)) as usize * 8;
        let (first, last) = (words.records[slot].load(), words.records[slot + 7].load());
        if words.head.exchange_if(head, head.wrapping_add(1)).is_ok() {
            assert_eq!(first, last, "a torn record");
            return Some(first - 1);
        }
    }
}

/// Two threads take from a ring into which a third one pushes. Returns all that were taken, in the
/// order of each thread, and what is left.
fn all_are_taken_once(slots: u32, records: u64, kernel_pops: bool) {
    explore(move || {
        let ring = ring(slots);
        let kernel = thread::spawn({
            let ring = ring.clone();
            move || {
                let mut own = Vec::new();
                for n in 0..records {
                    if ring.push(&record(n)).is_err() {
                        own.push(n);
                    }
                }
                if kernel_pops {
                    own.extend(ring.pop().map(|record| record[0] - 1));
                }
                own
            }
        });
        let process = thread::spawn({
            let ring = ring.clone();
            move || {
                [take(&ring), take(&ring)]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
            }
        });
        let (mut all, of_process) = (kernel.join().unwrap(), process.join().unwrap());
        assert!(of_process.is_sorted(), "{of_process:?}");
        all.extend(of_process);
        all.extend(std::iter::from_fn(|| take(&ring)));
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..records), "{all:?}");
    });
}

#[test]
fn a_reused_slot_is_not_torn() {
    all_are_taken_once(1, 2, false);
}

#[test]
fn kernel_and_process_take_each_record_once() {
    all_are_taken_once(2, 2, true);
}

#[test]
fn two_threads_take_each_record_once() {
    explore(|| {
        let ring = ring(2);
        (0..2).for_each(|n| ring.push(&record(n)).expect("room"));
        let takers = [(); 2].map(|()| {
            let ring = ring.clone();
            thread::spawn(move || take(&ring))
        });
        let mut taken: Vec<_> = takers
            .into_iter()
            .map(|taker| taker.join().unwrap())
            .collect();
        taken.sort_unstable();
        assert_eq!(taken, [Some(0), Some(1)]);
    });
}

/// A producer queues an event while another thread claims that there is none.
fn retracted(retract: impl Fn(&MappedRing<Memory>) + Send + Sync + Copy + 'static) {
    explore(move || {
        let (ring, queued) = (ring(1), Arc::new(AtomicU32::new(0)));
        let producer = thread::spawn({
            let (ring, queued) = (ring.clone(), queued.clone());
            move || {
                queued.add(1);
                retract(&ring);
            }
        });
        ring.claim_empty(|| queued.load() == 0);
        producer.join().unwrap();
        assert!(!ring.memory().claims_empty(), "a lost event");
    });
}

#[test]
fn a_claim_does_not_hide_a_new_event() {
    retracted(MappedRing::retract_empty);
}

/// A thread that has queued an event polls while another thread checks whether there is none.
#[test]
fn a_poll_after_an_event_sees_no_claim() {
    explore(|| {
        let (ring, queued) = (ring(1), Arc::new(AtomicU32::new(0)));
        let claimer = thread::spawn({
            let (ring, queued) = (ring.clone(), queued.clone());
            move || ring.claim_empty(|| queued.load() == 0)
        });
        queued.add(1);
        ring.retract_empty();
        assert!(!ring.memory().claims_empty(), "the event was overlooked");
        claimer.join().unwrap();
    });
}

/// What the claim relies on: an exchange.
#[test]
#[should_panic(expected = "a lost event")]
fn a_claim_that_a_store_retracts_hides_an_event() {
    retracted(|ring| ring.memory().empty.store_release(0));
}

/// A process looks for an event while the kernel hands it over and then claims that it has no
/// others.
fn found_while_handed_over(
    find: impl Fn(&MappedRing<Memory>) -> bool + Send + Sync + Copy + 'static,
) {
    explore(move || {
        let ring = ring(1);
        let kernel = thread::spawn({
            let ring = ring.clone();
            move || {
                ring.push(&record(0)).expect("room");
                ring.claim_empty(|| true);
            }
        });
        let found = find(&ring);
        kernel.join().unwrap();
        assert!(found, "an event was overlooked");
    });
}

#[test]
fn an_event_that_is_handed_over_is_not_overlooked() {
    found_while_handed_over(|ring| {
        let empty = ring.memory().claims_empty();
        take(ring).is_some() || !empty
    });
}

#[test]
#[should_panic(expected = "an event was overlooked")]
fn a_claim_that_is_read_after_the_ring_overlooks_an_event() {
    found_while_handed_over(|ring| take(ring).is_some() || !ring.memory().claims_empty());
}

/// A thread changes what decides whether the process must call. The flag has the last value, though
/// another thread computes it at the same time.
#[test]
fn the_newest_value_of_the_flag_wins() {
    explore(|| {
        let (ring, is_full) = (ring(2), Arc::new(AtomicU32::new(0)));
        let update = {
            let (ring, is_full) = (ring.clone(), is_full.clone());
            move || ring.update_calls_only(|| is_full.load_acquire() == 1)
        };
        let other = thread::spawn(update.clone());
        is_full.store_release(1);
        update();
        other.join().unwrap();
        assert_eq!(ring.memory().words().calls_only.load_acquire(), 1);
    });
}
