// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A consumer that takes an event along while it drains: the events of an Endpoint keep their order.

use super::{
    explore,
    rust::model::{
        atomic::AtomicU64,
        event::{
            Event,
            Record, //
        },
        hand::{
            Hand,
            Reach, //
        },
        ring::{
            words_for,
            Consumer,
            Producer,
            Ring, //
        },
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread,
};

type Words = std::sync::Arc<[AtomicU64]>;

/// What is done wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The event goes into the hand whatever lies in the ring.
    LooksNot,
    /// The event goes into the hand once the Endpoint's lock is given back.
    TakesLate,
}

/// The event that comes first.
const ESTABLISHED: u64 = 0;

/// The handle of the EVD.
const EVD: u64 = 9;

/// The word of a record that has the number of its event.
const NUMBER: usize = 3;

fn event(number: u64) -> Event {
    Event::Software { pointer: number }
}

/// An EVD with an Endpoint that reports all to it.
struct Evd {
    flaw: Flaw,
    /// Completions that nobody has polled.
    ready: Mutex<Vec<u64>>,
    ring: Ring,
    producer: Mutex<Producer<Words>>,
    consumer: Mutex<Consumer<Words>>,
    /// The lock of the Endpoint, and whether it is connected.
    connected: Mutex<bool>,
}

impl Evd {
    fn new(flaw: Flaw) -> Self {
        let words = words_for(4).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, producer, consumer) = Ring::new(storage, 4).expect("a ring");
        Self {
            flaw,
            ready: Mutex::new(vec![2, 1]),
            ring,
            producer: Mutex::new(producer),
            consumer: Mutex::new(consumer),
            connected: Mutex::new(false),
        }
    }

    fn push(&self, number: u64) {
        let mut producer = self.producer.lock().expect("the producer");
        self.ring
            .push(&mut producer, &event(number).encode(EVD))
            .expect("room");
    }

    /// With the lock of the Endpoint.
    fn establish(&self, connected: &mut bool) {
        if !std::mem::replace(connected, true) {
            self.push(ESTABLISHED);
        }
    }

    /// `rdma_cm` confirms the connection.
    fn confirm(&self) {
        self.establish(&mut self.connected.lock().expect("the Endpoint"));
    }

    /// A completion was polled: a receive proves the connection.
    fn complete(&self, number: u64, hand: &mut Hand<'_>) {
        let mut connected = self.connected.lock().expect("the Endpoint");
        if self.flaw == Flaw::TakesLate {
            let was_empty = self.ring.len() == 0;
            self.establish(&mut connected);
            drop(connected);
            if !was_empty || !self.takes_blindly(number, hand) {
                self.push(number);
            }
            return;
        }
        self.establish(&mut connected);
        let taken = match self.flaw {
            Flaw::LooksNot => self.takes_blindly(number, hand),
            _ => hand.takes(&self.ring, EVD, &event(number)),
        };
        if !taken {
            self.push(number);
        }
    }

    /// As if the ring were empty.
    fn takes_blindly(&self, number: u64, hand: &mut Hand<'_>) -> bool {
        let words = words_for(1).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (empty, ..) = Ring::new(storage, 1).expect("a ring");
        hand.takes(&empty, EVD, &event(number))
    }

    fn pop(&self) -> Option<u64> {
        let mut consumer = self.consumer.lock().expect("the consumer");
        if self.ring.len() == 0 {
            let mut record = Record::default();
            let mut hand = Hand::open(&mut record, Reach::One);
            while hand.goes_on() {
                let Some(number) = self.ready.lock().expect("the CQ").pop() else {
                    break;
                };
                self.complete(number, &mut hand);
            }
            if hand.is_full() {
                return Some(record[NUMBER]);
            }
        }
        self.ring.pop(&mut consumer).map(|record| record[NUMBER])
    }
}

/// A consumer takes events while the connection is confirmed.
fn play(flaw: Flaw) {
    let evd = Arc::new(Evd::new(flaw));
    let confirming = {
        let evd = evd.clone();
        thread::spawn(move || evd.confirm())
    };
    let taking = {
        let evd = evd.clone();
        thread::spawn(move || [evd.pop(), evd.pop()])
    };
    confirming.join().expect("who confirms");
    let mut taken: Vec<u64> = taking
        .join()
        .expect("the consumer")
        .into_iter()
        .flatten()
        .collect();
    while let Some(number) = evd.pop() {
        taken.push(number);
    }
    assert_eq!(taken, [ESTABLISHED, 1, 2], "out of order");
}

#[test]
fn what_was_pushed_before_comes_before() {
    explore(|| play(Flaw::None));
}

#[test]
#[should_panic(expected = "out of order")]
fn with_a_hand_that_looks_at_no_ring_events_change_places() {
    explore(|| play(Flaw::LooksNot));
}

#[test]
#[should_panic(expected = "out of order")]
fn with_a_look_before_the_last_push_events_change_places() {
    explore(|| play(Flaw::TakesLate));
}
