// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests combined effects of several steps.

use crate::rust::model::ep::{
    ConnectionEvent,
    Effects, //
};
use proptest::prelude::*;

fn effects(flags: [bool; 7], event: bool) -> Effects {
    let [stop_timer, start_timer, qp_error, qp_reset, send_disconnect, abandon_id, report_broken] =
        flags;
    Effects {
        stop_timer,
        start_timer,
        qp_error,
        qp_reset,
        send_disconnect,
        abandon_id,
        event: event.then_some(ConnectionEvent::Broken),
        report_broken,
    }
}

proptest! {
    #[test]
    fn combined_effects_contain_those_of_both_steps(one: [bool; 7], two: [bool; 7], event: [bool; 2]) {
        let mut both = one;
        for (both, two) in both.iter_mut().zip(two) {
            *both = *both || two;
        }
        // The events were queued with their steps.
        both[6] = false;
        let expected = effects(both, false);
        prop_assert_eq!(effects(one, event[0]).and(effects(two, event[1])), expected);
    }

    #[test]
    fn a_handler_leaves_all_effects_that_may_sleep(flags: [bool; 7], event: bool) {
        let all = effects(flags, event);
        let left = all.left_in_handler();
        // The handler stops the timer and queues the events.
        prop_assert!(!left.stop_timer && !left.report_broken && left.event.is_none());
        let put_back = Effects {
            stop_timer: all.stop_timer,
            report_broken: all.report_broken,
            event: all.event,
            ..left
        };
        prop_assert_eq!(put_back, all);
    }
}
