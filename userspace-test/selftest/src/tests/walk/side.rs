// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One of the two endpoints.

use super::chances::{Chances, Network};
use crate::end::{End, Shape};
use crate::expect::same;
use crate::rust::model::ep::{may_post_recv, may_post_request, Input};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, EpChange, EpState, Error, Event,
    Subtype,
};

/// Receives and sends of an endpoint, of the 16 that it takes.
pub const MOST: u64 = 12;

/// A real endpoint, what the model thinks of it, and what is posted.
pub struct Side {
    pub end: End,
    pub chances: Chances,
    pub receives: u64,
    pub sends: u64,
    /// DISCONNECTED from before a reset may still be queued.
    pub stale: bool,
    /// The connect that this side belongs to.
    pub attempt: u32,
    /// It has ended that, or let go of it.
    pub ended: bool,
}

pub fn shape() -> Shape {
    Shape { merged: true, ..Default::default() }
}

/// DAT's code of an outcome.
fn code(outcome: &Result<(), Error>) -> Result<u32> {
    match outcome {
        Ok(()) => Ok(0),
        Err(Error::Dat(error)) => Ok(error.code),
        Err(other) => bail!("{other}"),
    }
}

impl Side {
    pub fn new(end: End) -> Self {
        Self {
            end,
            chances: Chances::new(),
            receives: 0,
            sends: 0,
            stale: false,
            attempt: 0,
            ended: false,
        }
    }

    pub fn call(
        &mut self,
        network: Network,
        input: Input,
        outcome: Result<(), Error>,
    ) -> Result<bool> {
        self.chances.call(network, input, code(&outcome)?)?;
        Ok(outcome.is_ok())
    }

    pub fn look(&mut self, network: Network) -> Result<EpState> {
        let state = self.end.ep.query()?.state;
        self.chances.state(network, state.number())?;
        Ok(state)
    }

    /// Takes the next event, if there is one.
    pub fn take(&mut self, network: Network) -> Result<bool> {
        let event = match self.end.connect.dequeue() {
            Ok((event, _)) => event,
            Err(error) if error.is_empty() => {
                self.chances.silent(network)?;
                self.stale = false;
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        match event {
            Event::Connection { event, ep, .. } if ep == self.end.ep.handle() => {
                self.chances.told(network, event.number())?;
                if event == ConnectionEvent::Disconnected && !self.stale {
                    same("DTOs behind DISCONNECTED", self.receives + self.sends, 0)?;
                }
            }
            Event::Dto(dto) if dto.ep == self.end.ep.handle() => {
                let ended = [DtoStatus::Success, DtoStatus::Flushed].contains(&dto.status);
                ensure!(ended, "{} of a {}", dto.status, dto.operation);
                let count = match dto.operation {
                    DtoOperation::Receive => &mut self.receives,
                    _ => &mut self.sends,
                };
                *count = count.checked_sub(1).context("a DTO that nobody posted")?;
            }
            // Of an endpoint that is no more.
            Event::Connection { .. } | Event::Dto(_) => {}
            other => bail!("unexpected: {other}"),
        }
        Ok(true)
    }

    pub fn post_recv(&mut self, network: Network) -> Result<()> {
        if self.receives >= MOST {
            return Ok(());
        }
        let segment = [self.end.lmr.segment(0, 64)];
        let outcome = self.end.ep.post_recv(&segment, 0, CompletionFlags::default());
        self.chances.right(network, may_post_recv, code(&outcome)?)?;
        self.receives += u64::from(outcome.is_ok());
        Ok(())
    }

    pub fn post_send(&mut self, network: Network) -> Result<()> {
        let segment = [self.end.lmr.segment(64, 64)];
        let outcome = self.end.ep.post_send(&segment, 0, CompletionFlags::default());
        self.chances.right(network, may_post_request, code(&outcome)?)?;
        self.sends += u64::from(outcome.is_ok());
        Ok(())
    }

    pub fn modify(&mut self, network: Network) -> Result<()> {
        let outcome = self.end.ep.modify(EpChange::new().max_recv_dtos(16)).map(drop);
        let not_ready = Some(Subtype::INVALID_STATE_EP_NOTREADY);
        if self.receives + self.sends > 0
            && outcome.as_ref().err().and_then(Error::subtype) == not_ready
        {
            // Completions from before a reset wait.
            return Ok(());
        }
        self.call(network, Input::Configured, outcome).map(drop)
    }

    /// Frees the endpoint, and takes another.
    pub fn replace(&mut self, network: Network) -> Result<()> {
        let outcome = self.end.ep.free();
        self.call(network, Input::Free, outcome)?;
        let end = &self.end;
        self.end.ep =
            end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(end_attr()))?;
        (self.chances, self.receives, self.sends, self.stale) = (Chances::new(), 0, 0, false);
        self.ended = true;
        Ok(())
    }
}

fn end_attr() -> libkdapl::EpAttr {
    let Shape { receives, requests, .. } = shape();
    libkdapl::EpAttr { max_recv_dtos: receives, max_request_dtos: requests, ..Default::default() }
}
