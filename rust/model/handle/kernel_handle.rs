// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of consumers in the kernel.
//!
//! Such a consumer may have several adapters open, so its handles contain the number of the
//! adapter:
//!
//! ```text
//!    63    60 59             43 42          20 19      0
//!   +--------+-----------------+--------------+---------+
//!   |  kind  |     adapter     | generation,  |  index  |
//!   |        |                 |    low 23    |         |
//!   +--------+-----------------+--------------+---------+
//! ```
//!
//! The generation has as many bits as in a [`WrId`](super::WrId). An entry of a table has to be
//! reused eight million times before a stale handle could be taken for a valid one.

use super::{
    Handle,
    HandleKind,
    GENERATION_BITS,
    INDEX_BITS,
    KIND_SHIFT,
    MAX_INDEX, //
};

/// Number of bits of a short generation.
const SHORT_BITS: u32 = 23;

/// Position of the adapter.
const ADAPTER_SHIFT: u32 = INDEX_BITS + SHORT_BITS;

/// Number of adapters that handles can distinguish.
pub(crate) const MAX_ADAPTERS: u32 = 1 << (INDEX_BITS + GENERATION_BITS - ADAPTER_SHIFT);

/// A handle that contains the number of its adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KernelHandle(u64);

impl KernelHandle {
    /// DAT_HANDLE_NULL.
    pub(crate) const NULL: Self = Self(0);

    /// Composes the handle of an object of this adapter. The null handle stays null.
    pub(crate) const fn new(adapter: u32, handle: Handle) -> Self {
        if handle.0 == 0 {
            return Self::NULL;
        }
        let key = handle.key();
        // Widening casts; `u64::from` is not `const`.
        Self(
            (handle.0 >> KIND_SHIFT << KIND_SHIFT)
                | (((adapter % MAX_ADAPTERS) as u64) << ADAPTER_SHIFT)
                | ((key.short_generation() as u64) << INDEX_BITS)
                | (key.index % MAX_INDEX) as u64,
        )
    }

    /// Converts the number that a consumer passed.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the number for the consumer.
    pub(crate) const fn into_raw(self) -> u64 {
        self.0
    }

    /// Returns the kind of the handle, which is not validated; `None` if there is no such kind.
    pub(crate) const fn kind(self) -> Option<HandleKind> {
        HandleKind::from_number((self.0 >> KIND_SHIFT) as u32)
    }

    /// Returns the number of the adapter, which is not validated.
    pub(crate) const fn adapter(self) -> u32 {
        (self.0 >> ADAPTER_SHIFT) as u32 % MAX_ADAPTERS
    }

    /// Returns the index of the entry in the adapter's table.
    pub(crate) const fn index(self) -> u32 {
        // Truncation is intended.
        self.0 as u32 % MAX_INDEX
    }

    /// Returns the low bits of the entry's generation.
    pub(crate) const fn generation(self) -> u32 {
        ((self.0 >> INDEX_BITS) as u32) % (1 << SHORT_BITS)
    }
}
