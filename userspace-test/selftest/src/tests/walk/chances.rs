// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! All ways in which the model may stand, as far as is known.

use crate::rust::model::code::{DatError, DatResult};
use crate::rust::model::ep::{step, Effects, Input, Notice, Phase, Setup};
use anyhow::{bail, Result};
use std::collections::{HashSet, VecDeque};

/// What the network may do to an endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// The request of this attempt was accepted.
    pub accepted: bool,
    /// It was rejected.
    pub rejected: bool,
    /// Its time may be over.
    pub timed_out: bool,
    /// The peer has ended it, or lets go of it.
    pub peer_ended: bool,
}

impl Network {
    /// What may come in a phase, besides nothing.
    fn inputs(self, phase: Phase) -> Vec<Input> {
        let when = |condition: bool, inputs: &[Input]| {
            if condition {
                inputs.to_vec()
            } else {
                Vec::new()
            }
        };
        match phase {
            Phase::Connecting(_) => [
                when(self.accepted, &[Input::Established]),
                when(self.rejected, &[Input::PeerRejected]),
                when(self.timed_out, &[Input::TimedOut]),
                when(self.peer_ended, &[Input::PeerDisconnected]),
            ]
            .concat(),
            Phase::Accepting(_) => [
                when(self.accepted, &[Input::Established]),
                when(self.peer_ended, &[Input::AcceptFailed, Input::PeerDisconnected]),
            ]
            .concat(),
            Phase::Connected(_) => when(self.peer_ended, &[Input::PeerDisconnected]),
            Phase::Draining => [
                vec![Input::RequestsIdle, Input::Idle],
                when(self.peer_ended, &[Input::PeerDisconnected]),
            ]
            .concat(),
            Phase::Flushing(_) => vec![Input::Idle],
            Phase::Unconnected(_)
            | Phase::Reserved(_)
            | Phase::Passive(_)
            | Phase::Tentative(_)
            | Phase::Disconnected
            | Phase::Freed => Vec::new(),
        }
    }
}

/// One way: a phase, and the events that are queued but not taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Chance {
    phase: Phase,
    queued: VecDeque<Notice>,
}

impl Chance {
    fn after(&self, phase: Phase, effects: Effects) -> Self {
        let mut queued = self.queued.clone();
        queued.extend(effects.notice);
        Self { phase, queued }
    }
}

/// All ways that agree with what was seen.
#[derive(Debug)]
pub struct Chances(HashSet<Chance>);

/// DAT's code of an outcome of the model.
fn code<T>(outcome: &Result<T, DatError>) -> u32 {
    outcome.as_ref().err().map_or(0, |error| error.code())
}

impl Chances {
    /// Of an endpoint that was just made.
    pub fn new() -> Self {
        let phase = Phase::Unconnected(Setup::Ready);
        Self([Chance { phase, queued: VecDeque::new() }].into())
    }

    /// Adds whatever the network may have done since.
    fn pass(&mut self, network: Network) {
        let mut new: Vec<_> = self.0.iter().cloned().collect();
        while let Some(chance) = new.pop() {
            for input in network.inputs(chance.phase) {
                // What the network does is never an error.
                if let Ok((phase, effects)) = step(chance.phase, input) {
                    let next = chance.after(phase, effects);
                    if self.0.insert(next.clone()) {
                        new.push(next);
                    }
                }
            }
        }
    }

    /// Keeps what `keep` makes of each way.
    fn narrow(
        &mut self,
        network: Network,
        what: &str,
        keep: impl Fn(&Chance) -> Option<Chance>,
    ) -> Result<()> {
        self.pass(network);
        let left: HashSet<_> = self.0.iter().filter_map(keep).collect();
        if left.is_empty() {
            bail!("the model does not allow {what} with {network:?}; it has {:?}", self.0);
        }
        self.0 = left;
        Ok(())
    }

    /// A call gave this code.
    pub fn call(&mut self, network: Network, input: Input, answer: u32) -> Result<()> {
        self.narrow(network, &format!("{answer:#x} of {input:?}"), |chance| {
            match step(chance.phase, input) {
                Ok((phase, effects)) if answer == 0 => Some(chance.after(phase, effects)),
                Ok(_) => None,
                refused => (code(&refused) == answer).then(|| chance.clone()),
            }
        })
    }

    /// A post gave this code.
    pub fn right(
        &mut self,
        network: Network,
        right: impl Fn(Phase) -> DatResult,
        answer: u32,
    ) -> Result<()> {
        self.narrow(network, &format!("{answer:#x} of a post"), |chance| {
            (code(&right(chance.phase)) == answer).then(|| chance.clone())
        })
    }

    /// A query told this state.
    pub fn state(&mut self, network: Network, state: u32) -> Result<()> {
        self.narrow(network, &format!("state {state}"), |chance| {
            (chance.phase.state().number() == state).then(|| chance.clone())
        })
    }

    /// This connection event was taken.
    pub fn told(&mut self, network: Network, event: u32) -> Result<()> {
        self.narrow(network, &format!("event {event:#x}"), |chance| {
            let mut chance = chance.clone();
            (chance.queued.pop_front()?.number() == event).then_some(chance)
        })
    }

    /// There was no event to take.
    pub fn silent(&mut self, network: Network) -> Result<()> {
        self.narrow(network, "no event", |chance| chance.queued.is_empty().then(|| chance.clone()))
    }
}
