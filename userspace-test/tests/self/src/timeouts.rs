// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Compares the time-outs of waits with the timers that the kernel sets for them.
//!
//! A thread runs after its timer as soon as the machine has a processor for it. So the time at
//! which a wait returns says little on a busy machine; the time to which its timer is set is exact.

use crate::expect::same;
use crate::trace::Recording;
use anyhow::{ensure, Error, Result};
use libkdapl::Monotonic;
use observe::threads::tid;
use observe::timers::{self, Timer};
use std::time::Duration;

/// Resolution of the time of a trace, in nanoseconds.
const MICROSECOND: u64 = 1000;

/// Records the timers of this thread's waits. The thread must not sleep otherwise.
pub struct TimedWaits {
    recording: Recording,
    waits: Vec<Wait>,
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

impl TimedWaits {
    /// Starts a recording. Skips the test if the kernel cannot record timers.
    pub fn start() -> Result<Self> {
        Ok(Self { recording: Recording::of_timers()?, waits: Vec::new() })
    }

    /// Runs a wait with the time-out `time`, which must end with it.
    pub fn after(
        &mut self,
        time: Duration,
        wait: impl FnOnce(Duration) -> Result<()>,
    ) -> Result<()> {
        self.run(Timeout::After(time), || wait(time))
    }

    /// Runs a wait until `time`, which must end with it.
    pub fn at(
        &mut self,
        time: Monotonic,
        wait: impl FnOnce(Monotonic) -> Result<()>,
    ) -> Result<()> {
        self.run(Timeout::At(time), || wait(time))
    }

    fn run(&mut self, timeout: Timeout, wait: impl FnOnce() -> Result<()>) -> Result<()> {
        let began = Monotonic::now().0;
        wait()?;
        self.waits.push(Wait { began, ended: Monotonic::now().0, timeout });
        Ok(())
    }

    /// Checks the time and the timer of each wait.
    ///
    /// A wait whose time passes before it can sleep needs no timer. A busy machine, which makes a
    /// thread wait for a processor, does that to some waits, and not to all of them.
    pub fn check(self) -> Result<()> {
        let timers = timers::of_thread(&self.recording.told()?, tid());
        let timed = self.waits.iter().try_fold(0, |count, wait| {
            let timer = wait.timer(&timers);
            wait.check(timer)?;
            Ok::<_, Error>(count + usize::from(timer.is_some()))
        })?;
        ensure!(timed > 0, "none of {} waits has set a timer", self.waits.len());
        Ok(())
    }
}

impl Wait {
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
