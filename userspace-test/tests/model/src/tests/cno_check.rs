// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Checks of an EVD for events that arrived without a trigger.

use crate::rust::model::cno::check::{
    check,
    check_and_pop,
    CheckReason,
    CheckedEvd, //
};

/// An EVD that follows a script and records the calls.
struct ScriptedEvd {
    /// Whether `begin` reports that a check is needed.
    unchecked: bool,
    queued: u32,
    /// Number of events that arrive after `begin`.
    arrivals: u32,
    calls: Vec<&'static str>,
}

impl CheckedEvd for ScriptedEvd {
    type Event = u32;

    fn begin(&mut self, reason: CheckReason) -> bool {
        self.calls.push(match reason {
            CheckReason::Unchecked => "begin unchecked",
            CheckReason::FoundEmpty => "begin empty",
        });
        self.unchecked
    }

    fn arm_and_drain(&mut self) {
        self.calls.push("arm");
        self.queued += self.arrivals;
    }

    fn has_events(&self) -> bool {
        self.queued != 0
    }

    fn pop(&mut self) -> Option<u32> {
        self.queued = self.queued.checked_sub(1)?;
        Some(self.queued)
    }

    fn trigger(&mut self) {
        self.calls.push("trigger");
    }

    fn end(&mut self) {
        self.calls.push("end");
    }
}

#[test]
fn a_check_triggers_if_there_are_events() {
    let after = |unchecked, queued, arrivals| {
        let mut evd = ScriptedEvd {
            unchecked,
            queued,
            arrivals,
            calls: Vec::new(),
        };
        check(&mut evd);
        evd.calls
    };
    assert_eq!(after(false, 1, 1), ["begin unchecked"]);
    assert_eq!(after(true, 0, 0), ["begin unchecked", "arm", "end"]);
    assert_eq!(
        after(true, 1, 0),
        ["begin unchecked", "arm", "trigger", "end"]
    );
    assert_eq!(
        after(true, 0, 1),
        ["begin unchecked", "arm", "trigger", "end"]
    );
}

#[test]
fn a_check_returns_an_event_that_arrived_meanwhile() {
    let after = |unchecked, arrivals| {
        let mut evd = ScriptedEvd {
            unchecked,
            queued: 0,
            arrivals,
            calls: Vec::new(),
        };
        (check_and_pop(&mut evd), evd.calls)
    };
    assert_eq!(after(false, 1), (None, vec!["begin empty"]));
    assert_eq!(after(true, 0), (None, vec!["begin empty", "arm", "end"]));
    assert_eq!(
        after(true, 2),
        (Some(1), vec!["begin empty", "arm", "trigger", "end"])
    );
}
