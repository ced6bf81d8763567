// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles of consumers in the kernel, who may have several adapters open: they say whose table is meant.
//!
//! ```text
//!    63    60 59             43 42          20 19      0
//!   +--------+-----------------+--------------+---------+
//!   |  kind  |     adapter     | generation,  |  index  |
//!   |        |                 |    low 23    |         |
//!   +--------+-----------------+--------------+---------+
//! ```
//!
//! The generation is as long as in a [`WrId`](super::WrId): an entry of a table is used eight million times
//! before a handle that is stale could be taken for another one.

use super::{
    Handle,
    HandleKind,
    GENERATION_BITS,
    INDEX_BITS,
    KIND_SHIFT,
    MAX_INDEX, //
};

/// Bits of a short generation.
const SHORT_BITS: u32 = 23;

/// Where the adapter begins.
const ADAPTER_SHIFT: u32 = INDEX_BITS + SHORT_BITS;

/// How many adapters a handle can tell apart.
pub(crate) const MAX_ADAPTERS: u32 = 1 << (INDEX_BITS + GENERATION_BITS - ADAPTER_SHIFT);

/// A handle that says whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OuterHandle(u64);

impl OuterHandle {
    /// DAT_HANDLE_NULL.
    pub(crate) const NULL: Self = Self(0);

    /// The handle of an adapter's object; of none, none.
    pub(crate) const fn new(adapter: u32, handle: Handle) -> Self {
        if handle.0 == 0 {
            return Self::NULL;
        }
        let key = handle.key();
        // Widening casts; `u64::from` is not `const`.
        Self(
            (handle.0 >> KIND_SHIFT << KIND_SHIFT)
                | (((adapter % MAX_ADAPTERS) as u64) << ADAPTER_SHIFT)
                | ((key.short() as u64) << INDEX_BITS)
                | (key.index % MAX_INDEX) as u64,
        )
    }

    /// Takes what a consumer gave.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// What a consumer gets.
    pub(crate) const fn into_raw(self) -> u64 {
        self.0
    }

    /// What it claims to be a handle of.
    pub(crate) const fn kind(self) -> Option<HandleKind> {
        HandleKind::from_number((self.0 >> KIND_SHIFT) as u32)
    }

    /// Whose it claims to be.
    pub(crate) const fn adapter(self) -> u32 {
        (self.0 >> ADAPTER_SHIFT) as u32 % MAX_ADAPTERS
    }

    /// The entry in the adapter's table.
    pub(crate) const fn index(self) -> u32 {
        // Truncation is the point.
        self.0 as u32 % MAX_INDEX
    }

    /// The low bits of the entry's generation.
    pub(crate) const fn generation(self) -> u32 {
        ((self.0 >> INDEX_BITS) as u32) % (1 << SHORT_BITS)
    }
}
