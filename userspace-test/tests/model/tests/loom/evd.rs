// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD for the tests of the wait protocol, over a simulated completion queue.

use super::super::rust::model::{
    atomic::AtomicU64,
    event::Record,
    ring::{
        words_for,
        Ring,
        RingProducer, //
    },
    wait::{
        ArmResult,
        Doorbell,
        Threshold, //
    },
};
use loom::sync::{
    atomic::{
        AtomicBool,
        Ordering, //
    },
    Condvar,
    Mutex, //
};

type Words = std::sync::Arc<[AtomicU64]>;

/// State of the completion queue, which the driver's lock protects.
#[derive(Default)]
pub(super) struct Completions {
    /// Completions that have not been polled.
    ready: u32,
    /// The next completion notifies, once.
    armed: bool,
}

/// The doorbell, and two incorrect ones.
pub(super) enum TestDoorbell {
    Right(Doorbell),
    /// A store rings the doorbell.
    StoreToRing(AtomicBool),
    /// A store clears the doorbell.
    StoreToClear(AtomicBool),
}

impl TestDoorbell {
    pub(super) fn ring(&self) {
        match self {
            Self::Right(doorbell) => doorbell.ring(),
            Self::StoreToRing(doorbell) => doorbell.store(true, Ordering::Release),
            Self::StoreToClear(doorbell) => {
                doorbell.swap(true, Ordering::SeqCst);
            }
        }
    }

    pub(super) fn clear(&self) {
        match self {
            Self::Right(doorbell) => doorbell.clear(),
            Self::StoreToRing(doorbell) => {
                doorbell.swap(false, Ordering::SeqCst);
            }
            Self::StoreToClear(doorbell) => doorbell.store(false, Ordering::Release),
        }
    }

    pub(super) fn is_rung(&self) -> bool {
        match self {
            Self::Right(doorbell) => doorbell.is_rung(),
            Self::StoreToRing(doorbell) | Self::StoreToClear(doorbell) => {
                doorbell.load(Ordering::Acquire)
            }
        }
    }
}

/// State of the wait queue, which its lock protects.
#[derive(Default)]
pub(super) struct Bed {
    /// A waiter has stopped at the point where it would have to be woken. It counts as asleep.
    pub(super) taken: bool,
    /// The waiter was woken.
    pub(super) woken: bool,
}

/// An EVD: a completion queue, a ring, a doorbell and a wait queue with one entry.
pub(super) struct Evd {
    cq: Mutex<Completions>,
    /// Whether arming reports completions that arrived before it (`IB_CQ_REPORT_MISSED_EVENTS`).
    reports_missed: bool,
    pub(super) ring: Ring,
    producers: Mutex<RingProducer<Words>>,
    pub(super) doorbell: TestDoorbell,
    pub(super) wanted: Threshold,
    /// The wait queue and its lock.
    pub(super) bed: Mutex<Bed>,
    waked: Condvar,
}

impl Evd {
    pub(super) fn new(reports_missed: bool, doorbell: TestDoorbell) -> Self {
        let words = words_for(2).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, producer, _) = Ring::new(storage, 2).expect("a ring");
        Self {
            cq: Mutex::new(Completions::default()),
            reports_missed,
            ring,
            producers: Mutex::new(producer),
            doorbell,
            wanted: Threshold::one(),
            bed: Mutex::new(Bed::default()),
            waked: Condvar::new(),
        }
    }

    /// Completes a DTO, and calls the completion callback if the queue is armed, with the driver's
    /// lock held as in rxe.
    ///
    /// While completions are counted, the callback only queues the work item that drains. Here the
    /// work item runs on the same thread after the callback.
    pub(super) fn complete(&self) {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.ready += 1;
        if !std::mem::take(&mut cq.armed) {
            return;
        }
        self.doorbell.ring();
        if !self.wanted.needs_counting() {
            self.wake();
            return;
        }
        drop(cq);
        self.pump();
    }

    /// Runs the work item: drains the completion queue and leaves it armed.
    pub(super) fn pump(&self) {
        loop {
            self.poll(Self::post);
            match self.request_notification() {
                ArmResult::Missed => {}
                ArmResult::Empty => return self.poll(Self::post),
            }
        }
    }

    /// Queues an event.
    pub(super) fn post(&self) {
        let queued = self.push();
        self.doorbell.ring();
        if self.wanted.is_met_by(queued) {
            self.wake();
        }
    }

    pub(super) fn push(&self) -> u32 {
        let mut producer = self.producers.lock().expect("the producers");
        let record: Record = [1; 8];
        self.ring.push(&mut producer, &record).expect("room")
    }

    pub(super) fn wake(&self) {
        // The waker takes the lock of the wait queue; so does the waiter when it checks its
        // condition.
        let mut bed = self.bed.lock().expect("the bed");
        bed.woken |= bed.taken;
        self.waked.notify_one();
    }

    pub(super) fn poll(&self, push: impl Fn(&Self)) {
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

    pub(super) fn request_notification(&self) -> ArmResult {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.armed = true;
        if self.reports_missed && cq.ready > 0 {
            ArmResult::Missed
        } else {
            ArmResult::Empty
        }
    }

    pub(super) fn sleep_until_rung(&self) {
        let mut bed = self.bed.lock().expect("the bed");
        while !self.doorbell.is_rung() {
            bed = self.waked.wait(bed).expect("the bed");
        }
    }
}
