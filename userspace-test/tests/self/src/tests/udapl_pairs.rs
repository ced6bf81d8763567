// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Runs Debian's unmodified uDAPL programs `dtest`, `dtestcm`, `dtestx` and `dtestsrq`, each as a
//! server and a client. They use our provider, or ours on one side and Debian's own on the other.
//! Other tests kill one side.

use super::tests;
use crate::context::Context;
use crate::harness::skip;
use crate::kernel_memory::Watch;
use crate::machine;
use crate::udapl::{
    answered, arrives, judge, listens, possible, Program, Provider, Server, Sides, ADAPTER, OURS,
};
use anyhow::{bail, Context as _, Result};
use std::time::Duration;

tests! {
    #![Udapl]
    dtest_modes, 300, "uDAPL: dtest passes with waits, with polling, with a CNO, with messages of several sizes and with a late accept";
    dtest_writes, 300, "uDAPL: dtest's RDMA writes pass in one direction and in both, with validation and in all sizes";
    dtestcm, 300, "uDAPL: dtestcm's connections are established, with waits and with polling, over one and over many service points";
    dtestx, 120, "uDAPL: dtestx finds the extensions, and its writes with immediate data and its atomics pass";
    dtestsrq, 120, "uDAPL: dtestsrq's messages arrive through an SRQ, of the port's MTU and of other sizes, and each Endpoint reports its end";
    server_of_debian, 240, "uDAPL: a client of ours and a server of Debian's own provider pass dtest, dtestcm, dtestx and dapltest";
    client_of_debian, 240, "uDAPL: a client of Debian's own provider and a server of ours pass dtest, dtestcm, dtestx and dapltest";
    libkdat, 240, "uDAPL: dtest, dtestcm and dtestx pass over libkdat in place of libdat2";
    kill_client, 900, "uDAPL: a client killed at a random moment, again and again, leaves nothing behind";
    kill_server, 900, "uDAPL: a server killed at a random moment, again and again, leaves nothing behind";
}

/// The TCP port at which a server publishes its address.
const ADDRESS_PORT: u16 = 15828;

/// Starts the server of a pair, and waits until a client can connect.
fn server(context: &Context, program: &str, provider: Provider, options: &str) -> Result<Program> {
    let adapter = provider.adapter(&context.server);
    let line = format!("{program} -P {adapter} {options}");
    let mut server = Program::start(&context.server, provider, &line)?;
    server.says(context, "aiting ")?;
    context.until("the server publishes its address", || listens(&context.server, ADDRESS_PORT))?;
    Ok(server)
}

fn client(context: &Context, program: &str, provider: Provider, options: &str) -> Result<Program> {
    let address = context.server_address();
    let adapter = provider.adapter(&context.client);
    let line = format!("{program} -P {adapter} -h {address} {options}");
    Program::start(&context.client, provider, &line)
}

/// Tries for each pair. `dtest` and `dtestx` publish their addresses before they listen there, and
/// a faster client is rejected.
pub(super) const PAIR_TRIES: usize = 5;

/// NON_PEER_REJECTED, as a client prints it.
pub(super) const NON_PEER_REJECTED: &str = "0x4003";

/// Runs a pair to its end.
fn pair(
    context: &Context,
    program: &str,
    sides: Sides,
    options: &str,
    wanted: &[&str],
) -> Result<()> {
    let (there, here) = sides;
    let limit = context.patience() * 2;
    let what = || format!("{program} {options}, served by {there:?}, called by {here:?}");
    for _ in 0..PAIR_TRIES {
        let server = server(context, program, there, options)?;
        let (status, output) = client(context, program, here, options)?.ends(limit)?;
        if !output.contains(NON_PEER_REJECTED) {
            judge(program, status, &output, wanted).with_context(what)?;
            server.passes(limit, wanted).with_context(what)?;
            return Ok(());
        }
    }
    bail!("{}: the server never listened in time", what())
}

fn dtest(context: &Context, sides: Sides, options: &str) -> Result<()> {
    pair(context, "dtest", sides, options, &["DAPL Test Complete. PASSED"])
}

fn dtest_modes(context: &Context) -> Result<()> {
    possible(context)?;
    for options in [
        "-b 64",
        "-b 4096",
        "-b 64 -c",
        "-b 64 -p",
        "-b 64 -c -t",
        "-b 65536 -B 100 -S 1",
        "-b 64 -d 2",
    ] {
        dtest(context, OURS, options)?;
    }
    Ok(())
}

fn libkdat(context: &Context) -> Result<()> {
    possible(context)?;
    if context.client.device != context.server.device {
        return skip(
            "the server tells the client the name of its adapter, here that of its device",
        );
    }
    let sides = (Provider::Libkdat, Provider::Libkdat);
    dtest(context, sides, "-b 64")?;
    dtest(context, sides, "-W -b 4096 -D")?;
    connections(context, sides, 20)?;
    extended(context, sides)
}

fn dtest_writes(context: &Context) -> Result<()> {
    possible(context)?;
    for options in [
        "-w -b 4096 -t",
        "-w -b 64 -B 100 -S 10",
        "-u -b 4096",
        "-W -b 64 -t",
        "-W -b 4096 -D",
        "-W -a -b 16384 -B 20",
    ] {
        dtest(context, OURS, options)?;
    }
    Ok(())
}

fn connections(context: &Context, sides: Sides, count: u64) -> Result<()> {
    for options in ["-b 1 -w", "-b 1", "-b 10 -w", "-m -b 1 -w", "-m -b 1"] {
        let connected = format!("ALL {count} CONNECTED");
        // The option -v prints each event, which shows where a hang is.
        pair(context, "dtestcm", sides, &format!("-v -c {count} {options}"), &[&connected])?;
    }
    Ok(())
}

fn dtestcm(context: &Context) -> Result<()> {
    possible(context)?;
    // The program connects in bursts of 10, past the last endpoint if the number is no multiple.
    connections(context, OURS, context.count(200).max(20).next_multiple_of(10))
}

/// The output of `dtestx` on success.
const EXTENDED: [&str; 4] = [
    "RDMA_WRITE_WITH_IMMEDIATE_DATA test - PASSED",
    "CMP_SWAP test - PASSED",
    "FETCH_ADD test - PASSED",
    "immed/atomic test PASSED",
];

fn extended(context: &Context, sides: Sides) -> Result<()> {
    pair(context, "dtestx", sides, "-v", &EXTENDED)
}

fn dtestx(context: &Context) -> Result<()> {
    possible(context)?;
    let query =
        Program::start(&context.client, Provider::Ours, &format!("dtestx -q -P {ADAPTER}"))?;
    let attributes =
        ["DAT_IB_IMMED_DATA=TRUE", "DAT_IB_FETCH_AND_ADD=TRUE", "DAT_IB_CMP_AND_SWAP=TRUE"];
    query.passes(context.patience(), &attributes)?;
    extended(context, OURS)
}

/// Runs `dtestsrq`. Its exit status is always 0. Each side prints the number of its connections.
fn shared_receives(context: &Context, options: &str) -> Result<()> {
    let limit = context.patience() * 2;
    let line = format!("dtestsrq -v -P {ADAPTER} {options}");
    let mut server = Program::start(&context.server, Provider::Ours, &format!("{line} -s"))?;
    server.says(context, "ready on port")?;
    let line = format!("{line} -h {}", context.server_address());
    let client = Program::start(&context.client, Provider::Ours, &line)?;
    let output = client.passes(limit, &["Test Complete"]).with_context(|| server.output())?;
    server.passes(limit, &["Test Complete"]).context(output)?;
    Ok(())
}

fn dtestsrq(context: &Context) -> Result<()> {
    possible(context)?;
    // Without a size the messages are as long as the attribute DAT_IB_TRANSPORT_MTU says.
    for options in ["", "-b 64", "-b 4096 -c 4 -B 10 -t 5"] {
        shared_receives(context, options).with_context(|| options.to_string())?;
    }
    Ok(())
}

/// Runs the tests that two different providers support together.
fn together(context: &Context, sides: Sides) -> Result<()> {
    possible(context)?;
    if context.link_is_spoilt() {
        return skip(
            "Debian's provider sends a disconnect once, and hangs if another one overtakes it",
        );
    }
    for options in ["-b 64", "-b 4096 -c", "-b 64 -p"] {
        dtest(context, sides, options)?;
    }
    connections(context, sides, 20)?;
    extended(context, sides)?;
    answered(context, sides, || transfers(context, sides))
}

/// Runs `dapltest`'s transactions and measurements.
fn transfers(context: &Context, sides: Sides) -> Result<()> {
    let server = Server::start(context, sides)?;
    let rounds = context.count(100).max(5);
    let transacted = &["End of Work -- Client Exiting", "Total WQE"][..];
    let tests = [
        (format!("T -i {rounds} -t 1 -w 1 -V client SR 1024 3 server SR 1536 2"), transacted),
        (format!("T -i {rounds} -t 1 -w 4 -P client SR 256 server SR 256"), transacted),
        (
            format!("T -i {rounds} -t 2 -w 2 -V client RW 4096 2 server RR 2048 client SR 64 server SR 64"),
            transacted,
        ),
        (format!("P -i {rounds} -m b -p 1 RW 4 1"), &["raw:"]),
        (format!("P -i {rounds} -m p -p 8 RR 4096 1"), &["raw:"]),
    ];
    for (test, wanted) in tests.iter().filter(|(test, _)| arrives(context, test)) {
        server.serves(test, wanted)?;
    }
    server.ends()
}

fn server_of_debian(context: &Context) -> Result<()> {
    together(context, (Provider::Debians, Provider::LikeDebians))
}

fn client_of_debian(context: &Context) -> Result<()> {
    together(context, (Provider::LikeDebians, Provider::Debians))
}

/// Kills one side of a pair during the transfer, then the other. No object may remain.
fn kill(context: &Context, first: fn(Program, Program) -> (Program, Program)) -> Result<()> {
    possible(context)?;
    let effort = context.settings.effort;
    let times = if effort < 1.0 { context.count(200) } else { 200 };
    let mut memory = Watch::new(times)?;
    for round in 0..times {
        memory.round(round)?;
        let options = "-b 4096 -B 2000 -W";
        let server = server(context, "dtest", Provider::Ours, options)?;
        let client = client(context, "dtest", Provider::Ours, options)?;
        let most = context.scaled(Duration::from_millis(60)).as_micros() as u64;
        std::thread::sleep(Duration::from_micros(context.rng().u64(0..most)));
        let (mut dies, mut stays) = first(client, server);
        dies.kill()?;
        // The other side may see the disconnect, or may be killed before.
        std::thread::sleep(Duration::from_millis(context.rng().u64(0..5)));
        stays.kill()?;
        machine::no_objects_left(context.settings.scale)
            .with_context(|| format!("round {round}"))?;
    }
    memory.end(context)
}

fn kill_client(context: &Context) -> Result<()> {
    kill(context, |client, server| (client, server))
}

fn kill_server(context: &Context) -> Result<()> {
    kill(context, |client, server| (server, client))
}
