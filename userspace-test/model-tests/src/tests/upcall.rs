// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the scheduling of upcalls in one thread. Its interleavings are in `tests/loom/upcall.rs`.

use crate::rust::model::upcall::{
    Gate,
    Stay,
    MAX_CREW, //
};

const LAST: Stay = Stay::Left { last: true };
const NOT_LAST: Stay = Stay::Left { last: false };

#[test]
fn closed_nobody_is_sent() {
    let gate = Gate::new();
    assert_eq!(gate.call(), None);
    assert!(!gate.is_open() && gate.is_idle());
    gate.open(1);
    assert!(gate.is_open());
    assert!(gate.close());
    assert!(!gate.close());
    assert_eq!(gate.call(), None);
}

#[test]
fn one_is_sent_once_and_looks_again_if_called_meanwhile() {
    let gate = Gate::new();
    gate.open(1);
    assert_eq!(gate.call(), Some(0));
    assert!(!gate.is_idle());
    assert_eq!(gate.call(), None);
    assert_eq!(gate.stay(0), Stay::Take);
    assert_eq!(gate.leave(0), Stay::Take);
    assert_eq!(gate.leave(0), LAST);
    assert!(gate.is_idle());
    assert_eq!(gate.call(), Some(0));
}

#[test]
fn of_many_each_call_sends_another_one() {
    let gate = Gate::new();
    gate.open(MAX_CREW + 5);
    for runner in 0..MAX_CREW {
        assert_eq!(gate.call(), Some(runner));
    }
    assert_eq!(gate.call(), None);
    // The first runner that leaves checks once more for the last event.
    assert_eq!(gate.leave(3), Stay::Take);
    assert_eq!(gate.leave(3), NOT_LAST);
    assert_eq!(gate.call(), Some(3));
}

#[test]
fn behind_a_close_everybody_leaves() {
    let gate = Gate::new();
    gate.open(2);
    assert_eq!((gate.call(), gate.call()), (Some(0), Some(1)));
    gate.close();
    assert_eq!(gate.stay(1), NOT_LAST);
    assert_eq!(gate.stay(0), LAST);
    assert!(gate.is_idle());
}

#[test]
fn a_smaller_crew_shrinks_and_looks_once_more() {
    let gate = Gate::new();
    gate.open(3);
    for runner in 0..3 {
        assert_eq!(gate.call(), Some(runner));
    }
    gate.close();
    gate.open(1);
    // More runners are active than the new crew has.
    assert_eq!(gate.call(), None);
    assert_eq!(gate.stay(0), NOT_LAST);
    assert_eq!(gate.stay(2), NOT_LAST);
    assert_eq!(gate.stay(1), Stay::Take);
    assert_eq!(gate.leave(1), Stay::Take);
    assert_eq!(gate.leave(1), LAST);
}

#[test]
fn a_call_that_was_not_heeded_before_a_close_is_forgotten() {
    let gate = Gate::new();
    gate.open(1);
    assert_eq!((gate.call(), gate.call()), (Some(0), None));
    gate.close();
    gate.open(1);
    assert_eq!(gate.stay(0), Stay::Take);
    assert_eq!(gate.leave(0), LAST);
}
