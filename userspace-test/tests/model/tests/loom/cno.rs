// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A CNO, its waiters and the producers of its EVDs: each EVD that has events triggers.

mod linked;

use self::linked::{
    Flaw,
    Linked, //
};
use super::explore_some;
use loom::{
    sync::Arc,
    thread, //
};

/// Action of one thread. Returns the number of events that it has taken.
type Act = fn(&Linked) -> u32;

/// Runs the actions concurrently, then checks the result.
fn play(begin: fn(Flaw) -> Linked, flaw: Flaw, acts: &'static [Act], check: fn(&Linked, u32)) {
    explore_some(move || {
        let linked = Arc::new(begin(flaw));
        let threads: Vec<_> = acts
            .iter()
            .map(|act| {
                let linked = linked.clone();
                thread::spawn(move || act(&linked))
            })
            .collect();
        let taken = threads
            .into_iter()
            .map(|thread| thread.join().expect("an action"))
            .sum();
        check(&linked, taken);
    });
}

fn bring(linked: &Linked) -> u32 {
    linked.bring();
    0
}

fn complete_two(linked: &Linked) -> u32 {
    linked.complete();
    linked.complete();
    0
}

fn move_over(linked: &Linked) -> u32 {
    linked.move_over();
    0
}

fn poll(linked: &Linked) -> u32 {
    assert!(linked.is_readable(0), "not readable, with events");
    0
}

fn take_one(linked: &Linked) -> u32 {
    u32::from(linked.hand_out(0) && linked.dequeue())
}

fn take_until_empty(linked: &Linked) -> u32 {
    let mut taken = 0;
    if linked.hand_out(0) {
        while linked.dequeue() {
            taken += 1;
        }
    }
    taken
}

fn dequeue_one(linked: &Linked) -> u32 {
    u32::from(linked.dequeue())
}

/// Returns an EVD with two events that has triggered.
fn triggered(flaw: Flaw) -> Linked {
    let linked = Linked::new(flaw, 2);
    linked.trigger();
    linked
}

/// Returns an EVD with two events that was handed out to a waiter, which has taken none.
fn handed_out(flaw: Flaw) -> Linked {
    let linked = triggered(flaw);
    linked.hand_out(0);
    linked
}

/// Returns an EVD that has triggered but has no events.
fn empty(flaw: Flaw) -> Linked {
    let linked = Linked::new(flaw, 0);
    linked.trigger();
    linked
}

fn two_events(linked: &Linked, taken: u32) {
    assert_eq!(taken + linked.take_all(0), 2, "an event is forgotten");
}

fn two_events_and_moved(linked: &Linked, taken: u32) {
    assert!(!linked.is_readable(0), "still readable at the first CNO");
    assert_eq!(taken + linked.take_all(1), 2, "an event is forgotten");
}

/// Events arrive while a waiter is given the EVD and empties it.
fn events_come(flaw: Flaw) {
    play(empty, flaw, &[bring, bring, take_until_empty], two_events);
}

#[test]
fn each_event_triggers() {
    events_come(Flaw::None);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn if_a_check_ignores_new_triggers_an_event_is_lost() {
    events_come(Flaw::EndsAnyway);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn if_a_check_begins_late_an_event_is_lost() {
    events_come(Flaw::BeginsLate);
}

/// A waiter takes one of two events while another thread polls the CNO's file.
fn polled_during_a_wait(flaw: Flaw) {
    play(triggered, flaw, &[take_one, poll], two_events);
}

#[test]
fn a_poll_finds_the_events_that_a_waiter_leaves() {
    polled_during_a_wait(Flaw::None);
}

#[test]
#[should_panic(expected = "not readable")]
fn if_an_evd_is_handed_out_in_two_steps_a_poll_misses_it() {
    polled_during_a_wait(Flaw::HandsOutInTwo);
}

/// Two threads poll the CNO's file and check the same EVD.
fn polled_by_two(flaw: Flaw) {
    play(handed_out, flaw, &[poll, poll], two_events);
}

#[test]
fn concurrent_polls_find_the_same() {
    polled_by_two(Flaw::None);
}

#[test]
#[should_panic(expected = "not readable")]
fn if_a_check_is_not_visible_another_poll_misses_the_evd() {
    polled_by_two(Flaw::LooksInSecret);
}

/// DTOs complete while the consumer finds the EVD empty.
fn emptied(flaw: Flaw) {
    play(empty, flaw, &[complete_two, dequeue_one], two_events);
}

#[test]
fn a_dequeue_that_finds_a_late_event_triggers_for_the_rest() {
    emptied(Flaw::None);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn if_such_a_dequeue_does_not_trigger_the_rest_is_lost() {
    emptied(Flaw::SaysNothing);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn if_the_cq_is_armed_after_the_drain_an_event_is_lost() {
    emptied(Flaw::ArmsLate);
}

/// The EVD moves to the other CNO while a thread waits on the first.
fn moved(flaw: Flaw) {
    play(
        triggered,
        flaw,
        &[take_one, move_over],
        two_events_and_moved,
    );
}

#[test]
fn a_moved_evd_keeps_its_trigger() {
    moved(Flaw::None);
}

#[test]
#[should_panic(expected = "an event is forgotten")]
fn if_the_link_marks_the_evd_as_handed_out_the_new_cno_loses_it() {
    moved(Flaw::HandsOutAtTheEvd);
}
