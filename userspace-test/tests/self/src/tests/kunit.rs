// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The module's KUnit suites, which are next to the code that they test.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::kunit::{is_enabled, Suite};
use anyhow::{ensure, Result};

tests! {
    sys, 120, "The KUnit suites of rust/sys pass: waits, work items, threads, tables, accounts of users";
    rdma, 60, "The KUnit suites of rust/rdma pass: work requests, completions, addresses, parameters";
    dat, 60, "The KUnit suites of rust/dat pass: the wait for a flush, statuses of DTOs";
    names, 30, "Each KUnit suite of the module has a name that one of these tests looks for";
}

const SYS: &str = "kdapl_sys_";
const RDMA: &str = "kdapl_rdma_";
const DAT: &str = "kdapl_dat_";

/// Returns the suites whose names begin with `prefix`.
fn suites(prefix: &str) -> Result<Vec<Suite>> {
    if !is_enabled() {
        return skip("this kernel has no KUnit, or was booted without kunit.enable=1");
    }
    Suite::all(prefix)
}

fn run(prefix: &str) -> Result<()> {
    suites(prefix)?.iter().try_for_each(Suite::run)
}

fn sys(_: &Context) -> Result<()> {
    run(SYS)
}

fn rdma(_: &Context) -> Result<()> {
    run(RDMA)
}

fn dat(_: &Context) -> Result<()> {
    run(DAT)
}

fn names(_: &Context) -> Result<()> {
    for suite in suites("kdapl_")? {
        let name = suite.name();
        let is_found = [SYS, RDMA, DAT].iter().any(|prefix| name.starts_with(prefix));
        ensure!(is_found, "no test runs {name}");
    }
    Ok(())
}
