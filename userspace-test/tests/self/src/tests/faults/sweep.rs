// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! One call, tried with a failure at each place where something can fail.

use super::inject::{self, Fault, Injector};
use crate::context::Context;
use crate::machine::objects;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Error, Subtype, Type};

/// No call asks for more than that.
const MOST: u32 = 2000;

/// How often the copy of the answer is hit: once, unless there were more allocations before it than
/// in the attempt before, as there are when a slab is full.
const ANSWERS: u32 = 8;

/// What the sweeps of a test share.
pub struct Bench<'a> {
    pub context: &'a Context,
    injector: Injector,
}

/// How an attempt with a failure ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    /// Nothing failed: the sweep is complete.
    Untouched,
    /// The call refused, and worked when it was made again.
    Refused,
    /// The call succeeded all the same.
    Succeeded,
    /// The call was carried out, and only its answer could not be copied back.
    Unanswered,
}

impl<'a> Bench<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        Ok(Self { context, injector: Injector::new(context)? })
    }

    /// Sets the stage and calls, with each failure in turn, until the call succeeds untouched.
    ///
    /// `after` looks at what a call led to that succeeded; the flag says that something failed in it.
    /// Prints how many failures there were.
    pub fn sweep<S, T>(
        &self,
        name: &str,
        stage: impl Fn(&Context) -> Result<S>,
        call: impl Fn(&mut S) -> Result<T, Error>,
        after: impl Fn(&Context, &mut S, T, bool) -> Result<()>,
    ) -> Result<()> {
        let (mut refused, mut succeeded, mut unanswered) = (0, 0, 0);
        for nth in 1..MOST {
            let attempt = || self.attempt(nth, &stage, &call, &after);
            let outcome = attempt().map_err(|error| {
                // Once more, for the console to show where it was.
                let _ = inject::be_verbose();
                let _ = attempt();
                error.context(format!("{name}, failure {nth} (the console shows its stack)"))
            })?;
            match outcome {
                Attempt::Untouched => {
                    println!("{name}: {refused} refused, {succeeded} succeeded all the same");
                    return Ok(());
                }
                Attempt::Refused => refused += 1,
                Attempt::Succeeded => succeeded += 1,
                // Nothing else may fail once a call has done what cannot be undone.
                Attempt::Unanswered => unanswered += 1,
            }
            ensure!(unanswered <= ANSWERS, "{name}: something can fail once all is done");
        }
        bail!("{name}: {MOST} failures, and no end")
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
                    self.back_to(&there).context("after a call that was refused")?;
                }
                match (call(&mut staged), fault) {
                    (Ok(value), _) => {
                        after(self.context, &mut staged, value, false)?;
                        Attempt::Refused
                    }
                    (Err(_), Fault::Copy) => Attempt::Unanswered,
                    (Err(error), Fault::Memory) => return Err(error).context("called again"),
                }
            }
        };
        drop(staged);
        self.back_to(&before).context("after all was freed")?;
        Ok(attempt)
    }

    /// As many objects are there as before.
    fn back_to(&self, before: &[(String, u64)]) -> Result<()> {
        self.context
            .until("objects are gone", || Ok(objects()? == before))
            .with_context(|| format!("{:?} instead of {before:?}", objects().unwrap_or_default()))
    }
}

/// What failed has its own error.
fn refused_rightly(fault: Fault, error: Error) -> Result<()> {
    let right = match fault {
        Fault::Memory => {
            error.kind() == Some(Type::INSUFFICIENT_RESOURCES)
                && error.subtype() == Some(Subtype::RESOURCE_MEMORY)
        }
        Fault::Copy => error.errno() == Some(libc::EFAULT),
    };
    ensure!(right, "{fault:?} failed, and the call said {error:?}");
    Ok(())
}
