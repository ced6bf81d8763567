// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Makes many connections, and checks that no memory is lost.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, same};
use crate::machine::{meminfo, objects, SLAB};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, Cr, DtoOperation, Ep, EpAttr, EpConfig, Evd, EvdFlags,
    Event, EventKind, Ia, Lmr, Pz, Srq,
};
use std::collections::HashMap;

tests! {
    ten_thousand_in_turn, 900, "Ten thousand connections are made, carry data and end, and the kernel's memory returns to its start value";
    thousand_at_once, 900, "A thousand endpoints are connected at once, and each reaches its own peer";
    connect_storms, 600, "Storms of a hundred connects at a time all get their answer, accept or reject as requested";
}

/// Returns the kernel's memory after its workers have run.
fn settled(context: &Context, before: &[(String, u64)]) -> Result<i64> {
    context.until("the objects are as before", || Ok(objects()? == before))?;
    std::thread::sleep(context.scaled(std::time::Duration::from_millis(300)));
    meminfo(SLAB)
}

/// Makes one connection with a message in each direction. Either side disconnects.
fn one(context: &Context, client: &End, server: &End, listener: &Listener, n: u64) -> Result<()> {
    let sides = [client, server];
    sides.iter().try_for_each(|end| end.receive(64, 64, n))?;
    let patience = Some(context.patience());
    client.ep.connect(context.server_address(), listener.port, patience, &n.to_le_bytes())?;
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in sides {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    for (from, to) in [(client, server), (server, client)] {
        from.send(0, 64, n)?;
        done(&context.next(&from.request)?, DtoOperation::Send, 64, n)?;
        done(&context.next(&to.recv)?, DtoOperation::Receive, 64, n)?;
    }
    sides[n as usize % 2].ep.disconnect(Close::Abrupt)?;
    for end in sides {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(sides.iter().try_for_each(|end| end.ep.reset())?)
}

fn ten_thousand_in_turn(context: &Context) -> Result<()> {
    const WARM_UP: u64 = 200;
    const PARTS: u64 = 4;
    let fewer = if context.link_is_spoilt() { 4 } else { 1 };
    let count = context.count(10_000 / fewer);
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let round = |n| one(context, &client, &server, &listener, n);
    // The caches of the kernel fill first.
    (0..WARM_UP.min(count)).try_for_each(round)?;
    let before = objects()?;
    let mut memory = settled(context, &before)?;
    let mut grown = Vec::new();
    for part in 0..PARTS {
        for n in 0..count.div_ceil(PARTS) {
            round(n).with_context(|| format!("connection {n} of part {part}"))?;
        }
        let now = settled(context, &before)?;
        grown.push(now - memory);
        memory = now;
    }
    println!("{count} connections in {PARTS} parts, kernel memory {grown:+?} KiB");
    // The kernel's caches fill at first. A leak goes on: later only single pages are allocated, and
    // a leak of a few bytes for each connection would exceed them.
    let half: i64 = grown[grown.len() / 2..].iter().sum();
    let most = 160 + (count / 2 * 16 / 1024) as i64;
    // A few connections prove nothing: KASAN keeps more freed memory than they use. Their objects
    // were counted.
    ensure!(
        half < most || count < 1000,
        "kernel memory grows: {grown:?} KiB, {most} allowed in the last half"
    );
    Ok(())
}

/// Many small endpoints with common EVDs.
pub(super) struct SmallEps {
    pub(super) eps: Vec<Ep>,
    /// Their shared receive queue, if they have one.
    pub(super) srq: Option<Srq>,
    pub(super) dtos: Evd,
    connect: Evd,
    pub(super) lmr: Lmr,
    _pz: Pz,
}

impl SmallEps {
    pub(super) fn new(ia: &Ia, count: usize) -> Result<Self> {
        Self::build(ia, count, None)
    }

    /// As `new`, with a shared receive queue of so many receives.
    pub(super) fn sharing(ia: &Ia, count: usize, receives: u32) -> Result<Self> {
        Self::build(ia, count, Some(receives))
    }

    fn build(ia: &Ia, count: usize, shared: Option<u32>) -> Result<Self> {
        let pz = ia.create_pz()?;
        let srq = shared.map(|receives| ia.create_srq(&pz, receives, 1)).transpose()?;
        let dtos = ia.create_evd(EvdFlags::DTO, 2 * count as i32)?;
        let connect = ia.create_evd(EvdFlags::CONNECTION, 2 * count as i32)?;
        let places = count.max(shared.unwrap_or(0) as usize);
        let memory = libkdapl::Buffer::new(16 * places)?;
        let lmr = ia.register(&pz, memory, libkdapl::Privileges::ALL)?;
        let attr = EpAttr { max_recv_dtos: 2, max_request_dtos: 2, ..Default::default() };
        let config = EpConfig {
            pz: Some(&pz),
            recv: Some(&dtos),
            request: Some(&dtos),
            connect: Some(&connect),
            srq: srq.as_ref(),
            attr: Some(attr),
        };
        let eps = (0..count).map(|_| ia.create_ep_with(&config));
        let eps = eps.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { eps, srq, dtos, connect, lmr, _pz: pz })
    }

    /// Returns the EVD of the endpoints' connection events.
    pub(super) fn connections(&self) -> &Evd {
        &self.connect
    }

    pub(super) fn all(&self, context: &Context, event: ConnectionEvent) -> Result<()> {
        for number in 0..self.eps.len() {
            connection(&context.next(&self.connect)?, event)
                .with_context(|| format!("{number} of {}", self.eps.len()))?;
        }
        Ok(())
    }
}

/// Returns the number of connections of a test that is about a thousand of them: a thousand on any
/// machine, and fewer in a brief run, or if the device has too few queue pairs.
pub(super) fn thousand(context: &Context, ia: &Ia) -> Result<usize> {
    const THOUSAND: u64 = 1000;
    let most = ia.query()?.raw.max_eps as u64 / 3;
    let count = match context.is_brief() {
        true => context.count_at_any_scale(THOUSAND),
        false => context.count(THOUSAND).max(THOUSAND),
    };
    Ok(count.min(most).max(20) as usize)
}

fn thousand_at_once(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let count = thousand(context, &client_ia)?;
    let (clients, servers) = (SmallEps::new(&client_ia, count)?, SmallEps::new(&server_ia, count)?);
    let listener = Listener::new(context, &server_ia)?;
    let flags = CompletionFlags::default();
    for (number, server) in servers.eps.iter().enumerate() {
        server.post_recv(&[servers.lmr.segment(16 * number, 16)], number as u64, flags)?;
    }
    connect_all(context, &listener, &clients, &servers)?;
    for (number, client) in clients.eps.iter().enumerate() {
        let mut text = [0; 16];
        text[..8].copy_from_slice(&(number as u64).to_le_bytes());
        clients.lmr.buffer().write(16 * number, &text);
        client.post_send(&[clients.lmr.segment(16 * number, 16)], number as u64, flags)?;
    }
    let numbers: HashMap<_, _> =
        servers.eps.iter().enumerate().map(|(number, ep)| (ep.handle(), number)).collect();
    for _ in 0..count {
        let Event::Dto(dto) = context.next(&servers.dtos)? else { bail!("no receive") };
        let number = *numbers.get(&dto.ep).context("the endpoint is unknown")?;
        same("cookie", dto.cookie, number as u64)?;
        let text = servers.lmr.buffer().to_vec(16 * number, 8);
        same("message", text, (number as u64).to_le_bytes().to_vec())?;
        context.next(&clients.dtos)?;
    }
    clients.eps.iter().try_for_each(|ep| ep.disconnect(Close::Abrupt))?;
    clients.all(context, ConnectionEvent::Disconnected)?;
    servers.all(context, ConnectionEvent::Disconnected)?;
    println!("{count} connections at once");
    Ok(())
}

/// Connects each client to the server of its number. No connection ends before the last is
/// established.
pub(super) fn connect_all(
    context: &Context,
    listener: &Listener,
    clients: &SmallEps,
    servers: &SmallEps,
) -> Result<()> {
    const PENDING_CONNECTS: usize = 32;
    for (number, client) in clients.eps.iter().enumerate() {
        let patience = Some(context.patience() * 3);
        let data = (number as u32).to_le_bytes();
        client.connect(context.server_address(), listener.port, patience, &data)?;
        if number >= PENDING_CONNECTS {
            accept(context, listener, servers)?;
        }
    }
    for _ in 0..clients.eps.len().min(PENDING_CONNECTS) {
        accept(context, listener, servers)?;
    }
    clients.all(context, ConnectionEvent::Established)?;
    servers.all(context, ConnectionEvent::Established)
}

/// Accepts the next request on the endpoint that its private data name.
fn accept(context: &Context, listener: &Listener, servers: &SmallEps) -> Result<()> {
    let mut cr = listener.request(context)?;
    let data = cr.query()?.private_data;
    let number = data.first_chunk().context("too little private data")?;
    let ep =
        servers.eps.get(u32::from_le_bytes(*number) as usize).context("the number is unknown")?;
    Ok(cr.accept(ep, &[])?)
}

fn connect_storms(context: &Context) -> Result<()> {
    const STORM: usize = 100;
    let (client_ia, server_ia) = context.open_both()?;
    let (evd, port) = (server_ia.create_evd(EvdFlags::CR, STORM as i32)?, context.port());
    let psp = context.server.inside(|| server_ia.create_psp(port, &evd))??;
    let listener = Listener { psp, evd, port };
    let (clients, servers) = (SmallEps::new(&client_ia, STORM)?, SmallEps::new(&server_ia, STORM)?);
    for storm in 0..context.count(30) {
        let rejects: Vec<_> = (0..STORM).map(|_| context.rng().u8(0..4) == 0).collect();
        let rejected = rejects.iter().filter(|reject| **reject).count();
        for (number, ep) in clients.eps.iter().enumerate() {
            let patience = Some(context.patience() * 3);
            let data = [(storm as u32).to_le_bytes(), (number as u32).to_le_bytes()].concat();
            ep.connect(context.server_address(), listener.port, patience, &data)?;
        }
        let (mut answered, mut counts) = (0, [0; 2]);
        context
            .until("all connects have an outcome", || {
                while let Ok((Event::ConnectionRequest { mut cr, .. }, _)) = listener.evd.dequeue()
                {
                    answered += 1;
                    answer(&mut cr, storm as u32, &servers, &rejects)?;
                }
                while let Ok((event, _)) = clients.connect.dequeue() {
                    match event.kind() {
                        EventKind::Connection(ConnectionEvent::Established) => counts[0] += 1,
                        EventKind::Connection(ConnectionEvent::PeerRejected) => counts[1] += 1,
                        other => bail!("{other:?}"),
                    }
                }
                Ok(counts[0] + counts[1] == STORM)
            })
            .with_context(|| format!("storm {storm}: {answered} answers, {counts:?} outcomes"))?;
        same("accepted and rejected", counts, [STORM - rejected, rejected])?;
        for _ in rejected..STORM {
            connection(&context.next(&servers.connect)?, ConnectionEvent::Established)?;
        }
        let ended: Result<(), _> =
            clients.eps.iter().try_for_each(|ep| ep.disconnect(Close::Abrupt));
        ended?;
        for crowd in [&clients, &servers] {
            for _ in rejected..STORM {
                connection(&context.next(&crowd.connect)?, ConnectionEvent::Disconnected)?;
            }
            crowd.eps.iter().try_for_each(Ep::reset)?;
        }
    }
    Ok(())
}

/// Rejects a request, or accepts it on the endpoint that its private data name.
///
/// A rejected request may arrive again, even in the next storm: `ib_cm` repeats a request that
/// waits long for its answer, and forgets rejects. An accepted one does not: its endpoint would
/// refuse.
fn answer(cr: &mut Cr, storm: u32, servers: &SmallEps, rejects: &[bool]) -> Result<()> {
    let data = cr.query()?.private_data;
    let word = |at: usize| -> Result<u32> {
        let bytes = data.get(at..).and_then(|rest| rest.first_chunk());
        Ok(u32::from_le_bytes(*bytes.context("too little private data")?))
    };
    if word(0)? != storm {
        return Ok(cr.reject(b"too late")?);
    }
    let number = word(4)?;
    let (Some(ep), Some(reject)) = (servers.eps.get(number as usize), rejects.get(number as usize))
    else {
        bail!("the number {number} is unknown");
    };
    let answered = if *reject { cr.reject(b"no") } else { cr.accept(ep, &[]) };
    Ok(answered?)
}
