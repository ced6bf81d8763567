// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Handles, which refer to the objects of a consumer.
//!
//! ```text
//!    63    60 59                                 20 19             0
//!   +--------+-------------------------------------+----------------+
//!   |  kind  |             generation              |     index      |
//!   +--------+-------------------------------------+----------------+
//! ```
//!
//! The index selects an entry of a table. Kind and generation identify the object, since an entry
//! is reused. A table starts its generations at a random number (the salt) and uses a new one for
//! each handle. So a stale handle, a handle of another table and an invented number are refused. No
//! kind is 0, so no handle is 0.

mod kernel_handle;
mod table;
mod wr_id;

pub(crate) use self::{
    kernel_handle::{
        KernelHandle,
        MAX_ADAPTERS, //
    },
    table::{
        HandleEntry,
        HandleTable,
        TableStorage, //
    },
    wr_id::{
        Direction,
        PerDirection,
        SrqWrId,
        WrId,
        LIVES,
        MAX_SLOTS, //
    },
};

/// Number of bits of an index.
const INDEX_BITS: u32 = 20;

/// Number of bits of a generation.
const GENERATION_BITS: u32 = 40;

/// Position of the kind.
const KIND_SHIFT: u32 = INDEX_BITS + GENERATION_BITS;

/// Number of indices: the largest number of entries of a table.
pub(crate) const MAX_INDEX: u32 = 1 << INDEX_BITS;

/// Mask of a generation, before the shift.
const GENERATION_MASK: u64 = (1 << GENERATION_BITS) - 1;

numbered! {
    /// Type of the object that a handle refers to: DAT's handle types, counted from 1.
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

/// Identity of an object in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectKey {
    /// Index of the entry in the table.
    pub(crate) index: u32,
    /// Generation, which distinguishes the objects that the entry has held.
    pub(crate) generation: u64,
}

/// A handle as a consumer passes it. It may be any number until a table has validated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Handle(u64);

impl Handle {
    /// Converts the number that a consumer passed.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Returns the number for the consumer.
    pub(crate) const fn into_raw(self) -> u64 {
        self.0
    }

    /// Returns a handle of an object that stands in no table. `random` makes it differ from others.
    pub(crate) const fn random(kind: HandleKind, random: u64) -> Self {
        let (index, generation) = (0, random);
        Self::new(kind, ObjectKey { index, generation })
    }

    /// Composes a handle.
    const fn new(kind: HandleKind, key: ObjectKey) -> Self {
        // Widening casts; `u64::from` is not `const`.
        Self(
            ((kind.number() as u64) << KIND_SHIFT)
                | ((key.generation & GENERATION_MASK) << INDEX_BITS)
                | (key.index % MAX_INDEX) as u64,
        )
    }

    /// Returns the kind of the handle, which is not validated; `None` if there is no such kind.
    pub(crate) const fn kind(self) -> Option<HandleKind> {
        HandleKind::from_number((self.0 >> KIND_SHIFT) as u32)
    }

    /// Returns the identity of the object, which is not validated.
    pub(crate) const fn key(self) -> ObjectKey {
        ObjectKey {
            // Truncation is intended: the index has fewer than 32 bits.
            index: self.0 as u32 % MAX_INDEX,
            generation: (self.0 >> INDEX_BITS) & GENERATION_MASK,
        }
    }
}
