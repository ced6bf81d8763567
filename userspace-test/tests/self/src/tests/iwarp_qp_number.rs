// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Frees endpoints between two steps of a driver that knows their queue pairs by number only.
//!
//! `rdma_cm` gets the number of a queue pair, and over iWARP `iw_cm` looks up the queue pair by
//! this number later. If the endpoint is freed in between, the next queue pair may have the same
//! number.
//!
//! `kdapl_disguise` delays the lookup, or the next step of `iw_cm` with the queue pair. It counts
//! queue pairs that are destroyed meanwhile.

use super::iwarp::{tcp_listener, Device, ADDRESS, DEVICE};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, done, same};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, Cr, DtoOperation, Ep, EpState, Evd, EvdFlags, Event,
};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    freed_while_connecting, 240, "An endpoint that is freed while it connects over iWARP does not affect the next endpoint";
    freed_while_accepting, 240, "An endpoint that is freed while it accepts over iWARP does not affect the next endpoint";
}

/// The longest delay (times the scale).
const MAX_DELAY: Duration = Duration::from_millis(6);
/// Parameters of the delayed steps.
const DELAYS: [&str; 2] = ["before_us", "between_us"];

/// Two ends on one device, a listener, and the module that delays.
struct DelayedPair<'a> {
    context: &'a Context,
    client: End,
    server: End,
    requests: Evd,
    port: u64,
    disguise: Loaded,
}

impl<'a> DelayedPair<'a> {
    fn new(context: &'a Context, device: &Device) -> Result<Self> {
        let disguise = Loaded::new("kdapl_disguise", &format!("device={DEVICE}"))?;
        let (client_ia, server_ia) = (device.open()?, device.open()?);
        Ok(Self {
            context,
            client: End::new(&client_ia, Shape::default())?,
            server: End::new(&server_ia, Shape::default())?,
            requests: server_ia.create_evd(EvdFlags::CR, 128)?,
            port: context.port(),
            disguise,
        })
    }

    /// Runs `round` with growing delays. Each round connects or accepts an endpoint, and frees it
    /// during the delay.
    fn sweep(&self, mut round: impl FnMut(Delay<'_>) -> Result<()>) -> Result<()> {
        let rounds = self.context.count(400).max(60);
        let longest = self.context.scaled(MAX_DELAY).as_micros() as u64;
        (0..rounds).try_for_each(|number| {
            let us = longest * (number + 1) / rounds;
            // The delay must leave time for the next endpoint too.
            let pause = Duration::from_micros(self.context.rng().u64(0..=us / 4));
            let what = DELAYS[number as usize % DELAYS.len()];
            let delay = Delay { scene: self, what, us, pause };
            let tell = || format!("round {number}, {what}={us}, freed after {pause:?}");
            round(delay).with_context(tell)?;
            let pulled = self.disguise.parameter("pulled")?;
            same("queue pairs destroyed while they were looked up", pulled, 0).with_context(tell)
        })
    }

    fn request(&self) -> Result<Cr> {
        match self.context.next(&self.requests)? {
            Event::ConnectionRequest { cr, .. } => Ok(cr),
            event => bail!("expected a request, got {event}"),
        }
    }

    /// Discards the events of ended connections.
    fn forget(&self) {
        let (client, server) = (&self.client, &self.server);
        for evd in [&client.connect, &client.recv, &server.connect, &server.recv] {
            while evd.dequeue().is_ok() {}
        }
    }

    /// Connects two new endpoints, and transfers a message. They must get the events of their own
    /// connection only.
    fn next_works(&self) -> Result<()> {
        let (client, server) = (&self.client, &self.server);
        let (ep, peer) = (client.another_ep()?, server.another_ep()?);
        let flags = CompletionFlags::default();
        ep.post_recv(&[client.lmr.segment(0, 64)], 3, flags)?;
        peer.post_recv(&[server.lmr.segment(0, 64)], 4, flags)?;
        ep.connect(ADDRESS.into(), self.port, Some(self.context.patience()), &[])?;
        // A connect that failed sends no request: its event says more than the missing request.
        let request =
            self.request().with_context(|| format!("caller: {:?}", client.connect.dequeue()));
        request?.accept(&peer, &[])?;
        for end in [client, server] {
            connection(&self.context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        ep.post_send(&[client.lmr.segment(0, 64)], 5, flags)?;
        done(&self.context.next(&server.recv)?, DtoOperation::Receive, 64, 4)?;
        done(&self.context.next(&client.request)?, DtoOperation::Send, 64, 5)?;
        ep.free()?;
        peer.free()?;
        self.forget();
        Ok(())
    }
}

/// One delay of a sweep.
struct Delay<'a> {
    scene: &'a DelayedPair<'a>,
    what: &'static str,
    us: u64,
    pause: Duration,
}

impl Delay<'_> {
    /// Delays the lookup that `call` causes, and returns during the delay.
    fn within(&self, call: impl FnOnce() -> Result<()>) -> Result<()> {
        let disguise = &self.scene.disguise;
        let before = disguise.parameter("lookups")?;
        disguise.set(self.what, self.us)?;
        call()?;
        let begun = || Ok(disguise.parameter("lookups")? > before);
        self.scene.context.until("the lookup begins", begun)?;
        std::thread::sleep(self.pause);
        Ok(())
    }

    /// Frees the endpoint while another thread disconnects it. The disconnect has cancelled the
    /// connect by then, and waits for the lookup until after the next connection was made.
    fn free(&self, ep: &Ep) -> Result<()> {
        let before = ep.status()?.state;
        std::thread::scope(|scope| -> Result<()> {
            // The endpoint may be freed by then.
            let disconnect = scope.spawn(|| drop(ep.disconnect(Close::Abrupt)));
            // The attempt may have ended before.
            while before != EpState::Disconnected && ep.status()?.state == before {
                std::hint::spin_loop();
            }
            ep.free()?;
            self.scene.forget();
            let outcome = self.scene.next_works();
            disconnect.join().expect("the thread ends");
            outcome
        })
    }
}

/// The first peer is a socket that closes the connection. It would thus end the connection of any
/// queue pair that is mistaken for the first one. (A siw listener does not survive callers that
/// close.)
fn freed_while_connecting(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let scene = DelayedPair::new(context, &device)?;
    let _psp = scene.server.ia.create_psp(scene.port, &scene.requests)?;
    let (socket, port) = tcp_listener(context)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| hang_up(&socket, &stop));
        let result = scene.sweep(|delay| give_up(&delay, port));
        stop.store(true, Ordering::Relaxed);
        thread.join().expect("the thread ends").and(result)
    })
}

/// Accepts each TCP connection, and closes it.
fn hang_up(socket: &TcpListener, stop: &AtomicBool) -> Result<()> {
    socket.set_nonblocking(true)?;
    while !stop.load(Ordering::Relaxed) {
        let peer = socket.accept();
        ensure!(
            peer.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::WouldBlock),
            "{peer:?}"
        );
        // siw does not survive a peer that closes before `siw_connect` has returned.
        std::thread::sleep(Duration::from_millis(2));
        drop(peer);
    }
    // Otherwise closing the socket drops the connections, with a lock that siw takes incorrectly.
    while socket.accept().is_ok() {}
    Ok(())
}

/// Connects an endpoint, and frees it meanwhile.
fn give_up(delay: &Delay<'_>, port: u64) -> Result<()> {
    let scene = delay.scene;
    let ep = scene.client.another_ep()?;
    delay
        .within(|| Ok(ep.connect(ADDRESS.into(), port, Some(scene.context.patience()), &[])?))?;
    let outcome = delay.free(&ep);
    scene.forget();
    outcome
}

fn freed_while_accepting(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let scene = DelayedPair::new(context, &device)?;
    let _psp = scene.server.ia.create_psp(scene.port, &scene.requests)?;
    // The events of the caller's endpoints are not checked.
    let caller = End::new(&scene.client.ia, Shape::default())?;
    scene.sweep(|delay| accept_and_give_up(&delay, &caller))
}

/// Accepts a request, and frees the endpoint meanwhile.
fn accept_and_give_up(delay: &Delay<'_>, caller: &End) -> Result<()> {
    let scene = delay.scene;
    let (ep, peer) = (caller.another_ep()?, scene.server.another_ep()?);
    ep.connect(ADDRESS.into(), scene.port, Some(scene.context.patience()), &[])?;
    let mut cr = scene.request()?;
    std::thread::scope(|scope| -> Result<()> {
        let mut accept = None;
        delay.within(|| {
            // The outcome depends on which call is first.
            accept = Some(scope.spawn(|| drop(cr.accept(&peer, &[]))));
            Ok(())
        })?;
        let outcome = delay.free(&peer);
        drop(accept.map(std::thread::ScopedJoinHandle::join));
        ep.free()?;
        while caller.connect.dequeue().is_ok() {}
        outcome
    })
}
