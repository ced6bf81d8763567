// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ways from devices to hosts.

use crate::bmi::engine::Ways;

fn ways(devices: u8, hosts: usize, living: &[u8]) -> Ways {
    Ways::new(devices, hosts, living.iter().copied())
}

/// Returns the routes of four rails.
fn routes(ways: &Ways, first: usize) -> [(u8, usize); 4] {
    [0, 1, 2, 3].map(|rail| ways.of_rail(first, rail).unwrap())
}

#[test]
fn the_nth_rail_goes_from_the_nth_device_to_the_nth_host() {
    for devices in 1..=4 {
        for hosts in 1..=4 {
            let all = ways(devices, hosts, &[0, 1, 2, 3]);
            let expected = [0_u8, 1, 2, 3].map(|rail| (rail % devices, usize::from(rail) % hosts));
            assert_eq!(
                routes(&all, 0),
                expected,
                "{devices} devices, {hosts} hosts"
            );
        }
    }
}

#[test]
fn other_devices_go_to_their_own_hosts() {
    assert_eq!(routes(&ways(2, 2, &[1]), 0), [(1, 1); 4]);
    assert_eq!(
        routes(&ways(3, 3, &[0, 2]), 0),
        [(0, 0), (2, 2), (0, 0), (2, 2)]
    );
    assert_eq!(
        routes(&ways(1, 2, &[0]), 0),
        [(0, 0), (0, 1), (0, 0), (0, 1)]
    );
    assert_eq!(ways(2, 2, &[]).of_rail(0, 0), None);
    assert_eq!(ways(2, 0, &[0, 1]).of_rail(0, 0), None);
}

#[test]
fn all_ways_are_tried() {
    for (devices, hosts) in (1..=4).flat_map(|d| (1..=4).map(move |hosts| (d, hosts))) {
        for living in [&[0, 1, 2, 3][..], &[0], &[0, 3], &[1, 2, 3]] {
            let living: Vec<_> = living.iter().copied().filter(|d| *d < devices).collect();
            let ways = ways(devices, hosts, &living);
            let all = living.len() * hosts;
            let (mut tried, mut way) = (Vec::new(), 0);
            for _ in 0..all {
                way = ways.from(way).unwrap();
                tried.extend(ways.of_rail(way, 0));
                way += 1;
            }
            tried.sort_unstable();
            tried.dedup();
            assert_eq!(
                tried.len(),
                all,
                "{devices} devices, {hosts} hosts, {living:?}"
            );
        }
    }
}

#[test]
fn pairs_of_their_own_are_tried_first() {
    let ways = ways(2, 2, &[0, 1]);
    let tried = [0, 1, 2, 3].map(|way| ways.of_rail(way, 0).unwrap());
    assert_eq!(tried, [(0, 0), (1, 1), (0, 1), (1, 0)]);
    assert_eq!(ways.from(4), Some(0));
    assert_eq!(routes(&ways, 2), [(0, 1), (1, 0), (0, 1), (1, 0)]);
}

#[test]
fn a_lost_device_is_followed_by_the_next() {
    let tried = ways(2, 2, &[0, 1]).taken(0).unwrap();
    // The attempt has shown that device 0 is gone: device 1 was not tried yet.
    let left = ways(2, 2, &[1]);
    let next = left.from(tried + 1).unwrap();
    assert_eq!(left.of_rail(next, 0), Some((1, 1)));
    // A device that was known to be gone was not tried: the next one was.
    assert_eq!(left.taken(0), Some(1));
    assert_eq!(ways(2, 2, &[0]).taken(1), Some(0));
    assert_eq!(ways(2, 2, &[]).taken(0), None);
    assert_eq!(ways(2, 0, &[0]).taken(0), None);
}

#[test]
fn the_way_that_is_taken_is_that_of_rail_0() {
    for (devices, hosts) in (1..=4).flat_map(|d| (1..=4).map(move |hosts| (d, hosts))) {
        for living in [&[0, 1, 2, 3][..], &[0], &[0, 3], &[1, 2, 3]] {
            let ways = ways(devices, hosts, living);
            for first in 0..usize::from(devices) * hosts {
                let taken = ways.taken(first);
                let same = taken.and_then(|way| ways.of_rail(way, 0));
                assert_eq!(same, ways.of_rail(first, 0), "{devices}, {hosts}, {first}");
            }
        }
    }
}
