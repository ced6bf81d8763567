// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One of the endpoints.

use super::network::Network;
use super::possible_states::{PossibleStates, StepResult};
use crate::end::{End, Shape};
use crate::rust::model::code::DatResult;
use crate::rust::model::ep::{
    flushes_posts, may_post_recv, may_post_request, Call, Configuration, Effects, Phase,
};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpChange, EpConfig,
    EpState, Error, EvdFlags, Event, Ia, Transport,
};

/// Limits the outstanding receives and sends of an endpoint.
const MAX_OUTSTANDING: u64 = 12;
/// Capacity of the endpoint for them.
const MAX_DTOS: u32 = 16;
/// Capacity of an EVD for all events of a walk.
const EVD_LENGTH: i32 = 1000;

/// An endpoint, the possible states of its model, and its outstanding DTOs.
pub struct ModelledEp {
    pub end: End,
    pub possible_states: PossibleStates,
    pub network: Network,
    /// Receives whose completions were not dequeued yet.
    pub receives: u64,
    pub sends: u64,
    /// Receives since the endpoint was created or reset.
    posted: u64,
    pub sent: u64,
    /// Number of DTOs that may have been posted after the end of the connection.
    posted_after_end: u64,
    /// Set if a DISCONNECTED from before a reset may be queued.
    stale: bool,
    /// The connect that this side belongs to.
    pub attempt: Option<u32>,
    /// Set if this side has ended that connection.
    pub ended: bool,
    iwarp: bool,
}

/// Returns the DAT code of an outcome.
pub fn code<T>(outcome: &Result<T, Error>) -> Result<u32> {
    match outcome {
        Ok(_) => Ok(0),
        Err(Error::Dat(error)) => Ok(error.code),
        Err(other) => bail!("{other}"),
    }
}

impl ModelledEp {
    /// Creates a side with an endpoint.
    pub fn new(ia: &Ia) -> Result<Self> {
        let mut end = End::new(ia, Shape::default())?;
        let all = ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, EVD_LENGTH)?;
        (end.recv, end.request, end.connect) = (all.clone(), all.clone(), all);
        let mut side = Self {
            end,
            possible_states: PossibleStates::new(Phase::Unconnected(Configuration::Complete)),
            network: Network::default(),
            receives: 0,
            sends: 0,
            posted: 0,
            sent: 0,
            posted_after_end: 0,
            stale: false,
            attempt: None,
            ended: false,
            iwarp: ia.query()?.transport == Transport::IWarp,
        };
        side.make(false)?;
        Ok(side)
    }

    /// Returns a network without acts.
    pub fn fresh_network(&self) -> Network {
        Network { tcp: self.iwarp, ..Default::default() }
    }

    /// Replaces the endpoint by one in a known phase. Events of the old one may still arrive.
    pub fn take_over(&mut self, ep: Ep, phase: Phase) {
        self.end.ep = ep;
        self.possible_states = PossibleStates::new(phase);
        self.network = self.fresh_network();
        (self.receives, self.sends, self.posted, self.sent) = (0, 0, 0, 0);
        self.posted_after_end = 0;
        (self.stale, self.attempt, self.ended) = (false, None, false);
    }

    pub fn call(&mut self, call: Call, outcome: Result<(), Error>) -> Result<bool> {
        self.possible_states.call(self.network, call, code(&outcome)?)?;
        Ok(outcome.is_ok())
    }

    pub fn answer<T>(
        &mut self,
        what: &str,
        outcome: Result<T, Error>,
        should: impl Fn(Phase) -> StepResult,
    ) -> Result<bool> {
        self.possible_states.answer(self.network, what, code(&outcome)?, should)?;
        Ok(outcome.is_ok())
    }

    /// Returns the state, or `None` if the endpoint is freed.
    pub fn look(&mut self) -> Result<Option<EpState>> {
        let query = self.end.ep.query();
        let code = code(&query)?;
        let state = query.ok().map(|query| query.state);
        self.possible_states.state(self.network, state.map(EpState::number).ok_or(code))?;
        Ok(state)
    }

    /// Dequeues the next event, if any.
    pub fn take(&mut self) -> Result<bool> {
        let event = match self.end.connect.dequeue() {
            Ok((event, _)) => event,
            Err(error) if error.is_empty() => {
                self.possible_states.silent(self.network)?;
                self.stale = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        match event {
            Event::Connection { event, ep, .. } if ep == self.end.ep.handle() => {
                self.possible_states.told(self.network, event.number())?;
                if event == ConnectionEvent::Disconnected && !self.stale {
                    let left = self.receives + self.sends;
                    let late = self.posted_after_end;
                    ensure!(left <= late, "{left} DTOs after DISCONNECTED, {late} posted after it");
                }
            }
            Event::Dto(dto) if dto.ep == self.end.ep.handle() => {
                // Over iWARP the send that TCP was just taking fails when the connection ends.
                let taken = self.iwarp && dto.operation == DtoOperation::Send;
                let ended = [DtoStatus::Success, DtoStatus::Flushed].contains(&dto.status)
                    || taken && dto.status == DtoStatus::LocalEp;
                ensure!(ended, "{} of a {}", dto.status, dto.operation);
                let count = match dto.operation {
                    DtoOperation::Receive => &mut self.receives,
                    _ => &mut self.sends,
                };
                *count = count.checked_sub(1).context("the completed DTO was not posted")?;
            }
            // The event of a freed endpoint.
            Event::Connection { .. } | Event::Dto(_) => {}
            other => bail!("unexpected: {other}"),
        }
        Ok(true)
    }

    pub fn post_recv(&mut self) -> Result<()> {
        if self.receives >= MAX_OUTSTANDING {
            return Ok(());
        }
        let segment = [self.end.lmr.segment(0, 64)];
        let outcome = self.end.ep.post_recv(&segment, 0, CompletionFlags::default());
        let posted = self.posted("a receive", outcome, may_post_recv)?;
        self.receives += posted;
        self.posted += posted;
        Ok(())
    }

    /// Checks the outcome of a post. Returns how many DTOs it has posted, 0 or 1.
    ///
    /// The event of a DTO that was posted after the end of the connection may follow DISCONNECTED,
    /// which may not be queued or dequeued yet.
    fn posted(
        &mut self,
        what: &str,
        outcome: Result<(), Error>,
        may_post: fn(Phase) -> DatResult,
    ) -> Result<u64> {
        let may_post = |phase| may_post(phase).map(|()| (phase, Effects::NONE));
        let posted = self.answer(what, outcome, may_post)?;
        if posted {
            self.look()?;
            let is_before_end = self.possible_states.all(|phase| !flushes_posts(phase));
            self.posted_after_end += u64::from(!is_before_end);
        }
        Ok(posted.into())
    }

    /// Returns whether a message of a peer that has sent so many finds a receive here. A message
    /// without a receive would wait, and then break the connection.
    pub fn has_room(&self, sent: u64) -> bool {
        sent < self.posted
    }

    pub fn post_send(&mut self) -> Result<()> {
        if self.sends >= MAX_OUTSTANDING {
            return Ok(());
        }
        let segment = [self.end.lmr.segment(64, 64)];
        let outcome = self.end.ep.post_send(&segment, 0, CompletionFlags::default());
        let posted = self.posted("a send", outcome, may_post_request)?;
        self.sends += posted;
        self.sent += posted;
        Ok(())
    }

    /// Sets all parts that may be missing.
    pub fn modify(&mut self) -> Result<()> {
        let end = &self.end;
        let change = EpChange::new()
            .pz(&end.pz)
            .recv(&end.recv)
            .request(&end.request)
            .connect(&end.connect)
            .max_recv_dtos(MAX_DTOS)
            .max_request_dtos(MAX_DTOS);
        let outcome = end.ep.modify(change).map(drop);
        self.call(Call::Configured, outcome).map(drop)
    }

    pub fn reset(&mut self) -> Result<()> {
        let before = self.look()?;
        let outcome = self.end.ep.reset();
        // The reset of an unconnected endpoint does nothing.
        let idle = [EpState::Unconnected, EpState::UnconfiguredUnconnected];
        let idle = before.is_some_and(|state| idle.contains(&state));
        if self.call(Call::Reset, outcome)? && !idle {
            self.stale = true;
            (self.posted, self.sent, self.posted_after_end) = (0, 0, 0);
            self.attempt = None;
        }
        Ok(())
    }

    /// Frees the endpoint, unless a service point or a request holds it.
    pub fn free(&mut self) -> Result<bool> {
        let outcome = self.end.ep.free();
        self.call(Call::Free, outcome)
    }

    /// Creates another endpoint. A bare one has no PZ.
    pub fn make(&mut self, bare: bool) -> Result<()> {
        let end = &self.end;
        let (ep, configuration) = if bare {
            let config = EpConfig {
                recv: Some(&end.recv),
                request: Some(&end.request),
                connect: Some(&end.connect),
                ..Default::default()
            };
            (end.ia.create_ep_with(&config)?, Configuration::Incomplete)
        } else {
            let attr = EpAttr {
                max_recv_dtos: MAX_DTOS,
                max_request_dtos: MAX_DTOS,
                ..Default::default()
            };
            let (recv, request) = (&end.recv, &end.request);
            let ep = end.ia.create_ep(&end.pz, recv, request, &end.connect, Some(attr))?;
            (ep, Configuration::Complete)
        };
        self.take_over(ep, Phase::Unconnected(configuration));
        Ok(())
    }
}
