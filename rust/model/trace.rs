// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What an Endpoint remembers of its DTOs when it is traced, to find those that never complete.
//!
//! A [`Journal`] keeps the last operations in a ring that overwrites its oldest entry. When a DTO
//! in flight was posted stands in its slot instead, so that one that hangs is found however much
//! has happened since. (Seed 000, "Debug".)

mod names;

use super::{
    dto::Dto,
    ep::{
        Input,
        Phase, //
    },
    event::{
        DtoStatus,
        Operation, //
    },
};
use core::{
    fmt,
    ops::DerefMut, //
};

/// As many operations as a journal may be asked to keep.
const MAX_ENTRIES: u32 = 1 << 16;

/// The entries of a journal that was asked to keep `asked`: the next power of two, or 0 for none.
///
/// `None` if that is too many.
pub(crate) const fn entries_for(asked: u32) -> Option<u32> {
    match asked {
        0 => Some(0),
        1..=MAX_ENTRIES => asked.checked_next_power_of_two(),
        _ => None,
    }
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// A DTO was posted.
    Post {
        /// What it does.
        operation: Operation,
        /// Its slot.
        slot: u32,
        /// The consumer's cookie.
        cookie: u64,
        /// Bytes to transfer.
        length: u64,
    },
    /// A DTO completed.
    Complete {
        /// What it did.
        operation: Operation,
        /// How it ended.
        status: DtoStatus,
        /// Its slot.
        slot: u32,
        /// The consumer's cookie.
        cookie: u64,
        /// Bytes transferred.
        length: u64,
    },
    /// The phase changed.
    Step {
        /// From here.
        from: Phase,
        /// Because of this.
        cause: Input,
        /// To here.
        to: Phase,
    },
}

/// What happened, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) at: u64,
    /// What happened.
    pub(crate) what: What,
}

impl Entry {
    /// An entry to fill new storage with; it is never shown.
    pub(crate) const fn blank() -> Self {
        Self {
            at: 0,
            what: What::Step {
                from: Phase::Freed,
                cause: Input::Free,
                to: Phase::Freed,
            },
        }
    }
}

/// The last operations of an Endpoint over caller-provided storage.
pub(crate) struct Journal<E> {
    entries: E,
    /// Entries ever made; the number of the next one.
    made: u64,
}

impl<E: DerefMut<Target = [Entry]>> Journal<E> {
    /// An empty journal.
    pub(crate) const fn new(entries: E) -> Self {
        Self { entries, made: 0 }
    }

    /// How many entries it keeps.
    fn capacity(&self) -> u64 {
        // Widening: no machine of ours has larger words.
        self.entries.len() as u64
    }

    /// How many entries were ever made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// The number of the oldest entry that is still there.
    pub(crate) fn oldest(&self) -> u64 {
        self.made.saturating_sub(self.capacity())
    }

    /// The place of an entry; `None` if there is no place at all.
    fn place(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_rem(self.capacity())?).ok()
    }

    fn record(&mut self, at: u64, what: What) {
        let place = self.place(self.made);
        if let Some(entry) = place.and_then(|place| self.entries.get_mut(place)) {
            *entry = Entry { at, what };
            self.made = self.made.wrapping_add(1);
        }
    }

    /// A DTO was posted into a slot.
    pub(crate) fn post(&mut self, at: u64, slot: u32, dto: &Dto) {
        self.record(
            at,
            What::Post {
                operation: dto.operation,
                slot,
                cookie: dto.cookie,
                length: dto.length,
            },
        );
    }

    /// The DTO of a slot completed with so many bytes.
    pub(crate) fn complete(
        &mut self,
        at: u64,
        slot: u32,
        dto: &Dto,
        status: DtoStatus,
        length: u64,
    ) {
        self.record(
            at,
            What::Complete {
                operation: dto.operation,
                status,
                slot,
                cookie: dto.cookie,
                length,
            },
        );
    }

    /// The phase changed.
    pub(crate) fn step(&mut self, at: u64, from: Phase, cause: Input, to: Phase) {
        self.record(at, What::Step { from, cause, to });
    }

    /// The entry with this number, or the next one that is still there, and its number.
    pub(crate) fn entry_from(&self, number: u64) -> Option<(u64, Entry)> {
        let number = number.max(self.oldest());
        if number >= self.made {
            return None;
        }
        let entry = self.entries.get(self.place(number)?)?;
        Some((number, *entry))
    }
}

/// Nanoseconds, shown as seconds.
pub(crate) struct Seconds(pub(crate) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS: u64 = 1_000_000_000;
        write!(f, "{}.{:09}", self.0 / NANOS, self.0 % NANOS)
    }
}

/// One line without its end: the words are those of the tracepoints.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", Seconds(self.at))?;
        match self.what {
            What::Post {
                operation,
                slot,
                cookie,
                length,
            } => write!(
                f,
                "post operation={} slot={slot} cookie={cookie:#x} length={length}",
                operation.name()
            ),
            What::Complete {
                operation,
                status,
                slot,
                cookie,
                length,
            } => write!(
                f,
                "complete operation={} status={} slot={slot} cookie={cookie:#x} length={length}",
                operation.name(),
                status.name()
            ),
            What::Step { from, cause, to } => write!(
                f,
                "state from={} cause={} to={}",
                from.name(),
                cause.name(),
                to.name()
            ),
        }
    }
}
