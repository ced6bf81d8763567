// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The length of the event queue.

use crate::bmi::engine::longer_queue;

/// Returns the places for events of connections beyond those of other events, as
/// `rust/model/ring_size.rs` has them.
fn places(length: u32) -> u32 {
    (2 * length).max(8) - length - (length / 4).clamp(1, 8)
}

#[test]
fn a_queue_has_room_for_two_events_of_each_endpoint() {
    for start in [1, 2, 7, 8, 31, 32, 33, 1024] {
        let mut length = start;
        for eps in 0..5000_u32 {
            if let Some(longer) = longer_queue(length, eps as usize) {
                assert!(
                    longer > length,
                    "{start}: {longer} is not longer than {length}"
                );
                length = longer;
            }
            assert!(
                2 * eps <= places(length),
                "{start}: {length} for {eps} Endpoints"
            );
            assert_eq!(longer_queue(length, eps as usize), None);
        }
        assert!(length <= 32_768, "{start}: {length} is more than needed");
    }
}

#[test]
fn an_instance_with_few_connections_keeps_its_queue() {
    assert_eq!(longer_queue(1024, 508), None);
    assert_eq!(longer_queue(1024, 509), Some(2048));
    assert_eq!(longer_queue(8, 3), None);
    assert_eq!(longer_queue(8, 26), Some(64));
}
