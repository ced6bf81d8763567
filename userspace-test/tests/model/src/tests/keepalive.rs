// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Runs the keepalive of a connection beside a clock and a peer.

use crate::rust::model::keepalive::{
    Action,
    Keepalive,
    MAX_PROBES,
    MIN_MS,
    TICK_MS, //
};
use proptest::prelude::*;

/// Runs ticks of an idle connection whose peer falls silent at `silent_from` milliseconds, and
/// answers a probe at once before. Returns the time at which the connection is given up.
fn time_of_end(keepalive_ms: u32, first_tick: u32, silent_from: u32) -> u32 {
    let mut keepalive = Keepalive::default();
    let mut now = first_tick;
    loop {
        match keepalive.tick(keepalive_ms, false, false) {
            Action::GiveUp => return now,
            Action::Probe => {
                keepalive.probe_posted();
                assert!((1..=MAX_PROBES).contains(&keepalive.probes()));
                while now < silent_from && keepalive.probes() != 0 {
                    assert!(keepalive.probe_completed());
                }
            }
            Action::Wait => {}
        }
        now += TICK_MS;
    }
}

proptest! {
    #[test]
    fn a_dead_peer_is_given_up_in_time(
        keepalive_ms in MIN_MS..100_000,
        first_tick in 0..TICK_MS,
        silent_from in 0_u32..300_000,
    ) {
        let end = time_of_end(keepalive_ms, first_tick, silent_from);
        prop_assert!(end >= silent_from);
        prop_assert!(end - silent_from <= keepalive_ms);
    }

    #[test]
    fn a_peer_that_answers_is_never_given_up(
        keepalive_ms in MIN_MS..100_000,
        signs in proptest::collection::vec((any::<bool>(), any::<bool>()), 0..500),
    ) {
        let mut keepalive = Keepalive::default();
        for (heard, is_busy) in signs {
            match keepalive.tick(keepalive_ms, heard, is_busy) {
                Action::GiveUp => prop_assert!(false, "given up"),
                Action::Probe => {
                    prop_assert!(!heard && !is_busy);
                    keepalive.probe_posted();
                    prop_assert!(keepalive.probe_completed());
                    prop_assert!(!keepalive.probe_completed());
                }
                Action::Wait => {}
            }
        }
    }

    #[test]
    fn a_message_while_a_probe_is_outstanding_is_a_sign_of_life(
        keepalive_ms in MIN_MS..100_000,
        ticks in 1_u32..200,
    ) {
        let mut keepalive = Keepalive::default();
        keepalive.probe_posted();
        for _ in 0..ticks {
            prop_assert_eq!(keepalive.tick(keepalive_ms, true, true), Action::Wait);
        }
    }
}

#[test]
fn each_probe_has_a_tick_to_be_answered() {
    let mut keepalive = Keepalive::default();
    let actions: Vec<_> = (0..5)
        .map(|_| {
            let action = keepalive.tick(MIN_MS, false, false);
            if action == Action::Probe {
                keepalive.probe_posted();
            }
            action
        })
        .collect();
    let expected = [
        Action::Wait,
        Action::Probe,
        Action::Probe,
        Action::Probe,
        Action::GiveUp,
    ];
    assert_eq!(actions, expected);
}

#[test]
fn at_most_three_probes_are_outstanding() {
    let mut keepalive = Keepalive::default();
    let mut probes = 0;
    for _ in 0..59 {
        if keepalive.tick(60 * TICK_MS, false, false) == Action::Probe {
            keepalive.probe_posted();
            probes += 1;
        }
    }
    assert_eq!((probes, keepalive.probes()), (MAX_PROBES, MAX_PROBES));
}

#[test]
fn requests_after_an_unanswered_probe_do_not_save_the_peer() {
    let mut keepalive = Keepalive::default();
    assert_eq!(keepalive.tick(MIN_MS, false, true), Action::Wait);
    assert_eq!(keepalive.tick(MIN_MS, false, false), Action::Wait);
    assert_eq!(keepalive.tick(MIN_MS, false, false), Action::Probe);
    keepalive.probe_posted();
    assert_eq!(keepalive.tick(MIN_MS, false, true), Action::Wait);
    assert_eq!(keepalive.tick(MIN_MS, false, true), Action::Wait);
    assert_eq!(keepalive.tick(MIN_MS, false, true), Action::GiveUp);
}
