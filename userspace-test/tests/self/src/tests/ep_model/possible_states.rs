// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tracks all states that the model may be in.

use super::network::Network;
use crate::rust::model::code::{order, DatError};
use crate::rust::model::ep::{step, Call, ConnectionEvent, Effects, Phase};
use anyhow::{bail, Result};
use std::collections::{HashSet, VecDeque};

/// A possible state: a phase, and its queued events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PossibleState {
    phase: Phase,
    queued: VecDeque<ConnectionEvent>,
}

impl PossibleState {
    fn after(&self, phase: Phase, effects: Effects) -> Self {
        let mut queued = self.queued.clone();
        queued.extend(effects.event);
        Self { phase, queued }
    }
}

/// All states that agree with the observations.
#[derive(Debug)]
pub struct PossibleStates(HashSet<PossibleState>);

/// Result of an input of the model.
pub type StepResult = Result<(Phase, Effects), DatError>;

impl PossibleStates {
    /// Returns the state of a new endpoint.
    pub fn new(phase: Phase) -> Self {
        Self([PossibleState { phase, queued: VecDeque::new() }].into())
    }

    /// Returns whether `holds` is true for each possible phase.
    pub fn all(&self, holds: impl Fn(Phase) -> bool) -> bool {
        self.0.iter().all(|possible| holds(possible.phase))
    }

    /// Adds the states after any possible act of the network.
    fn pass(&mut self, network: Network) {
        let mut new: Vec<_> = self.0.iter().cloned().collect();
        while let Some(possible) = new.pop() {
            for input in network.inputs(possible.phase) {
                // Acts of the network are never errors.
                if let Ok((phase, effects)) = step(possible.phase, input) {
                    let next = possible.after(phase, effects);
                    if self.0.insert(next.clone()) {
                        new.push(next);
                    }
                }
            }
        }
    }

    /// Keeps the states that `keep` returns for each state.
    fn narrow(
        &mut self,
        network: Network,
        what: &str,
        keep: impl Fn(&PossibleState) -> Option<PossibleState>,
    ) -> Result<()> {
        self.pass(network);
        let left: HashSet<_> = self.0.iter().filter_map(keep).collect();
        if left.is_empty() {
            bail!("the model does not allow {what} with {network:?}; it has {:?}", self.0);
        }
        self.0 = left;
        Ok(())
    }

    /// Checks the code of a call, 0 for success, against `should`.
    pub fn answer(
        &mut self,
        network: Network,
        what: &str,
        answer: u32,
        should: impl Fn(Phase) -> StepResult,
    ) -> Result<()> {
        self.narrow(network, &format!("{answer:#x} of {what}"), |possible| {
            match should(possible.phase) {
                Ok((phase, effects)) => (answer == 0).then(|| possible.after(phase, effects)),
                // Only an accept names an argument.
                Err(error) => {
                    (error.code(order::dat_cr_accept) == answer).then(|| possible.clone())
                }
            }
        })
    }

    /// Checks the code of a call that is an input of the model.
    pub fn call(&mut self, network: Network, call: Call, answer: u32) -> Result<()> {
        self.answer(network, &format!("{call:?}"), answer, |phase| step(phase, call.into()))
    }

    /// Checks the state that a query returned, or its code.
    pub fn state(&mut self, network: Network, told: Result<u32, u32>) -> Result<()> {
        self.narrow(network, &format!("state {told:?}"), |possible| {
            let due = match possible.phase {
                Phase::Freed => Err(possible.phase.invalid_state_error().code(&[])),
                phase => Ok(phase.state().number()),
            };
            (due == told).then(|| possible.clone())
        })
    }

    /// Checks that a request may arrive at the service point of a reserved endpoint.
    pub fn requested(&mut self, network: Network) -> Result<()> {
        self.narrow(network, "a request", |possible| {
            matches!(possible.phase, Phase::Passive(_)).then(|| possible.clone())
        })
    }

    /// Checks a dequeued connection event.
    pub fn told(&mut self, network: Network, event: u32) -> Result<()> {
        self.narrow(network, &format!("event {event:#x}"), |possible| {
            let mut possible = possible.clone();
            (possible.queued.pop_front()?.number() == event).then_some(possible)
        })
    }

    /// Checks that there may be no event.
    pub fn silent(&mut self, network: Network) -> Result<()> {
        self.narrow(network, "no event", |possible| {
            possible.queued.is_empty().then(|| possible.clone())
        })
    }
}
