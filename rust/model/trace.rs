// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Journal of the last operations on an Endpoint, for debugging.
//!
//! A Data Transfer Operation (DTO) that never completes leaves no event. While an Endpoint is
//! traced, a [`Journal`] records each post, each completion and each state change in a ring, which
//! overwrites its oldest entry. The time of a post is stored in the DTO's slot as well, so a DTO
//! that hangs can be found even after its entry has been overwritten.

mod names;

use super::{
    dto::Dto,
    ep::{
        Call,
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

/// Largest number of entries that the administrator may request.
const MAX_ENTRIES: u32 = 1 << 16;

/// Returns the capacity of a journal for which `asked` entries were requested: 0 for none,
/// otherwise the next power of two.
///
/// Returns `None` if `asked` exceeds [`MAX_ENTRIES`].
pub(crate) const fn entries_for(asked: u32) -> Option<u32> {
    match asked {
        0 => Some(0),
        1..=MAX_ENTRIES => asked.checked_next_power_of_two(),
        _ => None,
    }
}

/// An operation that the journal records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceEvent {
    /// A DTO was posted.
    Post {
        /// Type of the DTO.
        operation: Operation,
        /// Slot of the DTO.
        slot: u32,
        /// The consumer's cookie.
        cookie: u64,
        /// Bytes to transfer.
        length: u64,
    },
    /// A DTO completed.
    Complete {
        /// Type of the DTO.
        operation: Operation,
        /// Completion status.
        status: DtoStatus,
        /// Slot of the DTO.
        slot: u32,
        /// The consumer's cookie.
        cookie: u64,
        /// Bytes transferred.
        length: u64,
    },
    /// The phase of the Endpoint changed.
    Step {
        /// The old phase.
        from: Phase,
        /// Input of the state machine that caused the change.
        cause: Input,
        /// The new phase.
        to: Phase,
    },
}

/// An operation and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) time_ns: u64,
    /// The operation.
    pub(crate) event: TraceEvent,
}

impl JournalEntry {
    /// Value that new storage is filled with. [`Journal::entry_from`] never returns it.
    pub(crate) const EMPTY: Self = Self {
        time_ns: 0,
        event: TraceEvent::Step {
            from: Phase::Freed,
            cause: Input::Call(Call::Free),
            to: Phase::Freed,
        },
    };
}

/// Journal of an Endpoint, over storage that the caller provides.
pub(crate) struct Journal<E> {
    entries: E,
    /// Number of entries recorded so far, and thus the number of the next one.
    recorded: u64,
}

impl<E: DerefMut<Target = [JournalEntry]>> Journal<E> {
    /// Creates an empty journal. The length of `entries` is its capacity.
    pub(crate) const fn new(entries: E) -> Self {
        Self {
            entries,
            recorded: 0,
        }
    }

    /// Returns the number of entries that the journal keeps.
    fn capacity(&self) -> u64 {
        // A widening cast: `usize` has at most 64 bits.
        self.entries.len() as u64
    }

    /// Returns the number of entries recorded so far, overwritten ones included.
    pub(crate) fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Returns the number of the oldest entry that has not been overwritten.
    pub(crate) fn first_kept(&self) -> u64 {
        self.recorded.saturating_sub(self.capacity())
    }

    /// Returns the index into `entries` of the entry with this number; `None` if the journal has no
    /// capacity.
    fn index(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_rem(self.capacity())?).ok()
    }

    /// Adds an entry, which overwrites the oldest one if the journal is full.
    fn record(&mut self, time_ns: u64, event: TraceEvent) {
        let index = self.index(self.recorded);
        if let Some(entry) = index.and_then(|index| self.entries.get_mut(index)) {
            *entry = JournalEntry { time_ns, event };
            self.recorded = self.recorded.wrapping_add(1);
        }
    }

    /// Records that a DTO was posted with this slot.
    pub(crate) fn post(&mut self, time_ns: u64, slot: u32, dto: &Dto) {
        self.record(
            time_ns,
            TraceEvent::Post {
                operation: dto.operation,
                slot,
                cookie: dto.cookie,
                length: dto.length,
            },
        );
    }

    /// Records that the DTO of a slot completed after a transfer of `length` bytes.
    pub(crate) fn complete(
        &mut self,
        time_ns: u64,
        slot: u32,
        dto: &Dto,
        status: DtoStatus,
        length: u64,
    ) {
        self.record(
            time_ns,
            TraceEvent::Complete {
                operation: dto.operation,
                status,
                slot,
                cookie: dto.cookie,
                length,
            },
        );
    }

    /// Records a change of the Endpoint's phase.
    pub(crate) fn step(&mut self, time_ns: u64, from: Phase, cause: Input, to: Phase) {
        self.record(time_ns, TraceEvent::Step { from, cause, to });
    }

    /// Returns the oldest entry that is kept and whose number is at least `number`, and its number.
    pub(crate) fn entry_from(&self, number: u64) -> Option<(u64, JournalEntry)> {
        let number = number.max(self.first_kept());
        if number >= self.recorded {
            return None;
        }
        let entry = self.entries.get(self.index(number)?)?;
        Some((number, *entry))
    }
}

/// Nanoseconds that are printed as seconds.
pub(crate) struct Seconds(pub(crate) u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NANOS: u64 = 1_000_000_000;
        write!(f, "{}.{:09}", self.0 / NANOS, self.0 % NANOS)
    }
}

/// Prints an entry as one line, without a line end. The fields have the names that the tracepoints
/// use.
impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] ", Seconds(self.time_ns))?;
        match self.event {
            TraceEvent::Post {
                operation,
                slot,
                cookie,
                length,
            } => write!(
                f,
                "post operation={} slot={slot} cookie={cookie:#x} length={length}",
                operation.name()
            ),
            TraceEvent::Complete {
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
            TraceEvent::Step { from, cause, to } => write!(
                f,
                "state from={} cause={} to={}",
                from.name(),
                cause.name(),
                to.name()
            ),
        }
    }
}
