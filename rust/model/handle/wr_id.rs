// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a work request carries, and its completion brings back.
//!
//! ```text
//!    63                 41 40           21  20  19   15 14      0
//!   +---------------------+---------------+---+-------+---------+
//!   | generation, low 23  |   EP's index  | d | life  |  slot   |
//!   +---------------------+---------------+---+-------+---------+
//! ```
//!
//! A provider may complete late what a freed Endpoint has posted: the generation tells it from
//! what the next Endpoint in the same place posts. The life tells it from what the same Endpoint
//! posts after a reset.

use super::{
    Key,
    INDEX_BITS,
    MAX_INDEX, //
};

/// Bits of a slot.
const SLOT_BITS: u32 = 15;

/// How many slots there are: as many DTOs of one direction can be in flight.
pub(crate) const MAX_SLOTS: u32 = 1 << SLOT_BITS;

/// Bits of a life.
const LIFE_BITS: u32 = 5;

/// How many lives there are before they begin again.
pub(crate) const LIVES: u32 = 1 << LIFE_BITS;

/// Where the direction lies.
const DIRECTION_SHIFT: u32 = SLOT_BITS + LIFE_BITS;

/// Where the Endpoint's index begins.
const EP_SHIFT: u32 = DIRECTION_SHIFT + 1;

/// Where the generation begins.
const GENERATION_SHIFT: u32 = EP_SHIFT + INDEX_BITS;

/// The bits of a generation that a work request has room for.
const SHORT_MASK: u64 = (1 << (u64::BITS - GENERATION_SHIFT)) - 1;

impl Key {
    /// The low 23 bits of the generation.
    pub(crate) const fn short(self) -> u32 {
        (self.generation & SHORT_MASK) as u32
    }
}

/// Which queue of a QP a work request went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// The send queue.
    Request,
    /// The receive queue.
    Receive,
}

/// The identity of a work request, in the 64 bits that verbs have for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WrId {
    /// The DTO's slot.
    pub(crate) slot: u32,
    /// Which of the Endpoint's lives.
    pub(crate) life: u32,
    /// Which slots.
    pub(crate) direction: Direction,
    /// Index of the Endpoint.
    pub(crate) ep: u32,
    /// The low 23 bits of the Endpoint's generation.
    pub(crate) generation: u32,
}

impl WrId {
    /// The identity of the DTO in a slot of the Endpoint with this key, in one of its lives.
    pub(crate) const fn new(slot: u32, life: u32, direction: Direction, ep: Key) -> Self {
        Self {
            slot: slot % MAX_SLOTS,
            life: life % LIVES,
            direction,
            ep: ep.index % MAX_INDEX,
            generation: ep.short(),
        }
    }

    /// As a work request carries it.
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

    /// As a completion brings it back.
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
