// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tags of tests, by which suites select them.

use clap::ValueEnum;
use std::fmt;

/// A property of a test. A suite that changes the property runs the tests that have the tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Tag {
    /// Depends on the addresses of the hosts
    Address,
    /// Depends on whether client and server are two hosts
    Hosts,
    /// Depends on a link that may lose, delay and reorder packets
    Link,
    /// Depends on the transport: soft-RoCE or iWARP
    Transport,
    /// Requires the module's default parameters
    Defaults,
    /// Runs a uDAPL program
    Udapl,
    /// Uses the NVMe transports
    Nvme,
    /// Checks the output of kdapltest, which is the same on every kernel
    Output,
    /// Takes minutes on a kernel that checks each access of memory
    Long,
    /// Kills a program a thousand times
    Kills,
    /// Makes the module leak objects, so that it cannot be unloaded
    Leaks,
}

impl fmt::Display for Tag {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        formatter.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod unit {
    use super::Tag;
    use crate::tests;
    use clap::ValueEnum;

    #[test]
    fn each_tag_selects_some_tests_and_not_all() {
        let all = tests::all();
        for tag in Tag::value_variants() {
            let tagged = all.iter().filter(|test| test.tags.contains(tag)).count();
            assert!(tagged > 0 && tagged < all.len(), "{tagged} tests have the tag {tag}");
        }
    }

    #[test]
    fn no_test_has_a_tag_twice() {
        for test in tests::all() {
            for tag in test.tags {
                let times = test.tags.iter().filter(|other| *other == tag).count();
                assert_eq!(times, 1, "{} has the tag {tag} more than once", test.id);
            }
        }
    }
}
