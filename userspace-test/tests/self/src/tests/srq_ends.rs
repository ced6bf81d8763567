// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints of a shared receive queue (SRQ) end while others of them receive without pause.

use super::kernel::Loaded;
use super::silent_peer::two_hosts;
use super::srq_traffic::{send, Server, MESSAGE};
use super::tests;
use crate::context::Context;
use crate::end::End;
use crate::expect::{connection, connection_over, refused_as, same};
use crate::harness::skip;
use crate::machine::DeviceGuard;
use crate::threads::Joined;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpChange, EpConfig, Evd, EvdFlags, Event,
    Ia, Subtype, Type,
};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

tests! {
    #[Transport]
    under_load, 180, "Endpoints of an SRQ end although its EVD is never without completions";
    #[Transport]
    ends_amid_messages, 180, "Connections that end amid a message cost an SRQ no receive for long";
    #[Hosts, Transport]
    every_connection_ends_amid_its_message, 180, "Connections that all end amid their messages do not leave an SRQ without receives";
    #[Address, Transport]
    receives_precede_the_end, 120, "The last receives of an endpoint of an SRQ precede the end of its connection, on one EVD for all events";
    freed_with_completions, 180, "An SRQ is freed with completions queued, and its EVD serves another one";
    freed_during_modify, 60, "An endpoint and its SRQ are freed while a modify creates a queue pair, and nothing keeps the device";
}

/// Messages that always wait for the consumer.
const BACKLOG: u64 = 128;

/// Counts of a flood of messages.
#[derive(Default)]
struct Flood {
    sent: AtomicU64,
    taken: AtomicU64,
    ends: AtomicBool,
}

impl Flood {
    /// Sends until the end, two backlogs ahead of the consumer.
    fn send(&self, context: &Context, client: &End) -> Result<()> {
        while !self.ends.load(SeqCst) {
            if self.sent.load(SeqCst) - self.taken.load(SeqCst) > 2 * BACKLOG {
                std::thread::yield_now();
                continue;
            }
            client.send(0, MESSAGE, 1)?;
            context.next(&client.request)?;
            self.sent.fetch_add(1, SeqCst);
        }
        Ok(())
    }

    /// Takes messages until the end, and leaves a backlog.
    fn take(&self, context: &Context, server: &Server) -> Result<()> {
        while !self.ends.load(SeqCst) {
            if self.sent.load(SeqCst) - self.taken.load(SeqCst) < BACKLOG {
                std::thread::yield_now();
                continue;
            }
            context.next(&server.recv)?;
            server.post([7])?;
            self.taken.fetch_add(1, SeqCst);
        }
        Ok(())
    }
}

/// Ends the flood, even on a failure.
struct Ending<'a>(&'a Flood);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ends.store(true, SeqCst);
    }
}

fn under_load(context: &Context) -> Result<()> {
    let server = Server::new(context, 512, 16)?;
    let ia = context.open()?;
    let lasting = server.ep()?;
    let flooding = server.client(context, &ia, &lasting)?;
    server.post((0..512).map(|_| 7))?;
    let flood = Flood::default();
    std::thread::scope(|scope| {
        let ending = Ending(&flood);
        let (one, two) = (context.new_for_thread(), context.new_for_thread());
        let sender = {
            let (flood, flooding) = (&flood, &flooding);
            scope.spawn(move || flood.send(&one, flooding))
        };
        let taker = {
            let (flood, server) = (&flood, &server);
            scope.spawn(move || flood.take(&two, server))
        };
        for round in 0..context.count(10).max(3) {
            let ep = server.ep()?;
            let client = server.client(context, &ia, &ep)?;
            client.ep.disconnect(Close::Abrupt)?;
            connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)
                .with_context(|| format!("round {round}"))?;
            ep.free()?;
        }
        drop(ending);
        sender.join().ok().context("the sender has panicked")??;
        taker.join().ok().context("the taker has panicked")?
    })
}

/// Messages that are on their way when a connection ends.
const LAST: u32 = 8;

fn receives_precede_the_end(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 64;
    let server = Server::merged(context, RECEIVES)?;
    let ia = context.open()?;
    let lasting = server.ep()?;
    let other = server.client(context, &ia, &lasting)?;
    let mut all = 0;
    for round in 0..context.count(200).max(24) {
        let available = server.srq.query()?.available;
        server.post((available..RECEIVES).map(|_| 7))?;
        let ep = server.ep()?;
        let client = server.client(context, &ia, &ep)?;
        (0..LAST).try_for_each(|_| client.send(0, MESSAGE, 1))?;
        let whose = if round % 2 == 0 { &ep } else { &client.ep };
        let graceful = round % 4 / 2 == 1;
        whose.disconnect(if graceful { Close::Graceful } else { Close::Abrupt })?;
        let received = received_before_end(context, &server.recv, &ep)
            .with_context(|| format!("round {round}"))?;
        // A graceful disconnect waits for the messages of its own side.
        let least = if graceful && round % 2 == 1 { LAST } else { 0 };
        ensure!((least..=LAST).contains(&received), "round {round}: {received} receives");
        all += received;
        // Nothing of this endpoint follows: the next event is that of another one.
        send(context, &other)?;
        server.takes(context, &lasting, 7).with_context(|| format!("round {round}"))?;
        ep.free()?;
    }
    println!("{all} receives before the ends");
    Ok(())
}

/// Takes the events of `ep` until the end of its connection. Returns the number of its messages.
fn received_before_end(context: &Context, events: &Evd, ep: &Ep) -> Result<u32> {
    let mut received = 0;
    loop {
        match context.next(events)? {
            Event::Dto(dto) if dto.ep == ep.handle() => {
                same("operation", dto.operation, DtoOperation::Receive)?;
                received += u32::from(dto.status == DtoStatus::Success);
            }
            event => {
                connection_over(&event)?;
                return Ok(received);
            }
        }
    }
}

fn freed_with_completions(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 900;
    let mut server = Server::new(context, RECEIVES, 8)?;
    let ia = context.open()?;
    for _ in 0..3 {
        let (ep, client) = flooded(context, &server, &ia, RECEIVES)?;
        ep.free()?;
        connection_over(&context.next(&client.connect)?)?;
        let srq = server.ia.create_srq(&server.pz, RECEIVES, 1)?;
        std::mem::replace(&mut server.srq, srq).free()?;
    }
    let (ep, _client) = flooded(context, &server, &ia, RECEIVES)?;
    let mut received = 0;
    while received < RECEIVES {
        match context.next(&server.recv).with_context(|| format!("message {received}"))? {
            Event::Dto(dto) => received += u32::from(dto.ep == ep.handle()),
            other => bail!("expected a receive, got {other}"),
        }
    }
    same("completion queues", server.recv.query()?.cqs <= 2, true)
}

/// Connects a new endpoint, and fills all receives. Takes no events.
fn flooded(context: &Context, server: &Server, ia: &Ia, receives: u32) -> Result<(Ep, End)> {
    let ep = server.ep()?;
    let client = server.client(context, ia, &ep)?;
    server.post(0..receives.into())?;
    (0..receives).try_for_each(|_| send(context, &client))?;
    // Fills the ring. The other completions wait for room.
    server.srq.query()?;
    Ok((ep, client))
}

/// Bytes of a long message.
const LONG: usize = 60_000;

fn post_long(server: &Server, count: u32) -> Result<()> {
    let segment = [server.lmr.segment(0, LONG)];
    Ok((0..count).try_for_each(|_| server.srq.post_recv(&segment, 7))?)
}

/// A slow link, on which a long message takes 24 milliseconds.
struct SlowLink<'a>(&'a Context);

impl<'a> SlowLink<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        context.client.spoil("rate 20mbit")?;
        Ok(Self(context))
    }
}

impl Drop for SlowLink<'_> {
    fn drop(&mut self) {
        // If that fails, the next test reports it.
        let _ = self.0.client.spoil(self.0.settings.layout.netem.unwrap_or_default());
    }
}

/// Checks that each of the SRQ's receives, which are `count`, takes a message of a new connection.
fn all_take_messages(context: &Context, server: &Server, ia: &Ia, count: u32) -> Result<()> {
    let ep = server.ep()?;
    let client = server.client(context, ia, &ep)?;
    for number in 0..count {
        client.send(0, LONG, 1)?;
        context.next(&client.request).with_context(|| format!("message {number}"))?;
    }
    Ok(())
}

/// Connects, and frees the endpoint of the SRQ amid a message. Takes the events.
fn end_amid_message(context: &Context, server: &Server, ia: &Ia) -> Result<()> {
    let ep = server.ep()?;
    let client = server.client(context, ia, &ep)?;
    client.send(0, LONG, 1)?;
    std::thread::sleep(Duration::from_millis(10));
    ep.free()?;
    connection_over(&context.next(&client.connect)?)?;
    while server.recv.dequeue().is_ok() {}
    Ok(())
}

/// Without a whole message in between. The consumer posts what the SRQ says that it lacks.
fn every_connection_ends_amid_its_message(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 4;
    two_hosts(context)?;
    if context.link_is_spoilt() {
        return skip("the link is spoilt already");
    }
    let server = Server::new(context, RECEIVES, 16)?;
    let ia = context.open()?;
    let mut posted = 0;
    {
        let _slow = SlowLink::new(context)?;
        for round in 0..3 * RECEIVES {
            let missing = RECEIVES - server.srq.query()?.available;
            post_long(&server, missing).with_context(|| format!("round {round}"))?;
            posted += missing;
            end_amid_message(context, &server, &ia)?;
        }
    }
    println!("{posted} receives were posted");
    post_long(&server, RECEIVES - server.srq.query()?.available)?;
    all_take_messages(context, &server, &ia, RECEIVES)
}

fn ends_amid_messages(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 8;
    const PEERS: u32 = 4;
    let server = Server::new(context, RECEIVES, 16)?;
    let ia = context.open()?;
    post_long(&server, RECEIVES)?;
    for _ in 0..12 {
        for _ in 0..PEERS {
            let ep = server.ep()?;
            let client = server.client(context, &ia, &ep)?;
            client.send(0, LONG, 1)?;
            let (sent, pause) = (Instant::now(), context.rng().u64(0..500));
            while sent.elapsed() < Duration::from_micros(pause) {}
            // Unlike a disconnect, this does not wait for the acknowledgement.
            client.ep.free()?;
            connection_over(&context.next(&server.connect)?)?;
            ep.free()?;
        }
        // A whole message shows which receives before it are lost.
        let ep = server.ep()?;
        let client = server.client(context, &ia, &ep)?;
        client.send(0, LONG, 1)?;
        context.next(&client.request)?;
        client.ep.disconnect(Close::Abrupt)?;
        connection_over(&context.next(&server.connect)?)?;
        ep.free()?;
        while server.recv.dequeue().is_ok() {}
        post_long(&server, RECEIVES - server.srq.query()?.available)?;
    }
    all_take_messages(context, &server, &ia, RECEIVES)
}

/// An EVD for receives that is full, so that it takes no completions.
fn full_evd(ia: &Ia) -> Result<Evd> {
    let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::SOFTWARE, 1)?;
    while evd.post_se(1).is_ok() {}
    Ok(evd)
}

fn freed_during_modify(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let disguise = Loaded::new("kdapl_disguise", &format!("device={}", context.server.device))?;
    let ia = context.open_server()?;
    let pz = ia.create_pz()?;
    let (recv, srq) = (full_evd(&ia)?, ia.create_srq(&pz, 8, 1)?);
    let (request, connect) =
        (ia.create_evd(EvdFlags::DTO, 8)?, ia.create_evd(EvdFlags::CONNECTION, 8)?);
    let ep = ia.create_ep_with(&EpConfig {
        pz: Some(&pz),
        recv: Some(&recv),
        request: Some(&request),
        connect: Some(&connect),
        srq: Some(&srq),
        attr: None,
    })?;
    disguise.set("hold_creation", 1)?;
    let modified = std::thread::scope(|scope| {
        let modify = scope.spawn(|| ep.modify(EpChange::new().max_request_dtos(2)));
        let freed = context
            .until(
                "a queue pair is being created",
                || Ok(disguise.parameter("hold_creation")? == 2),
            )
            .and_then(|()| Ok(ep.free().and_then(|()| srq.free())?));
        disguise.set("hold_creation", 0)?;
        freed?;
        modify.join().or_panicked()
    })?;
    // The SRQ was released first, as by the removal of its device.
    refused_as(modified, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE)?;
    drop((ep, srq, recv, request, connect, pz));
    ia.close(Close::Abrupt)?;
    disguise.unload()?;
    // This waits for everything that uses the device.
    guard.delete()?;
    guard.add()
}
