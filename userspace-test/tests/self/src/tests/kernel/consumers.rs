// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests of modules that use kDAPL: an echo server, the disks of `docs/samples`, and a consumer in
//! Rust.

use super::super::tests;
use super::{device, Loaded};
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, connection_over, done, fails_saying, same};
use crate::harness::skip;
use crate::hosts::inside;
use crate::machine::command;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, DtoOperation};
use std::net::IpAddr;

tests! {
    rust_cno, 60, "In Rust, a CNO tells which dispatcher has an event, and the length of a queue changes";
    rust_service_points, 60, "In Rust, service points of each kind take requests, and endpoints tell their state and addresses";
    rust_gate, 60, "In Rust, events wait until an endpoint with a closed gate is ready";
    rust_handoff, 60, "In Rust, a request goes to another service point, and to that of no other user";
    rust_namespace, 60, "In Rust, an adapter is opened in a network namespace, and only in one that has its address";
    rust_atomic_posts, 60, "In Rust, each kind of post is made under a spinlock, by an RCU reader, with interrupts off and in interrupts";
    rust_full_queues, 60, "In Rust, endpoints post as many receives as they may have, and one after the other uses their place";
    rust_bh_upcalls, 60, "In Rust, upcalls in soft interrupts post, and dispatchers refuse handlers of the other kind";
    rust_frees, 60, "In Rust, a free that is refused leaves its object, which is freed once when it is not in use";
    rust_resets, 60, "In Rust, an endpoint has room for all its receives after resets whose events had none";
}

/// Sends a message to the echo server, and compares the reply.
fn echo_once(context: &Context, end: &End, number: usize) -> Result<()> {
    let length = 1 + (number * 977) % 4096;
    let sent = end.scramble(context);
    end.receive(0, 4096, 1)?;
    end.send(4096, length, 2)?;
    done(&context.next(&end.recv)?, DtoOperation::Receive, length as u64, 1)?;
    context.next(&end.request)?;
    let mut back = vec![0; length];
    end.lmr.buffer().read(0, &mut back);
    ensure!(back == sent[4096..4096 + length], "the reply differs from the message");
    Ok(())
}

fn connect_echo(context: &Context, port: u64) -> Result<End> {
    let end = End::new(&context.open()?, Shape { memory: 8192, ..Shape::default() })?;
    end.ep.connect(context.server_address(), port, Some(context.patience()), &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    Ok(end)
}

pub fn echo_server(context: &Context) -> Result<()> {
    let port = context.port();
    let server = Loaded::new("kdapl_echo", &format!("device={} port={port}", device(context)?))?;
    let ends = (0..4).map(|_| connect_echo(context, port)).collect::<Result<Vec<_>>>()?;
    let rounds = context.count(50).max(4) as usize;
    for number in 0..rounds {
        for end in &ends {
            echo_once(context, end, number)?;
        }
    }
    context.until("all messages are echoed", || {
        Ok(server.parameter("messages")? == (rounds * ends.len()) as u64)
    })?;
    same("connections", server.parameter("connections")?, ends.len() as u64)?;
    drop(ends);
    context.until("the server has seen all disconnects", || {
        Ok(server.parameter("connections")? == 0)
    })?;
    server.unload()
}

pub fn consumer_unload(context: &Context) -> Result<()> {
    for _ in 0..context.count(5).max(2) {
        let port = context.port();
        let server =
            Loaded::new("kdapl_echo", &format!("device={} port={port}", device(context)?))?;
        let end = connect_echo(context, port)?;
        // These messages are in flight when the server goes.
        for cookie in 0..8 {
            end.receive(0, 4096, cookie)?;
            end.send(4096, 64, 100 + cookie)?;
        }
        server.unload().context("unloading")?;
        connection_over(&context.next(&end.connect)?)?;
    }
    Ok(())
}

/// Disks of `docs/samples`.
const DISKS: [&str; 2] = ["kdapl_rust_block", "kdapl_block"];

/// Loads a disk that is served at a port, and that tests the server at another port before.
fn load_disk(
    context: &Context,
    name: &'static str,
    port: u64,
    tested: Option<u64>,
) -> Result<Loaded> {
    let _ = device(context)?;
    let IpAddr::V4(address) = context.server_address() else {
        return skip("the samples support IPv4 addresses only");
    };
    if context.client.is_iwarp() {
        return skip("over iWARP memory is opened to peers by RMRs only");
    }
    let address = u32::from(address);
    let peer = tested.map_or(String::new(), |port| format!("peer={address} peer_port={port}"));
    Loaded::new(name, &format!("address={address} port={port} {peer}"))
}

pub fn block_samples(context: &Context) -> Result<()> {
    for server in DISKS {
        let (own, other) = (context.port(), context.port());
        let served = load_disk(context, server, own, Some(own)).context(server)?;
        for client in DISKS.into_iter().filter(|client| *client != server) {
            load_disk(context, client, other, Some(own)).context(client)?.unload()?;
        }
        served.unload()?;
    }
    Ok(())
}

/// Runs a scenario of `userspace-test/tests/kernel/rust_consumer`.
fn rust_scenario(context: &Context, scenario: u32) -> Result<()> {
    let _ = device(context)?;
    let IpAddr::V4(address) = context.server_address() else {
        return skip("the module supports IPv4 addresses only");
    };
    let (address, port) = (u32::from(address), context.port());
    let rounds = context.count(20).max(2);
    let iwarp = u32::from(context.client.is_iwarp());
    let parameters =
        format!("address={address} port={port} scenario={scenario} rounds={rounds} iwarp={iwarp}");
    Loaded::new("kdapl_rust_consumer", &parameters)?.unload()
}

/// A network namespace without devices, which is deleted when dropped.
struct Empty;

impl Empty {
    const NAME: &'static str = "kdapl-empty";

    fn new() -> Result<Self> {
        command(&format!("ip netns add {}", Self::NAME))?;
        Ok(Self)
    }
}

impl Drop for Empty {
    fn drop(&mut self) {
        let _ = command(&format!("ip netns del {}", Self::NAME));
    }
}

fn rust_namespace(context: &Context) -> Result<()> {
    const SCENARIO: u32 = 16;
    rust_scenario(context, SCENARIO)?;
    let _empty = Empty::new()?;
    let elsewhere = inside(Some(Empty::NAME), || rust_scenario(context, SCENARIO))?;
    fails_saying("No such device", elsewhere)
}

pub fn rust_close(context: &Context) -> Result<()> {
    rust_scenario(context, 0)?;
    rust_scenario(context, 1)
}

pub fn rust_free_in_upcall(context: &Context) -> Result<()> {
    rust_scenario(context, 2)
}

pub fn rust_free_dispatcher(context: &Context) -> Result<()> {
    rust_scenario(context, 3)
}

pub fn rust_segments(context: &Context) -> Result<()> {
    rust_scenario(context, 4)
}

pub fn rust_bound_memory(context: &Context) -> Result<()> {
    rust_scenario(context, 5)
}

pub fn rust_shared_receives(context: &Context) -> Result<()> {
    rust_scenario(context, 6)
}

pub fn rust_registered_memory(context: &Context) -> Result<()> {
    rust_scenario(context, 7)
}

pub fn rust_dropped_registration(context: &Context) -> Result<()> {
    rust_scenario(context, 8)
}

pub fn rust_late_invalidation(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a second invalidation may end the connection");
    }
    rust_scenario(context, 9)
}

pub fn rust_close_beside_free(context: &Context) -> Result<()> {
    rust_scenario(context, 10)
}

/// The driver destroys no region meanwhile.
pub fn rust_lost_memory(context: &Context) -> Result<()> {
    rust_scenario(context, 11)
}

fn rust_cno(context: &Context) -> Result<()> {
    rust_scenario(context, 12)
}

fn rust_service_points(context: &Context) -> Result<()> {
    rust_scenario(context, 13)
}

fn rust_gate(context: &Context) -> Result<()> {
    rust_scenario(context, 14)
}

fn rust_handoff(context: &Context) -> Result<()> {
    rust_scenario(context, 15)
}

fn rust_atomic_posts(context: &Context) -> Result<()> {
    rust_scenario(context, 17)
}

fn rust_full_queues(context: &Context) -> Result<()> {
    rust_scenario(context, 18)
}

fn rust_bh_upcalls(context: &Context) -> Result<()> {
    rust_scenario(context, 19)
}

fn rust_frees(context: &Context) -> Result<()> {
    rust_scenario(context, 20)
}

fn rust_resets(context: &Context) -> Result<()> {
    rust_scenario(context, 21)
}

/// Requests of the first block, which `docs/samples/rust_block.rs` writes to this end's memory.
fn flood_disk(end: &End) -> Result<()> {
    let memory = end.lmr.remote_segment(4096, 4096);
    let mut request = [0; 24];
    request[8..16].copy_from_slice(&memory.address.to_ne_bytes());
    request[16..20].copy_from_slice(&4096_u32.to_ne_bytes());
    request[20..].copy_from_slice(&memory.context.to_ne_bytes());
    end.lmr.buffer().write(0, &request);
    for cookie in 0..4 {
        end.receive(64, 0, cookie)?;
    }
    end.send(0, request.len(), 100)
}

pub fn rust_consumer_unload(context: &Context) -> Result<()> {
    for _ in 0..context.count(5).max(2) {
        let port = context.port();
        let server = load_disk(context, "kdapl_rust_block", port, None)?;
        let ends = (0..4).map(|_| connect_echo(context, port)).collect::<Result<Vec<_>>>()?;
        ends.iter().try_for_each(flood_disk)?;
        server.unload().context("unloading")?;
        for end in &ends {
            connection_over(&context.next(&end.connect)?)?;
        }
    }
    Ok(())
}
