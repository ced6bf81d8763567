// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD with two completion queues and with completions that must not wake the waiter.
//!
//! The callback cannot tell them apart, so it leaves the decision to a work item that drains. In
//! each interleaving the waiter is woken for the other completions, and only for those.

use super::{
    explore_some,
    rust::model::{
        atomic::AtomicU64,
        cq_room::{CqReservation, CqRoom},
        ring::{
            words_for,
            Ring,
            RingProducer, //
        },
        wait::{
            wait_for,
            ArmResult,
            Doorbell,
            SleepEnd,
            WaitError,
            Waiter, //
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
    /// Only the first of the two queues is armed.
    ArmsOne,
    /// The work item drains and does not arm.
    ArmsNot,
    /// The work item arms and does not drain afterwards.
    DrainsOnce,
    /// The callback wakes the waiter.
    WakesAtOnce,
    /// A quiet event is pushed like the other ones.
    PushesLoud,
}

/// State of a completion queue, which the driver's lock protects. Each completion is quiet or not.
#[derive(Default)]
struct Completions {
    ready: Vec<bool>,
    armed: bool,
}

/// State of the wait queue, which its lock protects.
#[derive(Default)]
struct Bed {
    /// A waiter has stopped at the point where it would have to be woken. It counts as asleep.
    taken: bool,
    woken: bool,
}

struct Evd {
    flaw: Flaw,
    cqs: [Mutex<Completions>; 2],
    ring: Ring,
    producer: Mutex<RingProducer<Words>>,
    consumer: Mutex<()>,
    doorbell: Doorbell,
    bed: Mutex<Bed>,
}

impl Evd {
    fn new(flaw: Flaw) -> Self {
        let words = words_for(4).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, producer, _) = Ring::new(storage, 4).expect("a ring");
        Self {
            flaw,
            cqs: std::array::from_fn(|_| Mutex::new(Completions::default())),
            ring,
            producer: Mutex::new(producer),
            consumer: Mutex::new(()),
            doorbell: Doorbell::new(),
            bed: Mutex::new(Bed::default()),
        }
    }

    /// Completes a DTO in one of the queues, and calls the completion callback if the queue is
    /// armed. The work item runs on the same thread after the callback.
    fn complete(&self, cq: usize, quiet: bool) {
        let mut cq = self.cqs[cq].lock().expect("a CQ");
        cq.ready.push(quiet);
        if !std::mem::take(&mut cq.armed) {
            return;
        }
        drop(cq);
        if self.flaw == Flaw::WakesAtOnce {
            self.wake();
        }
        self.pump();
    }

    fn pump(&self) {
        let _consumer = self.consumer.lock().expect("the consumer");
        self.drain();
        if self.flaw != Flaw::ArmsNot {
            self.arm();
        }
        if self.flaw != Flaw::DrainsOnce {
            self.drain();
        }
    }

    /// Drains both queues. The caller holds the consumers' lock.
    fn drain(&self) {
        for cq in &self.cqs {
            let ready = std::mem::take(&mut cq.lock().expect("a CQ").ready);
            ready.into_iter().for_each(|quiet| self.report(quiet));
        }
    }

    fn report(&self, quiet: bool) {
        let mut producer = self.producer.lock().expect("the producer");
        if quiet && self.flaw != Flaw::PushesLoud {
            self.ring.push_quiet(&mut producer, &[1; 8]).expect("room");
            return;
        }
        self.ring.push(&mut producer, &[2; 8]).expect("room");
        drop(producer);
        self.wake();
    }

    fn wake(&self) {
        self.doorbell.ring();
        let mut bed = self.bed.lock().expect("the bed");
        bed.woken |= bed.taken;
    }

    /// Arms both queues. The caller holds the consumers' lock.
    fn arm(&self) {
        let all = if self.flaw == Flaw::ArmsOne { 1 } else { 2 };
        for cq in &self.cqs[..all] {
            cq.lock().expect("a CQ").armed = true;
        }
    }
}

/// The waiter as in the kernel. It stops at the point where it would have to be woken.
struct Sleeper<'a> {
    evd: &'a Evd,
    gave_up: bool,
}

impl Waiter for Sleeper<'_> {
    type Output = ();

    fn queued(&self) -> u32 {
        self.evd.ring.len()
    }

    fn take(&mut self, threshold: u32) -> Option<()> {
        if self.gave_up {
            return None;
        }
        let _consumer = self.evd.consumer.lock().expect("the consumer");
        self.evd.drain();
        (self.queued() >= threshold).then_some(())
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<()>) {
        self.evd.doorbell.clear();
        {
            let _consumer = self.evd.consumer.lock().expect("the consumer");
            self.evd.arm();
        }
        (ArmResult::Empty, self.take(threshold))
    }

    fn stop(&mut self) -> Option<WaitError> {
        None
    }

    fn sleep(&mut self) -> SleepEnd {
        let mut bed = self.evd.bed.lock().expect("the bed");
        if self.evd.doorbell.is_rung() {
            return SleepEnd::Woken;
        }
        bed.taken = true;
        self.gave_up = true;
        SleepEnd::Closed
    }
}

/// Runs a waiter for one event, concurrently with completions. Each is in one of the queues, and
/// quiet or not.
fn play(flaw: Flaw, completions: &'static [(usize, bool)]) {
    let evd = Arc::new(Evd::new(flaw));
    let producers: Vec<_> = completions
        .iter()
        .map(|(cq, quiet)| {
            let evd = evd.clone();
            thread::spawn(move || evd.complete(*cq, *quiet))
        })
        .collect();
    let waiter = {
        let evd = evd.clone();
        thread::spawn(move || {
            let mut sleeper = Sleeper {
                evd: &evd,
                gave_up: false,
            };
            wait_for(&mut sleeper, 1)
        })
    };
    for producer in producers {
        producer.join().expect("a producer");
    }
    if let Err(stop) = waiter.join().expect("the waiter") {
        assert_eq!(stop, WaitError::Closed);
        let woken = evd.bed.lock().expect("the bed").woken;
        let waking = completions.iter().any(|(_, quiet)| !quiet);
        assert!(woken || !waking, "a wake-up is lost");
        assert!(waking || !woken, "woken by quiet completions only");
        assert_eq!(evd.ring.has_waking(), waking);
    }
}

#[test]
fn waking_completions_wake_and_quiet_ones_do_not() {
    explore_some(|| play(Flaw::None, &[(0, true), (1, false)]));
    explore_some(|| play(Flaw::None, &[(0, true), (0, false)]));
    explore_some(|| play(Flaw::None, &[(1, false)]));
    explore_some(|| play(Flaw::None, &[(0, true), (1, true)]));
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn with_one_queue_unarmed_a_completion_is_lost() {
    explore_some(|| play(Flaw::ArmsOne, &[(1, false)]));
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn if_the_pump_does_not_arm_again_the_next_completion_is_lost() {
    explore_some(|| play(Flaw::ArmsNot, &[(0, true), (0, false)]));
}

#[test]
#[should_panic(expected = "a wake-up is lost")]
fn if_the_pump_does_not_drain_again_a_completion_is_lost() {
    explore_some(|| play(Flaw::DrainsOnce, &[(0, true), (0, false)]));
}

#[test]
#[should_panic(expected = "woken by quiet completions only")]
fn a_callback_that_wakes_also_wakes_for_quiet_completions() {
    explore_some(|| play(Flaw::WakesAtOnce, &[(0, true)]));
}

#[test]
#[should_panic(expected = "woken by quiet completions only")]
fn a_quiet_event_that_is_pushed_like_others_wakes() {
    explore_some(|| play(Flaw::PushesLoud, &[(0, true)]));
}

/// A queue pair without completions in the queue is destroyed, while another thread, which holds
/// the lock of the queue, reserves entries. None is released twice, and none stays reserved.
#[test]
fn entries_are_released_once() {
    explore_some(|| {
        let room = Arc::new(CqRoom::new(4));
        assert!(room.take(3));
        let goer = {
            let room = room.clone();
            thread::spawn(move || CqReservation::new(3).end(&room))
        };
        let taker = {
            let room = room.clone();
            thread::spawn(move || room.take(2))
        };
        goer.join().expect("the thread that frees");
        let taken = taker.join().expect("the thread that takes");
        assert!(
            !room.take(if taken { 3 } else { 5 }),
            "entries are released twice"
        );
        assert!(
            room.take(if taken { 2 } else { 4 }),
            "entries are never released"
        );
    });
}
