// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cost of memory and of transfers: kDAPL compared with `verbs-cost`, a program on libibverbs, and
//! kDAPL's provider compared with Debian's (`udapl-cost`, the same program over both).
//!
//! All programs are alike: two connected endpoints of one program, which sleeps until completions
//! arrive. A list is 16 receives and 16 sends of 64 bytes, of which the last is signalled. A stream
//! keeps 16 operations of 64 KiB in flight. uDAPL has no lists: each DTO is a call.

use crate::benchmark::Sink;
use crate::ends::{arrived, PATIENCE};
use crate::sample::Sample;
use crate::side::text;
use anyhow::{bail, ensure, Context, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, Dto, DtoOperation, DtoStatus, Ep, EpAttr, Evd,
    EvdFlags, Event, Ia, Lmr, Privileges, Pz, RmrBinding, Segment, Wait,
};
use std::sync::Arc;
use std::time::Instant;

const PORT: u64 = 7198;
const LONG: usize = 64 << 10;
const MESSAGE: usize = 64;
const LIST: u32 = 16;
const WINDOW: u32 = 16;
const DEPTH: u32 = 64;

/// A measurement, as `verbs-cost` and `udapl-cost` name it.
struct What {
    name: &'static str,
    title: &'static str,
    /// Number of operations.
    count: u32,
    /// Whether `udapl-cost` has it.
    in_udapl: bool,
}

const ALL: [What; 7] = [
    What { name: "register-4096", title: "LMR of 4 KiB", count: 300, in_udapl: true },
    What { name: "register-1048576", title: "LMR of 1 MiB", count: 60, in_udapl: true },
    What { name: "bind", title: "RMR bind", count: 300, in_udapl: false },
    What { name: "list", title: "send of 64 bytes in a list of 16", count: 1600, in_udapl: true },
    What { name: "send", title: "send of 64 KiB", count: 160, in_udapl: true },
    What { name: "write", title: "RDMA write of 64 KiB", count: 160, in_udapl: true },
    What { name: "read", title: "RDMA read of 64 KiB", count: 160, in_udapl: true },
];

/// Two endpoints of this program, with one EVD.
struct Loop {
    ia: Ia,
    pz: Pz,
    evd: Evd,
    lmr: Lmr,
    from: Ep,
    to: Ep,
}

impl Loop {
    fn new() -> Result<Self> {
        let devices = libkdapl::devices()?;
        let device = devices.iter().find(|device| device.port_active).context("no RDMA device")?;
        let ia = Ia::open(&device.name, 64)?;
        let pz = ia.create_pz()?;
        let evd = ia.create_evd(EvdFlags::DTO | EvdFlags::RMR_BIND, 4 * DEPTH as i32)?;
        let meet = ia.create_evd(EvdFlags::CR | EvdFlags::CONNECTION, 16)?;
        let buffer = Buffer::new(2 * LONG)?;
        buffer.fill(0, 2 * LONG, 1);
        let lmr = ia.register(&pz, buffer, Privileges::ALL)?;
        let attr = EpAttr { max_recv_dtos: DEPTH, max_request_dtos: DEPTH, ..Default::default() };
        let ep = || ia.create_ep(&pz, &evd, &evd, &meet, Some(attr));
        let (from, to) = (ep()?, ep()?);
        let _psp = ia.create_psp(PORT, &meet)?;
        let address = device.address.context("the RDMA device has no address")?;
        from.connect(address, PORT, Some(PATIENCE), &[])?;
        for _ in 0..3 {
            match meet.wait(Some(PATIENCE), 1)?.0 {
                Event::ConnectionRequest { mut cr, .. } => cr.accept(&to, &[])?,
                Event::Connection { event: ConnectionEvent::Established, .. } => {}
                other => bail!("{other} instead of a connection"),
            }
        }
        Ok(Self { ia, pz, evd, lmr, from, to })
    }

    /// Takes `count` events of successful operations.
    fn complete(&self, count: u32) -> Result<()> {
        (0..count).try_for_each(|_| successful(&self.evd.wait(Some(PATIENCE), 1)?.0))
    }

    /// Returns the nanoseconds of an operation; of a registration also those of its free.
    fn measure(&self, name: &str, count: u32) -> Result<Vec<f64>> {
        if let Some(bytes) = name.strip_prefix("register-") {
            return self.registrations(count, bytes.parse()?);
        }
        let start = Instant::now();
        match name {
            "bind" => self.binds(count)?,
            "empty" => (0..count).try_for_each(|_| self.dequeue_nothing())?,
            "list" => (0..count / LIST).try_for_each(|_| self.list())?,
            "send" => self.stream(count, DtoOperation::Send)?,
            "write" => self.stream(count, DtoOperation::RdmaWrite)?,
            "short-write" => self.short_writes(count)?,
            "read" => self.stream(count, DtoOperation::RdmaRead)?,
            other => bail!("there is no measurement '{other}'"),
        }
        Ok(vec![start.elapsed().as_secs_f64() * 1e9 / f64::from(count)])
    }

    fn registrations(&self, count: u32, bytes: usize) -> Result<Vec<f64>> {
        let buffer = Arc::new(Buffer::new(bytes)?);
        buffer.fill(0, bytes, 1);
        let (mut made, mut freed) = (0.0, 0.0);
        for _ in 0..count {
            let start = Instant::now();
            let lmr = self.ia.register(&self.pz, buffer.clone(), Privileges::ALL)?;
            let then = Instant::now();
            made += (then - start).as_secs_f64();
            lmr.free()?;
            freed += then.elapsed().as_secs_f64();
        }
        Ok([made, freed].map(|time| time * 1e9 / f64::from(count)).to_vec())
    }

    fn dequeue_nothing(&self) -> Result<()> {
        ensure!(self.evd.dequeue().is_err_and(|error| error.is_empty()), "an event");
        Ok(())
    }

    /// Binds an RMR to the same part again and again.
    fn binds(&self, count: u32) -> Result<()> {
        let rmr = self.ia.create_rmr(&self.pz)?;
        let privileges = Privileges::REMOTE_READ | Privileges::REMOTE_WRITE;
        let part = RmrBinding { lmr: &self.lmr, segment: self.lmr.segment(0, LONG), privileges };
        for _ in 0..count {
            rmr.bind(&self.from, &part, 1, CompletionFlags::default())?;
            self.complete(1)?;
        }
        Ok(rmr.free()?)
    }

    fn list(&self) -> Result<()> {
        let (mine, theirs) = ([self.lmr.segment(0, MESSAGE)], [self.lmr.segment(LONG, MESSAGE)]);
        let receives = [Dto::recv(&theirs, 0, CompletionFlags::default()); LIST as usize];
        self.to.submit(&receives, None).event?;
        let mut sends = [Dto::send(&mine, 0, CompletionFlags::SUPPRESS); LIST as usize];
        sends[LIST as usize - 1] = Dto::send(&mine, 0, CompletionFlags::default());
        let threshold = LIST as i32 + 1;
        let wait = Wait { evd: &self.evd, timeout: Some(PATIENCE), threshold };
        let (first, _) = self.from.submit(&sends, Some(wait)).event?.context("no event")?;
        successful(&first)?;
        let (rest, _) = self.evd.dequeue_many(LIST as usize)?;
        ensure!(rest.len() == LIST as usize, "{} events instead of {LIST}", rest.len());
        rest.iter().try_for_each(successful)
    }

    fn post(&self, operation: DtoOperation) -> Result<()> {
        let (mine, flags) = ([self.lmr.segment(0, LONG)], CompletionFlags::default());
        let remote: Segment = self.lmr.remote_segment(LONG, LONG);
        if operation == DtoOperation::Send {
            self.to.post_recv(&[self.lmr.segment(LONG, LONG)], 0, flags)?;
            return Ok(self.from.post_send(&mine, 0, flags)?);
        }
        Ok(self.from.post(operation, &mine, Some(remote), 0, flags)?)
    }

    /// Keeps RDMA writes of 4 bytes in flight.
    fn short_writes(&self, count: u32) -> Result<()> {
        let (mine, there) = ([self.lmr.segment(0, 4)], self.lmr.remote_segment(LONG, 4));
        let post = || self.from.post_rdma_write(&mine, there, 0, CompletionFlags::default());
        (0..WINDOW).try_for_each(|_| post())?;
        for done in 0..count {
            self.complete(1)?;
            if done + WINDOW < count {
                post()?;
            }
        }
        Ok(())
    }

    fn stream(&self, count: u32, operation: DtoOperation) -> Result<()> {
        let events = if operation == DtoOperation::Send { 2 } else { 1 };
        (0..WINDOW).try_for_each(|_| self.post(operation))?;
        for done in 0..count {
            self.complete(events)?;
            if done + WINDOW < count {
                self.post(operation)?;
            }
        }
        Ok(())
    }
}

fn successful(event: &Event) -> Result<()> {
    match event {
        Event::RmrBind { status: DtoStatus::Success, .. } => Ok(()),
        Event::Dto(dto) => arrived(event, dto.operation).map(drop),
        other => bail!("{other} instead of a completion"),
    }
}

/// Runs a program that prints numbers, one on each line.
fn printed(line: &str) -> Result<Vec<f64>> {
    let text = text(line)?;
    text.lines().map(|line| line.parse().with_context(|| text.clone())).collect()
}

fn over_verbs(what: &What) -> Result<Vec<f64>> {
    printed(&format!("verbs-cost rxe0 {} {}", what.count, what.name))
}

fn over_provider(conf: &str, what: &What) -> Result<Vec<f64>> {
    let What { count, name, .. } = what;
    printed(&format!("env DAT_OVERRIDE={conf} udapl-cost ofa0 {count} {name}"))
}

/// Reports a comparison, of a registration also that of its free.
fn report(sink: Sink<'_>, prefix: &str, what: &What, ours: &[f64], peers: &[f64]) -> Result<()> {
    ensure!(ours.len() == peers.len() && !ours.is_empty(), "{}: {ours:?} {peers:?}", what.name);
    for ((ours, peers), suffix) in ours.iter().zip(peers).zip(["", ", its free"]) {
        let title = format!("{prefix}{}{suffix}", what.title);
        sink(Sample::new("transfer", &title, "us", (ours / 1e3, peers / 1e3), 1.0))?;
    }
    Ok(())
}

/// Measures one operation.
pub fn cost(count: u32, name: &str) -> Result<()> {
    Loop::new()?.measure(name, count)?.iter().for_each(|time| println!("{time:.3}"));
    Ok(())
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    // The first registrations of a boot take 4 us longer than later ones, over verbs too.
    over_verbs(&ALL[0])?;
    for what in &ALL {
        // A new connection for each, as the other programs have it.
        let ours = Loop::new()?.measure(what.name, what.count)?;
        report(sink, "", what, &ours, &over_verbs(what)?)?;
        if what.in_udapl {
            let ours = over_provider("/etc/dat.conf", what)?;
            let peers = over_provider("/etc/dat-ofa.conf", what)?;
            report(sink, "uDAPL: ", what, &ours, &peers)?;
        }
    }
    Ok(())
}
