// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Handling of SIGINT (Ctrl-C) and SIGTERM: the first one requests a stop, the second one ends the
//! process.
//!
//! A measurement checks for the request between two operations, and then ends as if it were
//! complete. A wait for an event checks a few times a second, and fails once the peer has had time
//! to answer. Either way the command reports what it has measured.

use crate::output::Unwritten;
use anyhow::{Context, Result};
use nix::sys::signal::{
    sigaction, SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal,
};
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::ClockId;
use nix::unistd::gettid;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Interval between two checks of a wait.
pub const SLICE: Duration = Duration::from_millis(200);
/// Time for the peer to answer after the request.
const GRACE: Duration = Duration::from_millis(300);
/// Signals within this time count as one: `timeout` signals the process, and then its group.
const TWICE: Duration = Duration::from_millis(500);

/// The first signal, and the time at which it arrived.
static STOP: OnceLock<(i32, Instant)> = OnceLock::new();

/// Starts a thread that handles the signals.
pub fn on_signals() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot handle Ctrl-C")?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let (_, first) = STOP.get_or_init(|| (signal, Instant::now()));
            if first.elapsed() > TWICE {
                std::process::exit(128 + signal);
            }
        }
    });
    Ok(())
}

/// Lets the process end with the one that has started it.
///
/// # Errors
/// That of `prctl(2)`.
pub fn with_parent() -> Result<()> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).context("cannot follow the parent")
}

/// Returns the signal that requested a stop.
pub fn signal() -> Option<i32> {
    STOP.get().map(|(signal, _)| *signal)
}

/// Returns whether a stop was requested.
pub fn requested() -> bool {
    STOP.get().is_some()
}

/// Returns whether a stop was requested so long ago that waits have to end.
pub fn overdue() -> bool {
    STOP.get().is_some_and(|(_, since)| since.elapsed() > GRACE)
}

/// Error of a wait that ended because of the request.
#[derive(Debug)]
pub struct Stopped;

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match signal() {
            Some(SIGINT) => " by SIGINT (Ctrl-C)",
            Some(SIGTERM) => " by SIGTERM",
            _ => "",
        };
        write!(f, "stopped{name}")
    }
}

impl std::error::Error for Stopped {}

/// Forgives an error after a stop was requested. A peer that was stopped as well may have caused
/// it. An error of the output remains.
pub fn forgive<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if requested() && !error.is::<Unwritten>() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Interrupts the system calls of the thread that created it, several times a second until it is
/// dropped. A wait therefore needs no time-out to check for a stop, which would cost a timer in the
/// kernel for each wait.
pub struct Nudge(#[expect(dead_code, reason = "it ends with its drop")] Timer);

impl Nudge {
    /// Starts for the calling thread.
    ///
    /// # Errors
    /// Those of `sigaction(2)` and `timer_create(2)`.
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
