// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Effects of several steps that are done at once.

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
        // The events are queued already, each with its step.
        let expected = effects(both, false);
        prop_assert_eq!(effects(one, notice[0]).and(effects(two, notice[1])), expected);
    }
}
