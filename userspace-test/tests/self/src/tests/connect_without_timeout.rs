// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects with `DAT_TIMEOUT_INFINITE`, which end by the peer's answer or by the consumer only.

use super::connect::ends;
use super::ep_connect::accepted;
use super::psp::Side;
use super::tests;
use crate::cgroup::Cgroup;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, dto, same};
use crate::harness::skip;
use crate::hosts::{Count, Host};
use crate::machine::no_objects_left;
use anyhow::Result;
use libkdapl::{Close, ConnectionEvent, DtoOperation, DtoStatus, EpState};
use std::time::Duration;

tests! {
    #![Hosts, Transport]
    reject_is_an_answer, 60, "A connect without a time-out ends if nobody listens, or by the peer's reject";
    host_appears, 120, "A connect without a time-out to a host that is not there waits until it is";
    disconnected_while_waiting, 120, "A connect without a time-out that finds no host ends by a disconnect, and works after a reset";
    freed_while_waiting, 120, "An endpoint that is freed, and an IA that is closed, while a connect finds no host leave nothing behind";
    without_memory, 120, "Connects without a time-out of a process without memory start no OOM killer, and go on when there is memory";
}

/// Time after which an attempt has failed: `rdma_cm` resolves an address in four seconds.
const ATTEMPT: Duration = Duration::from_secs(6);

fn two_hosts(context: &Context) -> Result<()> {
    if context.settings.layout.hosts != Count::Two {
        return skip("only between two hosts a missing host is noticed soon");
    }
    Ok(())
}

/// Makes a host answer no requests for its link address, until the drop.
struct Silent<'a>(&'a Host);

impl<'a> Silent<'a> {
    fn new(host: &'a Host, peer: &Host) -> Result<Self> {
        host.command(&format!("ip link set {} arp off", host.netdev))?;
        let silent = Self(host);
        peer.command(&format!("ip neigh flush dev {}", peer.netdev))?;
        Ok(silent)
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.0.command(&format!("ip link set {} arp on", self.0.netdev));
    }
}

fn reject_is_an_answer(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let ends = ends(context)?;
    let (ep, address) = (&ends.client.ep, context.server_address());
    ep.connect(address, context.port(), None, &[])?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::NonPeerRejected)?;
    ep.reset()?;
    ep.connect(address, ends.listener.port, None, &[])?;
    ends.listener.request(context)?.reject(b"no")?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::PeerRejected)?;
    same("state", ep.status()?.state, EpState::Disconnected)?;
    context.quiet(&ends.client.connect)
}

/// Checks that an attempt fails without an event.
fn waits(context: &Context, end: &End) -> Result<()> {
    std::thread::sleep(ATTEMPT);
    same("state", end.ep.status()?.state, EpState::ActiveConnectionPending)?;
    context.quiet(&end.connect)?;
    context.quiet(&end.recv)
}

fn host_appears(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let ends = ends(context)?;
    for cookie in 0..3 {
        ends.client.receive(0, 64, cookie)?;
    }
    let silent = Silent::new(&context.server, &context.client)?;
    ends.client.ep.connect(context.server_address(), ends.listener.port, None, &[])?;
    waits(context, &ends.client)?;
    drop(silent);
    accepted(context, &ends)?;
    // The receives that were posted before the first attempt.
    for cookie in 0..3 {
        ends.server.send(0, 64, cookie)?;
        let event = context.next(&ends.client.recv)?;
        crate::expect::done(&event, DtoOperation::Receive, 64, cookie)?;
    }
    context.quiet(&ends.client.connect)
}

fn disconnected_while_waiting(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let ends = ends(context)?;
    let client = &ends.client;
    client.receive(0, 64, 1)?;
    client.ep.connect(context.client.nobody(), ends.listener.port, None, &[])?;
    waits(context, client)?;
    client.ep.disconnect(Close::Abrupt)?;
    dto(&context.next(&client.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    client.ep.reset()?;
    client.ep.connect(context.server_address(), ends.listener.port, None, &[])?;
    accepted(context, &ends)
}

fn freed_while_waiting(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let end = End::new(&context.open()?, Shape::default())?;
    let second = end.another_ep()?;
    for ep in [&end.ep, &second] {
        ep.connect(context.client.nobody(), context.port(), None, &[])?;
    }
    waits(context, &end)?;
    second.free()?;
    end.ia.close(Close::Abrupt)?;
    drop((second, end));
    no_objects_left(context.settings.scale)
}

/// Further addresses of a host, removed when dropped.
struct ManyAddresses<'a>(&'a Host);

impl<'a> ManyAddresses<'a> {
    fn new(host: &'a Host) -> Result<Self> {
        let this = Self(host);
        this.change("add")?;
        Ok(this)
    }

    fn change(&self, action: &str) -> Result<()> {
        let netdev = &self.0.netdev;
        (1..=60).try_for_each(|number| {
            self.0.command(&format!("ip addr {action} 10.9.{number}.1/32 dev {netdev}"))
        })
    }
}

impl Drop for ManyAddresses<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.change("del");
    }
}

/// The attempts are made by a worker of all users, so they must not wait for the process's memory.
/// The list of many addresses has pages of its own.
fn without_memory(context: &Context) -> Result<()> {
    two_hosts(context)?;
    context.rejects_arrive()?;
    const CONNECTS: usize = 16;
    let cgroup = Cgroup::enter("memory", "memory.max", "max")?;
    let client = Side::client(context)?;
    client.end.connect.resize(CONNECTS as i32)?;
    let eps = (0..CONNECTS).map(|_| client.end.another_ep()).collect::<Result<Vec<_>>>()?;
    let _addresses = ManyAddresses::new(&context.client)?;
    let silent = Silent::new(&context.server, &context.client)?;
    for ep in &eps {
        ep.connect(context.server_address(), context.port(), None, &[])?;
    }
    cgroup.leave()?;
    cgroup.write("memory.max", "0")?;
    let kills = || cgroup.number("memory.events", "oom");
    let before = kills()?;
    std::thread::sleep(ATTEMPT * 2);
    same("searches for a process to kill", kills()?, before)?;
    context.quiet(&client.end.connect)?;
    cgroup.write("memory.max", "max")?;
    drop(silent);
    for _ in 0..CONNECTS {
        connection(&context.next(&client.end.connect)?, ConnectionEvent::NonPeerRejected)?;
    }
    Ok(())
}
