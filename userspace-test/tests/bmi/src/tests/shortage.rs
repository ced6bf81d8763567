// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects that wait for Endpoints.

use crate::bmi::engine::Shortage;

#[test]
fn each_new_connect_gives_up_one_session() {
    let mut shortage = Shortage::default();
    assert!(!shortage.take());
    shortage.begin();
    assert!(shortage.take() && !shortage.take());
    assert!(
        !shortage.expects_ep(0) && !shortage.tick(500),
        "nothing was freed"
    );
}

#[test]
fn a_session_that_stays_is_followed_by_another_one_if_a_connect_waits() {
    let mut shortage = Shortage::default();
    shortage.session_stays(false, 0);
    assert!(!shortage.take());
    shortage.session_stays(true, 0);
    assert!(shortage.take() && !shortage.take());
    shortage.ep_was_freed(1_000);
    shortage.session_stays(true, 1_000);
    assert!(!shortage.take(), "an Endpoint is expected");
}

#[test]
fn no_session_is_given_up_while_an_endpoint_is_expected() {
    let mut shortage = Shortage::default();
    shortage.ep_was_freed(1_000);
    for now in [1_000, 3_500, 5_999] {
        assert!(shortage.tick(now) && shortage.expects_ep(now));
        shortage.go_on(now);
        assert!(!shortage.take());
    }
    assert!(shortage.tick(6_000), "the connect is tried once more");
    assert!(!shortage.expects_ep(6_000));
    shortage.go_on(6_000);
    assert!(shortage.take());
    assert!(!shortage.tick(6_500), "the next session has not ended yet");
}
