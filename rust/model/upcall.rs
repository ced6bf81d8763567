// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Scheduling of the upcalls of an Event Dispatcher (EVD).
//!
//! Each event gets an upcall, and no more upcalls run at once than the policy allows.
//!
//! Upcalls are made by *runners*. A runner is a work item, which can be queued once at a time. The
//! producer of an event queues a runner. The runner takes one event after the other and makes an
//! upcall for each. It leaves when it finds no event. Producers and runners share one word of
//! state:
//!
//! ```text
//!    31    30      20..16         15 .. 0
//!   +----+-----+- - -+------+- - -+---------+
//!   |open|again|     | crew |     |  away   |
//!   +----+-----+- - -+------+- - -+---------+
//! ```
//!
//! * *away*: one bit for each runner that is queued or runs;
//! * *crew*: the number of runners that may be queued or run at once;
//! * *again*: an event arrived while all of them were queued or running, so the next runner that
//!   finds no event has to check once more;
//! * *open*: upcalls are enabled.
//!
//! ```text
//!   producer of an event                    runner
//!   (the event is in the queue)             may I stay? take an event; none?
//!   call: a runner is idle? queue it        leave, unless `again` is set
//!         none is? set `again`
//! ```
//!
//! Both sides exchange the word, so one of them sees the change of the other. If the call comes
//! first, the runner sees `again` and stays. If the runner leaves first, the call queues it again,
//! and the new run sees the event.
//!
//! The gate is closed while the policy changes, and while the policy disables upcalls. A runner
//! asks whether it may stay under the lock that also protects the policy and the taking of the
//! event. So each event that a runner takes gets its upcall, and a runner that may no longer make
//! upcalls takes none. The crew shrinks in the same way: a runner that exceeds the new size leaves.

use super::atomic::AtomicU32;

/// Largest number of runners of an EVD.
pub(crate) const MAX_CREW: u32 = 16;

/// Mask of the bits of the runners that are queued or run.
const AWAY: u32 = (1 << MAX_CREW) - 1;

/// Position of the crew's size.
const CREW_SHIFT: u32 = 16;

/// Mask of the crew's size, after the shift.
const CREW_MASK: u32 = 0x1f;

/// An event arrived while all runners of the crew were queued or running.
const AGAIN: u32 = 1 << 30;

/// Upcalls are enabled.
const OPEN: u32 = 1 << 31;

/// Decision about a runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// The runner takes an event.
    Take,
    /// The runner has left.
    Left {
        /// No runner is queued or runs any more, so that a thread that waits for this has to be
        /// woken.
        last: bool,
    },
}

/// State word that producers and runners share.
pub(crate) struct Gate(AtomicU32);

/// Checks whether upcalls are enabled.
const fn is_open(word: u32) -> bool {
    word & OPEN != 0
}

/// Returns the number of runners that may be active at once.
const fn crew(word: u32) -> u32 {
    (word >> CREW_SHIFT) & CREW_MASK
}

/// Returns the number of runners that are queued or run.
const fn away(word: u32) -> u32 {
    (word & AWAY).count_ones()
}

/// Returns the bit of a runner.
const fn bit(runner: u32) -> u32 {
    1 << (runner % MAX_CREW)
}

/// Returns the word without this runner, and the decision that the runner has left.
const fn left(word: u32, runner: u32) -> (u32, Stay) {
    let word = word & !bit(runner);
    let last = word & AWAY == 0;
    (word, Stay::Left { last })
}

impl Gate {
    /// Creates a closed gate without active runners.
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

    /// Enables upcalls, by at most `crew` runners at once. If events that are queued already are to
    /// get upcalls, the caller calls [`Gate::call`] afterwards.
    pub(crate) fn open(&self, crew: u32) {
        let crew = crew.min(MAX_CREW);
        self.exchange(|word| ((word & AWAY) | (crew << CREW_SHIFT) | OPEN, ()));
    }

    /// Disables upcalls. Only events that runners have taken already still get theirs. Returns
    /// whether upcalls were enabled.
    pub(crate) fn close(&self) -> bool {
        self.exchange(|word| (word & AWAY, is_open(word)))
    }

    /// Checks whether upcalls are enabled.
    pub(crate) fn is_open(&self) -> bool {
        is_open(self.0.load_acquire())
    }

    /// Checks whether no runner is queued or runs. All taken events have got their upcalls then,
    /// and the upcalls have returned.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load_acquire() & AWAY == 0
    }

    /// Announces an event. Returns the runner that the caller has to queue; `None` if enough are
    /// active, or if upcalls are disabled.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn call(&self) -> Option<u32> {
        // The thread that opens the gate calls afterwards. Either the event is queued before that,
        // or the gate is seen open here.
        if !self.is_open() {
            return None;
        }
        self.exchange(|word| {
            if !is_open(word) {
                return (word, None);
            }
            let free = (!word & AWAY).trailing_zeros();
            if away(word) >= crew(word) || free >= MAX_CREW {
                return (word | AGAIN, None);
            }
            (word | bit(free), Some(free))
        })
    }

    /// Decides whether a runner may take an event. The caller holds the lock that protects the
    /// policy.
    pub(crate) fn stay(&self, runner: u32) -> Stay {
        self.exchange(|word| {
            if !is_open(word) {
                return left(word, runner);
            }
            if away(word) > crew(word) {
                // A runner that stays checks for events in its place.
                return left(word | AGAIN, runner);
            }
            (word, Stay::Take)
        })
    }

    /// Decides about a runner that has found no event. [`Stay::Take`] means that it has to check
    /// once more.
    pub(crate) fn leave(&self, runner: u32) -> Stay {
        self.exchange(|word| {
            if word & AGAIN != 0 {
                return (word & !AGAIN, Stay::Take);
            }
            left(word, runner)
        })
    }
}
