// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Atomic variables, one type for each use.
//!
//! This is the one file of `model/` that depends on the build: the host build uses `core`, the
//! kernel build `kernel::sync::atomic` (`cfg(kdapl_kernel_atomics)`). With `cfg(loom)` the types
//! are those of loom, which explores every interleaving and every value that a load may return.
//!
//! On x86-64 the kernel build uses `core`, too. The kernel crate calls a C function for each
//! access, so that a load takes eight instructions instead of one. `core` has the instructions of
//! that function, or stronger ones: there a plain load acquires, a plain store releases, and an
//! exchange is a full barrier.
//!
//! The methods name the memory ordering: `_acquire` and `_release` pair, and methods without a
//! suffix are relaxed unless their documentation names an ordering.

#[cfg(kdapl_kernel_atomics)]
use kernel::sync::atomic::{
    Acquire,
    Atomic,
    Full,
    Relaxed,
    Release, //
};

#[cfg(not(any(kdapl_kernel_atomics, loom)))]
use core::sync::atomic as plain;
#[cfg(loom)]
use loom::sync::atomic as plain;

#[cfg(not(kdapl_kernel_atomics))]
use self::plain::Ordering::{
    Acquire,
    Relaxed,
    Release,
    SeqCst as Full, //
};

/// Underlying types.
#[cfg(kdapl_kernel_atomics)]
mod cell {
    pub(super) type U32 = super::Atomic<u32>;
    pub(super) type U64 = super::Atomic<u64>;
    pub(super) type Bool = super::Atomic<bool>;
}

/// Underlying types.
#[cfg(not(kdapl_kernel_atomics))]
mod cell {
    pub(super) type U32 = super::plain::AtomicU32;
    pub(super) type U64 = super::plain::AtomicU64;
    pub(super) type Bool = super::plain::AtomicBool;
}

/// Orders all earlier accesses before all later ones.
// As `smp_mb()`, whose arguments differ between versions of the kernel crate.
#[cfg(kdapl_kernel_atomics)]
pub(crate) fn full_barrier() {
    cell::U32::new(0).xchg(0, Full);
}

/// Orders all earlier accesses before all later ones.
#[cfg(not(kdapl_kernel_atomics))]
pub(crate) fn full_barrier() {
    plain::fence(Full);
}

/// An index that one thread advances and another one reads, or a counter.
#[repr(transparent)]
pub(crate) struct AtomicU32(cell::U32);

impl AtomicU32 {
    /// Creates a variable with this value.
    pub(crate) fn new(value: u32) -> Self {
        Self(cell::U32::new(value))
    }

    /// Reads the value, relaxed. The thread that advances an index uses this.
    pub(crate) fn load(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Reads the value, with acquire ordering.
    pub(crate) fn load_acquire(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Writes the value, with release ordering.
    pub(crate) fn store_release(&self, value: u32) {
        self.0.store(value, Release);
    }

    /// Replaces the value with `new` if it is `old`. A successful exchange is fully ordered.
    ///
    /// # Errors
    ///
    /// Returns the value if it differs from `old`.
    #[cfg(kdapl_kernel_atomics)]
    pub(crate) fn exchange_if(&self, old: u32, new: u32) -> Result<(), u32> {
        self.0.cmpxchg(old, new, Full).map(drop)
    }

    /// Replaces the value with `new` if it is `old`. A successful exchange is fully ordered.
    ///
    /// # Errors
    ///
    /// Returns the value if it differs from `old`.
    #[cfg(not(kdapl_kernel_atomics))]
    pub(crate) fn exchange_if(&self, old: u32, new: u32) -> Result<(), u32> {
        self.0.compare_exchange(old, new, Full, Relaxed).map(drop)
    }

    /// Writes the value and returns the old one, fully ordered.
    #[cfg(kdapl_kernel_atomics)]
    pub(crate) fn swap(&self, value: u32) -> u32 {
        self.0.xchg(value, Full)
    }

    /// Writes the value and returns the old one, fully ordered.
    #[cfg(not(kdapl_kernel_atomics))]
    pub(crate) fn swap(&self, value: u32) -> u32 {
        self.0.swap(value, Full)
    }

    /// Adds `count`, with release ordering.
    pub(crate) fn add(&self, count: u32) {
        self.0.fetch_add(count, Release);
    }

    /// Subtracts `count`, with release ordering. The caller has added it before.
    pub(crate) fn sub(&self, count: u32) {
        self.0.fetch_sub(count, Release);
    }
}

/// A word of data. Indices order the accesses to it, so its own are relaxed.
#[repr(transparent)]
pub(crate) struct AtomicU64(cell::U64);

impl AtomicU64 {
    /// Creates a variable with this value.
    pub(crate) fn new(value: u64) -> Self {
        Self(cell::U64::new(value))
    }

    /// Reads the word, relaxed.
    pub(crate) fn load(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Writes the word, relaxed.
    pub(crate) fn store(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// A flag by which one thread signals another.
pub(crate) struct AtomicBool(cell::Bool);

impl AtomicBool {
    /// Creates a flag with this value.
    pub(crate) fn new(value: bool) -> Self {
        Self(cell::Bool::new(value))
    }

    /// Reads the flag, with acquire ordering.
    pub(crate) fn load_acquire(&self) -> bool {
        self.0.load(Acquire)
    }

    /// Writes the flag and returns the old value, fully ordered.
    #[cfg(kdapl_kernel_atomics)]
    pub(crate) fn swap(&self, value: bool) -> bool {
        self.0.xchg(value, Full)
    }

    /// Writes the flag and returns the old value, fully ordered.
    #[cfg(not(kdapl_kernel_atomics))]
    pub(crate) fn swap(&self, value: bool) -> bool {
        self.0.swap(value, Full)
    }
}
