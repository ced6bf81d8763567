// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! BMI in the kernel, by the server and the client of `docs/samples/kdapl_bmi_echo.c`: with each
//! other, and with this process.

pub mod devices;
pub mod peers;
pub mod rails;
pub mod two_hosts;

use super::super::faults::inject;
use super::super::kernel::{device, Loaded};
use super::super::tests;
use super::{address, bytes, long, long_messages_arrive, Side};
use crate::context::Context;
use crate::expect::{fails_saying, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::machine::count_of;
use crate::trace::Recording;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl_bmi::{Failure, Options, Peer};
use std::collections::{HashMap, HashSet};
use std::fs;

tests! {
    #[Transport]
    with_itself, 120, "kdapl_bmi.ko moves messages of 1 byte to 100 KB between two instances";
    #[Transport]
    link_local, 60, "kdapl_bmi.ko moves messages between link-local addresses of IPv6";
    #[Long, Transport]
    up_to_4_mib, 120, "kdapl_bmi.ko moves messages of up to 4 MiB, whose memory is not contiguous";
    #[Transport]
    user_client, 120, "Processes talk to kdapl_bmi.ko, several at a time";
    #[Transport]
    user_server, 120, "kdapl_bmi.ko talks to a process";
    #[Transport]
    client_gone, 60, "kdapl_bmi.ko forgets a process that ends amid its messages, and serves others";
    #[Transport]
    nobody_listens, 60, "kdapl_bmi.ko fails with ECONNREFUSED if nobody listens";
    #[Long, Transport]
    calls, 120, "The calls of kdapl_bmi.ko refuse wrong arguments, and move lists of 1,100 fragments and 16 MiB";
    #[Transport]
    reconnects, 60, "kdapl_bmi.ko connects again after a consumer has ended its connection, and keeps its address";
    #[Transport]
    faults, 300, "kdapl_bmi.ko survives each failed allocation of each of its calls";
    fault_rows, 10, "The table of BMI's calls that are tried with failing allocations has a row for every exported call";
    unloads, 60, "kdapl_bmi.ko ends with messages in flight";
    #[Transport]
    frees_elsewhere, 120, "kdapl_bmi.ko frees Endpoints of peers that leave in another work item than that of the messages";
}

const TO_SERVER: i32 = 1;
const TO_CLIENT: i32 = 2;

/// Loads `kdapl_bmi.ko`. Skips the test where it has no device.
fn load_bmi(context: &Context) -> Result<Loaded> {
    device(context)?;
    Loaded::new("kdapl_bmi", "")
}

/// Loads the sample with these parameters.
fn load(context: &Context, parameters: &str) -> Result<Loaded> {
    load_on(&device(context)?, parameters)
}

fn load_on(device: &str, parameters: &str) -> Result<Loaded> {
    Loaded::new("kdapl_bmi_echo", &format!("adapter={device} {parameters}"))
}

/// `kdapl_bmi.ko`, and a server that uses it.
pub(super) struct Server {
    echo: Option<Loaded>,
    bmi: Option<Loaded>,
    pub(super) address: String,
}

impl Server {
    pub(super) fn start(context: &Context) -> Result<Self> {
        Self::start_with(context, "")
    }

    pub(super) fn start_with(context: &Context, more: &str) -> Result<Self> {
        Self::on(&device(context)?, address(context), more)
    }

    fn on(device: &str, address: String, more: &str) -> Result<Self> {
        let bmi = Loaded::new("kdapl_bmi", "")?;
        let echo = load_on(device, &format!("listen={address} {more}"))?;
        Ok(Self { echo: Some(echo), bmi: Some(bmi), address })
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.echo.take().context("ended before")?.unload()?;
        self.bmi.take().context("ended before")?.unload()
    }

    fn echoed(&self) -> Result<u64> {
        self.echo.as_ref().context("ended before")?.parameter("echoed")
    }
}

/// Moves messages of these lengths between two instances of the module.
fn between_instances(context: &Context, lengths: &[usize]) -> Result<()> {
    let bmi = load_bmi(context)?;
    for length in lengths {
        for registered in ["Y", "N"] {
            let (address, length) = (address(context), long(context, *length));
            let parameters = format!(
                "listen={address} peer={address} length={length} registered={registered} rounds=3"
            );
            let both = load(context, &parameters).with_context(|| parameters.clone())?;
            both.unload().with_context(|| parameters)?;
        }
    }
    bmi.unload()
}

fn with_itself(context: &Context) -> Result<()> {
    between_instances(context, &[1, 4096, 16_336, 16_337, 100_001])
}

/// Returns the link-local address of a network device, as the kernel's consumers write it.
fn link_local_of(netdev: &str) -> Result<Option<String>> {
    for line in fs::read_to_string("/proc/net/if_inet6")?.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [bits, index, _, _, _, name] = fields[..] else { bail!("a line of if_inet6: {line}") };
        let address = std::net::Ipv6Addr::from(u128::from_str_radix(bits, 16)?);
        if name == netdev && address.is_unicast_link_local() {
            return Ok(Some(format!("{address}%{}", u32::from_str_radix(index, 16)?)));
        }
    }
    Ok(None)
}

fn link_local(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    let Some(address) = link_local_of(&context.client.netdev)? else {
        return skip(format!("{} has no link-local address", context.client.netdev));
    };
    for length in [1, long(context, 100_001)] {
        let place = format!("kdapl://[{address}]:{}", context.port());
        let parameters = format!("listen={place} peer={place} length={length} rounds=3");
        load(context, &parameters)?.unload().with_context(|| parameters)?;
    }
    bmi.unload()
}

fn up_to_4_mib(context: &Context) -> Result<()> {
    between_instances(context, &[1 << 20, 4 << 20])
}

/// Asks a server to return messages.
pub(super) fn request(side: &Side, peer: &Peer, length: usize, rounds: u32) -> Result<()> {
    let memory = side.bmi.alloc(8)?;
    memory.buffer().write(0, &(length as u32).to_le_bytes());
    memory.buffer().write(4, &rounds.to_le_bytes());
    let sent = side.context.send_unexpected(peer, 0, &[memory.part(0, 8)], 0)?;
    side.done(sent, 8)
}

/// Lets a server return one message.
pub(super) fn echo(context: &Context, side: &Side, peer: &Peer, length: usize) -> Result<()> {
    let (sent, got) = (side.random(context, length)?, side.bmi.alloc(length)?);
    let receive = side.context.receive(peer, TO_CLIENT, &[got.whole()], 0)?;
    let send = side.context.send(peer, TO_SERVER, &[sent.part(0, length)], 0)?;
    side.done(receive, length)?;
    side.done(send, length)?;
    ensure!(bytes(&sent, length) == bytes(&got, length), "wrong bytes of {length}");
    Ok(())
}

fn user_client(context: &Context) -> Result<()> {
    let server = Server::start(context)?;
    let lengths = [1, 1000, 16_336, 16_337, 300_000];
    talk_to(context, (&context.client, 1), &server, (4, &lengths))?;
    server.end()
}

/// Lets processes of a host talk to a server, several at a time, each by so many connections, with
/// so many messages of each of these lengths.
fn talk_to(
    context: &Context,
    (host, count): (&Host, u8),
    server: &Server,
    (rounds, lengths): (u32, &[usize]),
) -> Result<()> {
    let mut echoed = 0;
    for pull in [true, false] {
        let options = rails::options(count, pull);
        let clients = (0..3).map(|_| Side::open(context, host, &options));
        let clients = clients.collect::<Result<Vec<_>>>()?;
        let peers = clients.iter().map(|side| Ok(side.bmi.lookup(&server.address)?));
        let peers = peers.collect::<Result<Vec<_>>>()?;
        for length in lengths.iter().map(|length| long(context, *length)) {
            for (side, peer) in clients.iter().zip(&peers) {
                request(side, peer, length, rounds)?;
            }
            for _ in 0..rounds {
                for (side, peer) in clients.iter().zip(&peers) {
                    echo(context, side, peer, length)?;
                    echoed += 1;
                }
            }
        }
    }
    context.until("all messages are counted", || Ok(server.echoed()? == echoed))
}

/// Serves one request of the sample's client.
fn serve(side: &Side) -> Result<u32> {
    let message = side.unexpected()?;
    let word = |at: usize| message.bytes()[at..at + 4].try_into().map(u32::from_le_bytes);
    let (length, rounds) = (word(0)? as usize, word(4)?);
    let memory = side.bmi.alloc(length)?;
    for round in 0..rounds {
        let receive = side.context.receive(&message.peer, TO_SERVER, &[memory.whole()], 0)?;
        side.done(receive, length)?;
        let send = side.context.send(&message.peer, TO_CLIENT, &[memory.whole()], 0)?;
        side.answered(send, length, round + 1 == rounds)?;
    }
    Ok(rounds)
}

fn user_server(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    let lengths = [(1, "Y"), (5000, "N"), (200_000, "Y"), (200_000, "N")];
    let place = (&*device(context)?, &*address(context));
    serve_kernel(context, place, &context.server, (1, &lengths))?;
    bmi.unload()
}

/// Lets a process of a host serve clients in the kernel, on their device, by so many connections.
/// Messages have these lengths, and are in registered memory or not.
fn serve_kernel(
    context: &Context,
    (device, address): (&str, &str),
    host: &Host,
    (count, lengths): (u8, &[(usize, &str)]),
) -> Result<()> {
    let options = Options { listen: Some(address.into()), ..rails::options(count, true) };
    let side = Side::open(context, host, &options)?;
    for (length, registered) in lengths {
        let length = long(context, *length);
        let parameters = format!(
            "peer={address} length={length} rounds=5 registered={registered} rails={count} \
             stripe_from={}",
            options.stripe_from
        );
        let served = std::thread::scope(|scope| {
            let served = scope.spawn(|| serve(&side));
            load_on(device, &parameters).and_then(Loaded::unload).with_context(|| parameters)?;
            served.join().expect("the server panics")
        })?;
        same("rounds", served, 5)?;
    }
    Ok(())
}

fn client_gone(context: &Context) -> Result<()> {
    client_ends(context, "", &Options::default())
}

/// Lets clients of a server with these parameters end amid their messages.
fn client_ends(context: &Context, parameters: &str, options: &Options) -> Result<()> {
    let server = Server::start_with(context, parameters)?;
    end_amid(context, &context.client, &server, options)?;
    server.end()
}

/// Lets processes of a host end amid their messages.
fn end_amid(context: &Context, host: &Host, server: &Server, options: &Options) -> Result<()> {
    for length in [100, long(context, 200_000)] {
        let side = Side::open(context, host, options)?;
        let peer = side.bmi.lookup(&server.address)?;
        request(&side, &peer, length, 1000)?;
        echo(context, &side, &peer, length)?;
        let sent = side.random(context, length)?;
        let _ = side.context.send(&peer, TO_SERVER, &[sent.part(0, length)], 0)?;
        peer.disconnect();
        drop((peer, side));
        let side = Side::open(context, host, options)?;
        let peer = side.bmi.lookup(&server.address)?;
        request(&side, &peer, length, 1)?;
        echo(context, &side, &peer, length)?;
    }
    Ok(())
}

fn nobody_listens(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    fails_saying("Connection refused", load(context, &format!("peer={}", address(context))))?;
    bmi.unload()
}

fn calls(context: &Context) -> Result<()> {
    long_messages_arrive(context)?;
    let bmi = load_bmi(context)?;
    let parameters = format!("adapter={} listen={}", device(context)?, address(context));
    Loaded::new("kdapl_bmi_calls", &parameters)?.unload()?;
    bmi.unload()
}

fn reconnects(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    let parameters = format!("adapter={} listen={}", device(context)?, address(context));
    Loaded::new("kdapl_bmi_ends", &parameters)?.unload()?;
    bmi.unload()
}

fn faults(context: &Context) -> Result<()> {
    inject::set_up_for(context)?;
    let bmi = load_bmi(context)?;
    let parameters = format!("adapter={} listen={}", device(context)?, address(context));
    Loaded::new("kdapl_bmi_faults", &parameters)?.unload()?;
    bmi.unload()
}

/// Exports of the module.
const EXPORTS: &str = include_str!("../../../../../../bmi/kernel/glue.c");
/// Rows of the module that makes each call with failing allocations.
const ROWS: &str = include_str!("../../../../kernel/bmi_faults.c");

fn fault_rows(_context: &Context) -> Result<()> {
    let exports = EXPORTS.lines().filter_map(|line| line.strip_prefix("EXPORT_SYMBOL_NS_GPL("));
    let names: Vec<_> = exports.filter_map(|line| line.split(',').next()).collect();
    ensure!(names.len() > 15, "the exports are not found: {names:?}");
    // It allocates nothing, and ends a row of its own.
    let tried =
        |name: &&str| ROWS.contains(&format!("{{ \"{name}")) || *name == "bmi_unexpected_free";
    let missing: Vec<_> = names.iter().filter(|name| !tried(name)).collect();
    ensure!(missing.is_empty(), "without a row in bmi_faults.c: {missing:?}");
    Ok(())
}

fn unloads(context: &Context) -> Result<()> {
    for _ in 0..context.count(5).max(2) {
        let server = Server::start(context)?;
        let side = Side::open(context, &context.client, &Options::default())?;
        let peer = side.bmi.lookup(&server.address)?;
        let length = long(context, 100_000);
        request(&side, &peer, length, 1000)?;
        echo(context, &side, &peer, length)?;
        let got = side.bmi.alloc(length)?;
        let receive = side.context.receive(&peer, TO_CLIENT, &[got.whole()], 0)?;
        server.end()?;
        side.failed(receive, Failure::Reset)?;
    }
    Ok(())
}

/// Changes of Endpoints that a work item made: the work item, and the cause.
fn changes_in_work(text: &str) -> Vec<(String, String)> {
    let mut works = HashMap::new();
    let mut changes = Vec::new();
    for line in text.lines() {
        // Format: `comm-pid   [cpu] flags  time: event: fields`
        let Some((thread, rest)) = line.split_once(" [") else { continue };
        if let Some((_, work)) = rest.split_once("execute_start: work struct ") {
            let work = work.split(':').next().unwrap_or_default();
            works.insert(thread.trim(), work.to_string());
        } else if let Some(cause) = rest.split(" cause=").nth(1) {
            let cause = cause.split(" to=").next().unwrap_or_default();
            changes.extend(works.get(thread.trim()).map(|work| (work.clone(), cause.to_string())));
        }
    }
    changes
}

fn frees_elsewhere(context: &Context) -> Result<()> {
    const ROUNDS: u32 = 5;
    let recording = Recording::of_states_and_work()?;
    let server = Server::start(context)?;
    let client = Side::open(context, &context.client, &Options::default())?;
    let peer = client.bmi.lookup(&server.address)?;
    request(&client, &peer, 100, ROUNDS + 1)?;
    echo(context, &client, &peer, 100)?;
    let connected = count_of("ep")?;
    for _ in 0..ROUNDS {
        let other = Side::open(context, &context.client, &Options::default())?;
        let to_server = other.bmi.lookup(&server.address)?;
        request(&other, &to_server, 100, 1)?;
        echo(context, &other, &to_server, 100)?;
        drop((to_server, other));
        echo(context, &client, &peer, 100)?;
    }
    context.until("the Endpoints are freed", || Ok(count_of("ep")? == connected))?;
    let changes = changes_in_work(&recording.stop()?);
    server.end()?;
    let works = |wanted: &str| -> HashSet<_> {
        let found = changes.iter().filter(|(_, cause)| cause == wanted);
        found.map(|(work, _)| work.clone()).collect()
    };
    let (accepts, frees) = (works("ACCEPT"), works("FREE"));
    ensure!(!accepts.is_empty() && !frees.is_empty(), "nothing is recorded: {changes:?}");
    ensure!(accepts.is_disjoint(&frees), "a free delays the messages: {changes:?}");
    Ok(())
}
