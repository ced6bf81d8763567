// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The wait protocol with a simulated completion queue, a ring and a doorbell: no wake-up is lost
//! in any interleaving.

mod evd;

use self::evd::{
    Evd,
    TestDoorbell, //
};
use super::{
    explore, explore_some,
    rust::model::wait::{
        wait_for,
        ArmResult,
        Doorbell,
        SleepEnd,
        WaitError,
        Waiter, //
    },
};
use loom::{
    sync::{
        atomic::AtomicBool,
        Arc, //
    },
    thread,
};

/// Step that the waiter omits or makes at the wrong time.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    PollsOnce,
    ClearsLate,
    WantsLate,
}

/// The waiter as in the kernel, except for the introduced errors.
struct Sleeper<'a> {
    evd: &'a Evd,
    flaw: Flaw,
    /// Whether the waiter really sleeps. Otherwise it stops at the point where it would have to be
    /// woken.
    for_good: bool,
    /// The waiter has armed and not drained since.
    armed: bool,
    gave_up: bool,
}

impl Waiter for Sleeper<'_> {
    /// Number of queued events, which stay in the ring.
    type Output = u32;

    fn queued(&self) -> u32 {
        self.evd.ring.len()
    }

    fn take(&mut self, threshold: u32) -> Option<u32> {
        let skipped = std::mem::take(&mut self.armed) && self.flaw == Flaw::PollsOnce;
        // A waiter that really slept would not drain any more.
        if !skipped && !self.gave_up {
            self.evd.poll(|evd| {
                evd.push();
            });
        }
        Some(self.queued()).filter(|queued| *queued >= threshold)
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<u32>) {
        self.armed = true;
        if self.flaw != Flaw::ClearsLate {
            self.evd.doorbell.clear();
        }
        let armed = self.evd.request_notification();
        (armed, self.take(threshold))
    }

    fn stop(&mut self) -> Option<WaitError> {
        None
    }

    fn sleep(&mut self) -> SleepEnd {
        if self.flaw == Flaw::ClearsLate {
            self.evd.doorbell.clear();
        }
        if self.flaw == Flaw::WantsLate {
            self.evd.wanted.set(1);
        }
        if self.for_good {
            self.evd.sleep_until_rung();
            SleepEnd::Woken
        } else {
            let mut bed = self.evd.bed.lock().expect("the bed");
            if self.evd.doorbell.is_rung() {
                return SleepEnd::Woken;
            }
            bed.taken = true;
            self.gave_up = true;
            SleepEnd::Closed
        }
    }
}

/// A test: the producers of events, one for each event that the waiter wants, and the variant of
/// the protocol.
#[derive(Clone, Copy)]
struct Scene {
    bring: &'static [fn(&Evd)],
    reports_missed: bool,
    doorbell: fn() -> TestDoorbell,
    flaw: Flaw,
    for_good: bool,
}

impl Scene {
    /// The correct protocol, with a waiter that sleeps until it is woken. A lost wake-up is a
    /// deadlock.
    const fn right(bring: &'static [fn(&Evd)], reports_missed: bool) -> Self {
        Self {
            bring,
            reports_missed,
            doorbell: || TestDoorbell::Right(Doorbell::new()),
            flaw: Flaw::None,
            for_good: true,
        }
    }

    /// A protocol with an error, and a waiter that stops where it would sleep. A wake-up is lost if
    /// the waiter stopped and is not woken afterwards.
    const fn flawed(bring: &'static [fn(&Evd)], flaw: Flaw) -> Self {
        Self {
            flaw,
            for_good: false,
            ..Self::right(bring, false)
        }
    }

    fn play(self) {
        let evd = Arc::new(Evd::new(self.reports_missed, (self.doorbell)()));
        let threshold = self.bring.len() as u32;
        // The threshold of the previous waiter.
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
            Ok(queued) => assert_eq!(queued, threshold),
            Err(stop) => {
                assert_eq!(stop, WaitError::Closed);
                // The waiter was woken, and the condition of its sleep has ended.
                let woken = evd.bed.lock().expect("the bed").woken;
                assert!(woken && evd.doorbell.is_rung(), "a wake-up is lost");
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
fn the_stopping_waiter_is_correct_without_an_introduced_error() {
    explore_some(|| Scene::flawed(&[COMPLETE, POST], Flaw::None).play());
    explore_some(|| Scene::flawed(&[COMPLETE, COMPLETE], Flaw::None).play());
    explore_some(|| Scene::flawed(&[POST, POST], Flaw::None).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn without_a_second_poll_a_completion_is_lost() {
    explore(|| Scene::flawed(&[COMPLETE], Flaw::PollsOnce).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_the_doorbell_cleared_after_the_second_poll_a_completion_is_lost() {
    explore(|| Scene::flawed(&[COMPLETE], Flaw::ClearsLate).play());
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_a_doorbell_rung_by_a_store_the_first_of_two_events_is_lost() {
    explore_some(|| {
        Scene {
            doorbell: || TestDoorbell::StoreToRing(AtomicBool::new(false)),
            ..Scene::flawed(&[POST, POST], Flaw::None)
        }
        .play();
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_a_doorbell_cleared_by_a_store_an_event_is_lost() {
    explore(|| {
        Scene {
            doorbell: || TestDoorbell::StoreToClear(AtomicBool::new(false)),
            ..Scene::flawed(&[POST], Flaw::None)
        }
        .play();
    });
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_the_threshold_set_too_late_a_wake_up_is_lost() {
    explore(|| Scene::flawed(&[POST], Flaw::WantsLate).play());
}
