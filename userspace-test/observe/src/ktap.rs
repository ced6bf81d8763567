// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Formats test results as the kernel does: KTAP version 1 (`Documentation/dev-tools/ktap.rst`),
//! with the totals and exit statuses of its selftests (`tools/testing/selftests/kselftest.h`).

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

/// Exit status of a selftest of which every test, or the only one, was skipped.
pub const EXIT_SKIP: u8 = 4;

/// Result of one test.
pub enum Outcome {
    /// Passed.
    Passed,
    /// Failed.
    Failed,
    /// Did not end within its limit.
    TimedOut,
    /// Could not test, for this reason.
    Skipped(String),
}

impl Outcome {
    /// Formats the result line of test `number`.
    #[must_use]
    pub fn line(&self, number: usize, description: &str, took: Duration) -> String {
        // A number sign would begin the directive.
        let description = description.replace(['#', '\n'], " ");
        let (result, remark) = match self {
            Self::Passed => ("ok", format!("time={}ms", took.as_millis())),
            Self::Failed => ("not ok", format!("time={}ms", took.as_millis())),
            Self::TimedOut => ("not ok", format!("TIMEOUT {} seconds", took.as_secs())),
            Self::Skipped(why) => ("ok", format!("SKIP {}", why.trim().replace('\n', " "))),
        };
        format!("{result} {number} {description} # {remark}")
    }
}

/// Formats the first two lines: version and plan.
#[must_use]
pub fn header(tests: usize) -> String {
    format!("KTAP version 1\n1..{tests}")
}

/// Formats `text` as diagnostic lines, which come before the result line of their test.
#[must_use]
pub fn diagnostics(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| ["# ", line, "\n"]).collect()
}

/// Number of tests by outcome.
#[derive(Clone, Copy, Default)]
pub struct Totals {
    /// Passed.
    pub passed: usize,
    /// Failed or did not end.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
}

impl Totals {
    /// Counts one more test.
    pub fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::Failed | Outcome::TimedOut => self.failed += 1,
            Outcome::Skipped(_) => self.skipped += 1,
        }
    }

    /// Returns the exit status: 0 if all passed, 1 if one failed, 4 if all were skipped.
    #[must_use]
    pub fn status(self) -> u8 {
        match self {
            Self { failed: 1.., .. } => 1,
            Self { passed: 0, skipped: 1.., .. } => EXIT_SKIP,
            _ => 0,
        }
    }
}

impl From<Totals> for ExitCode {
    fn from(totals: Totals) -> Self {
        totals.status().into()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, failed, skipped } = self;
        write!(f, "# Totals: pass:{passed} fail:{failed} xfail:0 xpass:0 skip:{skipped} error:0")
    }
}

#[cfg(test)]
mod unit {
    use super::{diagnostics, header, Outcome, Totals};
    use std::time::Duration;

    const TOOK: Duration = Duration::from_millis(2500);

    fn totals(outcomes: &[Outcome]) -> Totals {
        let mut totals = Totals::default();
        outcomes.iter().for_each(|outcome| totals.add(outcome));
        totals
    }

    #[test]
    fn version_and_plan_come_first() {
        assert_eq!(header(3), "KTAP version 1\n1..3");
    }

    #[test]
    fn result_lines() {
        for (outcome, line) in [
            (Outcome::Passed, "ok 7 waits # time=2500ms"),
            (Outcome::Failed, "not ok 7 waits # time=2500ms"),
            (Outcome::TimedOut, "not ok 7 waits # TIMEOUT 2 seconds"),
            (Outcome::Skipped("no rxe\nhere\n".into()), "ok 7 waits # SKIP no rxe here"),
        ] {
            assert_eq!(outcome.line(7, "waits", TOOK), line);
        }
    }

    #[test]
    fn a_description_is_one_line_without_a_directive() {
        let line = Outcome::Failed.line(1, "a # SKIP\nb", TOOK);
        assert_eq!(line, "not ok 1 a   SKIP b # time=2500ms");
    }

    #[test]
    fn no_diagnostic_line_is_taken_for_a_result() {
        assert_eq!(diagnostics("not ok 1\n\n1..2\n"), "# not ok 1\n# 1..2\n");
    }

    #[test]
    fn exit_status() {
        let skipped = || Outcome::Skipped(String::new());
        for (outcomes, status) in [
            (vec![Outcome::Passed], 0),
            (vec![Outcome::Passed, skipped()], 0),
            (vec![skipped(), skipped()], 4),
            (vec![skipped(), Outcome::Failed], 1),
            (vec![Outcome::Passed, Outcome::TimedOut], 1),
        ] {
            assert_eq!(totals(&outcomes).status(), status);
        }
    }

    #[test]
    fn the_totals_are_those_of_kselftest() {
        let totals = totals(&[
            Outcome::Passed,
            Outcome::Passed,
            Outcome::Failed,
            Outcome::TimedOut,
            Outcome::Skipped(String::new()),
        ]);
        assert_eq!(totals.to_string(), "# Totals: pass:2 fail:2 xfail:0 xpass:0 skip:1 error:0");
    }
}
