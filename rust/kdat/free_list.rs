// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Stack of the numbers of free slots, without a lock.
//!
//! One word has the number on top and a tag, which each change increments. A number that was taken
//! and came back meanwhile has another tag, so that a thread with an old link does not store it:
//!
//! ```text
//!    63           24 23         0
//!   +---------------+------------+         top --> link(top) --> ... --> NONE
//!   |      tag      |    top     |
//!   +---------------+------------+
//! ```
//!
//! The links are in the slots, which stay where they are. This file uses `core` only:
//! `userspace-test/tests/model` explores it with loom.

/// Bits of a number.
pub(crate) const BITS: u32 = 24;

/// End of the stack, which is no number.
pub(crate) const NONE: u32 = (1 << BITS) - 1;

/// Word that threads exchange.
pub(crate) trait Word {
    /// Loads the word. Later accesses are not moved before it.
    fn load_acquire(&self) -> u64;

    /// Stores `new` if the word is `old`, and orders all accesses. Returns whether it was.
    fn exchange(&self, old: u64, new: u64) -> bool;
}

/// Stack of numbers below [`NONE`]. Context of all calls: any.
pub(crate) struct FreeList<W> {
    top: W,
}

/// Returns the word for a new top.
fn after(old: u64, top: u32) -> u64 {
    (((old >> BITS) + 1) << BITS) | u64::from(top)
}

/// Returns the number on top.
fn top(word: u64) -> u32 {
    word as u32 & NONE
}

impl<W: Word> FreeList<W> {
    /// Word of an empty stack.
    pub(crate) const EMPTY: u64 = NONE as u64;

    /// Makes a stack of a word that is [`Self::EMPTY`].
    pub(crate) const fn new(top: W) -> Self {
        Self { top }
    }

    /// Takes the number on top. `link` returns the number that [`Self::push`] has linked to one.
    pub(crate) fn pop(&self, link: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        loop {
            let old = self.top.load_acquire();
            let number = top(old);
            if number == NONE {
                return None;
            }
            if self.top.exchange(old, after(old, link(number)?)) {
                return Some(number);
            }
        }
    }

    /// Puts a number on top, which no one else has. `link` links the one below to it, or to the
    /// last of a chain that begins with it.
    pub(crate) fn push(&self, number: u32, link: impl Fn(u32)) {
        loop {
            let old = self.top.load_acquire();
            link(top(old));
            if self.top.exchange(old, after(old, number)) {
                return;
            }
        }
    }
}
