// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! C programs that are linked with `libkdat`: the examples of its manual pages, and the calls that
//! `udapl-consumer` makes through `libdat2`.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use anyhow::{ensure, Context as _, Result};
use std::process::Command;

tests! {
    ia, 20, "libkdat: adapters are listed, opened by the name of the device, queried and closed";
    evd, 20, "libkdat: EVDs take, keep and return events, and trigger their CNO";
    cno, 20, "libkdat: a CNO wakes a wait, a poll of its file and an agent";
    endpoint, 20, "libkdat: Endpoints have the attributes that were requested, and can be modified";
    connect, 60, "libkdat: a request is rejected, another one accepted, and a third to the same peer";
    reserved, 60, "libkdat: a request is passed on to a service point of one Endpoint";
    common, 60, "libkdat: dat_ep_common_connect reaches a Common Service Point";
    transfer, 60, "libkdat: a message, an RDMA write and an RDMA read arrive unchanged";
    memory, 20, "libkdat: memory is registered, and its zone is in use meanwhile";
    rmr, 60, "libkdat: an RDMA read from RMR to RMR, and a send that invalidates the context";
    srq, 60, "libkdat: an Endpoint takes its receive from an SRQ";
    atomic, 60, "libkdat: atomic operations, if the device has them";
    other_calls, 60, "libkdat: queries, resized EVDs, changed CNOs, and calls with missing objects";
    stale_handles, 60, "libkdat: a handle that is stale, of another kind or invented is refused";
    keepalive, 60, "libkdat: the time-outs of an Endpoint are named attributes of the provider";
    forked_child, 120, "libkdat: a forked child is refused its parent's handles, and may open its own adapter";
    threads, 120, "libkdat: four threads connect and transfer over one adapter";
    unknown_names, 20, "libkdat: a device that does not exist is refused, and those that do are listed";
}

/// Runs a program on the client's host. Returns whether it succeeded, and its output.
fn run(context: &Context, program: &str, case: &str, adapter: &str) -> Result<(bool, String)> {
    let mut command = Command::new(program);
    command.args([case, adapter]);
    let output = context.client.inside(|| command.output())?;
    let output = output.with_context(|| format!("cannot start {program}"))?;
    let both = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&both).into_owned()))
}

fn example(context: &Context, case: &str) -> Result<()> {
    let (good, output) = run(context, "kdat-examples", case, &context.client.device)?;
    ensure!(good && output.contains(&format!("{case}: done")), "{case} failed:\n{output}");
    Ok(())
}

fn consumer(context: &Context, case: &str) -> Result<()> {
    if context.client.is_iwarp() {
        return skip(
            "over iWARP the side that connects has to send first, and this program does not",
        );
    }
    let (good, output) = run(context, "kdat-consumer", case, &context.client.device)?;
    ensure!(good, "{case} failed:\n{output}");
    Ok(())
}

macro_rules! programs {
    ($run:ident: $($function:ident = $case:literal),* $(,)?) => {
        $(fn $function(context: &Context) -> Result<()> {
            $run(context, $case)
        })*
    };
}

programs! {
    example: ia = "ia", evd = "evd", cno = "cno", endpoint = "endpoint", connect = "connect",
    reserved = "reserved", common = "common", transfer = "transfer", memory = "memory", rmr = "rmr",
    srq = "srq", atomic = "atomic",
}

programs! {
    consumer: other_calls = "calls", stale_handles = "stale", keepalive = "keepalive",
    forked_child = "fork", threads = "safe",
}

fn unknown_names(context: &Context) -> Result<()> {
    let device = &context.client.device;
    for (name, says) in [
        ("none0", "DAT_PROVIDER_NOT_FOUND DAT_NAME_NOT_REGISTERED"),
        ("none0", device.as_str()),
        ("rxe0 fast", "'fast' in \"rxe0 fast\" is no parameter"),
        ("rxe0 fast", "DAT_INVALID_PARAMETER DAT_INVALID_ARG1"),
    ] {
        let (good, output) = run(context, "kdat-examples", "evd", name)?;
        ensure!(!good && output.contains(says), "'{name}' does not print '{says}':\n{output}");
    }
    Ok(())
}
