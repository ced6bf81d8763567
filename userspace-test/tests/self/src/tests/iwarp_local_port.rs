// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Local ports of connects over iWARP that TCP sockets use already.
//!
//! `rdma_cm` chooses the local port among those that no ID of its own has. siw and erdma then bind
//! a TCP socket to it.

use super::connect_routes::Ports;
use super::iwarp::{accepted, Device, ADDRESS};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, same};
use anyhow::{Context as _, Result};
use libkdapl::{Close, ConnectionEvent, EpState};
use std::cell::RefCell;
use std::net::{IpAddr, TcpListener};
use std::ops::RangeInclusive;
use std::time::Duration;

tests! {
    in_use, 120, "A connect over iWARP takes another local port if a TCP socket uses its own";
    all_in_use, 60, "A connect over iWARP ends if TCP sockets use all local ports";
    without_timeout, 60, "A connect over iWARP without a time-out waits for a local port, or ends with a disconnect";
}

/// Listening sockets at local ports of the device's address.
struct Sockets(RefCell<Vec<TcpListener>>);

impl Sockets {
    fn at(mut ports: RangeInclusive<u16>) -> Result<Self> {
        let sockets = ports.try_fold(Vec::new(), |mut sockets, port| -> Result<_> {
            let socket = TcpListener::bind((IpAddr::from(ADDRESS), port));
            sockets.push(socket.with_context(|| format!("binding to port {port}"))?);
            Ok(sockets)
        })?;
        Ok(Self(sockets.into()))
    }

    fn close(&self) {
        self.0.take();
    }
}

/// Half of the ports are in use.
fn in_use(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let (client_ia, server_ia) = (device.open()?, device.open()?);
    let listener = Listener::new(context, &server_ia)?;
    let _ports = Ports::of(&context.client, "40000 40015")?;
    let _sockets = Sockets::at(40_000..=40_007)?;
    for round in 0..context.count(100).max(20) {
        let tell = || format!("connect {round}");
        let client = End::new(&client_ia, Shape::default())?;
        let server = End::new(&server_ia, Shape::default())?;
        client.ep.connect(ADDRESS.into(), listener.port, Some(context.patience()), &[])?;
        let request = listener.request(context);
        // A connect that failed has sent no request, and its event says why.
        let request = request.with_context(|| format!("event: {:?}", client.connect.dequeue()));
        request.with_context(tell)?.accept(&server.ep, &[])?;
        for end in [&client, &server] {
            let event = context.next(&end.connect).with_context(tell)?;
            connection(&event, ConnectionEvent::Established).with_context(tell)?;
        }
    }
    Ok(())
}

/// A listener, and connects from its adapter whose local ports are all in use.
struct NoPort<'a> {
    client: End,
    server: End,
    listener: Listener,
    sockets: Sockets,
    _ports: Ports<'a>,
    _device: Device,
}

impl<'a> NoPort<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let _device = Device::of_client(context)?;
        let ia = _device.open()?;
        Ok(Self {
            client: End::new(&ia, Shape::default())?,
            server: End::new(&ia, Shape::default())?,
            listener: Listener::new(context, &ia)?,
            _ports: Ports::of(&context.client, "40000 40003")?,
            sockets: Sockets::at(40_000..=40_003)?,
            _device,
        })
    }

    fn connect(&self, timeout: Option<Duration>) -> Result<()> {
        Ok(self.client.ep.connect(ADDRESS.into(), self.listener.port, timeout, &[])?)
    }
}

fn all_in_use(context: &Context) -> Result<()> {
    let scene = NoPort::new(context)?;
    let patience = Some(context.patience());
    scene.connect(patience)?;
    connection(&context.next(&scene.client.connect)?, ConnectionEvent::NonPeerRejected)?;
    // The endpoint is as after any failed connect.
    scene.client.ep.reset()?;
    scene.sockets.close();
    scene.connect(patience)?;
    accepted(context, &scene.listener, &scene.client, &scene.server)
}

fn without_timeout(context: &Context) -> Result<()> {
    let scene = NoPort::new(context)?;
    let ep = &scene.client.ep;
    scene.connect(None)?;
    // Some attempts are at once, and then one follows after a quarter of a second.
    std::thread::sleep(context.scaled(Duration::from_millis(400)));
    same("state", ep.status()?.state, EpState::ActiveConnectionPending)?;
    ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&scene.client.connect)?, ConnectionEvent::Disconnected)?;
    ep.reset()?;
    scene.connect(None)?;
    std::thread::sleep(context.scaled(Duration::from_millis(100)));
    scene.sockets.close();
    accepted(context, &scene.listener, &scene.client, &scene.server)
}
