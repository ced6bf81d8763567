// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs Debian's unmodified uDAPL program `dapltest`, and calls that it does not make.

use super::drivers::{disguised, OCRDMA};
use super::tests;
use crate::context::Context;
use crate::expect::same;
use crate::machine::{self, DeviceGuard};
use crate::udapl::{answered, arrives, possible, Program, Provider, Server, ADAPTER, OURS};
use anyhow::{ensure, Context as _, Result};
use std::time::Duration;

tests! {
    #![Udapl]
    dapltest_open_close, 60, "uDAPL: dapltest's functional tests of open and close pass";
    dapltest_endpoints, 60, "uDAPL: dapltest's functional tests of Endpoints pass";
    dapltest_zones, 60, "uDAPL: dapltest's functional tests of Protection Zones pass";
    dapltest_memory, 60, "uDAPL: dapltest's functional tests of memory pass";
    dapltest_requests, 60, "uDAPL: dapltest's functional tests of waiting for requests pass";
    dapltest_queries, 60, "uDAPL: dapltest's functional tests of queries pass";
    dapltest_transactions, 240, "uDAPL: dapltest's transactions of every kind arrive unchanged";
    dapltest_threads, 300, "uDAPL: dapltest's transactions of several threads and Endpoints arrive unchanged";
    dapltest_performance, 240, "uDAPL: dapltest's measurements work, with waits and with polling";
    dapltest_limits, 240, "uDAPL: dapltest's limit tests create as many objects as requested";
    dapltest_largest_region, 120, "uDAPL: dapltest's limit test of sizes registers as much memory as the process may have";
    attributes, 60, "uDAPL: the attributes of adapter and provider promise what calls do";
    attributes_without_rmrs, 60, "uDAPL: the attributes of an adapter that cannot bind RMRs promise none";
    other_calls, 60, "uDAPL: EVDs resize, CNOs change, objects have contexts, and calls with missing objects are refused";
    connect_and_transfer, 60, "uDAPL: handoff, dup_connect, provider and reserved Endpoints, and every DTO work";
    connect_refusals, 60, "uDAPL: each connect with a wrong argument or handle gets the code of the table";
    connect_states, 120, "uDAPL: each connect in a wrong state gets the code of the table";
    asynchronous_events, 60, "uDAPL: a full EVD and a failure without a connect EVD are one asynchronous event each, which names its object";
    keepalive, 60, "uDAPL: the time-outs of an Endpoint are named attributes of the provider";
    requests_of_freed, 120, "uDAPL: a request whose service point was freed keeps its qualifier and its Endpoint";
    stale_handles, 60, "uDAPL: a handle that is stale, of another kind or invented is refused";
    provider_table, 60, "uDAPL: calls that libdat2 does not export work through the provider's table";
    cno_agent, 60, "uDAPL: an agent is called for each trigger, and its thread ends with it";
    agent_and_waiter, 120, "uDAPL: an agent and a thread in dat_cno_wait both get every trigger of their CNO";
    forked_child, 120, "uDAPL: a forked child is refused its parent's handles, and may open its own adapter";
    exit_without_free, 60, "uDAPL: a program that exits without freeing anything leaves nothing behind";
    provider_reload, 60, "uDAPL: a provider that is loaded and unloaded again and again creates no thread";
    thread_safe_adapter, 120, "uDAPL: four threads connect and transfer over a thread-safe adapter";
}

// Runs last, since it removes the device.
tests! {
    REMOVAL:
    #[Udapl]
    device_removal, 120, "uDAPL: the removal of the device is IA_CATASTROPHIC on each adapter, once, and ends the connections";
}

/// Runs one group of `dapltest -T F`.
fn functional(context: &Context, group: &str, cases: &str) -> Result<()> {
    possible(context)?;
    let line = format!("dapltest -T F -D {ADAPTER} -f {group} {cases}");
    let program = Program::start(&context.client, Provider::Ours, &line)?;
    let output = program.passes(context.patience() * 4, &["Result:"])?;
    // dapltest reports that it has no test of request queries.
    let count = |words| output.matches(words).count();
    let passed = count("Result: PASS") + count("Result: UNSUPP");
    same("cases that passed", passed, count("Result:")).context(output)
}

fn dapltest_open_close(context: &Context) -> Result<()> {
    functional(context, "hwconn", "")
}

fn dapltest_endpoints(context: &Context) -> Result<()> {
    functional(context, "endpoint", "")
}

fn dapltest_zones(context: &Context) -> Result<()> {
    functional(context, "pz", "")
}

fn dapltest_memory(context: &Context) -> Result<()> {
    functional(context, "mem", "")
}

fn dapltest_requests(context: &Context) -> Result<()> {
    functional(context, "connmgt", "")
}

fn dapltest_queries(context: &Context) -> Result<()> {
    // Cases 13 and 15 pass an adapter in place of another handle, which crashes libdat2 itself.
    let cases: Vec<_> =
        (0..18).filter(|n| ![13, 15].contains(n)).map(|n| format!("case{n}")).collect();
    functional(context, "queryinfo", &cases.join(" "))
}

fn transact(context: &Context, tests: &[String]) -> Result<()> {
    possible(context)?;
    answered(context, OURS, || transact_once(context, tests))
}

fn transact_once(context: &Context, tests: &[String]) -> Result<()> {
    let server = Server::start(context, OURS)?;
    for test in tests.iter().filter(|test| arrives(context, test)) {
        server.serves(test, &["End of Work -- Client Exiting", "Total WQE"])?;
    }
    server.ends()
}

fn dapltest_transactions(context: &Context) -> Result<()> {
    let rounds = context.count(500).max(10);
    let tests = [
        "client SR 256 server SR 256",
        "-V client SR 1024 3 server SR 1536 2",
        "-P client SR 256 server SR 256",
        "-r client SR 256 server SR 256",
        "-V -P client RW 4096 2 server RW 2048 4 client RR 1024 2 server RR 2048 client SR 64 server SR 64",
        "client SR 256 -f server SR 256 -f client SR 1024 server SR 1024",
        "-V client RW 65536 server RR 65536 client SR 256 server SR 256",
    ];
    transact(context, &tests.map(|test| format!("T -i {rounds} -t 1 -w 1 {test}")))
}

fn dapltest_threads(context: &Context) -> Result<()> {
    let rounds = context.count(200).max(5);
    let read = if context.loses_reads() { "" } else { "server RR 4096" };
    let test =
        format!("client SR 1024 server SR 1024 client RW 4096 {read} client SR 64 server SR 64");
    let shapes = ["-t 4 -w 1", "-t 1 -w 8", "-V -t 4 -w 4", "-V -P -t 2 -w 3"];
    transact(context, &shapes.map(|shape| format!("T -i {rounds} {shape} {test}")))
}

fn dapltest_performance(context: &Context) -> Result<()> {
    possible(context)?;
    answered(context, OURS, || perform(context))
}

fn perform(context: &Context) -> Result<()> {
    let rounds = context.count(2000).max(50);
    let server = Server::start(context, OURS)?;
    for shape in [
        "-m b -p 1 RW 4 1",
        "-m p -p 1 RW 4 1",
        "-m b -p 16 RW 65536 2",
        "-m p -p 16 RR 4096 1",
        "-m b -p 8 RR 16384 2",
    ] {
        if !arrives(context, shape) {
            continue;
        }
        let rounds = if shape.contains("65536") { rounds.min(500) } else { rounds };
        let output = server.serves(&format!("P -i {rounds} {shape}"), &["raw:"])?;
        ensure!(!output.contains("raw: R, 0"), "{shape}:\n{output}");
    }
    server.ends()
}

fn dapltest_limits(context: &Context) -> Result<()> {
    possible(context)?;
    // An Endpoint with default attributes takes 256 receives.
    let most = context.count(250).max(20);
    // With a width of four dapltest gives the Endpoints of all adapters the connection EVD of the
    // first, which is invalid for the others.
    for (limit, object, row) in [
        ("limit_ia", "IAs opened", 4),
        ("limit_pz", "PZs created", 4),
        ("limit_cno", "CNOs created", 4),
        ("limit_evd", "EVDs created", 4),
        ("limit_ep", "EPs created", 1),
        ("limit_rsp", "RSPs created", 1),
        ("limit_psp", "PSPs created", 1),
        ("limit_lmr", "LMRs created", 1),
        ("limit_rpost", "recv buffers posted per EP", 1),
    ] {
        let line = format!("dapltest -T L -D {ADAPTER} -w {row} -m {most} {limit}");
        let program = Program::start(&context.client, Provider::Ours, &line)?;
        let output = program.passes(context.patience() * 6, &[&format!("{object}: {most}")])?;
        ensure!(!output.contains("fails"), "{output}");
    }
    Ok(())
}

fn dapltest_largest_region(context: &Context) -> Result<()> {
    possible(context)?;
    // dapltest doubles the size until a registration fails. The address space of the process is the
    // limit here.
    let line = format!("prlimit --as=300000000 dapltest -T L -D {ADAPTER} -w 1 limit_size_lmr");
    let program = Program::start(&context.client, Provider::Ours, &line)?;
    let (_, output) = program.ends(context.patience() * 6)?;
    let largest = output.split("Largest LMR was 0x").nth(1).with_context(|| output.clone())?;
    let size = largest.split_whitespace().next().unwrap_or_default();
    let size = u64::from_str_radix(size, 16).with_context(|| output.clone())?;
    ensure!(size >= 64 << 20, "{size} bytes:\n{output}");
    machine::no_objects_left(context.settings.scale)
}

pub fn consumer(context: &Context, case: &str) -> Result<()> {
    consumer_over(context, Provider::Ours, case)
}

/// Runs a case of `udapl-consumer`, whose exit status is 0 on success. The case may have arguments.
fn consumer_over(context: &Context, provider: Provider, case: &str) -> Result<()> {
    possible(context)?;
    let (case, arguments) = case.split_once(' ').unwrap_or((case, ""));
    let line = format!("udapl-consumer {case} {ADAPTER} {arguments}");
    let program = Program::start(&context.client, provider, &line)?;
    program.succeeds(context.patience() * 4 + Duration::from_secs(10))
}

fn attributes(context: &Context) -> Result<()> {
    consumer(context, "attributes")
}

fn attributes_without_rmrs(context: &Context) -> Result<()> {
    possible(context)?;
    let disguise = disguised(context, OCRDMA)?;
    consumer(context, "attributes")?;
    disguise.unload()
}

fn other_calls(context: &Context) -> Result<()> {
    consumer(context, "calls")
}

fn provider_table(context: &Context) -> Result<()> {
    consumer(context, "table")
}

fn connect_and_transfer(context: &Context) -> Result<()> {
    consumer(context, "exchange")
}

fn connect_refusals(context: &Context) -> Result<()> {
    consumer(context, "refusals")
}

fn connect_states(context: &Context) -> Result<()> {
    consumer(context, "states")
}

fn asynchronous_events(context: &Context) -> Result<()> {
    consumer(context, "asynchronous")
}

fn device_removal(context: &Context) -> Result<()> {
    possible(context)?;
    let guard = DeviceGuard::new(context)?;
    let line = format!("udapl-consumer removal {ADAPTER}");
    let mut program = Program::start(&context.client, Provider::Ours, &line)?;
    program.says(context, "ready")?;
    guard.delete()?;
    program.resume()?;
    program.succeeds(context.patience() * 4)?;
    guard.add()
}

fn keepalive(context: &Context) -> Result<()> {
    consumer(context, "keepalive")
}

fn requests_of_freed(context: &Context) -> Result<()> {
    consumer_over(context, Provider::Ours, "requests")?;
    consumer_over(context, Provider::LikeDebians, "requests")
}

fn stale_handles(context: &Context) -> Result<()> {
    consumer(context, "stale")
}

fn cno_agent(context: &Context) -> Result<()> {
    consumer(context, "agent")
}

fn agent_and_waiter(context: &Context) -> Result<()> {
    consumer(context, "agent-and-waiter")
}

fn forked_child(context: &Context) -> Result<()> {
    consumer(context, "fork")
}

fn exit_without_free(context: &Context) -> Result<()> {
    consumer(context, "exit")
}

fn provider_reload(context: &Context) -> Result<()> {
    consumer(context, "reopen")
}

fn thread_safe_adapter(context: &Context) -> Result<()> {
    consumer(context, "safe")
}
