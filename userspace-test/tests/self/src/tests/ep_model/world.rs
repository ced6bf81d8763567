// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Client, server, and the acts of the network that are possible.

use super::act::{Act, EpName, Point};
use super::network::Network;
use super::points::ServicePoints;
use super::side::ModelledEp;
use crate::context::Context;
use crate::rust::model::ep::{Call, Close, Paths, Phase};
use anyhow::{bail, Context as _, Result};
use libkdapl::EpState;
use std::time::{Duration, Instant};

/// Usual time until a request arrives (times the scale).
const REQUEST_TIME: Duration = Duration::from_millis(2);

/// All objects of a walk.
pub struct World<'a> {
    pub context: &'a Context,
    pub points: ServicePoints,
    pub client: ModelledEp,
    pub server: ModelledEp,
    pub guest: ModelledEp,
    /// The client's current connect.
    pub attempt: Attempt,
    pub seen: Seen,
}

/// Counts of reached states and acts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// How often each state was seen.
    pub states: [u64; 15],
    /// Requests that were handed over.
    pub handed: u64,
    /// Connects to each kind of service point.
    pub calls: [u64; 5],
}

impl Seen {
    pub fn and(mut self, other: Self) -> Self {
        let add = |sums: &mut [u64], counts: &[u64]| {
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        };
        add(&mut self.states, &other.states);
        add(&mut self.calls, &other.calls);
        self.handed += other.handed;
        self
    }
}

/// A connect.
pub struct Attempt {
    pub number: u32,
    /// Set if its time-out may expire.
    short: bool,
    /// Set if the target is the RSP.
    pub to_reserved: bool,
}

impl<'a> World<'a> {
    pub fn new(context: &'a Context, ports: [u64; 5]) -> Result<Self> {
        let (client_ia, server_ia) = context.open_both()?;
        let mut guest = ModelledEp::new(&server_ia)?;
        // There is no guest before the first request.
        guest.free()?;
        Ok(Self {
            context,
            points: ServicePoints::new(context, &server_ia, ports)?,
            client: ModelledEp::new(&client_ia)?,
            server: ModelledEp::new(&server_ia)?,
            guest,
            attempt: Attempt { number: 0, short: false, to_reserved: false },
            seen: Seen::default(),
        })
    }

    pub fn side(&mut self, who: EpName) -> &mut ModelledEp {
        match who {
            EpName::Client => &mut self.client,
            EpName::Server => &mut self.server,
            EpName::Guest => &mut self.guest,
        }
    }

    pub fn act(&mut self, act: Act) -> Result<()> {
        match act {
            Act::Connect(point) => self.connect(point, self.context.patience() * 3, false),
            Act::ConnectShortly(point, time) => {
                self.connect(point, Duration::from_micros(time), true)
            }
            Act::Fetch(point) => self.fetch(point, Duration::ZERO),
            Act::Await(point) => self.fetch(point, self.context.scaled(REQUEST_TIME)),
            Act::Accept(point, who) => self.accept(point, who),
            Act::Reject(point) => self.reject(point).map(drop),
            Act::HandOff(from, to) => self.hand_off(from, to),
            Act::Reserve(who, wide) => self.reserve(who, wide),
            Act::FreeRsp => self.free_rsp(),
            Act::DisconnectAbruptly(who) => self.disconnect(who, Close::Abrupt),
            Act::DisconnectGracefully(who) => self.disconnect(who, Close::Graceful),
            Act::Reset(who) => self.side(who).reset(),
            Act::Modify(who) => self.side(who).modify(),
            Act::PostRecv(who) => self.side(who).post_recv(),
            Act::PostSend(who) => self.post_send(who),
            Act::Free(who) => self.free(who),
            Act::Replace(who, bare) => self.replace(who, bare),
            Act::Take(who) => self.side(who).take().map(drop),
            Act::Look(who) => self.look(who).map(drop),
            Act::Sleep(micros) => {
                std::thread::sleep(Duration::from_micros(micros));
                Ok(())
            }
        }
    }

    fn look(&mut self, who: EpName) -> Result<Option<EpState>> {
        let state = self.side(who).look()?;
        if let Some(seen) =
            state.and_then(|state| self.seen.states.get_mut(state.number() as usize))
        {
            *seen += 1;
        }
        Ok(state)
    }

    fn connect(&mut self, point: Point, time: Duration, short: bool) -> Result<()> {
        let number = self.attempt.number + 1;
        // The request may arrive before the call returns.
        let turned = point == Point::Reserved && self.call_reserved();
        let outcome = self.call(point, time, &number.to_le_bytes())?;
        if self.client.call(Call::Connect(Paths::Plain), outcome)? {
            self.client.network =
                Network { turned, timed_out: short, ..self.client.fresh_network() };
            (self.client.attempt, self.client.ended) = (Some(number), false);
            self.seen.calls[point as usize] += 1;
            self.attempt = Attempt { number, short, to_reserved: point == Point::Reserved };
            for side in [&mut self.server, &mut self.guest] {
                side.network.peer_ended = true;
            }
        }
        Ok(())
    }

    /// Returns the possible acts of the network on the side that accepts this attempt.
    pub fn accepts(&self, attempt: u32) -> Network {
        let current = attempt == self.attempt.number;
        let there = self.client.attempt == Some(attempt) && !self.client.ended;
        Network {
            accepted: current,
            peer_ended: !there,
            peer_timed_out: current && self.attempt.short,
            ..self.server.fresh_network()
        }
    }

    /// Records that one side has ended its connection.
    fn ends(&mut self, who: EpName) {
        self.side(who).ended = true;
        let current = Some(self.attempt.number);
        if who == EpName::Client {
            for side in [&mut self.server, &mut self.guest] {
                side.network.peer_ended |= side.attempt == current;
            }
        } else {
            let belongs = self.side(who).attempt == current;
            self.client.network.peer_ended |= belongs;
        }
    }

    fn disconnect(&mut self, who: EpName, close: Close) -> Result<()> {
        let side = self.side(who);
        let how = match close {
            Close::Abrupt => libkdapl::Close::Abrupt,
            Close::Graceful => libkdapl::Close::Graceful,
        };
        let outcome = side.end.ep.disconnect(how);
        if side.call(Call::Disconnect(close), outcome)? {
            self.ends(who);
        }
        Ok(())
    }

    fn free(&mut self, who: EpName) -> Result<()> {
        if self.side(who).free()? {
            self.ends(who);
        }
        Ok(())
    }

    fn replace(&mut self, who: EpName, bare: bool) -> Result<()> {
        self.free(who)?;
        // The next guest comes with a request.
        if who != EpName::Guest && self.side(who).is_free() {
            self.side(who).make(bare)?;
        }
        Ok(())
    }

    fn post_send(&mut self, who: EpName) -> Result<()> {
        let peer = match who {
            EpName::Client if self.guest.attempt == self.client.attempt => &self.guest,
            EpName::Client => &self.server,
            EpName::Server | EpName::Guest => &self.client,
        };
        let (peer_attempt, room) = (peer.attempt, |sent| peer.has_room(sent));
        let (from, room) = match who {
            EpName::Client => (&self.client, room(self.client.sent)),
            EpName::Server => (&self.server, room(self.server.sent)),
            EpName::Guest => (&self.guest, room(self.guest.sent)),
        };
        // Without a connection to the peer there is no message, but an error.
        if from.attempt.is_some() && from.attempt == peer_attempt && !room {
            return Ok(());
        }
        self.side(who).post_send()
    }

    /// Rejects all waiting requests until the network has no more to do, and dequeues all events.
    pub fn settle(&mut self) -> Result<()> {
        let end = Instant::now() + self.context.patience();
        self.free_rsp()?;
        loop {
            self.reject_all()?;
            let mut still = true;
            let mut states = Vec::new();
            for who in [EpName::Client, EpName::Server, EpName::Guest] {
                while self.side(who).take()? {}
                let state = self.look(who)?;
                still &= self.side(who).is_still(state);
                states.push(state);
            }
            if still {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("the endpoints do not settle: {states:?}");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Describes the state of the model for a report.
    pub fn describe(&self) -> String {
        let sides = [("client", &self.client), ("server", &self.server), ("guest", &self.guest)];
        let lines = sides.map(|(name, side)| format!("{name}: {:?}", side.possible_states));
        lines.join("\n")
    }
}

/// Returns the number of the attempt that a request belongs to.
pub fn attempt_of(private_data: &[u8]) -> Result<u32> {
    let number = private_data.first_chunk().context("a request without its number")?;
    Ok(u32::from_le_bytes(*number))
}

impl ModelledEp {
    /// Returns whether no more events can arrive in this state, once no request waits.
    fn is_still(&self, state: Option<EpState>) -> bool {
        match state {
            None | Some(EpState::Unconnected | EpState::UnconfiguredUnconnected) => true,
            // All DTOs have completed.
            Some(EpState::Disconnected) => self.receives + self.sends == 0,
            Some(EpState::Connected) => !self.network.peer_ended,
            Some(_) => false,
        }
    }

    /// Returns whether the provider's endpoint is freed.
    pub fn is_free(&self) -> bool {
        self.possible_states.all(|phase| phase == Phase::Freed)
    }
}
