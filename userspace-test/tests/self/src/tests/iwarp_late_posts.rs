// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Requests over iWARP that are posted while their connection ends, and complete before earlier
//! ones.
//!
//! siw completes a send once TCP has the data, and an RDMA read once the peer has answered.
//! `kdapl_disguise` holds the queue pair before it is moved to ERR.

use super::iwarp::{accepted, Device, ADDRESS, DEVICE};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, same};
use crate::hosts::Host;
use anyhow::{bail, Result};
use libkdapl::{Close, ConnectionEvent, EpState, Event};
use std::time::Duration;

tests! {
    before_disconnected, 120, "Over iWARP DISCONNECTED follows an RDMA read that a later send has overtaken";
}

/// Delay of packets in each direction (times the scale).
const DELAY: Duration = Duration::from_millis(300);

/// Delays the packets between addresses of one host until it is dropped.
struct SlowLoopback<'a>(&'a Host);

impl<'a> SlowLoopback<'a> {
    fn new(host: &'a Host, delay: Duration) -> Result<Self> {
        let milliseconds = delay.as_millis();
        host.command(&format!("tc qdisc add dev lo root netem delay {milliseconds}ms"))?;
        Ok(Self(host))
    }
}

impl Drop for SlowLoopback<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.0.command("tc qdisc del dev lo root");
    }
}

/// Connects two ends, each with one EVD.
fn connected(context: &Context, device: &Device) -> Result<(End, End)> {
    let (client_ia, server_ia) = (device.open()?, device.open()?);
    let listener = Listener::new(context, &server_ia)?;
    let shape = Shape { merged: true, ..Shape::default() };
    let (client, server) = (End::new(&client_ia, shape)?, End::new(&server_ia, shape)?);
    client.ep.connect(ADDRESS.into(), listener.port, Some(context.patience()), &[])?;
    accepted(context, &listener, &client, &server)?;
    Ok((client, server))
}

/// Holds queue pairs before they are moved to ERR, until it is dropped.
struct HeldFailures<'a>(&'a Loaded);

impl<'a> HeldFailures<'a> {
    fn new(disguise: &'a Loaded) -> Result<Self> {
        disguise.set("hold_failures", 1)?;
        Ok(Self(disguise))
    }
}

impl Drop for HeldFailures<'_> {
    fn drop(&mut self) {
        // The disguise lets them go on after two minutes in any case.
        let _ = self.0.set("hold_failures", 0);
    }
}

/// Returns the cookie of a DTO that has completed.
fn cookie(event: &Event) -> Result<u64> {
    match event {
        Event::Dto(dto) => Ok(dto.cookie),
        event => bail!("expected the event of a DTO, got {event}"),
    }
}

/// Posts a read, and a send while the connection ends. Returns whether the send has overtaken the
/// read. On a busy machine the peer may answer first.
fn overtakes(context: &Context, ends: &(End, End), disguise: &Loaded) -> Result<bool> {
    let (client, server) = ends;
    server.receive(0, 8, 1)?;
    let held = HeldFailures::new(disguise)?;
    client.read(0, 8, server.lmr.remote_segment(0, 8), 2)?;
    let first = std::thread::scope(|scope| -> Result<u64> {
        // Dropped before the thread is joined.
        let held = held;
        let disconnect = scope.spawn(|| client.ep.disconnect(Close::Abrupt));
        let ends = || Ok(client.ep.status()?.state == EpState::DisconnectPending);
        context.until("the connection ends", ends)?;
        client.send(0, 8, 3)?;
        let first = cookie(&context.next(&client.request)?)?;
        drop(held);
        disconnect.join().expect("the thread ends")?;
        Ok(first)
    })?;
    same("both DTOs", first + cookie(&context.next(&client.request)?)?, 2 + 3)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    Ok(first == 3)
}

fn before_disconnected(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let disguise = Loaded::new("kdapl_disguise", &format!("device={DEVICE}"))?;
    for doublings in 0..4 {
        let ends = connected(context, &device)?;
        let delay = context.scaled(DELAY * (1 << doublings));
        let _slow = SlowLoopback::new(&context.client, delay)?;
        if overtakes(context, &ends, &disguise)? {
            return Ok(());
        }
    }
    bail!("the answers to all reads have come before a later send was complete")
}
