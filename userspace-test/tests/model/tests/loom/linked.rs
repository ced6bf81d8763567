// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! An EVD with a completion queue and a ring, linked to one of two CNOs.

use super::super::rust::model::cno::{
    check::{
        check,
        check_and_pop,
        CheckReason,
        CheckedEvd, //
    },
    EvdSlot,
    EvdTable,
    SlotIndex, //
};
use loom::sync::{
    atomic::{
        AtomicU32,
        Ordering, //
    },
    Mutex,
    MutexGuard, //
};

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Flaw {
    None,
    /// Taking an EVD from the CNO and marking it as handed out are two steps.
    HandsOutInTwo,
    /// The EVD is marked as handed out through its link, which may lead to another CNO by then.
    HandsOutAtTheEvd,
    /// A check removes the EVD from the CNO's list before it starts.
    LooksInSecret,
    /// A check is announced to the CNO after it was done.
    BeginsLate,
    /// The result of a check is used even if the EVD has triggered since.
    EndsAnyway,
    /// The completion queue is armed after the drain.
    ArmsLate,
    /// A consumer that finds an event during the check takes it and does not trigger.
    SaysNothing,
}

/// State of the completion queue, which the driver's lock protects.
#[derive(Default)]
struct Completions {
    ready: u32,
    armed: bool,
}

/// The CNO that the EVD is linked to, and its slot there.
#[derive(Clone, Copy)]
struct Attachment {
    cno: usize,
    slot: SlotIndex,
}

type Cno = EvdTable<Vec<EvdSlot>>;

pub(super) struct Linked {
    flaw: Flaw,
    cq: Mutex<Completions>,
    /// Number of events in the ring, published with release ordering as in the ring.
    queued: AtomicU32,
    consumer: Mutex<()>,
    link: Mutex<Attachment>,
    cnos: [Mutex<Cno>; 2],
}

const EVD: u64 = 7;

impl Linked {
    /// Returns an EVD at the first CNO, with this number of events, which have not triggered.
    pub(super) fn new(flaw: Flaw, queued: u32) -> Self {
        let [mut first, second] = [(); 2].map(|()| {
            let mut cno = EvdTable::new();
            assert!(cno.grow(vec![EvdSlot::VACANT; 16]).is_ok());
            cno
        });
        let slot = first.attach(EVD).expect("a slot");
        Self {
            flaw,
            cq: Mutex::new(Completions::default()),
            queued: AtomicU32::new(queued),
            consumer: Mutex::new(()),
            link: Mutex::new(Attachment { cno: 0, slot }),
            cnos: [Mutex::new(first), Mutex::new(second)],
        }
    }

    fn cno(&self, which: usize) -> MutexGuard<'_, Cno> {
        self.cnos[which].lock().expect("a CNO")
    }

    /// Calls `act` with the CNO and the slot, under both locks.
    fn with_slot<T>(&self, act: impl FnOnce(&mut Cno, SlotIndex) -> T) -> T {
        let link = self.link.lock().expect("the link");
        let result = act(&mut self.cno(link.cno), link.slot);
        drop(link);
        result
    }

    pub(super) fn trigger(&self) {
        self.with_slot(|cno, slot| cno.trigger(slot));
    }

    /// Queues an event and triggers.
    pub(super) fn bring(&self) {
        self.queued.fetch_add(1, Ordering::Release);
        self.trigger();
    }

    /// Completes a DTO, and triggers if the completion queue is armed.
    pub(super) fn complete(&self) {
        let mut cq = self.cq.lock().expect("the CQ");
        cq.ready += 1;
        if std::mem::take(&mut cq.armed) {
            self.trigger();
        }
    }

    /// `dat_evd_dequeue`.
    pub(super) fn dequeue(&self) -> bool {
        let _consumer = self.consumer.lock().expect("the consumer");
        self.pop() || check_and_pop(&mut EvdCheck { linked: self }).is_some()
    }

    fn pop(&self) -> bool {
        if self.queued.load(Ordering::Acquire) == 0 {
            self.drain();
        }
        let found = self.queued.load(Ordering::Acquire) != 0;
        if found {
            self.queued.fetch_sub(1, Ordering::Relaxed);
        }
        found
    }

    fn drain(&self) {
        let ready = std::mem::take(&mut self.cq.lock().expect("the CQ").ready);
        self.queued.fetch_add(ready, Ordering::Release);
    }

    fn arm(&self) {
        self.cq.lock().expect("the CQ").armed = true;
    }

    /// Checks the EVD, and triggers its CNO if there are events.
    pub(super) fn offer(&self) {
        let _consumer = self.consumer.lock().expect("the consumer");
        check(&mut EvdCheck { linked: self });
    }

    /// Takes an EVD from the CNO as a waiter does. Returns whether one has triggered.
    pub(super) fn hand_out(&self, which: usize) -> bool {
        let mut cno = self.cno(which);
        let Some(evd) = cno.take() else {
            return false;
        };
        let (slot, _) = cno.first_unchecked().expect("handed out");
        if self.flaw == Flaw::HandsOutInTwo {
            cno.clear_unchecked(slot, evd);
            drop(cno);
            self.cno(which).begin_check(slot);
        } else if self.flaw == Flaw::HandsOutAtTheEvd {
            drop(cno);
            self.with_slot(|cno, slot| {
                cno.begin_check_empty(slot);
                cno.end_check(slot);
            });
        }
        true
    }

    fn recheck(&self, which: usize) {
        loop {
            let mut cno = self.cno(which);
            let Some((slot, evd)) = cno.first_unchecked() else {
                return;
            };
            if self.flaw == Flaw::LooksInSecret {
                cno.clear_unchecked(slot, evd);
            }
            drop(cno);
            self.offer();
        }
    }

    /// Polls the CNO's file.
    pub(super) fn is_readable(&self, which: usize) -> bool {
        loop {
            self.recheck(which);
            let cno = self.cno(which);
            if cno.triggered() != 0 || cno.first_unchecked().is_none() {
                return cno.triggered() != 0;
            }
        }
    }

    /// Takes events until the CNO is not readable any more. Returns their number.
    pub(super) fn take_all(&self, which: usize) -> u32 {
        let mut taken = 0;
        while self.is_readable(which) && self.hand_out(which) {
            while self.dequeue() {
                taken += 1;
            }
        }
        taken
    }

    /// `dat_evd_modify_cno`, to the second CNO.
    pub(super) fn move_over(&self) {
        let slot = self.cno(1).attach(EVD).expect("a slot");
        let mut link = self.link.lock().expect("the link");
        let old = std::mem::replace(&mut *link, Attachment { cno: 1, slot });
        self.cno(old.cno).detach(old.slot);
        drop(link);
        self.offer();
    }
}

/// The check as in the kernel, except for the introduced errors.
struct EvdCheck<'a> {
    linked: &'a Linked,
}

impl EvdCheck<'_> {
    fn say_begin(&self, reason: CheckReason) -> bool {
        self.linked.with_slot(|cno, slot| match reason {
            CheckReason::Unchecked => cno.begin_check(slot),
            CheckReason::FoundEmpty => cno.begin_check_empty(slot),
        })
    }
}

impl CheckedEvd for EvdCheck<'_> {
    type Event = ();

    fn begin(&mut self, reason: CheckReason) -> bool {
        self.linked.flaw == Flaw::BeginsLate || self.say_begin(reason)
    }

    fn arm_and_drain(&mut self) {
        if self.linked.flaw == Flaw::ArmsLate {
            self.linked.drain();
            self.linked.arm();
        } else {
            self.linked.arm();
            self.linked.drain();
        }
    }

    fn has_events(&self) -> bool {
        self.linked.queued.load(Ordering::Acquire) != 0
    }

    fn pop(&mut self) -> Option<()> {
        // As in the kernel, except for `ArmsLate`, which drains only if there are events.
        match self.linked.flaw {
            Flaw::ArmsLate if !self.has_events() => None,
            _ => self.linked.pop().then_some(()),
        }
    }

    fn trigger(&mut self) {
        if self.linked.flaw != Flaw::SaysNothing {
            self.linked.trigger();
        }
    }

    fn end(&mut self) {
        let flaw = self.linked.flaw;
        if flaw == Flaw::BeginsLate {
            self.say_begin(CheckReason::FoundEmpty);
        }
        self.linked.with_slot(|cno, slot| {
            if flaw == Flaw::EndsAnyway {
                cno.begin_check_empty(slot);
            }
            cno.end_check(slot);
        });
    }
}
