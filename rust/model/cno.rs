// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which EVDs have triggered a CNO: each once, in their order, none forgotten.
//!
//! An EVD says at most once that it has something, until that was handed out: what comes in between
//! is found by whoever it is handed to. Who hands it out takes the word back *before* the consumer
//! looks, so that an event is either found by that look or triggers anew.
//!
//! ```text
//!   whoever brings an event            who hands the EVD out
//!   (the event is in the queue)        lower
//!   raise; first? into the queue       the consumer looks for events
//! ```

use super::atomic::AtomicBool;
use core::ops::DerefMut;

/// Whether an EVD has said that it has something.
pub(crate) struct Pending(AtomicBool);

impl Pending {
    /// It has not.
    pub(crate) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Says so, behind the event. Tells whether it is news: then the EVD is to be queued.
    ///
    /// An exchange and not a store behind a load: of two who bring events one queues the EVD; and
    /// the one that does not has published its event before the look that follows the lowering.
    ///
    /// Context: any, including hard IRQ.
    pub(crate) fn raise(&self) -> bool {
        !self.0.swap(true)
    }

    /// Whether it has said so.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load_acquire()
    }

    /// Takes it back, before anybody looks for events.
    pub(crate) fn lower(&self) {
        self.0.swap(false);
    }
}

/// There is no room: more are queued than the storage was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A queue of handles over caller-provided storage.
pub(crate) struct Fifo<S> {
    storage: S,
    head: usize,
    len: usize,
}

impl<S: DerefMut<Target = [u64]>> Fifo<S> {
    /// An empty queue.
    pub(crate) const fn new(storage: S) -> Self {
        Self {
            storage,
            head: 0,
            len: 0,
        }
    }

    /// How many handles it has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.storage.len()
    }

    /// How many are queued.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The slot of the `n`-th in the queue, or behind it.
    fn slot(&mut self, n: usize) -> Option<&mut u64> {
        let capacity = self.capacity();
        let place = self.head.checked_add(n)?.checked_rem(capacity)?;
        self.storage.get_mut(place)
    }

    /// Queues a handle behind the others.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub(crate) fn push(&mut self, handle: u64) -> Result<(), Full> {
        if self.len >= self.capacity() {
            return Err(Full);
        }
        *self.slot(self.len).ok_or(Full)? = handle;
        self.len = self.len.saturating_add(1);
        Ok(())
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let handle = *self.slot(0)?;
        self.head = self.head.checked_add(1)?.checked_rem(self.capacity())?;
        self.len = self.len.saturating_sub(1);
        Some(handle)
    }

    /// Takes a handle out, wherever it is; the others keep their order. Says whether it was there.
    pub(crate) fn remove(&mut self, handle: u64) -> bool {
        let before = self.len;
        for _ in 0..before {
            match self.pop() {
                Some(first) if first == handle => {}
                // Never full: one was just taken.
                Some(first) => drop(self.push(first)),
                None => {}
            }
        }
        self.len != before
    }

    /// Takes out what is there once more further back; the first of each stays in its place.
    ///
    /// An EVD that is withdrawn at the moment in which it triggers, or is handed out, may be queued
    /// twice. That is harmless as long as there is room for all the others.
    pub(crate) fn dedup(&mut self) {
        let mut kept = 0_usize;
        for _ in 0..self.len {
            let Some(handle) = self.pop() else {
                return;
            };
            // Those that are kept are the last ones.
            let before = self.len.saturating_sub(kept)..self.len;
            let mut is_kept = false;
            for n in before {
                is_kept |= self.slot(n).is_some_and(|other| *other == handle);
            }
            if !is_kept {
                // Never full: one was just taken.
                let _ = self.push(handle);
                kept = kept.saturating_add(1);
            }
        }
    }

    /// Goes on in other storage with at least as much room; gives the old one back.
    ///
    /// # Errors
    ///
    /// The new storage is too short; it is given back, and nothing has changed.
    pub(crate) fn move_to(&mut self, storage: S) -> Result<S, S> {
        if storage.len() < self.len {
            return Err(storage);
        }
        let mut next = Self::new(storage);
        while let Some(handle) = self.pop() {
            // Never full.
            let _ = next.push(handle);
        }
        Ok(core::mem::replace(self, next).storage)
    }
}
