// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Handling of Ctrl-C: every wait checks for it at least twice a second.

use anyhow::{Context, Result};
use nix::sys::signal::{
    sigaction, SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between two checks.
const SLICE: Duration = Duration::from_millis(500);

static STOP: AtomicBool = AtomicBool::new(false);

/// Installs the handler. The first Ctrl-C requests a stop; the second one exits at once.
pub fn on_ctrl_c() {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("kdapltest: cannot handle Ctrl-C: {error}");
    }
}

/// Returns whether a stop was requested.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Interrupts the system calls of the thread that created it, twice a second until it is dropped. A
/// wait therefore needs no time-out to check for a stop, which would cost a timer in the kernel for
/// each wait.
pub struct Nudge(#[expect(dead_code, reason = "it ends with its drop")] Timer);

impl Nudge {
    pub fn this_thread() -> Result<Self> {
        extern "C" fn nothing(_signal: i32) {}
        // Without SA_RESTART, so that the signal interrupts system calls.
        let action =
            SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: The handler does nothing and is thus async-signal-safe.
        unsafe { sigaction(Signal::SIGALRM, &action) }.context("no handler for SIGALRM")?;
        let notify = SigevNotify::SigevThreadId {
            signal: Signal::SIGALRM,
            thread_id: gettid().as_raw(),
            si_value: 0,
        };
        let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify))
            .context("no timer for this thread")?;
        timer
            .set(Expiration::Interval(SLICE.into()), TimerSetTimeFlags::empty())
            .context("the timer of this thread does not start")?;
        Ok(Self(timer))
    }
}
