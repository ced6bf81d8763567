// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Makes a program LibAFL's input, and mutates it.

use fastrand::Rng;
use kdapl_fuzz::program::Program;
use libafl::corpus::Corpus as _;
use libafl::inputs::Input;
use libafl::mutators::{MutationResult, Mutator};
use libafl::random_corpus_id;
use libafl::state::{HasCorpus, HasRand};
use libafl::Error;
use libafl_bolts::rands::Rand as _;
use libafl_bolts::{HasLen, Named};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A program.
#[derive(Clone, Debug, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Case(pub Program);

impl From<Case> for String {
    fn from(case: Case) -> Self {
        case.0.to_string()
    }
}

impl TryFrom<String> for Case {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error: anyhow::Error| format!("{error:#}"))
    }
}

impl Input for Case {}

impl HasLen for Case {
    fn len(&self) -> usize {
        self.0.steps.len()
    }
}

/// Mutates a program, or inserts a part of another one.
pub struct Change {
    random: Rng,
}

impl Change {
    /// Creates a mutator with this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: Rng::with_seed(seed) }
    }
}

impl Named for Change {
    fn name(&self) -> &Cow<'static, str> {
        const { &Cow::Borrowed("Change") }
    }
}

impl<S: HasCorpus<Case> + HasRand> Mutator<Case, S> for Change {
    fn mutate(&mut self, state: &mut S, case: &mut Case) -> Result<MutationResult, Error> {
        let id = random_corpus_id!(state.corpus(), state.rand_mut());
        let other = state.corpus().cloned_input_for_id(id)?;
        // Mostly few changes: a wrong change early in a program loses most of its coverage.
        let changes = 1 << self.random.u32(..4);
        for _ in 0..self.random.u32(1..=changes) {
            case.0.mutate(&mut self.random, Some(&other.0));
        }
        Ok(MutationResult::Mutated)
    }
}
