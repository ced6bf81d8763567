// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tests combined effects of several steps.

use crate::rust::model::ep::{
    Effects,
    Notice, //
};
use proptest::prelude::*;

fn effects(flags: [bool; 7], notice: bool) -> Effects {
    let [stop_timer, start_timer, qp_error, qp_reset, send_disconnect, abandon_id, report_broken] =
        flags;
    Effects {
        stop_timer,
        start_timer,
        qp_error,
        qp_reset,
        send_disconnect,
        abandon_id,
        notice: notice.then_some(Notice::Broken),
        report_broken,
    }
}

proptest! {
    #[test]
    fn what_either_step_asks_for_is_done(one: [bool; 7], two: [bool; 7], notice: [bool; 2]) {
        let mut both = one;
        for (both, two) in both.iter_mut().zip(two) {
            *both = *both || two;
        }
        // The events were queued with their steps.
        let expected = effects(both, false);
        prop_assert_eq!(effects(one, notice[0]).and(effects(two, notice[1])), expected);
    }

    #[test]
    fn what_a_handler_leaves_is_all_that_may_sleep(flags: [bool; 7], notice: bool) {
        let all = effects(flags, notice);
        let left = all.left_in_handler();
        // The handler stops the timer and queues the events.
        prop_assert!(!left.stop_timer && !left.report_broken && left.notice.is_none());
        let put_back = Effects {
            stop_timer: all.stop_timer,
            report_broken: all.report_broken,
            notice: all.notice,
            ..left
        };
        prop_assert_eq!(put_back, all);
    }
}
