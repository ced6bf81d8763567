// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How many completions a completion queue may be asked to hold, so that it never overflows.
//!
//! An Endpoint [takes](Taken) room for all that it may ever have in flight when it gets its queue pair,
//! and gives it back when that is destroyed. What the queue pair has left in the completion queue by then
//! is *given up*: nobody cares for it, but it takes room until somebody has seen the queue empty.
//!
//! ```text
//!   taken:  | of queue pairs ............ | given up |        | depth
//! ```

use super::atomic::AtomicU32;

/// The room of one completion queue.
pub(crate) struct Room {
    depth: u32,
    /// What queue pairs have taken, and what is given up.
    taken: AtomicU32,
    given_up: AtomicU32,
}

/// What was given up before a look at the completion queue.
pub(crate) struct Before(u32);

impl Room {
    /// Of a queue that holds so many completions.
    pub(crate) fn new(depth: u32) -> Self {
        Self {
            depth,
            taken: AtomicU32::new(0),
            given_up: AtomicU32::new(0),
        }
    }

    /// How many completions the queue holds.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Takes room, if there is so much. One at a time; giving back may go on beside it.
    pub(crate) fn take(&self, entries: u32) -> bool {
        let fits = self
            .taken
            .load_acquire()
            .checked_add(entries)
            .is_some_and(|sum| sum <= self.depth);
        if fits {
            self.taken.add(entries);
        }
        fits
    }

    /// Gives room back, of which nothing lies in the queue. Context: any.
    fn give_back(&self, entries: u32) {
        self.taken.sub(entries);
    }

    /// So much of what is taken may lie in the queue, and nobody will give it back: the queue pair is
    /// destroyed.
    fn give_up(&self, entries: u32) {
        self.given_up.add(entries);
    }

    /// Whether room is taken by what is given up.
    pub(crate) fn has_given_up(&self) -> bool {
        self.given_up.load_acquire() != 0
    }

    /// Before a look at the queue: what is given up by now lies there, or is gone.
    pub(crate) fn before_look(&self) -> Before {
        Before(self.given_up.load_acquire())
    }

    /// The look has found the end of the queue: what was given up before it is gone. Says how much.
    pub(crate) fn seen_empty(&self, Before(entries): Before) -> Option<u32> {
        if entries == 0 {
            return None;
        }
        self.given_up.sub(entries);
        self.taken.sub(entries);
        Some(entries)
    }
}

/// What one queue pair has taken of the room, until it is destroyed.
///
/// Its Endpoint may part with it before: then nobody cares for its completions any more, but they come
/// until it is destroyed.
pub(crate) struct Taken {
    entries: u32,
    given_up: AtomicU32,
}

impl Taken {
    /// So many entries, which were taken.
    pub(crate) fn new(entries: u32) -> Self {
        Self {
            entries,
            given_up: AtomicU32::new(0),
        }
    }

    /// Parts with so many of the entries, which it returns. Nothing is given up so far.
    pub(crate) fn split(&mut self, entries: u32) -> Self {
        let entries = entries.min(self.entries);
        self.entries = self.entries.saturating_sub(entries);
        Self::new(entries)
    }

    /// Nobody cares any more for so many of the entries. Returns for how many somebody did. One at a time.
    pub(crate) fn give_up(&self, count: u32) -> u32 {
        let count = count.min(self.entries.saturating_sub(self.given_up.load()));
        self.given_up.add(count);
        count
    }

    /// The queue pair is destroyed. What is given up may lie in the queue, the rest is free. Once.
    pub(crate) fn end(&self, room: &Room) {
        let given_up = self.given_up.load_acquire();
        room.give_up(given_up);
        room.give_back(self.entries.saturating_sub(given_up));
    }
}

/// The depth of one more queue for `needed` completions, where the last has `last`, and a device's hold
/// `max` at most: each is larger than the last, so that there are few. `None` if there is no such queue.
pub(crate) fn depth_behind(last: u32, needed: u32, max: u32) -> Option<u32> {
    (needed <= max).then(|| needed.max(last.saturating_mul(4)).min(max))
}
