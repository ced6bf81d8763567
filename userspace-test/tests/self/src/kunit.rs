// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs suites of KUnit, which modules have where the kernel has KUnit (`CONFIG_KUNIT=y`).
//!
//! The kernel is not asked to run them when a module is loaded: a write to a file of the suite
//! does.

use anyhow::{ensure, Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

const PARAMETERS: &str = "/sys/module/kunit/parameters";
const SUITES: &str = "/sys/kernel/debug/kunit";

/// Returns whether the kernel has KUnit, and was booted with it enabled.
pub fn is_enabled() -> bool {
    // The parameter is not in sysfs.
    let cmdline = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    cmdline.split_whitespace().any(|word| word == "kunit.enable=1") && Path::new(SUITES).exists()
}

/// A choice of the cases of modules that are loaded from now on. The drop chooses all again.
pub struct Filter;

impl Filter {
    /// Chooses the cases that match a pattern `suite.case`.
    pub fn new(pattern: &str) -> Result<Self> {
        Self::set(pattern)?;
        Ok(Self)
    }

    fn set(pattern: &str) -> Result<()> {
        let path = Path::new(PARAMETERS).join("filter_glob");
        fs::write(&path, pattern).with_context(|| path.display().to_string())
    }
}

impl Drop for Filter {
    fn drop(&mut self) {
        if let Err(error) = Self::set("*.*") {
            eprintln!("{error:#}");
        }
    }
}

/// A suite of a module that is loaded.
pub struct Suite(PathBuf);

impl Suite {
    /// Returns the suites whose names begin with `prefix`. It is an error if there are none.
    pub fn all(prefix: &str) -> Result<Vec<Self>> {
        let mut suites = Vec::new();
        for entry in fs::read_dir(SUITES)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(prefix) {
                suites.push(Self(entry.path()));
            }
        }
        ensure!(!suites.is_empty(), "no KUnit suite has a name that begins with {prefix:?}");
        Ok(suites)
    }

    /// Returns the name of the suite.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Runs the suite. Fails with its KTAP if one of its cases fails, or has not run.
    pub fn run(&self) -> Result<()> {
        // The limit of a test is that of the process that runs it.
        fs::write(Path::new(PARAMETERS).join("timeout"), "36000")?;
        fs::write(self.0.join("run"), "1")?;
        let results = fs::read_to_string(self.0.join("results"))?;
        ensure!(passed(&results), "{results}");
        Ok(())
    }
}

/// Returns whether the suite passed, and each of its cases.
fn passed(results: &str) -> bool {
    let plan = |line: &str| line.strip_prefix("    1..")?.parse::<usize>().ok();
    let planned = results.lines().find_map(plan);
    let ran = results.lines().filter(|line| line.starts_with("    ok ")).count();
    let suite = results.lines().last().unwrap_or_default();
    planned == Some(ran) && ran > 0 && suite.starts_with("ok 1 ")
}

#[cfg(test)]
mod unit {
    use super::passed;

    const GOOD: &str = "KTAP version 1
1..1
    KTAP version 1
    # Subtest: kdapl_sys_user
    1..2
    ok 1 one
    ok 2 two
# kdapl_sys_user: pass:2 fail:0 skip:0 total:2
# Totals: pass:2 fail:0 skip:0 total:2
ok 1 kdapl_sys_user
";

    #[test]
    fn all_cases_pass() {
        assert!(passed(GOOD));
    }

    #[test]
    fn a_case_fails_or_has_not_run() {
        for (old, new) in [
            ("    ok 2 two", "    not ok 2 two"),
            ("    ok 2 two\n", ""),
            ("    1..2", "    1..3"),
            ("\nok 1 kdapl_sys_user", "\nnot ok 1 kdapl_sys_user"),
        ] {
            assert!(!passed(&GOOD.replace(old, new)), "{new}");
        }
        assert!(!passed("KTAP version 1\n1..1\n    1..0\nok 1 kdapl_sys_user\n"));
    }
}
