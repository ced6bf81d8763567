// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Several connections between `kdapl_bmi.ko` and its peers.

use super::super::hostile::{connect, hello};
use super::super::{address, long, Side};
use super::peers::{Speaker, CTS, RTS};
use super::{client_ends, device, echo, load, load_bmi, request, tests};
use super::{Loaded, Server, TO_CLIENT, TO_SERVER};
use crate::context::Context;
use crate::expect::same;
use crate::machine::count_of;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, Segment};
use libkdapl_bmi::Options;
use std::fs;

tests! {
    #[Transport]
    with_itself, 240, "kdapl_bmi.ko divides messages over four connections between two instances, keeps their order, and ends with them";
    #[Transport]
    user_client, 120, "kdapl_bmi.ko divides messages over as many connections as it and a process want";
    #[Transport]
    user_server, 120, "kdapl_bmi.ko divides messages over four connections to a process";
    #[Long]
    many, 240, "kdapl_bmi.ko serves 130 peers by four connections each, more than its event queue has room for at first";
    #[Transport]
    client_gone, 60, "kdapl_bmi.ko forgets a process that ends amid a message on four connections, and serves others";
    #[Transport]
    one_ends, 60, "One of two connections ends amid a divided message: kdapl_bmi.ko ends the other one, and serves others";
}

/// Parameters of instances in the kernel.
pub(super) const FOUR: &str = "rails=4 stripe_from=8192";

pub(super) fn options(rails: u8, pull: bool) -> Options {
    Options { rails, pull, stripe_from: 8192, ..Options::default() }
}

/// Waits until there are so many more Endpoints than `before`: two for each connection.
fn has_connections(context: &Context, before: u64, count: u64) -> Result<()> {
    let wanted = before + 2 * count;
    context.until("all connections are there", || Ok(count_of("ep")? == wanted))?;
    same("Endpoints", count_of("ep")?, wanted)
}

const STAGE: &str = "/sys/module/kdapl_bmi_rails/parameters/stage";

fn with_itself(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    for push in ["N", "Y"] {
        let (device, before) = (device(context)?, count_of("ep")?);
        let parameters =
            format!("adapter={device} listen={} rails=4 push={push}", address(context));
        let loading = std::thread::spawn(move || Loaded::new("kdapl_bmi_rails", &parameters));
        context.until("the instances are connected", || {
            let stage = fs::read_to_string(STAGE).unwrap_or_default();
            Ok(loading.is_finished() || stage.trim() == "1")
        })?;
        let counted = has_connections(context, before, 4);
        // Without the file, the load has failed.
        let _ = fs::write(STAGE, "2");
        let loaded = loading.join().expect("the thread panics")?;
        counted.and_then(|()| loaded.unload()).with_context(|| format!("push {push}"))?;
    }
    bmi.unload()
}

fn user_client(context: &Context) -> Result<()> {
    let server = Server::start_with(context, FOUR)?;
    for (rails, pull) in [(4, true), (4, false), (3, false), (1, false)] {
        let before = count_of("ep")?;
        let side = Side::open(context, &context.client, &options(rails, pull))?;
        let peer = side.bmi.lookup(&server.address)?;
        request(&side, &peer, 100, 1)?;
        echo(context, &side, &peer, 100)?;
        has_connections(context, before, rails.into())?;
        for length in [16_337, 40_000, 1_000_001].map(|length| long(context, length)) {
            request(&side, &peer, length, 3)?;
            for _ in 0..3 {
                echo(context, &side, &peer, length)?;
            }
        }
        drop((peer, side));
        context.until("the connections end", || Ok(count_of("ep")? == before))?;
    }
    server.end()
}

fn many(context: &Context) -> Result<()> {
    const PEERS: u64 = 130;
    let (server, before) = (Server::start_with(context, FOUR)?, count_of("ep")?);
    let side = Side::open(context, &context.client, &options(4, true))?;
    let peers = (0..PEERS).map(|_| side.bmi.lookup(&server.address));
    let peers = peers.collect::<libkdapl_bmi::Result<Vec<_>>>()?;
    for peer in &peers {
        request(&side, peer, 100, 1)?;
        echo(context, &side, peer, 100)?;
    }
    has_connections(context, before, 4 * PEERS)?;
    drop((peers, side));
    context.until("the connections end", || Ok(count_of("ep")? == before))?;
    server.end()
}

/// Serves a request of the sample's client, after whose first message there are `count`
/// connections.
fn serve(context: &Context, side: &Side, before: u64, count: u64) -> Result<()> {
    let message = side.unexpected()?;
    let word = |at: usize| message.bytes()[at..at + 4].try_into().map(u32::from_le_bytes);
    let (length, rounds) = (word(0)? as usize, word(4)?);
    let memory = side.bmi.alloc(length)?;
    for round in 0..rounds {
        let receive = side.context.receive(&message.peer, TO_SERVER, &[memory.whole()], 0)?;
        side.done(receive, length)?;
        if round == 0 {
            has_connections(context, before, count)?;
        }
        let send = side.context.send(&message.peer, TO_CLIENT, &[memory.whole()], 0)?;
        side.answered(send, length, round + 1 == rounds)?;
    }
    Ok(())
}

fn user_server(context: &Context) -> Result<()> {
    let bmi = load_bmi(context)?;
    let address = address(context);
    for (push, registered, count) in [("N", "Y", 4), ("Y", "Y", 2), ("Y", "N", 4)] {
        let listening = Options { listen: Some(address.clone()), ..options(count, push == "N") };
        let side = Side::open(context, &context.server, &listening)?;
        let (before, length) = (count_of("ep")?, long(context, 1_000_001));
        let parameters = format!(
            "{FOUR} push={push} registered={registered} peer={address} length={length} rounds=5"
        );
        let other = context.new_for_thread();
        std::thread::scope(|scope| {
            let served = scope.spawn(move || serve(&other, &side, before, count.into()));
            load(context, &parameters).and_then(Loaded::unload).with_context(|| parameters)?;
            served.join().expect("the server panics")
        })?;
    }
    bmi.unload()
}

fn client_gone(context: &Context) -> Result<()> {
    client_ends(context, FOUR, &options(4, true))?;
    client_ends(context, FOUR, &options(4, false))
}

/// Connects two rails to a server.
fn two_rails<'a>(context: &'a Context, address: &str) -> Result<(Speaker<'a>, Speaker<'a>)> {
    let mut hello = hello();
    hello[6] = 2;
    let first = Speaker::with(context, address, hello.clone())?;
    let answer = first.end.ep.private_data()?;
    ensure!(answer.get(6) == Some(&4), "the answer of a server with four rails: {answer:02x?}");
    hello[7] = 1;
    hello[32..48].copy_from_slice(&answer[32..48]);
    let second = Speaker::with(context, address, hello.clone())?;
    // A rail joins once, and a session of its own only.
    let mut foreign = hello.clone();
    foreign[7] = 2;
    foreign[32] ^= 1;
    for wrong in [hello, foreign] {
        let (event, _) = connect(context, address, &wrong)?;
        same("answer to a rail that may not join", event, ConnectionEvent::PeerRejected)?;
    }
    Ok((first, second))
}

fn one_ends(context: &Context) -> Result<()> {
    const LENGTH: u32 = 100_000;
    let server = Server::start_with(context, FOUR)?;
    let before = count_of("ep")?;
    for has_written in [false, true] {
        let (first, second) = two_rails(context, &server.address)?;
        first.request(LENGTH, 1)?;
        first.say(RTS, TO_SERVER, LENGTH.into(), &[])?;
        let cts = first.hear(CTS)?;
        if has_written {
            write_a_stripe(&first, &cts)?;
        }
        second.end.ep.disconnect(Close::Abrupt)?;
        first.is_broken()?;
        drop((first, second));
        context.until("the connections are forgotten", || Ok(count_of("ep")? == before))?;
        let side = Side::open(context, &context.client, &options(4, false))?;
        let peer = side.bmi.lookup(&server.address)?;
        request(&side, &peer, 50_000, 1)?;
        echo(context, &side, &peer, long(context, 50_000))?;
    }
    context.until("the messages of others are counted", || Ok(server.echoed()? == 2))?;
    server.end()
}

/// Writes the first half of the message that a CTS describes, and says so.
fn write_a_stripe(speaker: &Speaker, cts: &[u8]) -> Result<()> {
    ensure!(cts.len() >= 64, "a CTS without a descriptor: {cts:02x?}");
    let word = |at: usize| cts[at..at + 4].try_into().map(u32::from_le_bytes);
    let to = Segment {
        address: u64::from_le_bytes(cts[48..56].try_into()?),
        length: 4096,
        context: word(60)?,
    };
    let from = [speaker.end.lmr.segment(8192, 4096)];
    speaker.end.ep.post_rdma_write(&from, to, 2, CompletionFlags::default())?;
    speaker.succeeds()?;
    speaker.say_done(cts, 4096)
}
