// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the direct delivery of an event in one thread. Its interleavings are in
//! `tests/loom/direct_event.rs`.

use super::ring::{
    record,
    Whole, //
};
use crate::rust::model::{
    direct_event::{
        DirectEvent,
        DrainEnd,
        DrainLimit,
        DrainRetries,
        EventSink,
        BUDGET, //
    },
    event::{
        Event,
        Record, //
    },
};

/// Handle of the EVD.
const EVD: u64 = 9;

fn event(number: u64) -> Event {
    Event::Software { pointer: number }
}

#[test]
fn none_takes_no_event() {
    let (whole, mut direct) = (Whole::at(4, 0), DirectEvent::none());
    assert!(!direct.try_put(&whole.ring, EVD, &event(1)));
    assert!(!direct.is_full() && direct.may_continue());
    assert_eq!(direct.batch_size(8), 8);
}

#[test]
fn a_direct_event_takes_one_event() {
    for limit in [DrainLimit::One, DrainLimit::All] {
        let (whole, mut place) = (Whole::at(4, 0), Record::default());
        let mut direct = DirectEvent::into_sink(&mut place, limit);
        assert!(!direct.is_full() && direct.may_continue());
        assert!(direct.try_put(&whole.ring, EVD, &event(1)));
        assert!(direct.is_full());
        assert_eq!(direct.may_continue(), limit == DrainLimit::All);
        assert!(!direct.try_put(&whole.ring, EVD, &event(2)));
        assert_eq!(place, event(1).encode(EVD));
    }
}

#[test]
fn events_in_the_ring_precede_a_direct_event() {
    let (mut whole, mut place) = (Whole::at(4, 0), Record::default());
    let mut direct = DirectEvent::into_sink(&mut place, DrainLimit::One);
    assert!(whole.push(1).is_ok());
    assert!(!direct.try_put(&whole.ring, EVD, &event(2)));
    assert!(!direct.is_full() && direct.may_continue());
    assert_eq!(place, Record::default());
}

#[test]
fn the_next_event_is_expected_until_it_or_the_ring_has_one() {
    let (mut whole, mut place) = (Whole::at(4, 0), Record::default());
    assert!(!DirectEvent::none().expects_next());
    assert!(!DirectEvent::into_sink(&mut place, DrainLimit::All).expects_next());
    let mut direct = DirectEvent::into_sink(&mut place, DrainLimit::One);
    assert!(direct.expects_next());
    assert!(direct.try_put(&whole.ring, EVD, &event(1)));
    assert!(!direct.expects_next());
    let mut direct = DirectEvent::into_sink(&mut place, DrainLimit::One);
    assert!(whole.push(1).is_ok());
    assert!(!direct.try_put(&whole.ring, EVD, &event(2)));
    assert!(!direct.expects_next());
}

#[test]
fn a_record_of_the_ring_is_delivered_unchanged() {
    let mut place = Record::default();
    place.put_record(&record(3));
    assert_eq!(place, record(3));
}

#[test]
fn a_drain_for_one_event_polls_one_completion() {
    let mut place = Record::default();
    for (limit, most, looks) in [
        (DrainLimit::One, 8, 1),
        (DrainLimit::One, 0, 0),
        (DrainLimit::All, 8, 8),
    ] {
        assert_eq!(
            DirectEvent::into_sink(&mut place, limit).batch_size(most),
            looks
        );
    }
}

#[test]
fn a_drain_ends_when_its_budget_is_exhausted() {
    let mut place = Record::default();
    for mut direct in [
        DirectEvent::none(),
        DirectEvent::into_sink(&mut place, DrainLimit::All),
    ] {
        let mut looks = 0;
        while direct.may_continue() {
            assert_eq!(direct.drain_end(), DrainEnd::Complete);
            let most = direct.batch_size(100);
            assert_ne!(most, 0);
            direct.charge(most);
            looks += most;
        }
        assert_eq!(looks, BUDGET as usize);
        assert_eq!(
            (direct.drain_end(), direct.batch_size(100)),
            (DrainEnd::BudgetExhausted, 0)
        );
        direct.charge(1);
        assert_eq!(direct.drain_end(), DrainEnd::BudgetExhausted);
    }
}

#[test]
fn a_drain_for_one_event_has_a_budget_too() {
    let mut place = Record::default();
    let mut direct = DirectEvent::into_sink(&mut place, DrainLimit::One);
    for _ in 0..BUDGET {
        assert!(direct.may_continue());
        direct.charge(1);
    }
    assert!(!direct.may_continue());
    assert_eq!(direct.drain_end(), DrainEnd::BudgetExhausted);
}

#[test]
fn retries_cover_all_queued_completions() {
    for depth in [
        0,
        1,
        BUDGET - 1,
        BUDGET,
        BUDGET + 1,
        10 * BUDGET,
        10 * BUDGET + 7,
    ] {
        let mut retries = DrainRetries::new();
        let mut looks = BUDGET;
        while retries.next(|| depth) {
            looks += BUDGET;
        }
        assert!(looks >= depth, "{looks} of {depth}");
        assert!(looks <= depth + BUDGET, "{looks} of {depth}");
        assert!(!retries.next(|| u32::MAX));
    }
}
