// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Attacks the module over the wire with a hostile peer. `rdmacm-hostile` uses `rdma_cm` and verbs,
//! and knows the address of the victim's memory. A good client transfers data meanwhile.

use super::hostile::{attack, good_transfer, Targets};
use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::plain::{encode, Plain};
use crate::tests::psp::Side;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, Cr, Ep, EpAttr, EpCreator, Evd, EvdFlags, Event, Psp, PspOptions,
};
use std::collections::VecDeque;

tests! {
    #[Hosts]
    changes_only_allowed_memory, 300, "A hostile peer changes only the memory that it may, and does not disturb other connections";
}

/// Connections that the victim keeps with the peer, and requests that it leaves unanswered.
const KEPT_CONNECTIONS: usize = 24;
const UNANSWERED_REQUESTS: usize = 16;
/// The target of the peer's connects.
struct Victim<'a> {
    context: &'a Context,
    eps: VecDeque<Ep>,
    waiting: VecDeque<Cr>,
    points: Vec<Psp>,
    targets: Targets,
    side: Side,
    all: Evd,
    accepted: u64,
}

impl<'a> Victim<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let side = Side::server(context)?;
        let end = &side.end;
        let all = end.ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, 4000)?;
        let mut points = Vec::new();
        for (qual, endpoints) in [
            (context.port(), EpCreator::Consumer),
            (context.port(), EpCreator::Provider),
            // The qualifier that the peer knows.
            (1 << 33, EpCreator::Consumer),
        ] {
            let options = PspOptions { conn_qual: Some(qual), endpoints, ..Default::default() };
            points.push(end.ia.create_psp_with(&side.requests, &options)?);
        }
        Ok(Self {
            context,
            eps: VecDeque::new(),
            waiting: VecDeque::new(),
            points,
            targets: Targets::new(end)?,
            all,
            accepted: 0,
            side,
        })
    }

    /// Answers the requests in different ways, and dequeues all events.
    fn serve(&mut self) -> Result<()> {
        for _ in 0..8 {
            match self.side.requests.dequeue() {
                Ok((Event::ConnectionRequest { cr, .. }, _)) => self.answer(cr)?,
                Ok((event, _)) => anyhow::bail!("expected a request, got {event}"),
                Err(error) if error.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
        }
        while self.all.dequeue().is_ok() {}
        while self.eps.len() > KEPT_CONNECTIONS {
            if let Some(ep) = self.eps.pop_front() {
                // The endpoint may be in any state.
                let _ = ep.disconnect(Close::Abrupt);
                ep.free()?;
            }
        }
        // A dropped request is rejected.
        self.waiting.truncate(UNANSWERED_REQUESTS);
        Ok(())
    }

    fn answer(&mut self, mut cr: Cr) -> Result<()> {
        cr.query()?;
        match self.context.rng().u32(0..10) {
            0 => return Ok(cr.reject(b"no")?),
            1 | 2 => {
                self.waiting.push_front(cr);
                return Ok(());
            }
            _ => {}
        }
        let provided = cr.provided_ep()?;
        let ep = match provided {
            Some(ep) => {
                let (end, all) = (&self.side.end, &self.all);
                let change = libkdapl::EpChange::new().pz(&end.pz);
                ep.modify(change.recv(all).request(all).connect(all))?;
                ep
            }
            None => self.new_ep()?,
        };
        let segment = self.targets.open.segment(0, 64);
        for cookie in 0..4 {
            ep.post_recv(&[segment], cookie, CompletionFlags::default())?;
        }
        // The private data tell the peer its target.
        cr.accept(&ep, &encode(self.targets.remote()))?;
        self.accepted += 1;
        self.eps.push_back(ep);
        Ok(())
    }

    fn new_ep(&self) -> Result<Ep> {
        let attr = EpAttr { max_recv_dtos: 8, max_request_dtos: 8, ..Default::default() };
        let (end, all) = (&self.side.end, &self.all);
        Ok(end.ia.create_ep(&end.pz, all, all, all, Some(attr))?)
    }

    fn ports(&self) -> impl Iterator<Item = u64> + '_ {
        let shared = u64::from(libkdapl::sys::KDAPL_SHARED_PORT);
        let own = self.points.iter().map(Psp::conn_qual).filter(|qual| *qual <= 0xffff);
        own.chain([shared])
    }
}

/// Serves a good client during the attack, which depends on the seed. Prints the peer's counts.
fn phase(context: &Context, seed: u64, seconds: u64) -> Result<()> {
    let mut victim = Victim::new(context)?;
    let pair = Pair::new(context, Shape::default())?;
    let ports: Vec<_> = victim.ports().map(|port| port.to_string()).collect();
    let (seed, seconds) = (seed.to_string(), seconds.to_string());
    let address = context.server_address().to_string();
    let mut arguments = vec!["--address", &address, "--seed", &seed, "--seconds", &seconds];
    ports.iter().for_each(|port| arguments.extend(["--port", port]));
    let mut peer = Plain::start_unprivileged(&context.client, "rdmacm-hostile", &arguments)?;
    let mut transfers = 0;
    while peer.is_running()? {
        victim.serve()?;
        good_transfer(context, &pair).with_context(|| format!("transfer {transfers}"))?;
        transfers += 1;
    }
    let (status, told) = peer.ends()?;
    print!("{told}");
    println!("{} accepted; {transfers} good transfers in each direction", victim.accepted);
    ensure!(status.success(), "the peer ended with {status}");
    ensure!(transfers > 0, "no transfer was done");
    // A spoilt link may lose each of the few requests of a phase.
    ensure!(victim.accepted > 0 || context.link_is_spoilt(), "no connection was accepted");
    victim.targets.intact()?;
    // One more transfer, after the peer has ended.
    good_transfer(context, &pair)
}

fn changes_only_allowed_memory(context: &Context) -> Result<()> {
    attack(context, phase)
}
