// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Work request ids, which a completion returns.
//!
//! ```text
//!    63                 41 40           21  20  19  18   15 14      0
//!   +---------------------+---------------+---+---+-------+---------+
//!   | generation, low 23  | object's index| d | s | life  |  slot   |
//!   +---------------------+---------------+---+---+-------+---------+
//! ```
//!
//! The object is the Endpoint, and `d` the direction: the send or the receive queue. If `s` is set,
//! the object is a Shared Receive Queue, which has no life.
//!
//! A driver may report completions of a freed Endpoint late. The generation distinguishes them from
//! those of the next Endpoint with the same index. In the same way the *life*, which each reset of
//! the Endpoint increments, distinguishes completions from before and after a reset.

use super::{
    ObjectKey,
    INDEX_BITS,
    MAX_INDEX, //
};

/// Number of bits of a slot.
const SLOT_BITS: u32 = 15;

/// Number of slots: the largest number of Data Transfer Operations (DTOs) in flight in one
/// direction.
pub(crate) const MAX_SLOTS: u32 = 1 << SLOT_BITS;

/// Number of bits of a life.
const LIFE_BITS: u32 = 4;

/// Number of lives. The count wraps after them.
pub(crate) const LIVES: u32 = 1 << LIFE_BITS;

/// Position of the bit that distinguishes a Shared Receive Queue (SRQ) from an Endpoint.
const SRQ_SHIFT: u32 = SLOT_BITS + LIFE_BITS;

/// Position of the direction.
const DIRECTION_SHIFT: u32 = SRQ_SHIFT + 1;

/// Position of the Endpoint's index.
const EP_SHIFT: u32 = DIRECTION_SHIFT + 1;

/// Position of the generation.
const GENERATION_SHIFT: u32 = EP_SHIFT + INDEX_BITS;

/// Mask of the bits of a generation that a work request id has room for.
const SHORT_MASK: u64 = (1 << (u64::BITS - GENERATION_SHIFT)) - 1;

impl ObjectKey {
    /// Returns the low 23 bits of the generation.
    pub(crate) const fn short_generation(self) -> u32 {
        (self.generation & SHORT_MASK) as u32
    }
}

/// Queue of a queue pair that a work request is posted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// The send queue.
    Request,
    /// The receive queue.
    Receive,
}

/// A value for each direction.
#[derive(Clone)]
pub(crate) struct PerDirection<T> {
    pub(crate) requests: T,
    pub(crate) receives: T,
}

impl<T> PerDirection<T> {
    /// Returns the value for each direction that `convert` makes.
    pub(crate) fn map<U>(self, mut convert: impl FnMut(T) -> U) -> PerDirection<U> {
        PerDirection {
            requests: convert(self.requests),
            receives: convert(self.receives),
        }
    }
}

/// Identity of a work request, in the 64 bits of `wr_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WrId {
    /// Slot of the DTO.
    pub(crate) slot: u32,
    /// Life of the Endpoint: the number of its resets, modulo [`LIVES`].
    pub(crate) life: u32,
    /// Direction that the slot belongs to.
    pub(crate) direction: Direction,
    /// Index of the Endpoint.
    pub(crate) ep: u32,
    /// The low 23 bits of the Endpoint's generation.
    pub(crate) generation: u32,
}

impl WrId {
    /// Composes the id of the DTO in a slot of the Endpoint with this key.
    pub(crate) const fn new(slot: u32, life: u32, direction: Direction, ep: ObjectKey) -> Self {
        Self {
            slot: slot % MAX_SLOTS,
            life: life % LIVES,
            direction,
            ep: ep.index % MAX_INDEX,
            generation: ep.short_generation(),
        }
    }

    /// Returns the number for a work request.
    pub(crate) const fn into_raw(self) -> u64 {
        let direction = match self.direction {
            Direction::Request => 0,
            Direction::Receive => 1,
        };
        // Widening casts; `u64::from` is not `const`.
        (self.slot % MAX_SLOTS) as u64
            | (((self.life % LIVES) as u64) << SLOT_BITS)
            | (direction << DIRECTION_SHIFT)
            | (((self.ep % MAX_INDEX) as u64) << EP_SHIFT)
            | ((self.generation as u64) << GENERATION_SHIFT)
    }

    /// Decodes the number of a completion.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        let direction = if (raw >> DIRECTION_SHIFT) & 1 == 0 {
            Direction::Request
        } else {
            Direction::Receive
        };
        Self {
            slot: raw as u32 % MAX_SLOTS,
            life: (raw >> SLOT_BITS) as u32 % LIVES,
            direction,
            ep: (raw >> EP_SHIFT) as u32 % MAX_INDEX,
            generation: (raw >> GENERATION_SHIFT) as u32,
        }
    }
}

/// Identity of a receive of a Shared Receive Queue (SRQ), in the 64 bits of `wr_id`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SrqWrId {
    /// Slot of the receive.
    pub(crate) slot: u32,
    /// Index of the SRQ.
    pub(crate) srq: u32,
    /// The low 23 bits of the SRQ's generation.
    pub(crate) generation: u32,
}

impl SrqWrId {
    /// Composes the id of the receive in a slot of the SRQ with this key.
    pub(crate) const fn new(slot: u32, srq: ObjectKey) -> Self {
        Self {
            slot: slot % MAX_SLOTS,
            srq: srq.index % MAX_INDEX,
            generation: srq.short_generation(),
        }
    }

    /// Returns the number for a work request.
    pub(crate) const fn into_raw(self) -> u64 {
        (self.slot % MAX_SLOTS) as u64
            | (1 << SRQ_SHIFT)
            | ((Direction::Receive as u64) << DIRECTION_SHIFT)
            | (((self.srq % MAX_INDEX) as u64) << EP_SHIFT)
            | ((self.generation as u64) << GENERATION_SHIFT)
    }

    /// Decodes the number of a completion; `None` for a work request of an Endpoint.
    pub(crate) const fn from_raw(raw: u64) -> Option<Self> {
        if (raw >> SRQ_SHIFT) & 1 == 0 {
            return None;
        }
        Some(Self {
            slot: raw as u32 % MAX_SLOTS,
            srq: (raw >> EP_SHIFT) as u32 % MAX_INDEX,
            generation: (raw >> GENERATION_SHIFT) as u32,
        })
    }
}
