// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ways from devices to hosts.

use crate::bmi::engine::{
    Attempts,
    Short,
    Ways, //
};

fn ways(devices: u8, hosts: usize, living: &[u8]) -> Ways {
    Ways::new(devices, hosts, living.iter().copied())
}

/// Fails all attempts. Returns the devices and the hosts in the order of the attempts.
fn tried(ways: &Ways, first: usize) -> Vec<(u8, usize)> {
    let mut tried: Vec<_> = ways.of_rail(first, 0).into_iter().collect();
    if let Some(mut attempts) = Attempts::new(ways, first) {
        attempts.fail();
        while let Some(pair) = attempts.next(ways, Short::default()) {
            tried.push(pair);
            attempts.fail();
        }
    }
    tried
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
            for first in 0..usize::from(devices) * hosts {
                let mut tried = tried(&ways, first);
                let begun = tried.first().copied();
                assert_eq!(begun, ways.of_rail(first, 0));
                let attempts = tried.len();
                tried.sort_unstable();
                tried.dedup();
                let expected = living.len() * hosts;
                let found = (attempts, tried.len());
                assert_eq!(
                    found,
                    (expected, expected),
                    "{devices}, {hosts}, {living:?}"
                );
            }
        }
    }
}

#[test]
fn pairs_of_their_own_are_tried_first() {
    let ways = ways(2, 2, &[0, 1]);
    let all = [(0, 0), (1, 1), (0, 1), (1, 0)];
    assert_eq!(tried(&ways, 0), all);
    assert_eq!(tried(&ways, 3), [(1, 0), (0, 0), (1, 1), (0, 1)]);
    assert_eq!(routes(&ways, 2), [(0, 1), (1, 0), (0, 1), (1, 0)]);
}

#[test]
fn a_lost_device_is_followed_by_the_next() {
    let mut attempts = Attempts::new(&ways(2, 2, &[0, 1]), 0).unwrap();
    attempts.fail();
    // The attempt has shown that device 0 is gone. Each way of device 1 is tried once.
    let left = ways(2, 2, &[1]);
    assert_eq!(attempts.next(&left, Short::default()), Some((1, 1)));
    attempts.fail();
    assert_eq!(attempts.next(&left, Short::default()), Some((1, 0)));
    attempts.fail();
    assert_eq!(attempts.next(&left, Short::default()), None);
    // A device that was known to be gone was not tried: the next one was.
    assert_eq!(left.taken(0), Some(1));
    assert_eq!(ways(2, 2, &[0]).taken(1), Some(0));
    assert_eq!(ways(2, 2, &[]).taken(0), None);
    assert_eq!(ways(2, 0, &[0]).taken(0), None);
}

#[test]
fn a_device_that_is_lost_between_attempts_is_left_out() {
    let all = ways(2, 2, &[0, 1]);
    let mut attempts = Attempts::new(&all, 0).unwrap();
    attempts.fail();
    assert_eq!(attempts.next(&all, Short::default()), Some((1, 1)));
    attempts.fail();
    let left = ways(2, 2, &[0]);
    assert_eq!(attempts.next(&left, Short::default()), Some((0, 1)));
    attempts.fail();
    assert_eq!(attempts.next(&left, Short::default()), None);
}

#[test]
fn ways_of_a_device_without_endpoints_are_tried_last() {
    let ways = ways(2, 2, &[0, 1]);
    let mut attempts = Attempts::new(&ways, 0).unwrap();
    let mut short = Short::default();
    short.add(0);
    for pair in [(1, 1), (1, 0)] {
        assert_eq!(attempts.next(&ways, short), Some(pair));
        attempts.fail();
    }
    assert_eq!(attempts.next(&ways, short), None);
    for pair in [(0, 0), (0, 1)] {
        assert_eq!(attempts.next(&ways, Short::default()), Some(pair));
        assert_eq!(attempts.way(), 2 * pair.1);
        attempts.fail();
    }
    assert_eq!(attempts.next(&ways, Short::default()), None);
}

#[test]
fn ways_are_tried_until_the_64th() {
    let tried = tried(&ways(1, 100, &[0]), 0);
    assert_eq!(tried.len(), 64);
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
