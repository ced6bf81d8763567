// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Establishing connections.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused, same};
use anyhow::{bail, ensure, Result};
use libkdapl::{Close, ConnectionEvent, Cr, EpState, Evd, EvdFlags, Event, Type};

tests! {
    #[Address, Link, Transport]
    private_data_both_ways, 20, "Connect and accept carry private data of every size both ways";
    #[Address, Link, Transport]
    addresses, 20, "Both ends and the request report the addresses of both sides";
    #[Transport]
    request_outlives_listener, 30, "A request outlives its listener and can still be accepted";
    #[Address, Link, Transport]
    many_at_once, 120, "Many connections are established at once through one listener";
    #[Link, Transport]
    reconnect, 120, "Connections are established and ended on one listener, again and again";
    #[Address, Transport]
    same_ia, 20, "Two endpoints of one IA connect to each other";
    #[Address]
    no_private_data_before_answer, 10, "Before the peer's answer there is no private data";
}

/// Two ends that are not connected, and a listener on the server's side.
pub struct Ends {
    pub client: End,
    pub server: End,
    pub listener: Listener,
}

pub fn ends(context: &Context) -> Result<Ends> {
    let (client_ia, server_ia) = context.open_both()?;
    Ok(Ends {
        client: End::new(&client_ia, Shape::default())?,
        listener: Listener::new(context, &server_ia)?,
        server: End::new(&server_ia, Shape::default())?,
    })
}

impl Ends {
    /// Starts to connect.
    pub fn call(&self, context: &Context, private_data: &[u8]) -> Result<()> {
        let patience = Some(context.patience());
        Ok(self.client.ep.connect(
            context.server_address(),
            self.listener.port,
            patience,
            private_data,
        )?)
    }
}

pub fn random(context: &Context, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    context.rng().fill(&mut bytes);
    bytes
}

/// Checks received private data. The transport may pad it with zeros.
pub fn carried(what: &str, got: &[u8], sent: &[u8]) -> Result<()> {
    let right = got.len() >= sent.len()
        && got.starts_with(sent)
        && got[sent.len()..].iter().all(|byte| *byte == 0);
    ensure!(right, "{what}: {sent:02x?} became {got:02x?}");
    Ok(())
}

/// Rejects a request until its client is notified. A lost reject is not repeated: the client
/// repeats the request instead.
pub fn reject(
    context: &Context,
    cr: &mut Cr,
    private_data: &[u8],
    requests: &Evd,
    caller: &Evd,
) -> Result<()> {
    cr.reject(private_data)?;
    context.until("the client is notified of the reject", || {
        if let (true, Ok((Event::ConnectionRequest { mut cr, .. }, _))) =
            (context.link_is_spoilt(), requests.dequeue())
        {
            cr.reject(private_data)?;
        }
        Ok(caller.query()?.queued > 0)
    })?;
    connection(&context.next(caller)?, ConnectionEvent::PeerRejected)
}

fn private_data_both_ways(context: &Context) -> Result<()> {
    let limits = context.open()?.query()?.raw;
    let (there, back) = (limits.max_private_data_connect, limits.max_private_data_accept);
    for (there, back) in [(0, 0), (1, 1), (17, 40), (there, back)] {
        let ends = ends(context)?;
        let (request, answer) = (random(context, there as usize), random(context, back as usize));
        ends.call(context, &request)?;
        let mut cr = ends.listener.request(context)?;
        carried("request", &cr.query()?.private_data, &request)?;
        cr.accept(&ends.server.ep, &answer)?;
        let event = context.next(&ends.client.connect)?;
        connection(&event, ConnectionEvent::Established)?;
        connection(&context.next(&ends.server.connect)?, ConnectionEvent::Established)?;
        let got = ends.client.ep.private_data()?;
        carried("answer", &got, &answer)?;
        let Event::Connection { private_data_size, ep, .. } = event else { bail!("{event}") };
        same("size in the event", private_data_size as usize, got.len())?;
        same("endpoint in the event", ep, ends.client.ep.handle())?;
    }
    Ok(())
}

fn addresses(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.call(context, &[])?;
    let mut cr = ends.listener.request(context)?;
    let query = cr.query()?;
    let from = query.remote.ok_or_else(|| anyhow::anyhow!("the request has no address"))?;
    same("address of the request", from.ip(), context.client.address)?;
    ensure!(query.remote_port_qual != 0, "the request has no port");
    cr.accept(&ends.server.ep, &[])?;
    let (here, there) = (context.client.address, context.server.address);
    for (end, local, remote) in [(&ends.client, here, there), (&ends.server, there, here)] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        let query = end.ep.query()?;
        same("state", query.state, EpState::Connected)?;
        same("state", end.ep.status()?.state, EpState::Connected)?;
        same("local address", query.local.map(|a| a.ip()), Some(local))?;
        same("remote address", query.remote.map(|a| a.ip()), Some(remote))?;
        ensure!(query.raw.qp_num != 0, "no QP number");
    }
    same("qualifier", ends.client.ep.query()?.raw.remote_port_qual, ends.listener.port)
}

fn request_outlives_listener(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.call(context, b"hello")?;
    let mut cr = ends.listener.request(context)?;
    ends.listener.psp.free()?;
    carried("request", &cr.query()?.private_data, b"hello")?;
    cr.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

fn many_at_once(context: &Context) -> Result<()> {
    let count = context.count(64).clamp(4, 200) as usize;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let make = |ia: &libkdapl::Ia| -> Result<_> {
        let (pz, evd) =
            (ia.create_pz()?, ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 2000)?);
        let eps: Result<Vec<_>, _> =
            (0..count).map(|_| ia.create_ep(&pz, &evd, &evd, &evd, None)).collect();
        Ok((evd, eps?))
    };
    let (client_evd, clients) = make(&client_ia)?;
    let (server_evd, servers) = make(&server_ia)?;
    for (number, ep) in clients.iter().enumerate() {
        let data = (number as u32).to_le_bytes();
        ep.connect(context.server_address(), listener.port, Some(context.patience() * 3), &data)?;
    }
    for ep in &servers {
        let mut cr = listener.request(context)?;
        let data = cr.query()?.private_data;
        cr.accept(ep, &data[..4])?;
    }
    for evd in [&client_evd, &server_evd] {
        for _ in 0..count {
            connection(&context.next(evd)?, ConnectionEvent::Established)?;
        }
    }
    for (number, ep) in clients.iter().enumerate() {
        carried("answer", &ep.private_data()?, &(number as u32).to_le_bytes())?;
        same("state", ep.status()?.state, EpState::Connected)?;
    }
    Ok(())
}

fn reconnect(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    for round in 0..context.count(100) {
        let client = End::new(&client_ia, Shape::default())?;
        let server = End::new(&server_ia, Shape::default())?;
        client.ep.connect(
            context.server_address(),
            listener.port,
            Some(context.patience()),
            &[],
        )?;
        listener.request(context)?.accept(&server.ep, &[])?;
        for end in [&client, &server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        let (first, second) = if round % 2 == 0 { (&client, &server) } else { (&server, &client) };
        first.ep.disconnect(if round % 4 < 2 { Close::Graceful } else { Close::Abrupt })?;
        connection(&context.next(&second.connect)?, ConnectionEvent::Disconnected)?;
        connection(&context.next(&first.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

fn same_ia(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let listener = Listener::new(context, &ia)?;
    let (client, server) = (End::new(&ia, Shape::default())?, End::new(&ia, Shape::default())?);
    client.ep.connect(context.client.address, listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&client, &server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    server.receive(0, 64, 5)?;
    client.send(0, 64, 6)?;
    context.next(&server.recv)?;
    context.next(&client.request)?;
    Ok(())
}

fn no_private_data_before_answer(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    match end.ep.private_data() {
        Ok(data) => same("private data", data, vec![]),
        Err(error) => refused::<()>(Err(error), Type::INVALID_STATE),
    }
}
