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
