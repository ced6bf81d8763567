// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Scheduling of the upcalls of an Event Dispatcher (EVD).
//!
//! Each event gets an upcall, and no more upcalls run at once than the policy allows.
//!
//! Upcalls are made by *runners*. A runner is a work item, which can be queued once at a time. The
//! producer of an event queues a runner. The runner takes one event after the other and makes an
//! upcall for each. It finishes when it finds no event. Producers and runners share one word of
//! state:
//!
//! ```text
//!    31     30         20..16          15 .. 0
//!   +----+-------+- - +----------+- - +--------+
//!   |open|recheck|    |max active|    | active |
//!   +----+-------+- - +----------+- - +--------+
//! ```
//!
//! * *active*: one bit for each runner that is queued or runs;
//! * *max active*: the number of runners that may be queued or run at once;
//! * *recheck*: an event arrived while all of them were queued or running, so the next runner that
//!   finds no event has to check once more;
//! * *open*: upcalls are enabled.
//!
//! ```text
//!   producer of an event                    runner
//!   (the event is in the queue)             may_take; take an event; none?
//!   notify: a runner is idle? queue it      try_finish, unless `recheck` is set
//!           none is? set `recheck`
//! ```
//!
//! Both sides exchange the word, so one of them sees the change of the other. If the notification
//! comes first, the runner sees `recheck` and goes on. If the runner finishes first, the
//! notification queues it again, and the new run sees the event.
//!
//! Upcalls are disabled while the policy changes, and while the policy disables them. A runner
//! asks whether it may take an event under the lock that also protects the policy and the taking of
//! the event. So each event that a runner takes gets its upcall, and a runner that may no longer
//! make upcalls takes none. The number of runners shrinks in the same way: a runner that exceeds
//! the new maximum finishes.
//!
//! A run of a runner is a [turn](take_turn): it ends when a budget of events is used up. The runner
//! is then queued again, behind other runners, and still counts as active. So no producer queues it
//! meanwhile, and a thread that waits for the runners waits for its next turns, too.

use super::atomic::AtomicU32;

/// Largest number of runners of an EVD.
pub(crate) const MAX_RUNNERS: u32 = 16;

/// Largest budget of a turn.
pub(crate) const MAX_BUDGET: u32 = 64;

/// Mask of the bits of the runners that are queued or run.
const ACTIVE: u32 = (1 << MAX_RUNNERS) - 1;

/// Position of the maximum number of active runners.
const MAX_ACTIVE_SHIFT: u32 = 16;

/// Mask of the maximum number of active runners, after the shift.
const MAX_ACTIVE_MASK: u32 = 0x1f;

/// An event arrived while all runners were queued or running.
const RECHECK: u32 = 1 << 30;

/// Upcalls are enabled.
const OPEN: u32 = 1 << 31;

/// Decision about a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunnerDecision {
    /// The runner takes an event.
    Run,
    /// The runner has finished.
    Finished {
        /// No runner is queued or runs any more, so that a thread that waits for this has to be
        /// woken.
        last: bool,
    },
}

/// Result of one step of a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunnerStep {
    /// An upcall was made, or there may be an event to look for.
    Next,
    /// The runner has finished.
    Finished,
}

/// End of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum TurnEnd {
    /// The runner has finished.
    Finished,
    /// The budget is used up. The caller queues the runner again, behind others.
    QueueAgain,
}

/// Makes the steps of a runner, each of which makes one upcall at most, until it has finished or
/// has used up its budget.
pub(crate) fn take_turn(budget: u32, mut step: impl FnMut() -> RunnerStep) -> TurnEnd {
    for _ in 0..budget {
        if step() == RunnerStep::Finished {
            return TurnEnd::Finished;
        }
    }
    TurnEnd::QueueAgain
}

/// State word that producers and runners share.
pub(crate) struct UpcallState(AtomicU32);

/// Returns whether upcalls are enabled.
const fn is_open(word: u32) -> bool {
    word & OPEN != 0
}

/// Returns the number of runners that may be active at once.
const fn max_active(word: u32) -> u32 {
    (word >> MAX_ACTIVE_SHIFT) & MAX_ACTIVE_MASK
}

/// Returns the number of runners that are queued or run.
const fn active(word: u32) -> u32 {
    (word & ACTIVE).count_ones()
}

/// Returns the bit of a runner.
const fn bit(runner: u32) -> u32 {
    1 << (runner % MAX_RUNNERS)
}

/// Returns the word without this runner, and the decision that the runner has finished.
const fn finished(word: u32, runner: u32) -> (u32, RunnerDecision) {
    let word = word & !bit(runner);
    let last = word & ACTIVE == 0;
    (word, RunnerDecision::Finished { last })
}

impl UpcallState {
    /// Creates the state without active runners. Upcalls are disabled.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Replaces the word with the result of `step`. Fully ordered, even if the word does not
    /// change.
    fn exchange<T>(&self, step: impl Fn(u32) -> (u32, T)) -> T {
        let mut word = self.0.load();
        loop {
            let (next, result) = step(word);
            match self.0.exchange_if(word, next) {
                Ok(()) => return result,
                Err(now) => word = now,
            }
        }
    }

    /// Enables upcalls, by at most `max_active` runners at once. If events that are queued already
    /// are to get upcalls, the caller calls [`UpcallState::notify`] afterwards. Returns whether
    /// upcalls were enabled before.
    pub(crate) fn open(&self, max_active: u32) -> bool {
        let max_active = max_active.min(MAX_RUNNERS);
        self.exchange(|word| {
            (
                (word & ACTIVE) | (max_active << MAX_ACTIVE_SHIFT) | OPEN,
                is_open(word),
            )
        })
    }

    /// Disables upcalls. Only events that runners have taken already still get theirs. Returns
    /// whether upcalls were enabled.
    pub(crate) fn close(&self) -> bool {
        self.exchange(|word| (word & ACTIVE, is_open(word)))
    }

    /// Returns whether upcalls are enabled.
    pub(crate) fn is_open(&self) -> bool {
        is_open(self.0.load_acquire())
    }

    /// Returns whether no runner is queued or runs. All taken events have got their upcalls then,
    /// and the upcalls have returned.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load_acquire() & ACTIVE == 0
    }

    /// Announces an event. Returns the runner that the caller has to queue; `None` if enough are
    /// active, or if upcalls are disabled.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn notify(&self) -> Option<u32> {
        // The thread that enables upcalls notifies afterwards. Either the event is queued before
        // that, or upcalls are seen enabled here.
        if !self.is_open() {
            return None;
        }
        self.exchange(|word| {
            if !is_open(word) {
                return (word, None);
            }
            let free = (!word & ACTIVE).trailing_zeros();
            if active(word) >= max_active(word) || free >= MAX_RUNNERS {
                return (word | RECHECK, None);
            }
            (word | bit(free), Some(free))
        })
    }

    /// Decides whether a runner may take an event. The caller holds the lock that protects the
    /// policy.
    pub(crate) fn may_take(&self, runner: u32) -> RunnerDecision {
        self.exchange(|word| {
            if !is_open(word) {
                return finished(word, runner);
            }
            if active(word) > max_active(word) {
                // A runner that goes on checks for events in its place.
                return finished(word | RECHECK, runner);
            }
            (word, RunnerDecision::Run)
        })
    }

    /// Decides about a runner that has found no event. [`RunnerDecision::Run`] means that it has
    /// to check once more.
    pub(crate) fn try_finish(&self, runner: u32) -> RunnerDecision {
        self.exchange(|word| {
            if word & RECHECK != 0 {
                return (word & !RECHECK, RunnerDecision::Run);
            }
            finished(word, runner)
        })
    }
}
