// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! One producer and one consumer, where the indices wrap and the slots are used again.

use super::{
    explore,
    rust::model::{
        atomic::AtomicU64,
        event::Record,
        ring::{
            words_for,
            ProducerKey,
            Ring, //
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
    },
    thread,
};

/// More records than slots, so that the producer overwrites what was read.
const EVENTS: u64 = 3;

/// What the tests need of a ring, and the broken ones need as well.
trait Queue: Send + Sync + 'static {
    fn push(&self, key: &mut ProducerKey, record: &Record) -> bool;
    fn pop(&self) -> Option<Record>;
    fn len(&self) -> u32;
}

impl Queue for Ring<Vec<AtomicU64>> {
    fn push(&self, key: &mut ProducerKey, record: &Record) -> bool {
        Ring::push(self, key, record).is_ok()
    }

    fn pop(&self) -> Option<Record> {
        Ring::pop(self)
    }

    fn len(&self) -> u32 {
        Ring::len(self)
    }
}

/// A record that differs from every other in its first and in its last word.
fn record(n: u64) -> Record {
    std::array::from_fn(|i| if i == 0 || i == 7 { n + 1 } else { 0 })
}

fn ring(qlen: u32) -> Ring<Vec<AtomicU64>> {
    let words = words_for(qlen).expect("a length");
    let storage = (0..words).map(|_| AtomicU64::new(0)).collect();
    Ring::starting_at(storage, qlen, u32::MAX).expect("a ring")
}

/// A thread at the queue.
fn run<Q: Queue, T: 'static>(
    queue: &Arc<Q>,
    what: impl FnOnce(&Q) -> T + 'static,
) -> thread::JoinHandle<T> {
    let queue = queue.clone();
    thread::spawn(move || what(&queue))
}

/// Everything that is pushed is popped, whole and in order; a full ring loses the newest.
fn in_order(queue: impl Queue) {
    let queue = Arc::new(queue);
    let producer = run(&queue, |queue| {
        let mut key = ProducerKey::new();
        (0..EVENTS)
            .filter(|n| queue.push(&mut key, &record(*n)))
            .collect::<Vec<u64>>()
    });
    let consumer = run(&queue, |queue| {
        (0..EVENTS)
            .filter_map(|_| queue.pop())
            .collect::<Vec<Record>>()
    });
    let pushed = producer.join().expect("the producer");
    let mut popped = consumer.join().expect("the consumer");
    while let Some(found) = queue.pop() {
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
        let queue = Arc::new(ring(2));
        let producer = run(&queue, |queue| {
            let mut key = ProducerKey::new();
            for n in 0..EVENTS {
                let _ = queue.push(&mut key, &record(n));
            }
        });
        let consumer = run(&queue, |queue| {
            let counted = queue.len();
            assert!(counted <= queue.capacity());
            for _ in 0..counted {
                assert!(queue.pop().is_some());
            }
        });
        producer.join().expect("the producer");
        consumer.join().expect("the consumer");
    });
}

#[test]
fn a_snapshot_is_never_beyond_the_capacity() {
    explore(|| {
        let queue = Arc::new(ring(1));
        let producer = run(&queue, |queue| {
            let mut key = ProducerKey::new();
            let _ = queue.push(&mut key, &record(0));
            let _ = queue.push(&mut key, &record(1));
        });
        let consumer = run(&queue, |queue| {
            let _ = queue.pop();
            let _ = queue.pop();
        });
        let watcher = run(&queue, |queue| assert!(queue.len() <= 1));
        for thread in [producer, consumer, watcher] {
            thread.join().expect("a thread");
        }
    });
}

/// Relaxed and copied: one slot of two words, and the two orderings that loom can tell from none.
///
/// It cannot for the head: it has every load read what was stored before it in time, so the
/// consumer never reads what the producer writes later. The machines that do that are why those
/// two are there.
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
    fn push(&self, _: &mut ProducerKey, record: &Record) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail != self.head.load(Acquire) {
            return false;
        }
        self.words[0].store(record[0], Relaxed);
        self.words[1].store(record[7], Relaxed);
        self.tail.store(tail.wrapping_add(1), self.release_tail);
        true
    }

    fn pop(&self) -> Option<Record> {
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
fn the_copy_is_right_before_it_is_broken() {
    explore(|| in_order(Broken::new(Release, Acquire)));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_releasing_the_tail() {
    explore(|| in_order(Broken::new(Relaxed, Acquire)));
}

#[test]
#[should_panic(expected = "left == right")]
fn without_acquiring_the_tail() {
    explore(|| in_order(Broken::new(Release, Relaxed)));
}
