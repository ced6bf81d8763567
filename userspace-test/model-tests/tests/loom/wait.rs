// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The wait protocol with a completion queue that notifies as providers do, a ring and a bell: no
//! wake-up is lost, whatever interleaves.

use super::{
    explore, explore_some,
    rust::model::{
        atomic::AtomicU64,
        event::Record,
        ring::{
            words_for,
            ProducerKey,
            Ring, //
        },
        wait::{
            wait_for,
            Arm,
            Doorbell,
            Stop,
            Waiter,
            Wake,
            Wanted, //
        },
    },
};
use loom::{
    sync::{
        atomic::{
            AtomicBool,
            Ordering, //
        },
        Arc,
        Condvar,
        Mutex, //
    },
    thread,
};

/// What a provider keeps behind its lock.
#[derive(Default)]
struct Completions {
    /// Completions that nobody has polled.
    ready: u32,
    /// The next completion is to be notified, once.
    armed: bool,
}

/// The bell, and what it must not be.
enum Bell {
    Right(Doorbell),
    /// Rung by a store.
    StoreToRing(AtomicBool),
    /// Cleared by a store.
    StoreToClear(AtomicBool),
}

impl Bell {
    fn ring(&self) {
        match self {
            Self::Right(bell) => bell.ring(),
            Self::StoreToRing(bell) => bell.store(true, Ordering::Release),
            Self::StoreToClear(bell) => {
                bell.swap(true, Ordering::SeqCst);
            }
        }
    }

    fn clear(&self) {
        match self {
            Self::Right(bell) => bell.clear(),
            Self::StoreToRing(bell) => {
                bell.swap(false, Ordering::SeqCst);
            }
            Self::StoreToClear(bell) => bell.store(false, Ordering::Release),
        }
    }

    fn is_rung(&self) -> bool {
        match self {
            Self::Right(bell) => bell.is_rung(),
            Self::StoreToRing(bell) | Self::StoreToClear(bell) => bell.load(Ordering::Acquire),
        }
    }
}

/// What the lock of the wait queue protects.
#[derive(Default)]
struct Bed {
    /// A sleeper that gives up lies here, as good as asleep.
    taken: bool,
    /// It was woken.
    woken: bool,
}

/// What an EVD has: a completion queue, a ring, a bell, and a place to sleep.
struct Evd {
    cq: Mutex<Completions>,
    /// Whether arming tells of completions that came before it (`IB_CQ_REPORT_MISSED_EVENTS`).
    reports_missed: bool,
    ring: Ring<Vec<AtomicU64>>,
    producers: Mutex<ProducerKey>,
    bell: Bell,
    wanted: Wanted,
    /// The lock of the wait queue, and the wait queue.
    bed: Mutex<Bed>,
    waked: Condvar,
}

impl Evd {
    fn new(reports_missed: bool, bell: Bell) -> Self {
        let words = words_for(2).expect("a length");
        let storage = (0..words).map(|_| AtomicU64::new(0)).collect();
        Self {
            cq: Mutex::new(Completions::default()),
            reports_missed,
            ring: Ring::new(storage, 2).expect("a ring"),
            producers: Mutex::new(ProducerKey::new()),
            bell,
            wanted: Wanted::any(),
            bed: Mutex::new(Bed::default()),
            waked: Condvar::new(),
        }
    }

    /// The provider completes a DTO, and calls back if that was asked for, lock held as rxe does.
    ///
    /// While completions are counted the callback only queues the pump, which here runs on the
    /// provider's thread, some time later.
    fn complete(&self) {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.ready += 1;
        if !std::mem::take(&mut cq.armed) {
            return;
        }
        self.bell.ring();
        if !self.wanted.counts() {
            self.wake();
            return;
        }
        drop(cq);
        self.pump();
    }

    /// Drains, and leaves the completion queue armed.
    fn pump(&self) {
        loop {
            self.poll(Self::post);
            match self.request_notification() {
                Arm::Missed => {}
                Arm::Quiet => return self.poll(Self::post),
            }
        }
    }

    /// Somebody queues an event.
    fn post(&self) {
        let queued = self.push();
        self.bell.ring();
        if self.wanted.is_reached_by(queued) {
            self.wake();
        }
    }

    fn push(&self) -> u32 {
        let mut key = self.producers.lock().expect("the producers");
        let record: Record = [1; 8];
        self.ring.push(&mut key, &record).expect("room")
    }

    fn wake(&self) {
        // A waker takes the wait queue's lock; so does a sleeper to look at its condition.
        let mut bed = self.bed.lock().expect("the bed");
        bed.woken |= bed.taken;
        self.waked.notify_one();
    }

    fn poll(&self, push: impl Fn(&Self)) {
        loop {
            let mut cq = self.cq.lock().expect("the CQ");
            if cq.ready == 0 {
                return;
            }
            cq.ready -= 1;
            drop(cq);
            push(self);
        }
    }

    fn request_notification(&self) -> Arm {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.armed = true;
        if self.reports_missed && cq.ready > 0 {
            Arm::Missed
        } else {
            Arm::Quiet
        }
    }

    fn sleep_until_rung(&self) {
        let mut bed = self.bed.lock().expect("the bed");
        while !self.bell.is_rung() {
            bed = self.waked.wait(bed).expect("the bed");
        }
    }
}

/// What is left out of the waiter, or misplaced.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    PollsOnce,
    ClearsLate,
    WantsLate,
}

/// The waiter as the kernel has it, flaws apart.
struct Sleeper<'a> {
    evd: &'a Evd,
    flaw: Flaw,
    /// Sleeps for good, or gives up where it would have to be woken.
    for_good: bool,
    /// It has armed since it drained.
    armed: bool,
    gave_up: bool,
}

impl Waiter for Sleeper<'_> {
    fn drain(&mut self) {
        let skipped = std::mem::take(&mut self.armed) && self.flaw == Flaw::PollsOnce;
        // One who sleeps for good would not drain any more.
        if !skipped && !self.gave_up {
            self.evd.poll(|evd| {
                evd.push();
            });
        }
    }

    fn queued(&self) -> u32 {
        self.evd.ring.len()
    }

    fn arm(&mut self) -> Arm {
        self.armed = true;
        if self.flaw != Flaw::ClearsLate {
            self.evd.bell.clear();
        }
        self.evd.request_notification()
    }

    fn sleep(&mut self) -> Wake {
        if self.flaw == Flaw::ClearsLate {
            self.evd.bell.clear();
        }
        if self.flaw == Flaw::WantsLate {
            self.evd.wanted.set(1);
        }
        if self.for_good {
            self.evd.sleep_until_rung();
            Wake::Woken
        } else {
            let mut bed = self.evd.bed.lock().expect("the bed");
            if self.evd.bell.is_rung() {
                return Wake::Woken;
            }
            bed.taken = true;
            self.gave_up = true;
            Wake::Closed
        }
    }
}

/// One life: who brings what, how many are waited for, and how.
#[derive(Clone, Copy)]
struct Scene {
    bring: &'static [fn(&Evd)],
    reports_missed: bool,
    bell: fn() -> Bell,
    flaw: Flaw,
    for_good: bool,
}

impl Scene {
    /// The protocol as it is, with a sleeper that only a wake-up wakes: a lost one is a deadlock.
    const fn right(bring: &'static [fn(&Evd)], reports_missed: bool) -> Self {
        Self {
            bring,
            reports_missed,
            bell: || Bell::Right(Doorbell::new()),
            flaw: Flaw::None,
            for_good: true,
        }
    }

    /// With a flaw, and a sleeper that gives up: a lost wake-up is one who gave up and whom nobody
    /// woke afterwards.
    const fn flawed(bring: &'static [fn(&Evd)], flaw: Flaw) -> Self {
        Self {
            flaw,
            for_good: false,
            ..Self::right(bring, false)
        }
    }

    fn play(self) {
        let evd = Arc::new(Evd::new(self.reports_missed, (self.bell)()));
        let threshold = self.bring.len() as u32;
        // What the waiter before this one wanted.
        evd.wanted.set(2);
        let producers: Vec<_> = self
            .bring
            .iter()
            .map(|bring| {
                let evd = evd.clone();
                thread::spawn(move || bring(&evd))
            })
            .collect();
        let waiter = {
            let evd = evd.clone();
            thread::spawn(move || {
                if self.flaw != Flaw::WantsLate {
                    evd.wanted.set(threshold);
                }
                let mut sleeper = Sleeper {
                    evd: &evd,
                    flaw: self.flaw,
                    for_good: self.for_good,
                    armed: false,
                    gave_up: false,
                };
                wait_for(&mut sleeper, threshold)
            })
        };
        for producer in producers {
            producer.join().expect("a producer");
        }
        match waiter.join().expect("the waiter") {
            Ok(()) => assert_eq!(evd.ring.len(), threshold),
            Err(stop) => {
                assert_eq!(stop, Stop::Closed);
                // Woken, and with a reason to stay up.
                let woken = evd.bed.lock().expect("the bed").woken;
                assert!(woken && evd.bell.is_rung(), "a wake-up is lost");
            }
        }
    }
}

const COMPLETE: fn(&Evd) = Evd::complete;
const POST: fn(&Evd) = Evd::post;

#[test]
fn one_completion() {
    explore(|| Scene::right(&[COMPLETE], false).play());
    explore(|| Scene::right(&[COMPLETE], true).play());
}

#[test]
fn one_event() {
    explore(|| Scene::right(&[POST], false).play());
}

#[test]
fn two_completions() {
    explore_some(|| Scene::right(&[COMPLETE, COMPLETE], false).play());
    explore_some(|| Scene::right(&[COMPLETE, COMPLETE], true).play());
}

#[test]
fn a_completion_and_an_event() {
    explore_some(|| Scene::right(&[COMPLETE, POST], false).play());
    explore_some(|| Scene::right(&[COMPLETE, POST], true).play());
}

#[test]
fn two_events() {
    explore_some(|| Scene::right(&[POST, POST], false).play());
}

#[test]
fn a_sleeper_that_gives_up_is_right_before_it_is_flawed() {
    explore_some(|| Scene::flawed(&[COMPLETE, POST], Flaw::None).play());
    explore_some(|| Scene::flawed(&[COMPLETE, COMPLETE], Flaw::None).play());
    explore_some(|| Scene::flawed(&[POST, POST], Flaw::None).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn without_polling_again_a_completion_is_lost() {
    explore(|| Scene::flawed(&[COMPLETE], Flaw::PollsOnce).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_the_bell_cleared_after_polling_again_a_completion_is_lost() {
    explore(|| Scene::flawed(&[COMPLETE], Flaw::ClearsLate).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_a_bell_that_is_rung_by_a_store_the_first_of_two_events_is_lost() {
    explore_some(|| {
        Scene {
            bell: || Bell::StoreToRing(AtomicBool::new(false)),
            ..Scene::flawed(&[POST, POST], Flaw::None)
        }
        .play();
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_a_bell_that_is_cleared_by_a_store_an_event_is_lost() {
    explore(|| {
        Scene {
            bell: || Bell::StoreToClear(AtomicBool::new(false)),
            ..Scene::flawed(&[POST], Flaw::None)
        }
        .play();
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_the_threshold_said_too_late_a_wake_up_is_lost() {
    explore(|| Scene::flawed(&[POST], Flaw::WantsLate).play());
}
