// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Random lives of two real endpoints, with the module's own model of an endpoint beside each.
//!
//! The network acts when it likes, so the model is in several phases at once: all that agree with
//! what was seen so far. Every answer of the kernel leaves those that could have given it; if none
//! is left, kernel and model disagree.

mod chances;
mod side;

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener};
use crate::rust::model::ep::{Close, Input, Paths};
use anyhow::{ensure, Context as _, Result};
use chances::Network;
use libkdapl::{Cr, EpState, Error, Event, Subtype};
use side::{shape, Side, MOST};
use std::time::Duration;

tests! {
    walk, 600, "In random lives of two endpoints each state, answer and event is one that the model allows";
}

const STEPS: usize = 40;
/// Both of them, and what the network knows.
struct World<'a> {
    context: &'a Context,
    client: Side,
    server: Side,
    listener: Listener,
    attempt: u32,
    /// The present attempt has a time-out that may be over.
    short: bool,
    rejected: bool,
    log: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Connect,
    ConnectShortly,
    Accept,
    Reject,
    Disconnect(bool, Close),
    Reset(bool),
    Modify(bool),
    PostRecv(bool),
    PostSend(bool),
    Replace(bool),
    Take(bool),
    Look(bool),
    Sleep,
}

impl World<'_> {
    /// What may happen to the client (or the server) by now.
    fn network(&self, client: bool) -> Network {
        let together = self.server.attempt == self.attempt;
        if client {
            Network {
                accepted: together,
                rejected: self.rejected,
                timed_out: self.short,
                peer_ended: together && self.server.ended,
            }
        } else {
            Network {
                accepted: together,
                rejected: false,
                timed_out: false,
                peer_ended: !together || self.client.ended || self.short,
            }
        }
    }

    fn side(&mut self, client: bool) -> (&mut Side, Network) {
        let network = self.network(client);
        (if client { &mut self.client } else { &mut self.server }, network)
    }

    fn choose(&self, rng: &mut fastrand::Rng) -> Act {
        let side = rng.bool();
        let close = if rng.bool() { Close::Abrupt } else { Close::Graceful };
        match rng.u8(0..24) {
            0..=2 => Act::Connect,
            3 => Act::ConnectShortly,
            4..=6 => Act::Accept,
            7 => Act::Reject,
            8..=9 => Act::Disconnect(side, close),
            10..=11 => Act::Reset(side),
            12 => Act::Modify(side),
            13..=14 => Act::PostRecv(side),
            15..=16 => Act::PostSend(side),
            17 if rng.u8(0..4) == 0 => Act::Replace(side),
            17..=19 => Act::Take(side),
            20..=22 => Act::Look(side),
            _ => Act::Sleep,
        }
    }

    fn connect(&mut self, time: Duration, short: bool) -> Result<()> {
        let (address, port) = (self.context.server_address(), self.listener.port);
        let next = (self.attempt + 1).to_le_bytes();
        let network = self.network(true);
        let outcome = self.client.end.ep.connect(address, port, Some(time), &next);
        if self.client.call(network, Input::Connect(Paths::Plain), outcome)? {
            self.attempt += 1;
            (self.short, self.rejected, self.client.ended) = (short, false, false);
            self.client.attempt = self.attempt;
        }
        Ok(())
    }

    /// The oldest request, with the attempt that it is of.
    fn request(&self) -> Result<Option<(Cr, u32)>> {
        let Ok((Event::ConnectionRequest { cr, .. }, _)) = self.listener.evd.dequeue() else {
            return Ok(None);
        };
        let data = cr.query()?.private_data;
        let attempt = data.first_chunk().context("a request without its number")?;
        Ok(Some((cr, u32::from_le_bytes(*attempt))))
    }

    fn accept(&mut self) -> Result<()> {
        let Some((mut cr, attempt)) = self.request()? else {
            return Ok(());
        };
        let network = self.network(false);
        let outcome = cr.accept(&self.server.end.ep, &[]);
        let gone = Some(Subtype::INVALID_HANDLE_CR);
        if outcome.as_ref().err().and_then(Error::subtype) == gone {
            return Ok(());
        }
        if self.server.call(network, Input::Accept, outcome)? {
            (self.server.attempt, self.server.ended) = (attempt, false);
        } else {
            // As it would be when it is dropped; but over iWARP a peer that says nothing cannot be
            // told from one that hangs up.
            let _ = cr.reject(b"no");
            self.rejected |= attempt == self.attempt;
        }
        Ok(())
    }

    fn act(&mut self, act: Act, rng: &mut fastrand::Rng) -> Result<()> {
        match act {
            Act::Connect => self.connect(self.context.patience() * 3, false),
            Act::ConnectShortly => self.connect(Duration::from_micros(rng.u64(1..4000)), true),
            Act::Accept => self.accept(),
            Act::Reject => {
                if let Some((mut cr, attempt)) = self.request()? {
                    cr.reject(b"no")?;
                    self.rejected |= attempt == self.attempt;
                }
                Ok(())
            }
            Act::Disconnect(client, close) => {
                let (side, network) = self.side(client);
                let how = match close {
                    Close::Abrupt => libkdapl::Close::Abrupt,
                    Close::Graceful => libkdapl::Close::Graceful,
                };
                let outcome = side.end.ep.disconnect(how);
                side.ended |= side.call(network, Input::Disconnect(close), outcome)?;
                Ok(())
            }
            Act::Reset(client) => {
                let (side, network) = self.side(client);
                let before = side.look(network)?;
                let outcome = side.end.ep.reset();
                let done = side.call(network, Input::Reset, outcome)?;
                // That of an unconnected one does nothing.
                side.stale |= done && before != EpState::Unconnected;
                Ok(())
            }
            Act::Modify(client) => {
                let (side, network) = self.side(client);
                side.modify(network)
            }
            Act::PostRecv(client) => {
                let (side, network) = self.side(client);
                side.post_recv(network)
            }
            Act::PostSend(client) => {
                // A message that meets no receive would wait, and then break the connection.
                let (from, to) = if client {
                    (&self.client, &self.server)
                } else {
                    (&self.server, &self.client)
                };
                if from.sends >= to.receives.min(MOST) {
                    return Ok(());
                }
                let (side, network) = self.side(client);
                side.post_send(network)
            }
            Act::Replace(client) => {
                let (side, network) = self.side(client);
                side.replace(network)
            }
            Act::Take(client) => {
                let (side, network) = self.side(client);
                side.take(network).map(drop)
            }
            Act::Look(client) => {
                let (side, network) = self.side(client);
                side.look(network).map(drop)
            }
            Act::Sleep => {
                std::thread::sleep(Duration::from_micros(rng.u64(0..3000)));
                Ok(())
            }
        }
    }

    /// Waits until the network has nothing more to do, and hears all events.
    fn settle(&mut self) -> Result<()> {
        let end = std::time::Instant::now() + self.context.patience();
        loop {
            for client in [true, false] {
                let (side, network) = self.side(client);
                while side.take(network)? {}
            }
            let (asked, answered) = (self.network(true), self.network(false));
            let states = [self.client.look(asked)?, self.server.look(answered)?];
            let still = |state, network: Network| match state {
                EpState::Unconnected | EpState::Disconnected => true,
                EpState::ActiveConnectionPending => {
                    !network.accepted && !network.rejected && !network.timed_out
                }
                EpState::Connected => !network.peer_ended || self.short,
                _ => false,
            };
            let lost = |side: &Side, state| {
                state == EpState::Disconnected && side.receives + side.sends > 0
            };
            let waits = lost(&self.client, states[0]) || lost(&self.server, states[1]);
            if still(states[0], asked) && still(states[1], answered) && !waits {
                return Ok(());
            }
            ensure!(std::time::Instant::now() < end, "it does not settle: {states:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn life(&mut self, rng: &mut fastrand::Rng) -> Result<()> {
        for _ in 0..STEPS {
            let act = self.choose(rng);
            self.log.push(format!("{act:?}"));
            self.act(act, rng)?;
        }
        self.log.push("settles".into());
        self.settle()
    }
}

fn walk(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let (client_ia, server_ia) = context.open_both()?;
    let mut world = World {
        context,
        listener: Listener::new(context, &server_ia)?,
        client: Side::new(End::new(&client_ia, shape())?),
        server: Side::new(End::new(&server_ia, shape())?),
        attempt: 0,
        short: false,
        rejected: false,
        log: Vec::new(),
    };
    let rng = &mut context.rng();
    for life in 0..context.count(300) {
        world.log.clear();
        world.life(rng).with_context(|| {
            let (client, server) = (&world.client.chances, &world.server.chances);
            format!("life {life}: {:?}\nclient {client:?}\nserver {server:?}", world.log)
        })?;
    }
    Ok(())
}
