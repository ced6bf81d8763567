// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles: what a consumer holds instead of a pointer.
//!
//! ```text
//!    63    60 59                                 20 19             0
//!   +--------+-------------------------------------+----------------+
//!   |  kind  |             generation              |     index      |
//!   +--------+-------------------------------------+----------------+
//! ```
//!
//! The index finds the entry of a table, kind and generation say whether it is still the same
//! object. A table numbers its generations from a random salt on, a new one for every handle, so
//! that stale handles, those of another table and invented ones are refused, not followed. No kind
//! is 0, so neither is a handle.

mod outer;
mod table;
mod wr_id;

pub(crate) use self::{
    outer::{
        OuterHandle,
        MAX_ADAPTERS, //
    },
    table::{
        Entries,
        Entry,
        Table, //
    },
    wr_id::{
        Direction,
        WrId,
        LIVES,
        MAX_SLOTS, //
    },
};

/// Bits of an index.
const INDEX_BITS: u32 = 20;

/// Bits of a generation.
const GENERATION_BITS: u32 = 40;

/// Where the kind begins.
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// How many indices there are: no table grows, and no queue of DTOs is used, beyond it.
pub(crate) const MAX_INDEX: u32 = 1 << INDEX_BITS;

/// The bits of a generation.
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;

numbered! {
    /// What a handle is a handle of: DAT's handle types, counted from 1.
    HandleKind {
        /// Connection Request.
        Cr = 1,
        /// Endpoint.
        Ep = 2,
        /// Event Dispatcher.
        Evd = 3,
        /// Interface Adapter.
        Ia = 4,
        /// Local memory region.
        Lmr = 5,
        /// Public Service Point.
        Psp = 6,
        /// Protection Zone.
        Pz = 7,
        /// Remote memory region.
        Rmr = 8,
        /// Reserved Service Point.
        Rsp = 9,
        /// Consumer Notification Object.
        Cno = 10,
        /// Shared receive queue.
        Srq = 11,
        /// Common Service Point.
        Csp = 12,
    }
}

/// Where an object is, and which of those that were there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    /// The entry in the table.
    pub(crate) index: u32,
    /// Which of the objects that the entry has held.
    pub(crate) generation: u64,
}

/// A handle as a consumer has it: anything at all, until a table has looked at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(u64);

impl Handle {
    /// Takes what a consumer gave.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// What a consumer gets.
    pub(crate) const fn into_raw(self) -> u64 {
        self.0
    }

    /// Returns a handle of an object that stands in no table. `random` makes it differ from others.
    pub(crate) const fn random(kind: HandleKind, random: u64) -> Self {
        let key = Key {
            index: 0,
            generation: random,
        };
        Self::new(kind, key)
    }

    /// Puts a handle together.
    const fn new(kind: HandleKind, key: Key) -> Self {
        // Widening casts; `u64::from` is not `const`.
        Self(
            ((kind.number() as u64) << KIND_SHIFT)
                | ((key.generation & GENERATION_MASK) << INDEX_BITS)
                | (key.index % MAX_INDEX) as u64,
        )
    }

    /// What it claims to be a handle of.
    pub(crate) const fn kind(self) -> Option<HandleKind> {
        HandleKind::from_number((self.0 >> KIND_SHIFT) as u32)
    }

    /// Which object it claims to be.
    pub(crate) const fn key(self) -> Key {
        Key {
            // Truncation is the point; the index has fewer bits than that.
            index: self.0 as u32 % MAX_INDEX,
            generation: (self.0 >> INDEX_BITS) & GENERATION_MASK,
        }
    }
}
