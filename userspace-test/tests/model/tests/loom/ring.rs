// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A producer and a consumer of a ring whose indices wrap and whose slots are reused, also while
//! the ring is resized.

use super::{
    explore, explore_some,
    rust::model::{
        atomic::AtomicU64,
        event::Record,
        ring::{
            resize::{BeginError, Resize},
            words_for,
            Ring,
            RingConsumer,
            RingProducer, //
        },
    },
};
use loom::{
    sync::{
        atomic::Ordering::{
            self,
            Acquire,
            Relaxed,
            Release, //
        },
        Arc,
        Mutex, //
    },
    thread,
};

/// More records than slots, so that the producer overwrites records that were read.
const EVENTS: u64 = 3;

type Words = std::sync::Arc<[AtomicU64]>;

/// Operations of a ring, which the tests run on the real one and on broken ones.
trait Queue: Send + Sync + 'static {
    type Producer: 'static;
    type Consumer: 'static;

    fn push(&self, producer: &mut Self::Producer, record: &Record) -> bool;
    fn pop(&self, consumer: &mut Self::Consumer) -> Option<Record>;
    fn len(&self) -> u32;
}

impl Queue for Ring {
    type Producer = RingProducer<Words>;
    type Consumer = RingConsumer<Words>;

    fn push(&self, producer: &mut RingProducer<Words>, record: &Record) -> bool {
        Ring::push(self, producer, record).is_ok()
    }

    fn pop(&self, consumer: &mut RingConsumer<Words>) -> Option<Record> {
        Ring::pop(self, consumer)
    }

    fn len(&self) -> u32 {
        Ring::len(self)
    }
}

/// Returns a record that differs from all others in its first and its last word.
fn record(n: u64) -> Record {
    std::array::from_fn(|i| if i == 0 || i == 7 { n + 1 } else { 0 })
}

fn storage(qlen: u32) -> Words {
    let words = words_for(qlen).expect("a length");
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn ring(qlen: u32) -> (Ring, RingProducer<Words>, RingConsumer<Words>) {
    Ring::with_start_index(storage(qlen), qlen, u32::MAX).expect("a ring")
}

/// Runs a thread with access to the queue.
fn run<Q: Queue, T: 'static>(
    queue: &Arc<Q>,
    what: impl FnOnce(&Q) -> T + 'static,
) -> thread::JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || what(&queue))
}

/// Checks that all pushed records are popped, whole and in order. A full ring refuses the newest.
fn in_order<Q: Queue>((queue, mut producer, mut consumer): (Q, Q::Producer, Q::Consumer)) {
    let queue = Arc::new(queue);
    let pushing = run(&queue, move |queue| {
        (0..EVENTS)
            .filter(|n| queue.push(&mut producer, &record(*n)))
            .collect::<Vec<u64>>()
    });
    let popping = run(&queue, move |queue| {
        let popped = (0..EVENTS)
            .filter_map(|_| queue.pop(&mut consumer))
            .collect();
        (popped, consumer)
    });
    let pushed = pushing.join().expect("the producer");
    let (mut popped, mut consumer): (Vec<Record>, _) = popping.join().expect("the consumer");
    while let Some(found) = queue.pop(&mut consumer) {
        popped.push(found);
    }
    let pushed: Vec<Record> = pushed.into_iter().map(record).collect();
    assert_eq!(popped, pushed);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_ring_of_one_keeps_records_whole_and_in_order() {
    explore(|| in_order(ring(1)));
}

#[test]
fn a_ring_of_two_keeps_records_whole_and_in_order() {
    explore(|| in_order(ring(2)));
}

#[test]
fn the_consumer_pops_as_many_as_it_counted() {
    explore(|| {
        let (queue, mut producer, mut consumer) = ring(2);
        let queue = Arc::new(queue);
        let pushing = run(&queue, move |queue| {
            for n in 0..EVENTS {
                let _ = queue.push(&mut producer, &record(n));
            }
        });
        let popping = run(&queue, move |queue| {
            let counted = queue.len();
            assert!(counted <= 2);
            for _ in 0..counted {
                assert!(queue.pop(&mut consumer).is_some());
            }
        });
        pushing.join().expect("the producer");
        popping.join().expect("the consumer");
    });
}

/// Largest number of records that a resize copies with the producers locked out. More than that may
/// be pushed in the meantime.
const LATE: u32 = 1;

/// A ring and its two locks, as an EVD has them.
struct Locked {
    ring: Ring,
    producer: Mutex<RingProducer<Words>>,
    consumer: Mutex<RingConsumer<Words>>,
}

impl Locked {
    fn push(&self, n: u64) -> bool {
        let mut producer = self.producer.lock().expect("the producers' lock");
        self.ring.push(&mut producer, &record(n)).is_ok()
    }

    fn pop(&self) -> Option<Record> {
        let mut consumer = self.consumer.lock().expect("the consumers' lock");
        self.ring.pop(&mut consumer)
    }

    fn resize(&self, qlen: u32) -> bool {
        let mut consumer = self.consumer.lock().expect("the consumers' lock");
        let mut resize = match Resize::begin(&self.ring, &consumer, storage(qlen), qlen) {
            Ok(resize) => resize,
            Err(BeginError::Full) => return false,
            Err(BeginError::Storage) => panic!("storage that suffices"),
        };
        loop {
            {
                let mut producer = self.producer.lock().expect("the producers' lock");
                match resize.finish(&self.ring, &mut producer, &mut consumer, LATE) {
                    Ok(_) => return true,
                    Err(behind) => resize = behind,
                }
            }
            if resize.catch_up(&self.ring, &consumer).is_err() {
                return false;
            }
        }
    }
}

/// Checks that no record is lost, duplicated or reordered while a ring of `from` records, which
/// holds one, is resized to `to`.
fn resized(from: u32, to: u32) {
    let (ring, producer, consumer) = ring(from);
    let queue = Arc::new(Locked {
        ring,
        producer: Mutex::new(producer),
        consumer: Mutex::new(consumer),
    });
    assert!(queue.push(0));
    let pushing = {
        let queue = queue.clone();
        thread::spawn(move || (1..3).filter(|n| queue.push(*n)).collect::<Vec<u64>>())
    };
    let resizing = {
        let queue = queue.clone();
        thread::spawn(move || queue.resize(to))
    };
    let popping = {
        let queue = queue.clone();
        thread::spawn(move || queue.pop())
    };
    let mut pushed = vec![0];
    pushed.extend(pushing.join().expect("the producer"));
    let mut popped: Vec<Record> = popping.join().expect("the consumer").into_iter().collect();
    let fits = resizing.join().expect("the thread that resizes");
    assert!(fits || to < from);
    while let Some(found) = queue.pop() {
        popped.push(found);
    }
    let pushed: Vec<Record> = pushed.into_iter().map(record).collect();
    assert_eq!(popped, pushed);
    assert_eq!(queue.ring.len(), 0);
}

#[test]
fn a_ring_that_grows_keeps_records_whole_and_in_order() {
    explore_some(|| resized(2, 4));
}

#[test]
fn a_ring_that_shrinks_keeps_records_whole_and_in_order() {
    explore_some(|| resized(4, 2));
}

/// A copy of the ring with one slot of two words, and with selectable orderings of the tail.
///
/// The orderings of the head cannot be tested in this way. In loom, a load never returns a value
/// that is stored later, so the consumer never reads a record that overwrites its own. There are
/// machines on which it may, which is why the head has these orderings.
struct Broken {
    head: loom::sync::atomic::AtomicU32,
    tail: loom::sync::atomic::AtomicU32,
    words: [loom::sync::atomic::AtomicU64; 2],
    release_tail: Ordering,
    acquire_tail: Ordering,
}

impl Broken {
    fn new(release_tail: Ordering, acquire_tail: Ordering) -> Self {
        Self {
            head: loom::sync::atomic::AtomicU32::new(u32::MAX),
            tail: loom::sync::atomic::AtomicU32::new(u32::MAX),
            words: std::array::from_fn(|_| loom::sync::atomic::AtomicU64::new(0)),
            release_tail,
            acquire_tail,
        }
    }
}

impl Queue for Broken {
    type Producer = ();
    type Consumer = ();

    fn push(&self, (): &mut (), record: &Record) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail != self.head.load(Acquire) {
            return false;
        }
        self.words[0].store(record[0], Relaxed);
        self.words[1].store(record[7], Relaxed);
        self.tail.store(tail.wrapping_add(1), self.release_tail);
        true
    }

    fn pop(&self, (): &mut ()) -> Option<Record> {
        let head = self.head.load(Relaxed);
        if self.tail.load(self.acquire_tail) == head {
            return None;
        }
        let [first, last] = [self.words[0].load(Relaxed), self.words[1].load(Relaxed)];
        self.head.store(head.wrapping_add(1), Release);
        Some([first, 0, 0, 0, 0, 0, 0, last])
    }

    fn len(&self) -> u32 {
        let head = self.head.load(Acquire);
        self.tail.load(Acquire).wrapping_sub(head)
    }
}

#[test]
fn the_copy_of_the_ring_is_correct_without_an_introduced_error() {
    explore(|| in_order((Broken::new(Release, Acquire), (), ())));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_releasing_the_tail() {
    explore(|| in_order((Broken::new(Relaxed, Acquire), (), ())));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_acquiring_the_tail() {
    explore(|| in_order((Broken::new(Release, Relaxed), (), ())));
}
