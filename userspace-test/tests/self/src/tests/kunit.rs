// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The module's KUnit suites, which are next to the code that they test.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::kunit::{is_enabled, Suite};
use anyhow::Result;

tests! {
    sys, 120, "The KUnit suites of rust/sys pass: waits, work items, threads, tables, accounts of users";
    rdma, 60, "The KUnit suites of rust/rdma pass: work requests, completions, addresses, parameters";
    dat, 60, "The KUnit suites of rust/dat pass: the wait for a flush";
}

fn run(prefix: &str) -> Result<()> {
    if !is_enabled() {
        return skip("this kernel has no KUnit, or was booted without kunit.enable=1");
    }
    Suite::all(prefix)?.iter().try_for_each(Suite::run)
}

fn sys(_: &Context) -> Result<()> {
    run("kdapl_sys_")
}

fn rdma(_: &Context) -> Result<()> {
    run("kdapl_rdma_")
}

fn dat(_: &Context) -> Result<()> {
    run("kdapl_dat_")
}
