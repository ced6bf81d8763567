// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Atomic cells by what they are used for: the one place where `model/` touches its surroundings.
//!
//! In the kernel they are `kernel::sync::atomic`, on the host `core`'s (`cfg(kdapl_host)`), and
//! under `cfg(loom)` loom's, which tries every interleaving and every value that a load may see.
//! The orderings are the names of the methods: plain is relaxed, `_acquire` and `_release` pair.

#[cfg(not(kdapl_host))]
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed,
    Release, //
};

#[cfg(all(kdapl_host, not(loom)))]
use core::sync::atomic as host;
#[cfg(loom)]
use loom::sync::atomic as host;

#[cfg(kdapl_host)]
use self::host::Ordering::{
    Acquire,
    Relaxed,
    Release,
    SeqCst as Full, //
};

/// What a cell is made of.
#[cfg(not(kdapl_host))]
mod cell {
    pub(super) type U32 = super::Atomic<u32>;
    pub(super) type U64 = super::Atomic<u64>;
    pub(super) type Bool = super::Atomic<bool>;
}

/// What a cell is made of.
#[cfg(kdapl_host)]
mod cell {
    pub(super) type U32 = super::host::AtomicU32;
    pub(super) type U64 = super::host::AtomicU64;
    pub(super) type Bool = super::host::AtomicBool;
}

/// An index that one side advances and the other follows, or a count.
pub(crate) struct AtomicU32(cell::U32);

impl AtomicU32 {
    /// A cell that holds `value`.
    pub(crate) fn new(value: u32) -> Self {
        Self(cell::U32::new(value))
    }

    /// Reads the index in the side that advances it.
    pub(crate) fn load(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Reads the index, and with it all that was written before it was advanced.
    pub(crate) fn load_acquire(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Advances the index behind all that was read and written before.
    pub(crate) fn store_release(&self, value: u32) {
        self.0.store(value, Release);
    }

    /// Exchanges the value for `new` if it is `old`, fully ordered against everything before and after.
    ///
    /// # Errors
    ///
    /// The value, which is another.
    #[cfg(not(kdapl_host))]
    pub(crate) fn exchange_if(&self, old: u32, new: u32) -> Result<(), u32> {
        self.0.cmpxchg(old, new, Full).map(drop)
    }

    /// Exchanges the value for `new` if it is `old`, fully ordered against everything before and after.
    ///
    /// # Errors
    ///
    /// The value, which is another.
    #[cfg(kdapl_host)]
    pub(crate) fn exchange_if(&self, old: u32, new: u32) -> Result<(), u32> {
        self.0.compare_exchange(old, new, Full, Relaxed).map(drop)
    }

    /// Counts up, behind all that was read and written before.
    pub(crate) fn add(&self, count: u32) {
        self.0.fetch_add(count, Release);
    }

    /// Counts down, behind all that was read and written before. The caller has counted up.
    pub(crate) fn sub(&self, count: u32) {
        self.0.fetch_sub(count, Release);
    }
}

/// A word of data, which indices guard.
pub(crate) struct AtomicU64(cell::U64);

impl AtomicU64 {
    /// A cell that holds `value`.
    pub(crate) fn new(value: u64) -> Self {
        Self(cell::U64::new(value))
    }

    /// Reads the word.
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Writes the word.
    pub(crate) fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// A flag by which one side tells the other that something happened.
pub(crate) struct AtomicBool(cell::Bool);

impl AtomicBool {
    /// A flag that holds `value`.
    pub(crate) fn new(value: bool) -> Self {
        Self(cell::Bool::new(value))
    }

    /// Reads the flag, and with it all that was written before it was set.
    pub(crate) fn load_acquire(&self) -> bool {
        self.0.load(Acquire)
    }

    /// Exchanges the flag, fully ordered against everything before and after.
    #[cfg(not(kdapl_host))]
    pub(crate) fn swap(&self, value: bool) -> bool {
        self.0.xchg(value, Full)
    }

    /// Exchanges the flag, fully ordered against everything before and after.
    #[cfg(kdapl_host)]
    pub(crate) fn swap(&self, value: bool) -> bool {
        self.0.swap(value, Full)
    }
}
