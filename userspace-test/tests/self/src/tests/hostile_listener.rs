// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Attacks the module over the wire with hostile listeners. The victim connects to `rdmacm-hostile
//! --listen` again and again. A good client transfers data meanwhile.

use super::hostile::{attack, good_transfer, Targets};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::connection;
use crate::harness::skip;
use crate::plain::{encode, Plain};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, Ep, EpAttr, Evd, EvdFlags, Event, Handle, Lmr, Segment,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

tests! {
    #[Address]
    rejects_with_every_reason, 120, "A peer may reject with any reason, and with any private data";
    #[Hosts]
    changes_only_allowed_memory, 300, "Hostile listeners change only the memory that they may, and do not disturb other connections";
}

/// Number of listeners, and of endpoints that connect to them at the same time.
const LISTENERS: u64 = 2;
const CALLERS: usize = 12;

/// The stage of an endpoint, according to its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionStage {
    Connecting,
    Established,
    Over,
}

struct Caller {
    ep: Ep,
    stage: ConnectionStage,
    /// Rounds until the endpoint is freed. It is never freed before the outcome of its connect.
    left: u32,
}

/// The caller of the hostile listeners.
struct Victim<'a> {
    context: &'a Context,
    end: End,
    all: Evd,
    callers: Vec<Caller>,
    ports: Vec<u64>,
    targets: Targets,
    outcomes: BTreeMap<String, u64>,
}

impl<'a> Victim<'a> {
    fn new(context: &'a Context, ports: Vec<u64>) -> Result<Self> {
        let end = End::new(&context.open()?, Shape::default())?;
        Ok(Self {
            context,
            all: end.ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 4000)?,
            callers: Vec::new(),
            ports,
            targets: Targets::new(&end)?,
            outcomes: BTreeMap::new(),
            end,
        })
    }

    /// Connects a new endpoint, with receives posted before.
    fn connect(&mut self) -> Result<()> {
        let attr = EpAttr { max_recv_dtos: 8, max_request_dtos: 8, ..Default::default() };
        let (end, all, rng) = (&self.end, &self.all, &mut self.context.rng());
        let ep = end.ia.create_ep(&end.pz, all, all, all, Some(attr))?;
        for cookie in 0..rng.u64(0..6) {
            ep.post_recv(&[self.targets.open.segment(0, 64)], cookie, CompletionFlags::default())?;
        }
        let port = self.ports[rng.usize(..self.ports.len())];
        let time = self.context.scaled(Duration::from_millis(rng.u64(1..400)));
        // The private data tell the listener its target.
        let data = encode(self.targets.remote());
        ep.connect(self.context.server_address(), port, Some(time), &data)?;
        self.callers.push(Caller { ep, stage: ConnectionStage::Connecting, left: rng.u32(0..40) });
        Ok(())
    }

    /// Dequeues all events, and acts on each endpoint.
    fn act(&mut self) -> Result<()> {
        while self.callers.len() < CALLERS {
            self.connect()?;
        }
        self.hear()?;
        for at in (0..self.callers.len()).rev() {
            self.go_on(at)?;
        }
        Ok(())
    }

    /// Dequeues all events, and checks that each is valid now.
    fn hear(&mut self) -> Result<()> {
        loop {
            let event = match self.all.dequeue() {
                Ok((event, _)) => event,
                Err(error) if error.is_empty() => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            if let Event::Connection { event, ep, .. } = event {
                self.heard(event, ep)?;
            }
        }
    }

    fn heard(&mut self, event: ConnectionEvent, ep: Handle) -> Result<()> {
        // The events of a freed endpoint stay queued.
        let Some(caller) = self.callers.iter_mut().find(|caller| caller.ep.handle() == ep) else {
            return Ok(());
        };
        caller.stage = match (caller.stage, event) {
            (ConnectionStage::Connecting, ConnectionEvent::Established) => {
                ConnectionStage::Established
            }
            (
                ConnectionStage::Connecting,
                ConnectionEvent::PeerRejected
                | ConnectionEvent::NonPeerRejected
                | ConnectionEvent::TimedOut
                | ConnectionEvent::Unreachable,
            )
            | (
                ConnectionStage::Established,
                ConnectionEvent::Disconnected | ConnectionEvent::Broken,
            ) => ConnectionStage::Over,
            (stage, event) => bail!("{event} of an endpoint in stage {stage:?}"),
        };
        *self.outcomes.entry(event.to_string()).or_default() += 1;
        Ok(())
    }

    /// Lets an endpoint post a DTO, or frees it.
    fn go_on(&mut self, at: usize) -> Result<()> {
        let rng = &mut self.context.rng();
        let caller = &mut self.callers[at];
        if caller.stage == ConnectionStage::Connecting {
            return Ok(());
        }
        if caller.stage == ConnectionStage::Established && caller.left > 0 {
            caller.left -= 1;
            post_anything(rng, caller, &self.targets.open);
            return Ok(());
        }
        let caller = self.callers.swap_remove(at);
        // The peer may have sent private data.
        let _ = caller.ep.private_data();
        match rng.u32(0..4) {
            // The endpoint may be in any state.
            0 => drop(caller.ep.disconnect(Close::Abrupt)),
            1 => drop(caller.ep.disconnect(Close::Graceful)),
            2 => drop(caller.ep.reset()),
            _ => {}
        }
        Ok(caller.ep.free()?)
    }

    /// Waits until each connect has an outcome.
    fn settle(&mut self) -> Result<()> {
        let (context, mut callers) = (self.context, usize::MAX);
        context.until("every connect has an outcome", || {
            self.hear()?;
            let connecting = |caller: &&Caller| caller.stage == ConnectionStage::Connecting;
            callers = self.callers.iter().filter(connecting).count();
            Ok(callers == 0)
        })
    }
}

/// Posts a random DTO to a peer that may be gone, with a random address of the peer's memory.
fn post_anything(rng: &mut fastrand::Rng, caller: &Caller, open: &Lmr) {
    let (segment, flags) = ([open.segment(64, 64)], CompletionFlags::default());
    let remote = Segment { address: rng.u64(..), context: rng.u32(..), length: 64 };
    // The connection may have ended, or the queue may be full.
    let _ = match rng.u32(0..12) {
        0 => caller.ep.post_send(&segment, 100, flags),
        1 => caller.ep.post_recv(&[open.segment(0, 64)], 101, flags),
        2 => caller.ep.post_rdma_write(&segment, remote, 102, flags),
        3 => caller.ep.post_rdma_read(&segment, remote, 103, flags),
        _ => Ok(()),
    };
}

/// `IB_CM_REJ_TIMEOUT`: `ib_cm` takes this reject for that of another connection.
const REJ_TIMEOUT: u8 = 4;
/// `IB_CM_REJ_CONSUMER_DEFINED`.
const REJ_CONSUMER: u8 = 28;
/// Longest private data of a reject, in bytes.
const REJECT_BYTES: u8 = 148;

fn rejects_with_every_reason(context: &Context) -> Result<()> {
    if context.server.is_siw() {
        return skip("iWARP has no reject reasons");
    }
    context.rejects_arrive()?;
    let port = context.port();
    let _listener =
        context.server.inside(|| Loaded::new("kdapl_rejects", &format!("port={port}")))??;
    let end = End::new(&context.open()?, Shape::default())?;
    let reasons: Vec<_> = (0..=u8::MAX).collect();
    for &reason in context.sample(&reasons) {
        let length =
            [0, 1, REJECT_BYTES, context.rng().u8(..=REJECT_BYTES)][usize::from(reason) % 4];
        rejected(context, &end, port, reason, length)
            .with_context(|| format!("reason {reason}, {length} bytes"))?;
    }
    Ok(())
}

fn rejected(context: &Context, end: &End, port: u64, reason: u8, length: u8) -> Result<()> {
    let time = if reason == REJ_TIMEOUT { Duration::from_millis(50) } else { context.patience() };
    end.ep.connect(context.server_address(), port, Some(time), &[reason, length])?;
    let expected = match reason {
        REJ_TIMEOUT => ConnectionEvent::TimedOut,
        REJ_CONSUMER => ConnectionEvent::PeerRejected,
        _ => ConnectionEvent::NonPeerRejected,
    };
    connection(&context.next(&end.connect)?, expected)?;
    if reason == REJ_CONSUMER {
        let data = end.ep.private_data()?;
        ensure!(data.starts_with(&vec![0x5a; length.into()]), "the private data are {data:?}");
    }
    Ok(end.ep.reset()?)
}

/// Serves a good client while the victim connects to listeners, whose acts depend on the seed.
fn phase(context: &Context, seed: u64, seconds: u64) -> Result<()> {
    // Connected before the attack begins: that may take as long as it over a spoilt link.
    let pair = Pair::new(context, Shape::default())?;
    let ports: Vec<_> = (0..LISTENERS).map(|_| context.port()).collect();
    let mut victim = Victim::new(context, ports.clone())?;
    let mut peers = Vec::new();
    let address = context.server_address().to_string();
    for (number, port) in (0..).zip(ports) {
        let text = (port.to_string(), (seed + number).to_string(), seconds.to_string());
        let arguments = ["--listen", "--address", &address, "--port", &text.0];
        let arguments = [&arguments[..], &["--seed", &text.1, "--seconds", &text.2]].concat();
        let mut peer = Plain::start_unprivileged(&context.server, "rdmacm-hostile", &arguments)?;
        peer.says(&format!("listening {port}"))?;
        peers.push(peer);
    }
    let mut transfers = 0;
    while peers[0].is_running()? {
        victim.act()?;
        good_transfer(context, &pair).with_context(|| format!("transfer {transfers}"))?;
        transfers += 1;
    }
    let mut told = String::new();
    for peer in peers {
        let (status, text) = peer.ends()?;
        ensure!(status.success(), "a listener ended with {status}");
        told += &text;
    }
    victim.settle()?;
    for (event, count) in &victim.outcomes {
        let _ = write!(told, "{event} {count}, ");
    }
    println!("{told}{transfers} good transfers in each direction");
    ensure!(transfers > 0, "no transfer was done");
    let is_established = victim.outcomes.contains_key(ConnectionEvent::Established.name());
    // A spoilt link may delay each of the few replies of a phase too long.
    ensure!(is_established || context.link_is_spoilt(), "no connection was established");
    victim.targets.intact()?;
    // One more transfer, after the peers have ended.
    good_transfer(context, &pair)
}

fn changes_only_allowed_memory(context: &Context) -> Result<()> {
    attack(context, phase)
}
