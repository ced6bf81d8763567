// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Sweep: tests one call with a failure at each place where the kernel can fail.

use super::inject::{self, Fault, Injector};
use crate::context::Context;
use crate::machine::objects;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Error, Subtype, Type};

/// Upper limit of the places in a call.
const MAX_FAILURES: u32 = 2000;

/// Limit of the failures in the copy of the answer. One is usual. There are more if the number of
/// allocations before the copy grows between attempts, as when a slab is full.
const MAX_FAILED_COPIES: u32 = 8;

/// Common state of a test's sweeps.
pub struct Sweeper<'a> {
    pub context: &'a Context,
    injector: Injector,
}

/// Result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Nothing failed: the sweep is complete.
    Untouched,
    /// The call was refused, and succeeded when it was repeated.
    Refused,
    /// The call succeeded despite the failure.
    Succeeded,
    /// The call was completed, but its answer could not be copied to the process.
    Unanswered,
}

impl<'a> Sweeper<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        Ok(Self { context, injector: Injector::new(context)? })
    }

    /// Sets the stage and makes the call, with each failure in turn, until nothing fails. A brief
    /// run tries about a third of the failures.
    ///
    /// `after` checks the effects of a successful call. Its flag is set if there was a failure.
    /// Prints the number of failures.
    pub fn sweep<S, T>(
        &self,
        name: &str,
        stage: impl Fn(&Context) -> Result<S>,
        call: impl Fn(&mut S) -> Result<T, Error>,
        after: impl Fn(&Context, &mut S, T, bool) -> Result<()>,
    ) -> Result<()> {
        let (mut refused, mut succeeded, mut unanswered) = (0, 0, 0);
        let mut nth = 0;
        while nth < MAX_FAILURES {
            nth += self.step();
            let attempt = || self.attempt(nth, &stage, &call, &after);
            let outcome = attempt().map_err(|error| {
                // Repeat it, to print the stack on the console.
                let _ = inject::be_verbose();
                let _ = attempt();
                error.context(format!("{name}, failure {nth} (the console shows its stack)"))
            })?;
            match outcome {
                Attempt::Untouched => {
                    println!("{name}: {refused} refused, {succeeded} succeeded despite a failure");
                    return Ok(());
                }
                Attempt::Refused => refused += 1,
                Attempt::Succeeded => succeeded += 1,
                // After an effect that cannot be undone, only the copy of the answer may fail.
                Attempt::Unanswered => unanswered += 1,
            }
            ensure!(
                unanswered <= MAX_FAILED_COPIES,
                "{name}: something can fail after the call has had its effect"
            );
        }
        bail!("{name}: {MAX_FAILURES} failures, without an end")
    }

    /// Returns how many failures further the next one to try is.
    fn step(&self) -> u32 {
        if self.context.is_brief() {
            self.context.rng().u32(1..=5)
        } else {
            1
        }
    }

    fn attempt<S, T>(
        &self,
        nth: u32,
        stage: impl Fn(&Context) -> Result<S>,
        call: impl Fn(&mut S) -> Result<T, Error>,
        after: impl Fn(&Context, &mut S, T, bool) -> Result<()>,
    ) -> Result<Attempt> {
        let before = objects()?;
        let mut staged = stage(self.context).context("setting the stage")?;
        let there = objects()?;
        let (outcome, fault) = self.injector.during(nth, || call(&mut staged))?;
        let attempt = match (fault, outcome) {
            (None, outcome) => {
                after(self.context, &mut staged, outcome?, false)?;
                Attempt::Untouched
            }
            (Some(_), Ok(value)) => {
                after(self.context, &mut staged, value, true)?;
                Attempt::Succeeded
            }
            (Some(fault), Err(error)) => {
                refused_rightly(fault, error)?;
                if fault == Fault::Memory {
                    self.back_to(&there).context("after a refused call")?;
                }
                match (call(&mut staged), fault) {
                    (Ok(value), _) => {
                        after(self.context, &mut staged, value, false)?;
                        Attempt::Refused
                    }
                    (Err(_), Fault::Copy) => Attempt::Unanswered,
                    (Err(error), Fault::Memory) => return Err(error).context("repeated call"),
                }
            }
        };
        drop(staged);
        self.back_to(&before).context("after all objects were freed")?;
        Ok(attempt)
    }

    /// Waits until the number of objects is as before.
    fn back_to(&self, before: &[(String, u64)]) -> Result<()> {
        self.context
            .until("objects are freed", || Ok(objects()? == before))
            .with_context(|| format!("{:?}, expected {before:?}", objects().unwrap_or_default()))
    }
}

/// Checks that the error fits the failure.
fn refused_rightly(fault: Fault, error: Error) -> Result<()> {
    let right = match fault {
        Fault::Memory => {
            error.kind() == Some(Type::INSUFFICIENT_RESOURCES)
                && error.subtype() == Some(Subtype::RESOURCE_MEMORY)
        }
        Fault::Copy => error.errno() == Some(libc::EFAULT),
    };
    ensure!(right, "{fault:?} failed, and the call returned {error:?}");
    Ok(())
}
