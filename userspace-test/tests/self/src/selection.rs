// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Chooses tests by identifier, tag, name, duration and part.

use crate::harness::Test;
use crate::tag::Tag;
use anyhow::{ensure, Result};
use clap::Args;
use std::time::Duration;

/// Selection of tests. Without an option it is all of them.
#[derive(Args)]
pub struct Selection {
    /// Runs the test ID, or those of the file ID: evd_resize.keeps_events, evd_resize; may repeat
    #[arg(long, value_name = "ID")]
    test: Vec<String>,
    /// Runs the tests that have the tag; may repeat
    #[arg(long, value_enum)]
    tag: Vec<Tag>,
    /// Runs the tests whose name contains TEXT, which may change; may repeat
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// Leaves out the test ID, or those of the file ID; may repeat
    #[arg(long, value_name = "ID")]
    skip_test: Vec<String>,
    /// Leaves out the tests that have the tag; may repeat
    #[arg(long, value_enum, value_name = "TAG", hide_possible_values = true)]
    skip_tag: Vec<Tag>,
    /// Leaves out the tests whose name contains TEXT; may repeat
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,
    /// Leaves out tests that may take longer than that (where the kernel is as fast as usual)
    #[arg(long, value_name = "SECONDS")]
    within: Option<u64>,
    /// Leaves out tests that take no longer than that: those that --within selects
    #[arg(long, value_name = "SECONDS")]
    beyond: Option<u64>,
    /// Runs only every Nth test from the Kth on: with all K up to N, each test once
    #[arg(long, value_name = "K/N", value_parser = part)]
    part: Option<(usize, usize)>,
}

impl Selection {
    /// Chooses among all tests, in their order. An option that matches no test is an error, and so
    /// is an empty selection.
    pub fn choose(&self, all: &[Test]) -> Result<Vec<Test>> {
        self.check(all)?;
        let longest = self.within.map_or(Duration::MAX, Duration::from_secs);
        let shortest = self.beyond.map_or(Duration::ZERO, Duration::from_secs);
        let (part, parts) = self.part.unwrap_or((1, 1));
        let chosen = all.iter().filter(|test| self.is_asked_for(test) && !self.is_left_out(test));
        let timely = chosen.filter(|test| shortest < test.limit && test.limit <= longest);
        let tests: Vec<_> = timely.skip(part - 1).step_by(parts).copied().collect();
        ensure!(!tests.is_empty(), "the options leave no test; --list alone lists all of them");
        Ok(tests)
    }

    fn is_asked_for(&self, test: &Test) -> bool {
        let nothing_is = self.test.is_empty() && self.tag.is_empty() && self.filter.is_empty();
        nothing_is
            || identified(test, &self.test)
            || tagged(test, &self.tag)
            || named(test, &self.filter)
    }

    fn is_left_out(&self, test: &Test) -> bool {
        identified(test, &self.skip_test) || tagged(test, &self.skip_tag) || named(test, &self.skip)
    }

    /// Fails if an option matches none of all tests.
    fn check(&self, all: &[Test]) -> Result<()> {
        for id in self.test.iter().chain(&self.skip_test) {
            let known = all.iter().any(|test| test.id.is_in(id));
            ensure!(known, "there is no test {id:?}; --list lists the identifiers");
        }
        for tag in self.tag.iter().chain(&self.skip_tag) {
            let known = all.iter().any(|test| test.tags.contains(tag));
            ensure!(known, "no test has the tag {tag}; --list lists the tags");
        }
        for text in self.filter.iter().chain(&self.skip) {
            let known = all.iter().any(|test| test.name.contains(text.as_str()));
            ensure!(known, "no test has {text:?} in its name; --list lists the names");
        }
        Ok(())
    }
}

fn identified(test: &Test, ids: &[String]) -> bool {
    ids.iter().any(|id| test.id.is_in(id))
}

fn tagged(test: &Test, tags: &[Tag]) -> bool {
    test.tags.iter().any(|tag| tags.contains(tag))
}

fn named(test: &Test, texts: &[String]) -> bool {
    texts.iter().any(|text| test.name.contains(text.as_str()))
}

fn part(text: &str) -> Result<(usize, usize), String> {
    let numbers = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((part, parts)) if (1..=parts).contains(&part) => Ok((part, parts)),
        _ => Err("it is K/N, with K from 1 to N".into()),
    }
}

#[cfg(test)]
mod unit {
    use super::Selection;
    use crate::tests;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        selection: Selection,
    }

    /// Returns the identifiers that the options choose.
    fn chosen(options: &[&str]) -> Result<Vec<String>, String> {
        let cli = Cli::try_parse_from([&["program"], options].concat())
            .map_err(|error| error.to_string())?;
        let tests = cli.selection.choose(&tests::all()).map_err(|error| error.to_string())?;
        Ok(tests.iter().map(|test| test.id.to_string()).collect())
    }

    #[test]
    fn a_test_or_a_file_of_tests() {
        let one = chosen(&["--test", "evd_resize.keeps_events"]).unwrap();
        assert_eq!(one, ["evd_resize.keeps_events"]);
        let file = chosen(&["--test", "evd_resize"]).unwrap();
        assert!(file.len() > 1 && file.iter().all(|id| id.starts_with("evd_resize.")), "{file:?}");
    }

    #[test]
    fn tests_of_a_tag() {
        let udapl = chosen(&["--tag", "udapl"]).unwrap();
        // Tests of other files have the tag, too.
        let files = chosen(&["--test", "udapl", "--test", "udapl_pairs"]).unwrap();
        assert!(files.iter().all(|id| udapl.contains(id)));
        let others = chosen(&["--skip-tag", "udapl"]).unwrap();
        assert!(others.iter().all(|id| !udapl.contains(id)));
        assert_eq!(others.len() + udapl.len(), chosen(&[]).unwrap().len());
        let more = chosen(&["--tag", "udapl", "--test", "evd_resize.keeps_events"]).unwrap();
        assert_eq!(more.len(), udapl.len() + 1);
    }

    #[test]
    fn a_test_that_is_left_out() {
        let rest = chosen(&["--test", "evd_resize", "--skip-test", "evd_resize.keeps_events"]);
        let mut file = chosen(&["--test", "evd_resize"]).unwrap();
        file.retain(|id| id != "evd_resize.keeps_events");
        assert_eq!(rest.unwrap(), file);
    }

    #[test]
    fn the_parts_are_the_whole() {
        let mut parts =
            [chosen(&["--part", "1/2"]).unwrap(), chosen(&["--part", "2/2"]).unwrap()].concat();
        let mut all = chosen(&[]).unwrap();
        parts.sort_unstable();
        all.sort_unstable();
        assert_eq!(parts, all);
    }

    #[test]
    fn the_short_and_the_long_are_the_whole() {
        let short = chosen(&["--within", "60"]).unwrap();
        let long = chosen(&["--beyond", "60"]).unwrap();
        assert!(long.iter().all(|id| !short.contains(id)));
        assert_eq!(short.len() + long.len(), chosen(&[]).unwrap().len());
    }

    #[test]
    fn what_matches_nothing_is_an_error() {
        for options in [
            ["--test", "evd_resize.keeps"],
            ["--skip-test", "evd_resize.keeps"],
            ["--tag", "no_such_tag"],
            ["--skip-tag", "no_such_tag"],
            ["--filter", "no such words"],
            ["--skip", "no such words"],
        ] {
            assert!(chosen(&options).unwrap_err().contains(options[1]), "{options:?}");
        }
        assert!(chosen(&["--test", "evd", "--skip", "EVD", "--within", "0"]).is_err());
    }
}
