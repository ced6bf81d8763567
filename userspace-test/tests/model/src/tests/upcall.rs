// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the scheduling of upcalls in one thread. Its interleavings are in `tests/loom/upcall.rs`.

use crate::rust::model::upcall::{
    take_turn,
    RunnerDecision,
    RunnerStep,
    TurnEnd,
    UpcallState,
    MAX_RUNNERS, //
};

const LAST: RunnerDecision = RunnerDecision::Finished { last: true };
const NOT_LAST: RunnerDecision = RunnerDecision::Finished { last: false };

#[test]
fn without_upcalls_no_runner_is_queued() {
    let state = UpcallState::new();
    assert_eq!(state.notify(), None);
    assert!(!state.is_open() && state.is_idle());
    state.open(1);
    assert!(state.is_open());
    assert!(state.close());
    assert!(!state.close());
    assert_eq!(state.notify(), None);
}

#[test]
fn one_runner_is_queued_once_and_rechecks_after_a_notification() {
    let state = UpcallState::new();
    state.open(1);
    assert_eq!(state.notify(), Some(0));
    assert!(!state.is_idle());
    assert_eq!(state.notify(), None);
    assert_eq!(state.may_take(0), RunnerDecision::Run);
    assert_eq!(state.try_finish(0), RunnerDecision::Run);
    assert_eq!(state.try_finish(0), LAST);
    assert!(state.is_idle());
    assert_eq!(state.notify(), Some(0));
}

#[test]
fn with_several_runners_each_notification_queues_another() {
    let state = UpcallState::new();
    state.open(MAX_RUNNERS + 5);
    for runner in 0..MAX_RUNNERS {
        assert_eq!(state.notify(), Some(runner));
    }
    assert_eq!(state.notify(), None);
    // The first runner that leaves checks once more for the last event.
    assert_eq!(state.try_finish(3), RunnerDecision::Run);
    assert_eq!(state.try_finish(3), NOT_LAST);
    assert_eq!(state.notify(), Some(3));
}

#[test]
fn all_runners_leave_after_a_disable() {
    let state = UpcallState::new();
    state.open(2);
    assert_eq!((state.notify(), state.notify()), (Some(0), Some(1)));
    state.close();
    assert_eq!(state.may_take(1), NOT_LAST);
    assert_eq!(state.may_take(0), LAST);
    assert!(state.is_idle());
}

#[test]
fn a_lower_maximum_lets_runners_leave_after_a_recheck() {
    let state = UpcallState::new();
    state.open(3);
    for runner in 0..3 {
        assert_eq!(state.notify(), Some(runner));
    }
    state.close();
    state.open(1);
    // More runners are active than the new maximum.
    assert_eq!(state.notify(), None);
    assert_eq!(state.may_take(0), NOT_LAST);
    assert_eq!(state.may_take(2), NOT_LAST);
    assert_eq!(state.may_take(1), RunnerDecision::Run);
    assert_eq!(state.try_finish(1), RunnerDecision::Run);
    assert_eq!(state.try_finish(1), LAST);
}

#[test]
fn a_disable_clears_a_pending_recheck() {
    let state = UpcallState::new();
    state.open(1);
    assert_eq!((state.notify(), state.notify()), (Some(0), None));
    state.close();
    state.open(1);
    assert_eq!(state.may_take(0), RunnerDecision::Run);
    assert_eq!(state.try_finish(0), LAST);
}

/// Returns the end of a turn of a runner that finishes in this step, and the number of steps.
fn turn(budget: u32, finishes_in: u32) -> (TurnEnd, u32) {
    let mut steps = 0;
    let end = take_turn(budget, || {
        steps += 1;
        match steps == finishes_in {
            true => RunnerStep::Finished,
            false => RunnerStep::Next,
        }
    });
    (end, steps)
}

#[test]
fn a_turn_has_as_many_steps_as_its_budget() {
    assert_eq!(turn(4, 1), (TurnEnd::Finished, 1));
    assert_eq!(turn(4, 4), (TurnEnd::Finished, 4));
    assert_eq!(turn(4, 5), (TurnEnd::QueueAgain, 4));
    assert_eq!(turn(1, 0), (TurnEnd::QueueAgain, 1));
}
