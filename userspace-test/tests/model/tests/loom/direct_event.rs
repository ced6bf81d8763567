// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A consumer takes an event directly from a drain: the events of an Endpoint stay in order.

use super::{
    explore,
    rust::model::{
        atomic::AtomicU64,
        direct_event::{
            DirectEvent,
            DrainLimit, //
        },
        event::{
            Event,
            Record, //
        },
        ring::{
            words_for,
            Ring,
            RingConsumer,
            RingProducer, //
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

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The event is delivered directly although the ring holds an older one.
    LooksNot,
    /// The event is delivered directly after the Endpoint's lock was released.
    TakesLate,
}

/// The event that has to come first.
const ESTABLISHED: u64 = 0;

/// Handle of the EVD.
const EVD: u64 = 9;

/// Word of a record that contains the number of its event.
const NUMBER: usize = 3;

fn event(number: u64) -> Event {
    Event::Software { pointer: number }
}

/// An EVD and an Endpoint that reports all its events to it.
struct Evd {
    flaw: Flaw,
    /// Completions that have not been polled.
    ready: Mutex<Vec<u64>>,
    ring: Ring,
    producer: Mutex<RingProducer<Words>>,
    consumer: Mutex<RingConsumer<Words>>,
    /// The Endpoint's lock, and whether the Endpoint is connected.
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

    /// Reports ESTABLISHED if it has not been reported. The caller holds the Endpoint's lock.
    fn establish(&self, connected: &mut bool) {
        if !std::mem::replace(connected, true) {
            self.push(ESTABLISHED);
        }
    }

    /// Handles the confirmation of the connection by `rdma_cm`.
    fn confirm(&self) {
        self.establish(&mut self.connected.lock().expect("the Endpoint"));
    }

    /// Handles a polled completion. A receive proves that the connection is established.
    fn complete(&self, number: u64, direct: &mut DirectEvent<'_>) {
        let mut connected = self.connected.lock().expect("the Endpoint");
        if self.flaw == Flaw::TakesLate {
            let was_empty = self.ring.len() == 0;
            self.establish(&mut connected);
            drop(connected);
            if !was_empty || !self.takes_blindly(number, direct) {
                self.push(number);
            }
            return;
        }
        self.establish(&mut connected);
        let taken = match self.flaw {
            Flaw::LooksNot => self.takes_blindly(number, direct),
            _ => direct.try_put(&self.ring, EVD, &event(number)),
        };
        if !taken {
            self.push(number);
        }
    }

    /// Delivers an event directly without regard to the ring.
    fn takes_blindly(&self, number: u64, direct: &mut DirectEvent<'_>) -> bool {
        let words = words_for(1).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (empty, ..) = Ring::new(storage, 1).expect("a ring");
        direct.try_put(&empty, EVD, &event(number))
    }

    fn pop(&self) -> Option<u64> {
        let mut consumer = self.consumer.lock().expect("the consumer");
        if self.ring.len() == 0 {
            let mut record = Record::default();
            let mut direct = DirectEvent::into_sink(&mut record, DrainLimit::One);
            while direct.may_continue() {
                let Some(number) = self.ready.lock().expect("the CQ").pop() else {
                    break;
                };
                self.complete(number, &mut direct);
            }
            if direct.is_full() {
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
    confirming.join().expect("the thread that confirms");
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
fn older_events_of_the_ring_come_first() {
    explore(|| play(Flaw::None));
}

#[test]
#[should_panic(expected = "out of order")]
fn if_direct_delivery_ignores_the_ring_events_are_reordered() {
    explore(|| play(Flaw::LooksNot));
}

#[test]
#[should_panic(expected = "out of order")]
fn if_direct_delivery_follows_the_lock_events_are_reordered() {
    explore(|| play(Flaw::TakesLate));
}
