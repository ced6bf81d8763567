// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Requests over iWARP that are posted while their connection ends, and complete before earlier
//! ones.
//!
//! siw completes a send once TCP has the data, and an RDMA read once the peer has answered.
//! `kdapl_disguise` holds the queue pair before it is moved to ERR.

use super::iwarp::{Device, ADDRESS, DEVICE};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, same};
use crate::hosts::Host;
use anyhow::{bail, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, EpState, Event};
use std::time::Duration;

tests! {
    before_disconnected, 60, "Over iWARP DISCONNECTED follows an RDMA read that a later send has overtaken";
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
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&client, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok((client, server))
}

fn before_disconnected(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let disguise = Loaded::new("kdapl_disguise", &format!("device={DEVICE}"))?;
    let (client, server) = connected(context, &device)?;
    server.receive(0, 8, 1)?;
    let _slow = SlowLoopback::new(&context.client, context.scaled(DELAY))?;
    disguise.set("hold_failures", 1)?;
    client.read(0, 8, server.lmr.remote_segment(0, 8), 2)?;
    std::thread::scope(|scope| -> Result<()> {
        let disconnect = scope.spawn(|| client.ep.disconnect(Close::Abrupt));
        let ends = || Ok(client.ep.status()?.state == EpState::DisconnectPending);
        context.until("the connection ends", ends)?;
        client.send(0, 8, 3)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 8, 3)?;
        disguise.set("hold_failures", 0)?;
        disconnect.join().expect("the thread ends")?;
        Ok(())
    })?;
    match context.next(&client.request)? {
        Event::Dto(dto) => same("read", (dto.operation, dto.cookie), (DtoOperation::RdmaRead, 2))?,
        event => bail!("expected the event of the read, got {event}"),
    }
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)
}
