// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Who makes the upcalls of an EVD: no event without one, and never more at once than the policy says.
//!
//! Upcalls are made by a crew of *runners*, work items of which each is queued once at a time. Who brings
//! an event sends one on its way; a runner takes event after event, and leaves when it finds none. All
//! that both sides have to know is one word:
//!
//! ```text
//!    31    30      20..16         15 .. 0
//!   +----+-----+- - -+------+- - -+---------+
//!   |open|again|     | crew |     |  away   |
//!   +----+-----+- - -+------+- - -+---------+
//! ```
//!
//! *Away* has a bit for each runner that is queued or runs; *crew* is how many may be at once. *Again* says
//! that an event came while all of them were: the next one that finds nothing looks once more.
//!
//! ```text
//!   whoever brings an event                 a runner
//!   (the event is in the queue)             may I stay? take; nothing?
//!   call: somebody is not away? send it     leave, unless it was called again
//!         else: again
//! ```
//!
//! Both exchange the word, so one of them sees the other: a call that comes before the leaving is heeded by
//! it, one that comes behind sends the runner again. And whoever is sent sees the event.
//!
//! The gate is closed while the policy changes and for as long as it says that there are no upcalls. A
//! runner asks whether it may stay under the lock under which it takes the event and under which the policy
//! changes; so an event that was taken is handed out, and none is taken by who may not call. A crew that
//! has become smaller shrinks there: who is one too many leaves.

use super::atomic::AtomicU32;

/// Runners of the largest crew.
pub(crate) const MAX_CREW: u32 = 16;

/// The bits of the runners that are away.
const AWAY: u32 = (1 << MAX_CREW) - 1;

/// Where the size of the crew begins.
const CREW_SHIFT: u32 = 16;

/// The bits of the size.
const CREW_MASK: u32 = 0x1f;

/// An event came while all were away.
const AGAIN: u32 = 1 << 30;

/// Upcalls are made.
const OPEN: u32 = 1 << 31;

/// How a runner goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stay {
    /// It takes an event.
    Take,
    /// It has left. Nobody is away any more if `last`.
    Left {
        /// Whether somebody may wait for that.
        last: bool,
    },
}

/// The word.
pub(crate) struct Gate(AtomicU32);

const fn is_open(word: u32) -> bool {
    word & OPEN != 0
}

const fn crew(word: u32) -> u32 {
    (word >> CREW_SHIFT) & CREW_MASK
}

const fn away(word: u32) -> u32 {
    (word & AWAY).count_ones()
}

/// The bit of a runner.
const fn bit(runner: u32) -> u32 {
    1 << (runner % MAX_CREW)
}

/// After this runner has left.
const fn left(word: u32, runner: u32) -> (u32, Stay) {
    let word = word & !bit(runner);
    let last = word & AWAY == 0;
    (word, Stay::Left { last })
}

impl Gate {
    /// Closed, and nobody is away.
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Exchanges the word for what `step` makes of it, fully ordered even if that is the same.
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

    /// Upcalls are made from now on, by at most as many runners at once. Whoever opens the gate calls, if
    /// what came before is to be handed out.
    pub(crate) fn open(&self, crew: u32) {
        let crew = crew.min(MAX_CREW);
        self.exchange(|word| ((word & AWAY) | (crew << CREW_SHIFT) | OPEN, ()));
    }

    /// No upcall begins from now on, but for what a runner has taken already. Says whether it was open.
    pub(crate) fn close(&self) -> bool {
        self.exchange(|word| (word & AWAY, is_open(word)))
    }

    /// Whether upcalls are made.
    pub(crate) fn is_open(&self) -> bool {
        is_open(self.0.load_acquire())
    }

    /// Whether no runner is away: what was taken is handed out, and the upcalls have returned.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.load_acquire() & AWAY == 0
    }

    /// An event is there. Returns the runner to be sent, if one has to be.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn call(&self) -> Option<u32> {
        // Closed, and so for whoever opens it to call; the event is there before that, or it is not seen
        // closed here.
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

    /// A runner is about to take an event. The caller holds the lock of the policy.
    pub(crate) fn stay(&self, runner: u32) -> Stay {
        self.exchange(|word| {
            if !is_open(word) {
                return left(word, runner);
            }
            if away(word) > crew(word) {
                // One of the others looks in its place.
                return left(word | AGAIN, runner);
            }
            (word, Stay::Take)
        })
    }

    /// A runner has found nothing. `Take`: it looks once more.
    pub(crate) fn leave(&self, runner: u32) -> Stay {
        self.exchange(|word| {
            if word & AGAIN != 0 {
                return (word & !AGAIN, Stay::Take);
            }
            left(word, runner)
        })
    }
}
