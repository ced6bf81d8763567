// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the triggers that a CNO (Consumer Notification Object) keeps for its agent with lists.

use crate::rust::model::cno::{
    AgentTrigger,
    EvdSlot,
    EvdTable,
    SlotIndex, //
};
use proptest::prelude::*;
use std::collections::VecDeque;

type Cno = EvdTable<Vec<EvdSlot>>;

/// Creates a CNO with EVDs 100, 101 and so on.
fn with_evds(count: u64) -> (Cno, Vec<SlotIndex>) {
    let mut cno = Cno::new();
    assert_eq!(cno.grow(vec![EvdSlot::VACANT; 16]), Ok(()));
    let slots = (100..100 + count)
        .map(|evd| cno.attach(evd).expect("a slot"))
        .collect();
    (cno, slots)
}

/// Triggers as the kernel does, and returns whether the agent is told.
fn trigger(cno: &mut Cno, slot: SlotIndex) -> bool {
    let is_trigger = cno.trigger(slot);
    cno.add_for_agent(slot, is_trigger)
}

/// The consumer finds the EVD empty, so that its next event triggers.
fn empty(cno: &mut Cno, slot: SlotIndex) {
    assert!(cno.begin_check_empty(slot));
    cno.end_check(slot);
}

/// Takes all triggers as the agent, and returns the EVDs; 0 for the consumer.
fn take_all(cno: &mut Cno) -> Vec<u64> {
    std::iter::from_fn(|| cno.take_for_agent())
        .map(|taken| match taken {
            AgentTrigger::Evd(_, evd) => evd,
            AgentTrigger::Consumer => 0,
        })
        .collect()
}

#[test]
fn waiter_and_agent_both_take_a_trigger() {
    let (mut cno, slots) = with_evds(3);
    assert!(trigger(&mut cno, slots[2]));
    assert!(trigger(&mut cno, slots[0]));
    assert_eq!(take_all(&mut cno), [102, 100]);
    assert_eq!(
        [cno.take(), cno.take(), cno.take()],
        [Some(102), Some(100), None]
    );
    assert_eq!(take_all(&mut cno), []);
}

#[test]
fn a_trigger_that_is_withdrawn_is_left_for_the_agent() {
    let (mut cno, slots) = with_evds(2);
    trigger(&mut cno, slots[1]);
    empty(&mut cno, slots[1]);
    assert_eq!(cno.take(), None);
    assert_eq!(take_all(&mut cno), [101]);
}

#[test]
fn each_trigger_of_an_evd_counts() {
    let (mut cno, slots) = with_evds(2);
    for _ in 0..3 {
        assert!(trigger(&mut cno, slots[0]));
        empty(&mut cno, slots[0]);
    }
    assert!(trigger(&mut cno, slots[1]));
    // In turns, so that a busy EVD does not keep the others waiting.
    assert_eq!(take_all(&mut cno), [100, 101, 100, 100]);
}

#[test]
fn an_event_without_a_trigger_counts_once_the_agent_has_taken_all() {
    let (mut cno, slots) = with_evds(1);
    assert!(trigger(&mut cno, slots[0]));
    // No waiter has taken the EVD, so that it does not trigger again.
    assert!(!trigger(&mut cno, slots[0]));
    assert_eq!(take_all(&mut cno), [100]);
    assert!(trigger(&mut cno, slots[0]));
    assert!(!trigger(&mut cno, slots[0]));
    assert_eq!(take_all(&mut cno), [100]);
}

#[test]
fn triggers_of_the_consumer_follow_those_of_evds() {
    let (mut cno, slots) = with_evds(1);
    cno.add_by_consumer_for_agent();
    cno.add_by_consumer_for_agent();
    trigger(&mut cno, slots[0]);
    assert_eq!(take_all(&mut cno), [100, 0, 0]);
}

#[test]
fn a_new_agent_begins_without_triggers() {
    let (mut cno, slots) = with_evds(3);
    slots
        .iter()
        .for_each(|slot| assert!(trigger(&mut cno, *slot)));
    cno.add_by_consumer_for_agent();
    cno.replace_agent();
    assert_eq!(take_all(&mut cno), []);
    // The next event of each counts, though waiters have not taken the triggers.
    assert!(trigger(&mut cno, slots[1]));
    assert!(trigger(&mut cno, slots[0]));
    cno.detach(slots[2]);
    assert_eq!(take_all(&mut cno), [101, 100]);
}

#[test]
fn an_evd_that_leaves_takes_its_triggers_along() {
    let (mut cno, slots) = with_evds(3);
    slots
        .iter()
        .for_each(|slot| assert!(trigger(&mut cno, *slot)));
    cno.detach(slots[1]);
    assert!(!trigger(&mut cno, slots[1]));
    let again = cno.attach(200).expect("a slot");
    assert_eq!(again, slots[1]);
    assert_eq!(take_all(&mut cno), [100, 102]);
    assert!(trigger(&mut cno, again));
    assert_eq!(take_all(&mut cno), [200]);
}

#[test]
fn only_the_triggers_of_this_evd_are_forgotten() {
    let (mut cno, slots) = with_evds(2);
    slots
        .iter()
        .for_each(|slot| assert!(trigger(&mut cno, *slot)));
    cno.clear_for_agent(slots[0], 101);
    cno.clear_for_agent(slots[1], 101);
    assert_eq!(take_all(&mut cno), [100]);
}

/// An operation on one of the EVDs.
#[derive(Clone, Copy, Debug)]
enum Act {
    Trigger(usize),
    Empty(usize),
    Take,
    TakeForAgent,
    ByConsumer,
    Replace,
    Reattach(usize),
}

const EVDS: usize = 5;

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..EVDS).prop_map(Act::Trigger),
        2 => (0..EVDS).prop_map(Act::Empty),
        2 => Just(Act::Take),
        4 => Just(Act::TakeForAgent),
        1 => Just(Act::ByConsumer),
        1 => Just(Act::Replace),
        1 => (0..EVDS).prop_map(Act::Reattach),
    ]
}

proptest! {
    #[test]
    fn like_a_queue(acts in prop::collection::vec(any_act(), 0..200)) {
        let (mut cno, mut slots) = with_evds(EVDS as u64);
        let mut evds: Vec<u64> = (100..).take(EVDS).collect();
        // The EVDs in turn, with the number of their triggers.
        let mut queue: VecDeque<(u64, u32)> = VecDeque::new();
        let mut by_consumer = 0;
        for (fresh, act) in (1000_u64..).zip(acts) {
            match act {
                Act::Trigger(which) => {
                    let is_trigger = cno.trigger(slots[which]);
                    let known = queue.iter_mut().find(|(evd, _)| *evd == evds[which]);
                    let told = is_trigger || known.is_none();
                    match known {
                        Some((_, count)) => *count += u32::from(is_trigger),
                        None => queue.push_back((evds[which], 1)),
                    }
                    prop_assert_eq!(cno.add_for_agent(slots[which], is_trigger), told);
                }
                Act::Empty(which) => {
                    cno.begin_check_empty(slots[which]);
                    cno.end_check(slots[which]);
                }
                Act::Take => drop(cno.take()),
                Act::TakeForAgent => {
                    let expected = match queue.pop_front() {
                        Some((evd, count)) => {
                            if count > 1 {
                                queue.push_back((evd, count - 1));
                            }
                            let which = evds.iter().position(|known| *known == evd);
                            let slot = slots[which.expect("an EVD of the CNO")];
                            Some(AgentTrigger::Evd(slot, evd))
                        }
                        None if by_consumer > 0 => {
                            by_consumer -= 1;
                            Some(AgentTrigger::Consumer)
                        }
                        None => None,
                    };
                    prop_assert_eq!(cno.take_for_agent(), expected);
                }
                Act::ByConsumer => {
                    by_consumer += 1;
                    cno.add_by_consumer_for_agent();
                }
                Act::Replace => {
                    queue.clear();
                    by_consumer = 0;
                    cno.replace_agent();
                }
                Act::Reattach(which) => {
                    queue.retain(|(evd, _)| *evd != evds[which]);
                    cno.detach(slots[which]);
                    evds[which] = fresh;
                    slots[which] = cno.attach(fresh).expect("a slot");
                }
            }
        }
        let rest: u32 = queue.iter().map(|(_, count)| count).sum::<u32>() + by_consumer;
        prop_assert_eq!(take_all(&mut cno).len() as u32, rest);
    }
}
