// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Threads ask one timer for different delays while it runs: no delay is exceeded.

use super::{explore, rust::model::shortest_delay::ShortestDelay};
use loom::{
    sync::{
        atomic::{
            AtomicU32,
            Ordering, //
        },
        Arc,
        Mutex, //
    },
    thread,
};

/// Step that a thread omits.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// Does not cancel the timer before it asks for a shorter delay.
    NoCancel,
    /// Queues the timer with its own delay, not with the shortest one.
    OwnDelay,
}

/// A timer as the kernel's: a queued one keeps its delay.
struct Timer {
    queued: Mutex<Option<u32>>,
    shortest: ShortestDelay,
    runs: AtomicU32,
}

impl Timer {
    fn ask(&self, delay: u32, flaw: Flaw) {
        let queue = |shortest| {
            let delay = if flaw == Flaw::OwnDelay {
                delay
            } else {
                shortest
            };
            self.queued.lock().expect("the timer").get_or_insert(delay);
        };
        let cancel = || {
            if flaw != Flaw::NoCancel {
                *self.queued.lock().expect("the timer") = None;
            }
        };
        self.shortest.ask(delay, queue, cancel);
    }

    /// Runs the timer, if it is queued.
    fn run(&self) {
        let is_queued = self.queued.lock().expect("the timer").take().is_some();
        if is_queued {
            self.shortest.end();
            self.runs.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Timer {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            queued: Mutex::new(None),
            shortest: ShortestDelay::new(),
            runs: AtomicU32::new(0),
        })
    }

    fn queued(&self) -> Option<u32> {
        *self.queued.lock().expect("the timer")
    }
}

/// Two threads ask for different delays.
fn two_threads(flaw: Flaw) {
    let timer = Timer::new();
    let threads = [1_000, 20].map(|delay| {
        let timer = timer.clone();
        thread::spawn(move || timer.ask(delay, flaw))
    });
    for thread in threads {
        thread.join().expect("the thread");
    }
    assert_eq!(timer.queued(), Some(20), "the timer is late");
}

#[test]
fn the_shortest_delay_wins() {
    explore(|| two_threads(Flaw::None));
}

#[test]
#[should_panic(expected = "the timer is late")]
fn without_a_cancel_it_is_late() {
    explore(|| two_threads(Flaw::NoCancel));
}

#[test]
#[should_panic(expected = "the timer is late")]
fn with_the_own_delay_it_is_late() {
    explore(|| two_threads(Flaw::OwnDelay));
}

/// A thread asks for a shorter delay while the timer runs.
#[test]
fn the_timer_can_be_queued_after_it_has_run() {
    explore(|| {
        let timer = Timer::new();
        timer.ask(1_000, Flaw::None);
        let asks = {
            let timer = timer.clone();
            thread::spawn(move || timer.ask(20, Flaw::None))
        };
        let runs = {
            let timer = timer.clone();
            thread::spawn(move || timer.run())
        };
        asks.join().expect("the thread");
        runs.join().expect("the runner");
        if timer.runs.load(Ordering::SeqCst) == 0 {
            assert_eq!(timer.queued(), Some(20), "the timer is late");
        }
        timer.ask(5, Flaw::None);
        assert_eq!(timer.queued(), Some(5), "the timer cannot be queued again");
    });
}
