// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kills either side of each program of this project and of Debian's uDAPL, a thousand times each,
//! at a random moment. Nothing may be left behind, and the other side says what happened.
//!
//! A killed program has calls in progress, data transfers in flight, and in `echo_by_ring` commands
//! of io_uring. `kill` and `kill_by_state` kill at chosen moments.

mod program;
mod rounds;

use super::tests;
use crate::context::Context;
use crate::machine::no_objects_left;
use crate::udapl::{possible, Program, Provider, ADAPTER};
use anyhow::{ensure, Context as _, Result};
use program::{Pair, Ready, Serves};
use rounds::{each_side, moments};

tests! {
    #![Kills]
    dtest, 1800, "Kills: either side of dtest, amid sends and RDMA writes";
    dtest_libkdat, 1800, "Kills: either side of dtest over libkdat";
    dtestx, 1800, "Kills: either side of dtestx, amid atomics and writes with immediate data";
    dtestcm, 3600, "Kills: either side of dtestcm, amid many connections";
    dtestsrq, 1800, "Kills: either side of dtestsrq, amid receives of an SRQ";
    dapltest, 3600, "Kills: either side of dapltest, amid transactions of several threads";
    ping, 1800, "Kills: either side of kdapltest ping";
    bandwidth, 1800, "Kills: either side of kdapltest bandwidth, with many operations in flight";
    connect, 1800, "Kills: either side of kdapltest connect, with many connections at once";
    stat, 1800, "Kills: kdapltest stat beside other processes, whose traffic goes on";
    bmi, 1800, "Kills: either side of kdapl-bmi, amid long messages";
    echo_by_ring, 3600, "Kills: either side of the echo server, which has commands of io_uring in flight";
    echo_by_waits, 3600, "Kills: either side of the echo server, which waits on an EVD";
    tokio, 1800, "Kills: either side of the echo program on tokio";
    readme, 1800, "Kills: either side of the programs of README.md";
    c_example, 1800, "Kills: either side of the C example of docs/ioctl.md";
    libkdat, 1800, "Kills: C programs on libkdat that connect to themselves";
}

/// The TCP port at which Debian's programs publish their addresses.
const ADDRESS_PORT: u16 = 15828;

/// Makes a pair of one of Debian's programs.
fn debian(context: &Context, program: &str, provider: Provider, options: &str) -> Result<Pair> {
    let address = possible(context)?;
    let (there, here) = (provider.adapter(&context.server), provider.adapter(&context.client));
    let server = format!("{program} -P {there} {options}");
    let client = format!("{program} -P {here} -h {address} {options}");
    let ready = Ready::Publishes("aiting ", ADDRESS_PORT);
    Ok(Pair { provider, ready, ..Pair::new(&server, &client) })
}

/// Output of Debian's programs without their peer: of an event, or of the TCP connection before.
const LOST: &[&str] = &["unexpected", "rror", "ERR", "FAILED", "Couldn't ", "Failed to get "];

fn dtest_over(context: &Context, provider: Provider) -> Result<()> {
    let pair = debian(context, "dtest", provider, "-b 16384 -B 500")?;
    let complete = ["DAPL Test Complete. PASSED"; 2];
    each_side(context, &Pair { complete, lost: [LOST; 2], ..pair })
}

fn dtest(context: &Context) -> Result<()> {
    dtest_over(context, Provider::Ours)
}

fn dtest_libkdat(context: &Context) -> Result<()> {
    dtest_over(context, Provider::Libkdat)
}

fn dtestx(context: &Context) -> Result<()> {
    let pair = debian(context, "dtestx", Provider::Ours, "-v")?;
    each_side(context, &Pair { complete: ["immed/atomic test PASSED"; 2], lost: [LOST; 2], ..pair })
}

fn dtestcm(context: &Context) -> Result<()> {
    let pair = debian(context, "dtestcm", Provider::Ours, "-v -c 200 -b 10 -w")?;
    each_side(
        context,
        &Pair { many: true, complete: ["ALL 200 CONNECTED"; 2], lost: [LOST; 2], ..pair },
    )
}

fn dtestsrq(context: &Context) -> Result<()> {
    let line = format!("dtestsrq -v -P {ADAPTER} -b 4096 -c 4 -B 10 -t 5");
    let client = format!("{line} -h {}", possible(context)?);
    let pair = Pair::new(&format!("{line} -s"), &client);
    let ready = Ready::Says("ready on port");
    each_side(
        context,
        &Pair { ready, many: true, complete: ["Test Complete"; 2], lost: [LOST; 2], ..pair },
    )
}

fn dapltest(context: &Context) -> Result<()> {
    let address = possible(context)?;
    let client = |rounds: u64| {
        format!(
            "dapltest -T T -D {ADAPTER} -s {address} -i {rounds} -t 2 -w 2 client SR 256 \
             server SR 256 client RW 4096 server RR 4096"
        )
    };
    let pair = Pair::new(&format!("dapltest -T S -D {ADAPTER}"), &client(1_000_000));
    let ready = Ready::Says("Service Point Ready");
    let complete = ["End of Work -- Client Exiting", ""];
    each_side(
        context,
        &Pair { ready, complete, lost: [LOST; 2], serves: Serves::Some, ..pair.short(&client(5)) },
    )
}

/// Makes a pair of `kdapltest` commands.
fn kdapltest(context: &Context, endless: &str, short: &str) -> Pair {
    let (there, here) = (&context.server.device, &context.client.device);
    let (address, port) = (context.server_address(), context.port());
    let client = |what: &str| format!("kdapltest {what} {address} --device {here} --port {port}");
    let server = format!("kdapltest server --timeout 1 --device {there} --port {port}");
    Pair {
        ready: Ready::Says("Serving on"),
        lost: [&["lost the server at", "kdapltest: "], &[]],
        serves: Serves::All,
        ..Pair::new(&server, &client(endless)).short(&client(short))
    }
}

fn ping(context: &Context) -> Result<()> {
    each_side(context, &kdapltest(context, "ping -n 100000000", "ping -n 10"))
}

fn bandwidth(context: &Context) -> Result<()> {
    let endless = "bandwidth -o duplex -D 600 -t 64 -q 2";
    each_side(context, &kdapltest(context, endless, "bandwidth -n 10"))
}

fn connect(context: &Context) -> Result<()> {
    let endless = "connect -n 100000 --parallel 8 --data 64";
    each_side(context, &kdapltest(context, endless, "connect -n 10"))
}

/// Kills a program without another side.
fn alone(context: &Context, lines: &[&str], check: impl Fn() -> Result<()>) -> Result<()> {
    moments(context, |round, sleep| {
        let line = lines[round as usize % lines.len()];
        let mut program = Program::start(&context.client, Provider::Ours, line)?;
        sleep();
        let killed = program.ended()?.is_none();
        program.kill()?;
        check().with_context(|| line.to_string())?;
        Ok(killed)
    })
}

fn stat(context: &Context) -> Result<()> {
    let pair = kdapltest(context, "ping -n 100000000", "ping -n 10");
    let mut server = pair.start_server(context)?;
    let mut client = pair.start_client(context)?;
    let adapters = || -> Result<usize> { Ok(libkdapl::ia_stats()?.len()) };
    let requests =
        || -> Result<u64> { Ok(libkdapl::ia_stats()?.iter().map(|stat| stat.raw.requests).sum()) };
    context.until("the pair transfers", || Ok(requests()? > 10))?;
    let lines = ["kdapltest stat --watch 1", "kdapltest stat --json", "kdapltest devices"];
    alone(context, &lines, || {
        context.until("only the adapters of the pair are left", || Ok(adapters()? == 2))
    })?;
    ensure!(client.ended()?.is_none(), "the client ended: {}", client.output());
    ensure!(server.ended()?.is_none(), "the server ended: {}", server.output());
    let requests =
        || -> Result<u64> { Ok(libkdapl::ia_stats()?.iter().map(|stat| stat.raw.requests).sum()) };
    let before = requests()?;
    context.until("the traffic goes on", || Ok(requests()? > before + 10))
}

fn bmi(context: &Context) -> Result<()> {
    let (there, here) = (&context.server.device, &context.client.device);
    let place = std::net::SocketAddr::new(context.server_address(), context.port() as u16);
    let client =
        |n: u64| format!("kdapl-bmi bandwidth --device {here} -n {n} -s 300000 kdapl://{place}");
    let server = format!("kdapl-bmi serve kdapl://{place} --device {there}");
    let pair = Pair {
        ready: Ready::Says("Listening at"),
        lost: [&["kdapl-bmi: kdapl://"], &[]],
        serves: Serves::All,
        ..Pair::new(&server, &client(1_000_000)).short(&client(2))
    };
    each_side(context, &pair)
}

/// Connections of an echo server.
const CONNECTIONS: u64 = 20;

fn echo(context: &Context, way: &str) -> Result<()> {
    let (device, port) = (&context.server.device, context.port());
    let server = format!("kdapl-echo-server {device} {port} {CONNECTIONS} {way}");
    let caller = |part: &str| -> Result<Vec<String>> {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let part = format!("{part} {port} {CONNECTIONS}");
        let layout = context.settings.layout.arguments();
        let words = [program, "--play".into(), part].into_iter();
        Ok(words.chain(layout).collect())
    };
    let pair = Pair {
        ready: Ready::Says("listening"),
        client: caller("Echoes")?,
        short: Some(caller("Echo")?),
        complete: ["echoed", "20 connections, "],
        lost: [&["the other process: "], &["Error: "]],
        many: true,
        ..Pair::new(&server, "")
    };
    each_side(context, &pair)
}

fn echo_by_ring(context: &Context) -> Result<()> {
    echo(context, "ring")
}

fn echo_by_waits(context: &Context) -> Result<()> {
    echo(context, "waits")
}

fn tokio(context: &Context) -> Result<()> {
    let (there, here) = (&context.server.device, &context.client.device);
    let address = context.server_address();
    let pair = Pair {
        complete: ["20 connections, 200 messages", "20 connections, "],
        lost: [&["Error: "]; 2],
        many: true,
        ..Pair::new(
            &format!("kdapl-tokio-echo {there} {CONNECTIONS}"),
            &format!("kdapl-tokio-echo {here} {CONNECTIONS} {address}"),
        )
    };
    each_side(context, &pair)
}

fn readme(context: &Context) -> Result<()> {
    let (there, here) = (&context.server.device, &context.client.device);
    let client = format!("kdapl-hello {here} {}", context.server_address());
    let pair = Pair {
        complete: ["DISCONNECTED", "hello"],
        lost: [&["FLUSHED", "Error: ", "nobody listens"], &["kdapl-receive: "]],
        ..Pair::new(&format!("kdapl-receive {there}"), &client)
    };
    each_side(context, &pair)
}

fn c_example(context: &Context) -> Result<()> {
    let (there, here) = (&context.server.device, &context.client.device);
    let client = format!("kdapl-example {here} {}", context.server_address());
    let pair = Pair {
        complete: ["event 0x00001, status 0, value 6", "hello"],
        lost: [&["event 0x040", "kdapl-example: "]; 2],
        ..Pair::new(&format!("kdapl-example {there}"), &client)
    };
    each_side(context, &pair)
}

fn libkdat(context: &Context) -> Result<()> {
    let device = &context.client.device;
    let cases = ["connect", "transfer", "rmr", "srq", "reserved", "atomic", "common"];
    let lines: Vec<_> = cases.iter().map(|case| format!("kdat-examples {case} {device}")).collect();
    let threads = format!("kdat-consumer safe {device}");
    let lines: Vec<_> = lines.iter().chain([&threads]).map(String::as_str).collect();
    alone(context, &lines, || no_objects_left(context.settings.scale))?;
    for line in &lines {
        let program = Program::start(&context.client, Provider::Ours, line)?;
        program.succeeds(context.patience())?;
    }
    Ok(())
}
