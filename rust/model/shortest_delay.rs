// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The shortest of the delays that several threads ask of one timer.
//!
//! Delays are compared, not times: a shorter one begins anew, when it is asked for.
//!
//! A timer of the kernel that is queued again keeps its first time. So a thread that asks for a
//! shorter delay cancels the timer before it queues it. Another thread may queue it with the longer
//! delay in between. So each thread that has queued the timer looks whether a shorter delay was
//! asked for meanwhile, and begins anew.
//!
//! The function of the timer [ends](ShortestDelay::end) the round before it acts.

use super::atomic::AtomicU32;

/// No thread has asked.
const NONE: u32 = u32::MAX;

/// Longest delay in milliseconds.
const MAX: u32 = NONE - 1;

/// The shortest delay of this round, in milliseconds.
pub(crate) struct ShortestDelay(AtomicU32);

impl ShortestDelay {
    /// Creates it without a delay.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(NONE))
    }

    /// Asks for a delay. `queue` queues the timer with a delay, unless it is queued, and `cancel`
    /// cancels it.
    ///
    /// Context: as for the two functions.
    pub(crate) fn ask(&self, milliseconds: u32, queue: impl Fn(u32), cancel: impl Fn()) {
        if !self.shorten(milliseconds.min(MAX)) {
            return;
        }
        let mut queued = NONE;
        loop {
            let delay = self.0.load_acquire();
            // The function of the timer has begun since, or the timer was cancelled for good.
            if delay == NONE || delay == queued {
                return;
            }
            // Also for the first delay of a round: the timer may be queued since the last one.
            cancel();
            queue(delay);
            queued = delay;
        }
    }

    /// Replaces the delay by a shorter one. Returns whether it is shorter.
    fn shorten(&self, new: u32) -> bool {
        let mut old = self.0.load();
        while new < old {
            match self.0.exchange_if(old, new) {
                Ok(()) => return true,
                Err(found) => old = found,
            }
        }
        false
    }

    /// Ends the round. Called by the function of the timer, and after the timer was cancelled for
    /// good.
    pub(crate) fn end(&self) {
        self.0.swap(NONE);
    }
}
