// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ctrl-C: every wait looks here at least twice a second.

use anyhow::{Context, Result};
use nix::sys::signal::{
    sigaction, SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two looks.
const SLICE: Duration = Duration::from_millis(500);

static STOP: AtomicBool = AtomicBool::new(false);

/// The first Ctrl-C asks to stop, the second one ends the program at once.
pub fn on_ctrl_c() {
    let handler = || {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        eprintln!("kdapltest: Ctrl-C will not end it cleanly: {error}");
    }
}

/// Whether somebody pressed Ctrl-C.
pub fn requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Interrupts, twice a second until its drop, the system call that the thread which made it is in. So
/// a wait needs no time-out to look whether it should end, which would cost a timer in the kernel in
/// every single one.
pub struct Nudge(#[expect(dead_code, reason = "it ends with its drop")] Timer);

impl Nudge {
    pub fn this_thread() -> Result<Self> {
        extern "C" fn nothing(_signal: i32) {}
        // Without SA_RESTART, of which interrupting is the point.
        let action =
            SigAction::new(SigHandler::Handler(nothing), SaFlags::empty(), SigSet::empty());
        // SAFETY: The handler does nothing, which is safe in a signal.
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
