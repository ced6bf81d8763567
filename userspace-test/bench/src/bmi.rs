// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of BMI by `libkdapl-bmi`, compared with the same transfers by bare Endpoints.
//!
//! Both sides are objects of this program, whose only thread waits for each completion. A message
//! of 1 KiB is posted when its receive is, and the time is that of the message with all work on
//! both sides. Long messages are eight in flight, into memory that is registered before: by RDMA
//! writes of bare Endpoints, which know the memory, and by BMI, which agrees on it for each
//! message.

use crate::benchmark::Sink;
use crate::ends::PATIENCE;
use crate::sample::Sample;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, Evd, EvdFlags,
    Event, Ia, Lmr, Privileges, Pz,
};
use libkdapl_bmi::{Bmi, Context, Memory, Options, Peer};
use std::time::{Duration, Instant};

const PORT: u64 = 7197;
const MESSAGE: usize = 1024;
const MESSAGES: u32 = 400;
/// Long messages in flight.
const DEPTH: usize = 8;
/// Bytes that are moved to measure a length.
const VOLUME: usize = 64 << 20;
const IDLE_PEERS: usize = 1000;
const TESTS: u32 = 20_000;

/// Two connected Endpoints, each with its own EVD.
struct Bare {
    lmr: Lmr,
    from: (Ep, Evd),
    to: (Ep, Evd),
    _ia: Ia,
}

fn device() -> Result<(String, std::net::IpAddr)> {
    let devices = libkdapl::devices()?;
    let device = devices.into_iter().find(|device| device.port_active).context("no RDMA device")?;
    let address = device.address.context("the RDMA device has no address")?;
    Ok((device.name, address))
}

impl Bare {
    fn new(memory: usize) -> Result<Self> {
        let (name, address) = device()?;
        let ia = Ia::open(&name, 16)?;
        let pz: Pz = ia.create_pz()?;
        let meet = ia.create_evd(EvdFlags::CR | EvdFlags::CONNECTION, 16)?;
        let attr = EpAttr { max_recv_dtos: 64, max_request_dtos: 64, ..Default::default() };
        let end = || -> Result<(Ep, Evd)> {
            let evd = ia.create_evd(EvdFlags::DTO, 256)?;
            Ok((ia.create_ep(&pz, &evd, &evd, &meet, Some(attr))?, evd))
        };
        let (from, to) = (end()?, end()?);
        let lmr = ia.register(&pz, Buffer::new(2 * memory)?, Privileges::ALL)?;
        let _psp = ia.create_psp(PORT, &meet)?;
        from.0.connect(address, PORT, Some(PATIENCE), &[])?;
        for _ in 0..3 {
            match meet.wait(Some(PATIENCE), 1)?.0 {
                Event::ConnectionRequest { mut cr, .. } => cr.accept(&to.0, &[])?,
                Event::Connection { event: ConnectionEvent::Established, .. } => {}
                other => bail!("{other} instead of a connection"),
            }
        }
        Ok(Self { lmr, from, to, _ia: ia })
    }

    fn message(&self) -> Result<()> {
        let flags = CompletionFlags::default();
        self.to.0.post_recv(&[self.lmr.segment(MESSAGE, MESSAGE)], 0, flags)?;
        self.from.0.post_send(&[self.lmr.segment(0, MESSAGE)], 0, flags)?;
        successful(&self.to.1)?;
        successful(&self.from.1)
    }

    /// Writes `count` messages, eight in flight.
    fn writes(&self, length: usize, count: usize) -> Result<()> {
        let post = |slot: usize| {
            let at = slot % DEPTH * length;
            let (local, remote) = (
                self.lmr.segment(at, length),
                self.lmr.remote_segment(at + DEPTH * length, length),
            );
            let flags = CompletionFlags::default();
            self.from.0.post(DtoOperation::RdmaWrite, &[local], Some(remote), 0, flags)
        };
        (0..DEPTH).try_for_each(post)?;
        for number in 0..count {
            successful(&self.from.1)?;
            if number + DEPTH < count {
                post(number)?;
            }
        }
        Ok(())
    }
}

fn successful(evd: &Evd) -> Result<()> {
    match evd.wait(Some(PATIENCE), 1)?.0 {
        Event::Dto(dto) if dto.status == DtoStatus::Success => Ok(()),
        other => bail!("{other} instead of a success"),
    }
}

/// Two instances of BMI.
struct Sides {
    client: (Context, Bmi),
    server: (Context, Bmi),
    to: Peer,
    from: Peer,
}

fn open(options: &Options) -> Result<(Context, Bmi)> {
    let bmi = Bmi::open(options)?;
    Ok((bmi.open_context()?, bmi))
}

impl Sides {
    fn new(pull: bool) -> Result<Self> {
        let (name, address) = device()?;
        let place = std::net::SocketAddr::new(address, PORT as u16 + 1);
        let options = Options { adapter: Some(name), pull, ..Options::default() };
        let listening = Options { listen: Some(format!("kdapl://{place}")), ..options.clone() };
        let (server, client) = (open(&listening)?, open(&options)?);
        let to = client.1.lookup(&format!("kdapl://{place}"))?;
        let from = greet(&client.0, &server.1, &to)?;
        Ok(Self { client, server, to, from })
    }

    fn message(&self, sent: &Memory, got: &Memory) -> Result<()> {
        let receive = self.server.0.receive(&self.from, 1, &[got.whole()], 0)?;
        let send = self.client.0.send(&self.to, 1, &[sent.whole()], 0)?;
        finish(&self.server.0, receive)?;
        finish(&self.client.0, send)
    }

    /// Sends `count` messages, eight in flight.
    fn messages(&self, (sent, got): (&Memory, &Memory), count: usize) -> Result<()> {
        let length = sent.length() / DEPTH;
        let post = |number: usize| -> Result<_> {
            let at = number % DEPTH * length;
            let receive = self.server.0.receive(&self.from, 1, &[got.part(at, length)], 0)?;
            Ok((receive, self.client.0.send(&self.to, 1, &[sent.part(at, length)], 0)?))
        };
        let mut flying = (0..DEPTH).map(post).collect::<Result<std::collections::VecDeque<_>>>()?;
        for number in 0..count {
            let (receive, send) = flying.pop_front().context("a message in flight")?;
            finish(&self.server.0, receive)?;
            finish(&self.client.0, send)?;
            if number + DEPTH < count {
                flying.push_back(post(number)?);
            }
        }
        Ok(())
    }
}

/// Connects to a server. Returns the client at the server.
fn greet(context: &Context, server: &Bmi, to: &Peer) -> Result<Peer> {
    let send = context.send_unexpected(to, 0, &[], 0)?;
    let mut taken = server.wait_unexpected(1, Some(PATIENCE))?;
    finish(context, send)?;
    Ok(taken.pop().context("no message")?.peer)
}

fn finish(context: &Context, op: libkdapl_bmi::Op) -> Result<()> {
    let done = context.wait_for(op, Some(PATIENCE))?.context("an operation does not end")?;
    Ok(done.result?)
}

/// Returns the nanoseconds of one of `count` operations.
fn each(count: u32, work: impl Fn() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    (0..count).try_for_each(|_| work())?;
    Ok(start.elapsed().as_secs_f64() * 1e9 / f64::from(count))
}

fn short(sink: Sink<'_>) -> Result<()> {
    let (bare, sides) = (Bare::new(MESSAGE)?, Sides::new(true)?);
    let (sent, got) = (sides.client.1.alloc(MESSAGE)?, sides.server.1.alloc(MESSAGE)?);
    let ours = || each(MESSAGES, || sides.message(&sent, &got));
    let peers = || each(MESSAGES, || bare.message());
    ours()?;
    peers()?;
    let figures = (ours()? / 1000.0, peers()? / 1000.0);
    sink(Sample::new("bmi", "message of 1 KiB: BMI and bare Endpoints", "us", figures, 1.15))
}

fn long(sink: Sink<'_>) -> Result<()> {
    for length in [256 << 10, 4 << 20] {
        let count = (VOLUME / length).max(2 * DEPTH);
        let bare = Bare::new(DEPTH * length)?;
        bare.writes(length, DEPTH)?;
        let peers = each(1, || bare.writes(length, count))? / count as f64 / 1000.0;
        for pull in [false, true] {
            let sides = Sides::new(pull)?;
            let memory = |bmi: &Bmi| bmi.alloc(DEPTH * length);
            let (sent, got) = (memory(&sides.client.1)?, memory(&sides.server.1)?);
            sides.messages((&sent, &got), DEPTH)?;
            let ours = each(1, || sides.messages((&sent, &got), count))? / count as f64 / 1000.0;
            let way = if pull { "read" } else { "written" };
            let name = format!("message of {} KiB, {way}: BMI and RDMA writes", length >> 10);
            sink(Sample::new("bmi", &name, "us", (ours, peers), 1.0 / 0.95))?;
        }
    }
    Ok(())
}

/// Cost of a test that finds nothing, with many idle peers and with one.
fn idle(sink: Sink<'_>) -> Result<()> {
    let sides = Sides::new(true)?;
    let test = || -> Result<()> {
        let taken = sides.client.0.wait(8, Some(Duration::ZERO))?;
        ensure!(taken.is_empty(), "a result");
        Ok(())
    };
    each(TESTS, test)?;
    let one = each(TESTS, test)?;
    let address = sides.server.1.address().context("an address")?;
    let mut peers = Vec::new();
    for _ in 1..IDLE_PEERS {
        let peer = sides.client.1.lookup(&address)?;
        let back = greet(&sides.client.0, &sides.server.1, &peer)?;
        peers.push((peer, back));
    }
    each(TESTS, test)?;
    let many = each(TESTS, test)?;
    let name = "test that finds nothing: 1,000 idle peers and one";
    sink(Sample::new("bmi", name, "ns", (many, one), 1.05))?;
    let mib = sides.server.1.registered() as f64 / 1_048_576.0;
    let name = "registered memory of a server with 1,000 peers";
    sink(Sample::alone("bmi", name, "MiB", mib, Some(20.0)))
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    short(sink)?;
    long(sink)?;
    idle(sink)
}
