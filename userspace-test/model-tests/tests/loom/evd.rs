// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD as the wait protocol sees it, over a provider that completes, and notifies if asked to.

use super::super::rust::model::{
    atomic::AtomicU64,
    event::Record,
    ring::{
        words_for,
        Producer,
        Ring, //
    },
    wait::{
        Arm,
        Doorbell,
        Wanted, //
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

/// What a provider keeps behind its lock.
#[derive(Default)]
pub(super) struct Completions {
    /// Completions that nobody has polled.
    ready: u32,
    /// The next completion is to be notified, once.
    armed: bool,
}

/// The bell, and what it must not be.
pub(super) enum Bell {
    Right(Doorbell),
    /// Rung by a store.
    StoreToRing(AtomicBool),
    /// Cleared by a store.
    StoreToClear(AtomicBool),
}

impl Bell {
    pub(super) fn ring(&self) {
        match self {
            Self::Right(bell) => bell.ring(),
            Self::StoreToRing(bell) => bell.store(true, Ordering::Release),
            Self::StoreToClear(bell) => {
                bell.swap(true, Ordering::SeqCst);
            }
        }
    }

    pub(super) fn clear(&self) {
        match self {
            Self::Right(bell) => bell.clear(),
            Self::StoreToRing(bell) => {
                bell.swap(false, Ordering::SeqCst);
            }
            Self::StoreToClear(bell) => bell.store(false, Ordering::Release),
        }
    }

    pub(super) fn is_rung(&self) -> bool {
        match self {
            Self::Right(bell) => bell.is_rung(),
            Self::StoreToRing(bell) | Self::StoreToClear(bell) => bell.load(Ordering::Acquire),
        }
    }
}

/// What the lock of the wait queue protects.
#[derive(Default)]
pub(super) struct Bed {
    /// A sleeper that gives up lies here, as good as asleep.
    pub(super) taken: bool,
    /// It was woken.
    pub(super) woken: bool,
}

/// What an EVD has: a completion queue, a ring, a bell, and a place to sleep.
pub(super) struct Evd {
    cq: Mutex<Completions>,
    /// Whether arming tells of completions that came before it (`IB_CQ_REPORT_MISSED_EVENTS`).
    reports_missed: bool,
    pub(super) ring: Ring,
    producers: Mutex<Producer<Words>>,
    pub(super) bell: Bell,
    pub(super) wanted: Wanted,
    /// The lock of the wait queue, and the wait queue.
    pub(super) bed: Mutex<Bed>,
    waked: Condvar,
}

impl Evd {
    pub(super) fn new(reports_missed: bool, bell: Bell) -> Self {
        let words = words_for(2).expect("a length");
        let storage: Words = (0..words).map(|_| AtomicU64::new(0)).collect();
        let (ring, producer, _) = Ring::new(storage, 2).expect("a ring");
        Self {
            cq: Mutex::new(Completions::default()),
            reports_missed,
            ring,
            producers: Mutex::new(producer),
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
    pub(super) fn complete(&self) {
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
    pub(super) fn pump(&self) {
        loop {
            self.poll(Self::post);
            match self.request_notification() {
                Arm::Missed => {}
                Arm::Quiet => return self.poll(Self::post),
            }
        }
    }

    /// Somebody queues an event.
    pub(super) fn post(&self) {
        let queued = self.push();
        self.bell.ring();
        if self.wanted.is_reached_by(queued) {
            self.wake();
        }
    }

    pub(super) fn push(&self) -> u32 {
        let mut producer = self.producers.lock().expect("the producers");
        let record: Record = [1; 8];
        self.ring.push(&mut producer, &record).expect("room")
    }

    pub(super) fn wake(&self) {
        // A waker takes the wait queue's lock; so does a sleeper to look at its condition.
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

    pub(super) fn request_notification(&self) -> Arm {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.armed = true;
        if self.reports_missed && cq.ready > 0 {
            Arm::Missed
        } else {
            Arm::Quiet
        }
    }

    pub(super) fn sleep_until_rung(&self) {
        let mut bed = self.bed.lock().expect("the bed");
        while !self.bell.is_rung() {
            bed = self.waked.wait(bed).expect("the bed");
        }
    }
}
