// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Compares random lives of real endpoints with the module's own model of an endpoint.
//!
//! The network acts at any time, so the model is in several phases at once: all that agree with the
//! observations so far. Every answer of the kernel leaves only the phases that could have given it.
//! If none is left, kernel and model disagree. Then proptest looks for fewer acts with the same
//! failure.

mod act;
mod network;
mod points;
mod possible_states;
mod side;
mod world;

use super::tests;
use crate::context::Context;
use act::{life, Act, MAX_RESERVATIONS, POINTS};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::EpState;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::time::Duration;
use world::{Seen, World};

tests! {
    random_calls, 900, "In random lives of endpoints the model allows each state, answer and event";
}

/// Tries for each shorter sequence of acts: the network does not act the same each time.
const SHRINK_TRIES: u32 = 5;
/// Number of ports that RSPs use in turn.
const RSP_PORTS: u64 = 4000;
/// Limits the shrinking of a failure, in steps and in time.
const MAX_SHRINK_STEPS: u32 = 200;
const MAX_SHRINK_TIME: Duration = Duration::from_secs(60);

/// Creates a runner that repeats the same acts for the same seed.
fn runner(context: &Context) -> TestRunner {
    let mut seed = [0; 32];
    context.rng().fill(&mut seed);
    let config = Config {
        cases: context.count(1000) as u32,
        failure_persistence: None,
        max_shrink_iters: MAX_SHRINK_STEPS,
        max_shrink_time: context.scaled(MAX_SHRINK_TIME).as_millis() as u32,
        ..Config::default()
    };
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Runs one life, from new endpoints on. Returns the counts.
fn live(context: &Context, ports: [u64; 5], acts: &[Act]) -> Result<Seen> {
    let mut world = World::new(context, ports)?;
    for (number, act) in acts.iter().enumerate() {
        let outcome = world.act(*act);
        outcome.with_context(|| format!("act {number}: {act:?}\n{}", world.describe()))?;
    }
    let outcome = world.settle();
    outcome.with_context(|| format!("when it settles\n{}", world.describe()))?;
    Ok(world.seen)
}

fn random_calls(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let (public, provider) = (context.port(), context.port());
    let (copied, common, first) = (context.port(), context.port(), context.port());
    let (lives, seen, failed) = (Cell::new(0), Cell::new(Seen::default()), Cell::new(false));
    let outcome = runner(context).run(&life(), |acts| {
        for _ in 0..if failed.get() { SHRINK_TRIES } else { 1 } {
            let life = lives.replace(lives.get() + 1);
            // The last port never has a listener.
            let reserved = first + life * (MAX_RESERVATIONS as u64 + 1) % RSP_PORTS;
            let ports = [public, provider, reserved, copied, common];
            let more = live(context, ports, &acts).map_err(|error| {
                failed.set(true);
                TestCaseError::fail(format!("{error:?}"))
            })?;
            seen.set(seen.get().and(more));
        }
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(why, acts)) => {
            let lines: Vec<_> =
                acts.iter().enumerate().map(|(n, act)| format!("  {n}: {act:?}")).collect();
            bail!("{why}\nafter {} lives, with\n{}", lives.get(), lines.join("\n"))
        }
        Err(TestError::Abort(why)) => bail!("proptest found no life: {why}"),
    }
    let Seen { states, handed, calls } = seen.get();
    let states: Vec<_> =
        (0..).zip(states).map(|(number, count)| (EpState::from(number), count)).collect();
    println!("{} lives, states seen: {states:?}", lives.get());
    println!("handed over: {handed}; connects: {:?}", POINTS.iter().zip(calls).collect::<Vec<_>>());
    // No path is added or removed, and no test asks for several.
    let walked =
        |state| !matches!(state, EpState::ConnectedSinglePath | EpState::ConnectedMultiPath);
    let missed = states.iter().find(|(state, count)| walked(*state) && *count == 0);
    if lives.get() >= 500 {
        ensure!(missed.is_none(), "no life reached {missed:?}");
        ensure!(handed > 0 && !calls.contains(&0), "some kind of act was never reached");
    }
    Ok(())
}
