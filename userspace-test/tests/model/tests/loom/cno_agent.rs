// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A CNO whose triggers both an agent and a waiter take: each of them gets each trigger.

use super::{
    explore,
    rust::model::cno::{
        AgentTrigger,
        EvdSlot,
        EvdTable,
        SlotIndex, //
    },
};
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

/// Error that a test introduces.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The agent's thread resets the eventfd's counter after it has taken the triggers.
    ResetsLate,
    /// The agent's thread takes triggers from the list of the waiters.
    TakesFromWaiters,
}

type Cno = EvdTable<Vec<EvdSlot>>;

const EVD: u64 = 7;

/// A CNO with one EVD, and the eventfd of its agent.
struct Told {
    flaw: Flaw,
    cno: Mutex<Cno>,
    slot: SlotIndex,
    eventfd: AtomicU32,
}

impl Told {
    fn new(flaw: Flaw) -> Self {
        let mut cno = Cno::new();
        assert!(cno.grow(vec![EvdSlot::VACANT; 16]).is_ok());
        let slot = cno.attach(EVD).expect("a slot");
        Self {
            flaw,
            cno: Mutex::new(cno),
            slot,
            eventfd: AtomicU32::new(0),
        }
    }

    /// Triggers, as an event of the EVD does.
    fn trigger(&self) {
        let mut cno = self.cno.lock().expect("the CNO");
        let is_trigger = cno.trigger(self.slot);
        if cno.add_for_agent(self.slot, is_trigger) {
            self.eventfd.fetch_add(1, Ordering::Release);
        }
    }

    /// Takes a trigger as a waiter does, and empties the EVD.
    fn wait(&self) -> u32 {
        let mut cno = self.cno.lock().expect("the CNO");
        let taken = cno.take();
        if taken.is_some() {
            assert!(cno.begin_check_empty(self.slot));
            cno.end_check(self.slot);
        }
        u32::from(taken == Some(EVD))
    }

    fn take_for_agent(&self) -> bool {
        let mut cno = self.cno.lock().expect("the CNO");
        match self.flaw {
            Flaw::TakesFromWaiters => cno.take() == Some(EVD),
            Flaw::None | Flaw::ResetsLate => {
                cno.take_for_agent() == Some(AgentTrigger::Evd(self.slot, EVD))
            }
        }
    }

    /// Runs the agent's thread until it would sleep. Returns the number of triggers.
    fn run_agent(&self) -> u32 {
        let mut taken = 0;
        while self.eventfd.load(Ordering::Acquire) != 0 {
            if self.flaw != Flaw::ResetsLate {
                self.eventfd.swap(0, Ordering::AcqRel);
            }
            while self.take_for_agent() {
                taken += 1;
            }
            if self.flaw == Flaw::ResetsLate {
                self.eventfd.swap(0, Ordering::AcqRel);
            }
        }
        taken
    }
}

/// Triggers twice, while the agent and a waiter take triggers.
fn two_triggers(flaw: Flaw) {
    explore(move || {
        let told = Arc::new(Told::new(flaw));
        let events = {
            let told = told.clone();
            thread::spawn(move || {
                told.trigger();
                // Only an EVD that a waiter has emptied triggers again.
                let taken = told.wait();
                told.trigger();
                taken
            })
        };
        let agent = {
            let told = told.clone();
            thread::spawn(move || told.run_agent())
        };
        let waited = events.join().expect("the events") + told.wait();
        let called = agent.join().expect("the agent") + told.run_agent();
        assert_eq!(waited, 2, "the waiter misses a trigger");
        assert_eq!(called, 2, "the agent misses a trigger");
    });
}

#[test]
fn agent_and_waiter_get_each_trigger() {
    two_triggers(Flaw::None);
}

#[test]
#[should_panic(expected = "the agent misses a trigger")]
fn if_the_counter_is_reset_late_the_agent_misses_a_trigger() {
    two_triggers(Flaw::ResetsLate);
}

#[test]
#[should_panic(expected = "misses a trigger")]
fn if_both_take_from_one_list_a_trigger_is_missed() {
    two_triggers(Flaw::TakesFromWaiters);
}
