// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the state of an asynchronous command in one thread. Its interleavings are in
//! `tests/loom/command.rs`.

use crate::rust::model::command::{
    CancelResult,
    CommandState,
    Notes,
    WakeResult, //
};

const NONE: Notes = Notes {
    cancelled: false,
    expired: false,
};
const CANCELLED: Notes = Notes {
    cancelled: true,
    expired: false,
};
const EXPIRED: Notes = Notes {
    cancelled: false,
    expired: true,
};

/// A parked command.
fn parked() -> CommandState {
    let state = CommandState::owned();
    assert_eq!(state.begin(), NONE);
    assert!(state.park());
    state
}

#[test]
fn a_wake_up_of_an_owned_command_is_noted_once() {
    let state = CommandState::owned();
    assert_eq!(state.wake(), WakeResult::Noted);
    assert_eq!(state.wake(), WakeResult::Ignored);
    assert!(!state.park());
    assert_eq!(state.begin(), NONE);
    assert!(state.park());
}

#[test]
fn a_wake_up_of_a_parked_command_hands_it_over() {
    let state = parked();
    assert_eq!(state.wake(), WakeResult::Schedule);
    // It is scheduled, and not running yet: another waiter may need the second wake-up.
    assert_eq!(state.wake(), WakeResult::Ignored);
    assert_eq!(state.begin(), NONE);
    assert_eq!(state.wake(), WakeResult::Noted);
    assert!(!state.park());
}

#[test]
fn a_time_out_is_noted_even_if_the_command_was_woken() {
    let state = CommandState::owned();
    assert_eq!(state.wake(), WakeResult::Noted);
    assert_eq!(state.expire(), WakeResult::Ignored);
    assert_eq!(state.begin(), EXPIRED);
    // The note stays.
    assert!(state.park());
    assert_eq!(state.expire(), WakeResult::Schedule);
    assert_eq!(state.begin(), EXPIRED);
}

#[test]
fn a_cancel_of_a_parked_command_hands_it_over() {
    let state = parked();
    assert_eq!(state.cancel(), CancelResult::Complete);
    assert_eq!(state.cancel(), CancelResult::Noted);
    assert_eq!(state.begin(), CANCELLED);
    state.finish();
    assert_eq!(state.cancel(), CancelResult::Done);
}

#[test]
fn a_cancel_of_an_owned_command_is_noted() {
    let state = CommandState::owned();
    assert_eq!(state.cancel(), CancelResult::Noted);
    assert!(!state.park());
    assert_eq!(state.begin(), CANCELLED);
}

#[test]
fn a_completed_command_needs_nothing() {
    let state = CommandState::owned();
    state.finish();
    assert_eq!(state.wake(), WakeResult::Ignored);
    assert_eq!(state.expire(), WakeResult::Ignored);
    assert_eq!(state.cancel(), CancelResult::Done);
}
