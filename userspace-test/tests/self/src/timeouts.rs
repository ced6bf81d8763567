// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks of time-outs: the timers that the kernel sets for waits, and the ends of waits.
//!
//! A thread runs after its timer as soon as the machine has a processor for it. So the time at
//! which a wait returns says little on a busy machine; the time to which its timer is set is exact.

use crate::expect::same;
use crate::trace::Recording;
use anyhow::{bail, ensure, Result};
use libkdapl::Monotonic;
use observe::threads::tid;
use observe::timers::{self, Timer};
use std::time::Duration;

/// Resolution of the time of a trace, in nanoseconds.
const MICROSECOND: u64 = 1000;

/// Recordings until one has a timer, and waits of a recording.
const RECORDINGS: u32 = 20;
const WAITS: u32 = 3;

/// Runs waits with the time-out `time`, and checks that their timers are set to its end. The thread
/// must not sleep otherwise. Skips the test if the kernel cannot record timers.
pub fn after(time: Duration, mut wait: impl FnMut(Duration) -> Result<()>) -> Result<()> {
    until_one_is_timed(|| Wait::run(Timeout::After(time), || wait(time)))
}

/// As [`after`], with waits until the time that is `delay` from their begin.
pub fn at(delay: Duration, mut wait: impl FnMut(Monotonic) -> Result<()>) -> Result<()> {
    until_one_is_timed(|| {
        let time = Monotonic::after(delay);
        Wait::run(Timeout::At(time), || wait(time))
    })
}

/// Repeats a wait until one has set a timer.
///
/// A wait whose time passes before it can sleep needs no timer. A busy machine, which makes a
/// thread wait for a processor, does that to some waits, and not to all of them.
fn until_one_is_timed(mut run: impl FnMut() -> Result<Wait>) -> Result<()> {
    for _ in 0..RECORDINGS {
        let recording = Recording::of_timers()?;
        let waits = (0..WAITS).map(|_| run()).collect::<Result<Vec<_>>>()?;
        let timers = timers::of_thread(&recording.told()?, tid());
        let found: Vec<_> = waits.iter().map(|wait| wait.timer(&timers)).collect();
        waits.iter().zip(&found).try_for_each(|(wait, timer)| wait.check(*timer))?;
        if found.iter().any(Option::is_some) {
            return Ok(());
        }
    }
    bail!("no wait has set a timer")
}

/// Repeats a wait that returns how late it ended, until one is on time.
///
/// A thread runs after its timer as soon as the machine has a processor for it. So a busy machine
/// delays any one wait, and a wrong timer delays all of them.
pub fn on_time(late: Duration, mut wait: impl FnMut() -> Result<Duration>) -> Result<()> {
    let mut best = Duration::MAX;
    for _ in 0..100 {
        best = best.min(wait()?);
        if best < late {
            return Ok(());
        }
    }
    bail!("{best:?} late at best")
}

/// A wait that has ended with its time-out.
struct Wait {
    began: u64,
    ended: u64,
    timeout: Timeout,
}

enum Timeout {
    After(Duration),
    At(Monotonic),
}

impl Wait {
    fn run(timeout: Timeout, wait: impl FnOnce() -> Result<()>) -> Result<Self> {
        let began = Monotonic::now().0;
        wait()?;
        Ok(Self { began, ended: Monotonic::now().0, timeout })
    }

    /// Returns the last timer that was set during the wait. A sleep that ends early is repeated.
    fn timer<'a>(&self, timers: &'a [Timer]) -> Option<&'a Timer> {
        let during = self.began..=self.ended;
        timers.iter().rfind(|timer| {
            during.contains(&timer.set) || during.contains(&(timer.set + MICROSECOND))
        })
    }

    fn check(&self, timer: Option<&Timer>) -> Result<()> {
        let earliest = match self.timeout {
            Timeout::After(time) => self.began + time.as_nanos() as u64,
            Timeout::At(time) => time.0,
        };
        ensure!(self.ended >= earliest, "it ended at {} instead of {earliest}", self.ended);
        let Some(timer) = timer else { return Ok(()) };
        ensure!(self.ended >= timer.expired, "it ended at {} before {timer:?}", self.ended);
        match self.timeout {
            Timeout::At(time) => same("the timer is set to", timer.expiry, time.0),
            // The call has computed the expiry after it began and before it set the timer.
            Timeout::After(time) => {
                let latest = timer.set + MICROSECOND + time.as_nanos() as u64;
                let range = earliest..=latest;
                ensure!(range.contains(&timer.expiry), "{timer:?} is not set to {range:?}");
                Ok(())
            }
        }
    }
}
