// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Two threads sleep on one bell, which two producers ring: none sleeps on an event.

use super::{
    explore_some,
    rust::model::bell::{
        Bell,
        Heard, //
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

    fn sleep(&self, heard: Heard) {
        let mut bed = self.bed.lock().expect("the bed");
        while !self.bell.has_rung_since(heard) {
            bed = self.woken.wait(bed).expect("the bed");
        }
    }

    fn read(&self, flaw: Flaw) {
        loop {
            let mut heard = self.bell.hear();
            if self.take() {
                return;
            }
            if flaw == Flaw::HearsLate {
                heard = self.bell.hear();
            }
            self.sleep(heard);
        }
    }
}

/// As many readers as producers. A lost wake-up is a deadlock.
fn play(count: usize, flaw: Flaw) {
    let evd = Evd::new();
    let start = |act: fn(&Evd, Flaw)| {
        let evd = evd.clone();
        thread::spawn(move || act(&evd, flaw))
    };
    let producers: Vec<_> = (0..count).map(|_| start(Evd::post)).collect();
    let readers: Vec<_> = (0..count).map(|_| start(Evd::read)).collect();
    for thread in producers.into_iter().chain(readers) {
        thread.join().expect("a thread");
    }
}

#[test]
fn one_reader() {
    explore_some(|| play(1, Flaw::None));
}

#[test]
fn two_readers() {
    explore_some(|| play(2, Flaw::None));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_reader_that_hears_late_sleeps_on_an_event() {
    explore_some(|| play(1, Flaw::HearsLate));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_producer_that_rings_early_lets_a_reader_sleep_on_an_event() {
    explore_some(|| play(1, Flaw::RingsEarly));
}
