// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages that arrive in a shared receive queue (SRQ), for several endpoints.

use super::tests;
use crate::context::Context;
use crate::end::{every_privilege, End, Listener, Shape};
use crate::expect::{connection, connection_over, done, refused_as, same};
use crate::machine::{count_of, DeviceGuard};
use crate::peer::Peer;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    AsyncEvent, Buffer, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpConfig, Evd,
    EvdFlags, Event, Ia, Lmr, Pz, Srq, Subtype, Type,
};

tests! {
    #[Address, Link, Transport]
    counters, 30, "An SRQ counts a receive until its message arrives and its event is taken";
    #[Address, Link, Transport]
    right_endpoint, 60, "A receive names the endpoint whose message arrived, and its own cookie";
    #[Address, Link, Transport]
    low_watermark, 30, "The low watermark is reported once for each time that it is set";
    #[Address, Link, Transport]
    lengthened, 60, "An SRQ is lengthened while its endpoints receive";
    #[Address, Transport]
    ends_in_traffic, 120, "Endpoints are disconnected and freed amid traffic, and others go on";
    #[Address, Link, Transport]
    reset, 60, "An endpoint is reset and connects again, with the same SRQ";
    #[Address, Transport]
    full_evd, 60, "Messages wait in the SRQ's completion queue while the EVD is full";
    #[Address, Transport]
    closed_in_traffic, 60, "An adapter is closed while its SRQ receives, and nothing is left";
    #[Address, Transport]
    killed_in_traffic, 60, "A process is killed while its SRQ receives, and nothing is left";
    #[Transport]
    many_endpoints, 120, "Many endpoints use one SRQ and one EVD";
}

tests! {
    REMOVAL:
    removed, 60, "A device is removed while an SRQ has receives and a connection";
}

/// Server with an SRQ.
pub struct Server {
    pub srq: Srq,
    pub lmr: Lmr,
    pub recv: Evd,
    pub request: Evd,
    pub connect: Evd,
    pub pz: Pz,
    pub listener: Listener,
    pub ia: Ia,
}

/// Bytes of a message.
pub const MESSAGE: usize = 256;

impl Server {
    pub fn new(context: &Context, receives: u32, qlen: i32) -> Result<Self> {
        Self::on(context, receives, qlen, context.port())
    }

    fn on(context: &Context, receives: u32, qlen: i32, port: u64) -> Result<Self> {
        let ia = context.open_server()?;
        let pz = ia.create_pz()?;
        Ok(Self {
            srq: ia.create_srq(&pz, receives, 1)?,
            lmr: ia.register(&pz, Buffer::new(64 << 10)?, every_privilege(&ia)?)?,
            recv: ia.create_evd(EvdFlags::DTO, qlen)?,
            request: ia.create_evd(EvdFlags::DTO, 64)?,
            connect: ia.create_evd(EvdFlags::CONNECTION, 64)?,
            pz,
            listener: Listener::on(&ia, port)?,
            ia,
        })
    }

    /// As [`Server::new`], with one EVD for all events.
    pub fn merged(context: &Context, receives: u32) -> Result<Self> {
        let server = Self::new(context, receives, 1)?;
        let streams = EvdFlags::DTO | EvdFlags::CONNECTION;
        let all = server.ia.create_evd(streams, 2 * receives as i32)?;
        Ok(Self { recv: all.clone(), request: all.clone(), connect: all, ..server })
    }

    pub fn post(&self, cookies: impl IntoIterator<Item = u64>) -> Result<()> {
        for cookie in cookies {
            let offset = cookie as usize * MESSAGE % (64 << 10);
            self.srq.post_recv(&[self.lmr.segment(offset, MESSAGE)], cookie)?;
        }
        Ok(())
    }

    pub fn ep(&self) -> Result<Ep> {
        Ok(self.ia.create_ep_with(&EpConfig {
            pz: Some(&self.pz),
            recv: Some(&self.recv),
            request: Some(&self.request),
            connect: Some(&self.connect),
            srq: Some(&self.srq),
            attr: Some(EpAttr { max_request_dtos: 4, ..Default::default() }),
        })?)
    }

    /// Connects a new client to `ep`.
    pub fn client(&self, context: &Context, ia: &Ia, ep: &Ep) -> Result<End> {
        let client = End::new(ia, Shape::default())?;
        self.connect(context, &client, ep)?;
        Ok(client)
    }

    pub fn connect(&self, context: &Context, client: &End, ep: &Ep) -> Result<()> {
        let patience = Some(context.patience());
        client.ep.connect(context.server_address(), self.listener.port, patience, &[])?;
        self.listener.request(context)?.accept(ep, &[])?;
        connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
        connection(&context.next(&self.connect)?, ConnectionEvent::Established)
    }

    /// Checks the numbers of available and of outstanding receives.
    fn has(&self, context: &Context, available: u32, outstanding: u32) -> Result<()> {
        let mut last = (0, 0);
        context
            .until("the counters", || {
                let query = self.srq.query()?;
                last = (query.available, query.outstanding);
                Ok(last == (available, outstanding))
            })
            .with_context(|| format!("{last:?}, expected {:?}", (available, outstanding)))
    }

    /// Takes the receive of a message, which `ep` has received.
    pub fn takes(&self, context: &Context, ep: &Ep, cookie: u64) -> Result<()> {
        let event = context.next(&self.recv)?;
        done(&event, DtoOperation::Receive, MESSAGE as u64, cookie)?;
        match event {
            Event::Dto(dto) => same("endpoint", dto.ep, ep.handle()),
            other => anyhow::bail!("expected a receive, got {other}"),
        }
    }
}

pub fn send(context: &Context, client: &End) -> Result<()> {
    client.send(0, MESSAGE, 9)?;
    done(&context.next(&client.request)?, DtoOperation::Send, MESSAGE as u64, 9)?;
    Ok(())
}

fn counters(context: &Context) -> Result<()> {
    let server = Server::new(context, 10, 16)?;
    server.post(1..=3)?;
    server.has(context, 3, 3)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    send(context, &client)?;
    server.has(context, 2, 3)?;
    server.takes(context, &ep, 1)?;
    server.has(context, 2, 2)
}

fn right_endpoint(context: &Context) -> Result<()> {
    let server = Server::new(context, 64, 64)?;
    let ia = context.open()?;
    let eps = [server.ep()?, server.ep()?, server.ep()?];
    let mut clients = Vec::new();
    for ep in &eps {
        clients.push(server.client(context, &ia, ep)?);
    }
    server.post(0..32)?;
    for round in 0..context.count(300).max(40) {
        let number = context.rng().usize(0..3);
        let out = clients[number].scramble(context);
        send(context, &clients[number])?;
        let cookie = round % 32;
        server.takes(context, &eps[number], cookie)?;
        let offset = cookie as usize * MESSAGE;
        let got = server.lmr.buffer().to_vec(offset, MESSAGE);
        ensure!(got == out[..MESSAGE], "round {round}: another message");
        server.post([cookie])?;
    }
    server.has(context, 32, 32)
}

fn low_watermark(context: &Context) -> Result<()> {
    let server = Server::new(context, 10, 16)?;
    let asynchronous = server.ia.async_evd();
    let reported = |event: Event| match event {
        Event::Async { event: AsyncEvent::EpBroken, object, reason: 2 } => {
            same("SRQ", object, server.srq.handle())
        }
        other => anyhow::bail!("expected the low watermark, got {other}"),
    };
    // Fewer are there already.
    server.srq.set_low_watermark(2)?;
    reported(context.next(asynchronous)?)?;
    server.post(0..8)?;
    server.srq.set_low_watermark(6)?;
    same("low watermark", server.srq.query()?.low_watermark, 6)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    send(context, &client)?;
    server.takes(context, &ep, 0)?;
    context.quiet(asynchronous)?;
    for cookie in 1..4 {
        send(context, &client)?;
        server.takes(context, &ep, cookie)?;
    }
    reported(context.next(asynchronous)?)?;
    context.quiet(asynchronous)?;
    server.srq.set_low_watermark(0)?;
    context.quiet(asynchronous)
}

fn lengthened(context: &Context) -> Result<()> {
    let server = Server::new(context, 8, 64)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..8)?;
    send(context, &client)?;
    if server.srq.resize(200).is_err() {
        ensure!(server.ia.query()?.raw.max_srqs > 0 && context.server.is_iwarp(), "not resized");
        return Ok(());
    }
    server.post(8..200)?;
    server.takes(context, &ep, 0)?;
    for cookie in 1..200 {
        send(context, &client)?;
        server.takes(context, &ep, cookie)?;
    }
    server.has(context, 0, 0)?;
    server.srq.resize(1)?;
    server.post([3])?;
    send(context, &client)?;
    server.takes(context, &ep, 3)
}

fn ends_in_traffic(context: &Context) -> Result<()> {
    let server = Server::new(context, 256, 1024)?;
    let ia = context.open()?;
    let lasting = server.ep()?;
    let other = server.client(context, &ia, &lasting)?;
    for round in 0..context.count(30).max(6) {
        let available = server.srq.query()?.available;
        server.post((u64::from(available)..256).map(|_| 7))?;
        let ep = server.ep()?;
        let client = server.client(context, &ia, &ep)?;
        for _ in 0..8 {
            client.send(0, MESSAGE, 1)?;
        }
        match round % 3 {
            0 => ep.disconnect(libkdapl::Close::Abrupt)?,
            1 => ep.free()?,
            _ => client.ep.disconnect(libkdapl::Close::Abrupt)?,
        }
        if round % 3 != 1 {
            connection_over(&context.next(&server.connect)?)?;
            // All receives precede the end: `srq_ends.receives_precede_the_end`.
            ep.free()?;
        }
        while server.recv.dequeue().is_ok() {}
        send(context, &other)?;
        let event = context.next(&server.recv)?;
        ensure!(
            matches!(&event, Event::Dto(dto) if dto.ep == lasting.handle()
                && dto.status == DtoStatus::Success),
            "round {round}: {event}"
        );
    }
    Ok(())
}

fn reset(context: &Context) -> Result<()> {
    let server = Server::new(context, 32, 64)?;
    let ia = context.open()?;
    let ep = server.ep()?;
    for round in 0..4 {
        server.post(0..2)?;
        let client = server.client(context, &ia, &ep)?;
        for cookie in 0..2 {
            send(context, &client)?;
            server.takes(context, &ep, cookie)?;
        }
        client.ep.disconnect(libkdapl::Close::Graceful)?;
        connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)
            .with_context(|| format!("round {round}"))?;
        ep.reset()?;
    }
    server.has(context, 0, 0)
}

fn full_evd(context: &Context) -> Result<()> {
    let server = Server::new(context, 64, 4)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..64)?;
    for _ in 0..64 {
        send(context, &client)?;
    }
    context.quiet(server.ia.async_evd())?;
    for cookie in 0..64 {
        server.takes(context, &ep, cookie)?;
    }
    server.has(context, 0, 0)
}

/// Sends until the connection ends.
fn send_to_the_end(context: &Context, client: &End) -> Result<()> {
    context.until("the end of the connection", || {
        let _ = client.send(0, MESSAGE, 1);
        while client.request.dequeue().is_ok() {}
        match client.connect.dequeue() {
            Ok((event, _)) => connection_over(&event).map(|()| true),
            Err(error) if error.is_empty() => Ok(false),
            Err(error) => Err(error.into()),
        }
    })
}

fn no_srq_left(context: &Context) -> Result<()> {
    context.until("the end of the SRQs", || Ok(count_of("srq")? == 0))
}

fn closed_in_traffic(context: &Context) -> Result<()> {
    for _ in 0..4 {
        let server = Server::new(context, 64, 64)?;
        let ep = server.ep()?;
        let client = server.client(context, &context.open()?, &ep)?;
        server.post(0..64)?;
        for cookie in 0..8 {
            client.send(0, MESSAGE, cookie)?;
        }
        server.ia.close(libkdapl::Close::Abrupt)?;
        send_to_the_end(context, &client)?;
    }
    no_srq_left(context)
}

/// Receives without end, in a process of its own.
pub fn sharing(context: &Context, port: u64) -> Result<()> {
    let server = Server::on(context, 64, 64, port)?;
    let ep = server.ep()?;
    server.post(0..64)?;
    println!("listens");
    server.listener.request(context)?.accept(&ep, &[])?;
    loop {
        context.next(&server.recv)?;
        server.post([7])?;
    }
}

fn killed_in_traffic(context: &Context) -> Result<()> {
    let port = context.port();
    let mut peer = Peer::play(context, &format!("Sharing {port} 0"))?;
    same("first line", peer.says()?.as_str(), "listens")?;
    let client = End::new(&context.open()?, Shape::default())?;
    client.ep.connect(context.server_address(), port, Some(context.patience()), &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    for _ in 0..50 {
        send(context, &client)?;
    }
    client.send(0, MESSAGE, 1)?;
    peer.kill()?;
    send_to_the_end(context, &client)?;
    no_srq_left(context)
}

fn many_endpoints(context: &Context) -> Result<()> {
    let server = Server::new(context, 1024, 64)?;
    let count = if context.settings.scale > 2.0 { 200 } else { 1000 };
    let eps = (0..count).map(|_| server.ep()).collect::<Result<Vec<_>>>()?;
    same("completion queues", server.recv.query()?.cqs <= 4, true)?;
    drop(eps);
    Ok(server.srq.free()?)
}

fn removed(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let server = Server::new(context, 64, 64)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..64)?;
    send(context, &client)?;
    guard.delete()?;
    server.takes(context, &ep, 0)?;
    connection_over(&context.next(&server.connect)?)?;
    let posted = server.srq.post_recv(&[], 0);
    refused_as(posted, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)?;
    ep.free()?;
    server.srq.free()?;
    drop((client, server));
    guard.add()
}
