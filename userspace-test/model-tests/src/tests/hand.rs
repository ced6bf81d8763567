// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the direct delivery of an event in one thread. Its interleavings are in
//! `tests/loom/hand.rs`.

use super::ring::{
    record,
    Whole, //
};
use crate::rust::model::{
    event::{
        Event,
        Record, //
    },
    hand::{
        Drained,
        Hand,
        Reach,
        Sink,
        Turns,
        BUDGET, //
    },
};

/// Handle of the EVD.
const EVD: u64 = 9;

fn event(number: u64) -> Event {
    Event::Software { pointer: number }
}

#[test]
fn a_closed_hand_takes_nothing() {
    let (whole, mut hand) = (Whole::at(4, 0), Hand::closed());
    assert!(!hand.takes(&whole.ring, EVD, &event(1)));
    assert!(!hand.is_full() && hand.goes_on());
    assert_eq!(hand.at_once(8), 8);
}

#[test]
fn an_open_hand_takes_one_event() {
    for reach in [Reach::One, Reach::All] {
        let (whole, mut place) = (Whole::at(4, 0), Record::default());
        let mut hand = Hand::open(&mut place, reach);
        assert!(!hand.is_full() && hand.goes_on());
        assert!(hand.takes(&whole.ring, EVD, &event(1)));
        assert!(hand.is_full());
        assert_eq!(hand.goes_on(), reach == Reach::All);
        assert!(!hand.takes(&whole.ring, EVD, &event(2)));
        assert_eq!(place, event(1).encode(EVD));
    }
}

#[test]
fn what_lies_in_the_ring_is_older() {
    let (mut whole, mut place) = (Whole::at(4, 0), Record::default());
    let mut hand = Hand::open(&mut place, Reach::One);
    assert!(whole.push(1).is_ok());
    assert!(!hand.takes(&whole.ring, EVD, &event(2)));
    assert!(!hand.is_full() && hand.goes_on());
    assert_eq!(place, Record::default());
}

#[test]
fn it_wants_the_next_event_until_it_has_one_or_the_ring_has() {
    let (mut whole, mut place) = (Whole::at(4, 0), Record::default());
    assert!(!Hand::closed().wants_next());
    assert!(!Hand::open(&mut place, Reach::All).wants_next());
    let mut hand = Hand::open(&mut place, Reach::One);
    assert!(hand.wants_next());
    assert!(hand.takes(&whole.ring, EVD, &event(1)));
    assert!(!hand.wants_next());
    let mut hand = Hand::open(&mut place, Reach::One);
    assert!(whole.push(1).is_ok());
    assert!(!hand.takes(&whole.ring, EVD, &event(2)));
    assert!(!hand.wants_next());
}

#[test]
fn a_record_gets_what_lay_in_a_ring_as_it_is() {
    let mut place = Record::default();
    place.put_record(&record(3));
    assert_eq!(place, record(3));
}

#[test]
fn who_wants_one_event_looks_at_one_completion() {
    let mut place = Record::default();
    for (reach, most, looks) in [(Reach::One, 8, 1), (Reach::One, 0, 0), (Reach::All, 8, 8)] {
        assert_eq!(Hand::open(&mut place, reach).at_once(most), looks);
    }
}

#[test]
fn a_drain_is_cut_once_its_budget_is_spent() {
    let mut place = Record::default();
    for mut hand in [Hand::closed(), Hand::open(&mut place, Reach::All)] {
        let mut looks = 0;
        while hand.goes_on() {
            assert_eq!(hand.drained(), Drained::Done);
            let most = hand.at_once(100);
            assert_ne!(most, 0);
            hand.spend(most);
            looks += most;
        }
        assert_eq!(looks, BUDGET as usize);
        assert_eq!((hand.drained(), hand.at_once(100)), (Drained::Cut, 0));
        hand.spend(1);
        assert_eq!(hand.drained(), Drained::Cut);
    }
}

#[test]
fn who_wants_one_event_has_a_budget_as_well() {
    let mut place = Record::default();
    let mut hand = Hand::open(&mut place, Reach::One);
    for _ in 0..BUDGET {
        assert!(hand.goes_on());
        hand.spend(1);
    }
    assert!(!hand.goes_on());
    assert_eq!(hand.drained(), Drained::Cut);
}

#[test]
fn all_that_lay_there_is_seen_in_its_turns() {
    for depth in [
        0,
        1,
        BUDGET - 1,
        BUDGET,
        BUDGET + 1,
        10 * BUDGET,
        10 * BUDGET + 7,
    ] {
        let mut turns = Turns::new();
        let mut looks = BUDGET;
        while turns.another(|| depth) {
            looks += BUDGET;
        }
        assert!(looks >= depth, "{looks} of {depth}");
        assert!(looks <= depth + BUDGET, "{looks} of {depth}");
        assert!(!turns.another(|| u32::MAX));
    }
}
