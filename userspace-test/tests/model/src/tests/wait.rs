// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests the wait protocol in one thread. Its interleavings are in `tests/loom/wait.rs`.

use crate::rust::model::wait::{
    wait_for,
    ArmResult,
    Doorbell,
    SleepEnd,
    Threshold,
    WaitError,
    Waiter, //
};

/// Results of the calls of a wait, and the record of the calls.
struct Script {
    drains: Vec<u32>,
    arms: Vec<ArmResult>,
    wakes: Vec<SleepEnd>,
    /// Results of `stop`, which is called where the wait does not sleep.
    stops: Vec<Option<WaitError>>,
    queued: u32,
    calls: String,
}

impl Script {
    fn new(drains: &[u32], arms: &[ArmResult], wakes: &[SleepEnd]) -> Self {
        let reversed = |mut calls: Vec<_>| {
            calls.reverse();
            calls
        };
        Self {
            drains: reversed(drains.to_vec()),
            arms: arms.iter().rev().copied().collect(),
            wakes: wakes.iter().rev().copied().collect(),
            stops: Vec::new(),
            queued: 0,
            calls: String::new(),
        }
    }

    /// Runs a wait. Returns its result, and the calls: a(rm), t(ake), s(leep), l(ook for a reason
    /// to stop).
    fn run(mut self, threshold: u32) -> (Result<(), WaitError>, String) {
        let outcome = wait_for(&mut self, threshold);
        assert!(self.drains.is_empty() && self.arms.is_empty() && self.wakes.is_empty());
        (outcome, self.calls)
    }
}

impl Waiter for Script {
    type Output = ();

    fn queued(&self) -> u32 {
        self.queued
    }

    fn take(&mut self, threshold: u32) -> Option<()> {
        self.calls.push('t');
        self.queued += self.drains.pop().expect("a result");
        (self.queued >= threshold).then_some(())
    }

    fn arm_and_take(&mut self, threshold: u32) -> (ArmResult, Option<()>) {
        self.calls.push('a');
        let armed = self.arms.pop().expect("an arming");
        (armed, self.take(threshold))
    }

    fn stop(&mut self) -> Option<WaitError> {
        self.calls.push('l');
        self.stops.pop().expect("a result")
    }

    fn sleep(&mut self) -> SleepEnd {
        self.calls.push('s');
        self.wakes.pop().expect("a sleep")
    }
}

#[test]
fn queued_events_need_no_arming() {
    let mut script = Script::new(&[2], &[], &[]);
    script.queued = 3;
    assert_eq!(script.run(3), (Ok(()), "t".into()));
}

#[test]
fn completions_are_drained_after_the_arming() {
    let outcome = Script::new(&[3], &[ArmResult::Empty], &[]).run(3);
    assert_eq!(outcome, (Ok(()), "at".into()));
    let outcome = Script::new(&[1], &[ArmResult::Missed], &[]).run(1);
    assert_eq!(outcome, (Ok(()), "at".into()));
}

#[test]
fn a_missed_completion_is_drained_and_the_cq_armed_again() {
    let mut script = Script::new(&[1, 1], &[ArmResult::Missed, ArmResult::Empty], &[]);
    script.stops = vec![None];
    assert_eq!(script.run(2), (Ok(()), "atlat".into()));
}

#[test]
fn endless_completions_without_events_do_not_prolong_a_wait() {
    for stop in [
        WaitError::TimedOut,
        WaitError::Interrupted,
        WaitError::Closed,
    ] {
        let mut script = Script::new(&[0; 4], &[ArmResult::Missed; 3], &[]);
        script.stops = vec![Some(stop), None, None];
        assert_eq!(script.run(1), (Err(stop), "atlatlatlt".into()));
        // Enough events take precedence over a reason to stop.
        let mut script = Script::new(&[0, 1], &[ArmResult::Missed], &[]);
        script.stops = vec![Some(stop)];
        assert_eq!(script.run(1), (Ok(()), "atlt".into()));
    }
}

#[test]
fn a_wake_up_below_the_threshold_does_not_end_the_wait() {
    let script = Script::new(
        &[0, 1, 0, 1],
        &[ArmResult::Empty, ArmResult::Empty],
        &[SleepEnd::Woken, SleepEnd::Woken],
    );
    assert_eq!(script.run(2), (Ok(()), "atstatst".into()));
}

#[test]
fn the_reason_to_stop_is_returned() {
    for (wake, stop) in [
        (SleepEnd::TimedOut, WaitError::TimedOut),
        (SleepEnd::Interrupted, WaitError::Interrupted),
        (SleepEnd::Closed, WaitError::Closed),
    ] {
        let script = Script::new(&[1, 0], &[ArmResult::Empty], &[wake]);
        assert_eq!(script.run(2), (Err(stop), "atst".into()));
    }
}

#[test]
fn events_take_precedence_over_a_reason_to_stop() {
    for wake in [SleepEnd::TimedOut, SleepEnd::Interrupted, SleepEnd::Closed] {
        let script = Script::new(&[1, 1], &[ArmResult::Empty], &[wake]);
        assert_eq!(script.run(2), (Ok(()), "atst".into()));
    }
}

#[test]
fn the_bell() {
    let doorbell = Doorbell::new();
    assert!(!doorbell.is_rung());
    doorbell.ring();
    assert!(doorbell.is_rung());
    doorbell.ring();
    assert!(doorbell.is_rung());
    doorbell.clear();
    assert!(!doorbell.is_rung());
    doorbell.clear();
    assert!(!doorbell.is_rung());
}

#[test]
fn a_threshold_is_reached_by_that_many_events() {
    let limit = Threshold::one();
    assert!(limit.is_met_by(1));
    assert!(!limit.needs_counting());
    for threshold in [2, 3, 1000] {
        limit.set(threshold);
        assert!(limit.needs_counting());
        assert!(!limit.is_met_by(threshold - 1));
        assert!(limit.is_met_by(threshold));
        assert!(limit.is_met_by(threshold + 1));
    }
    limit.set(1);
    assert!(limit.is_met_by(1));
    assert!(!limit.needs_counting());
}
