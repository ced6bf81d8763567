// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Two threads sleep on one bell, which a producer rings: none sleeps on an event.

use super::{
    explore_some,
    rust::model::bell::{
        Bell,
        BellCount, //
    },
};
use loom::{
    sync::{
        atomic::{
            AtomicU32,
            Ordering, //
        },
        Arc,
        Condvar,
        Mutex, //
    },
    thread,
};

/// Step that a thread omits or makes at the wrong time.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The reader hears after it has looked for events.
    HearsLate,
    /// The producer rings before it queues the event.
    RingsEarly,
}

/// An event queue, a bell, and a wait queue with its lock.
struct Evd {
    queued: AtomicU32,
    bell: Bell,
    bed: Mutex<()>,
    woken: Condvar,
}

impl Evd {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queued: AtomicU32::new(0),
            bell: Bell::new(),
            bed: Mutex::new(()),
            woken: Condvar::new(),
        })
    }

    fn post(&self, flaw: Flaw) {
        if flaw == Flaw::RingsEarly {
            self.bell.ring();
            drop(self.bed.lock().expect("the bed"));
            self.woken.notify_all();
        }
        self.queued.fetch_add(1, Ordering::Release);
        if flaw != Flaw::RingsEarly {
            self.bell.ring();
            // The lock is the barrier between the bell and the look for sleepers.
            drop(self.bed.lock().expect("the bed"));
            self.woken.notify_all();
        }
    }

    /// Takes an event, if there is one.
    fn take(&self) -> bool {
        let mut queued = self.queued.load(Ordering::Acquire);
        while queued != 0 {
            let (full, relaxed) = (Ordering::AcqRel, Ordering::Acquire);
            match self
                .queued
                .compare_exchange(queued, queued - 1, full, relaxed)
            {
                Ok(_) => return true,
                Err(now) => queued = now,
            }
        }
        false
    }

    fn sleep(&self, seen: BellCount) {
        let mut bed = self.bed.lock().expect("the bed");
        while !self.bell.has_rung_since(seen) {
            bed = self.woken.wait(bed).expect("the bed");
        }
    }

    /// Reads an event. `may_sleep` is false for a reader that stops where it would sleep, and
    /// returns the count that it has heard.
    fn read(&self, flaw: Flaw, may_sleep: bool) -> Option<BellCount> {
        loop {
            let mut seen = self.bell.read();
            if self.take() {
                return None;
            }
            if flaw == Flaw::HearsLate {
                seen = self.bell.read();
            }
            if may_sleep {
                self.sleep(seen);
            } else if !self.bell.has_rung_since(seen) {
                return Some(seen);
            }
        }
    }
}

/// So many readers, and a producer of as many events. A lost wake-up is a deadlock.
fn sleeping(count: usize) {
    let evd = Evd::new();
    let producer = {
        let evd = evd.clone();
        thread::spawn(move || (0..count).for_each(|_| evd.post(Flaw::None)))
    };
    let readers = (0..count).map(|_| {
        let evd = evd.clone();
        thread::spawn(move || assert!(evd.read(Flaw::None, true).is_none()))
    });
    let readers: Vec<_> = readers.collect();
    for thread in readers.into_iter().chain([producer]) {
        thread.join().expect("a thread");
    }
}

/// One reader, which stops where it would sleep, and one producer.
fn stopping(flaw: Flaw) {
    let evd = Evd::new();
    let producer = {
        let evd = evd.clone();
        thread::spawn(move || evd.post(flaw))
    };
    let reader = {
        let evd = evd.clone();
        thread::spawn(move || evd.read(flaw, false))
    };
    producer.join().expect("the producer");
    if let Some(seen) = reader.join().expect("the reader") {
        assert!(evd.bell.has_rung_since(seen), "a reader sleeps on");
    }
}

#[test]
fn one_reader() {
    explore_some(|| sleeping(1));
}

#[test]
fn two_readers() {
    explore_some(|| sleeping(2));
}

#[test]
fn the_stopping_reader_is_correct_without_an_introduced_error() {
    explore_some(|| stopping(Flaw::None));
}

#[test]
#[should_panic(expected = "a reader sleeps on")]
fn a_reader_that_hears_late_sleeps_on_an_event() {
    explore_some(|| stopping(Flaw::HearsLate));
}

#[test]
#[should_panic(expected = "a reader sleeps on")]
fn a_producer_that_rings_early_lets_a_reader_sleep_on_an_event() {
    explore_some(|| stopping(Flaw::RingsEarly));
}
