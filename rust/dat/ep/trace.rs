// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tracing of what is posted, what completes, and every change of state.
//!
//! There are two listeners, off both of them unless asked for: the tracepoints, for the machine as a
//! whole, and a [`Journal`] in each Endpoint, which remembers what was posted long ago and has not
//! completed. Both are told with the Endpoint's lock held, by whoever changes what is told of: so
//! what is told of one Endpoint is in order, and the journal needs no lock of its own.

mod file;
mod knob;

pub(crate) use self::knob::TraceEntries;

use self::file::Shown;
use super::{
    Ep,
    Inner, //
};
use crate::{
    dat::prelude::*,
    model::{
        dto::{
            Dto,
            DtoResult, //
        },
        ep::{
            Input,
            Phase, //
        },
        handle::Direction,
        trace::{
            Journal, //
            JournalEntry,
        },
    },
    sys::{
        debugfs::File,
        trace,
        wait, //
    },
};
use kernel::alloc::Flags;

/// What one Endpoint remembers, if it was made while that was asked for.
pub(super) struct Trace(Option<KBox<Kept>>);

/// A journal in memory of the kernel.
type Lines = Journal<KVVec<JournalEntry>>;

/// A journal, and the file that shows it.
struct Kept {
    journal: Lines,
    file: Option<File<Shown>>,
}

/// The code that only runs for Endpoints that remember.
#[cold]
#[inline(never)]
fn aside(journal: &mut Lines, what: impl FnOnce(&mut Lines)) {
    what(journal);
}

/// The time of an entry.
fn now() -> u64 {
    u64::try_from(wait::now()).unwrap_or(0)
}

impl Trace {
    /// What `trace_entries` asks for at this moment, in memory that is allocated with `flags`.
    ///
    /// Context: process; sleeps.
    pub(super) fn new(flags: Flags) -> DatResult<Self> {
        let entries = knob::entries();
        if entries == 0 {
            return Ok(Self(None));
        }
        let entries = usize::try_from(entries).map_err(|_| DatError::memory())?;
        let entries = KVVec::from_elem(JournalEntry::EMPTY, entries, flags)?;
        let kept = Kept {
            journal: Journal::new(entries),
            file: None,
        };
        Ok(Self(Some(KBox::new(kept, flags)?)))
    }

    /// The journal, if there is one. What it is told is to be put together [aside], behind this one branch.
    #[inline(always)]
    fn journal(&mut self) -> Option<&mut Lines> {
        self.0.as_mut().map(|kept| &mut kept.journal)
    }
}

impl Inner {
    /// The number of the QP, or 0 if there is none any more.
    fn qp_number(&self) -> u32 {
        self.qp.as_ref().map_or(0, |qp| qp.number())
    }
}

impl Ep {
    /// What the tracepoints tell of a DTO.
    fn told(&self, inner: &Inner, slot: u32, dto: &Dto, length: u64) -> trace::Dto {
        trace::Dto {
            ep: self.handle.into_raw(),
            qp: inner.qp_number(),
            operation: dto.operation.name(),
            slot,
            cookie: dto.cookie,
            length,
        }
    }

    /// A DTO was posted.
    #[inline(always)]
    pub(super) fn trace_post(&self, inner: &mut Inner, slot: u32, dto: &Dto) {
        trace::ep_post(|| self.told(inner, slot, dto, dto.length));
        let (requests, receives) = (&mut inner.requests, &mut inner.receives);
        if let Some(journal) = inner.trace.journal() {
            aside(journal, |journal| {
                let now = now();
                match dto.operation.direction() {
                    Direction::Receive => receives.set_post_time(slot, now),
                    Direction::Request => requests.set_post_time(slot, now),
                }
                journal.post(now, slot, dto);
            });
        }
    }

    /// A DTO completed.
    #[inline(always)]
    pub(super) fn trace_complete(
        &self,
        inner: &mut Inner,
        slot: u32,
        dto: &Dto,
        DtoResult { status, length, .. }: DtoResult,
    ) {
        trace::ep_complete(|| (self.told(inner, slot, dto, length), status.name()));
        if let Some(journal) = inner.trace.journal() {
            aside(journal, |journal| {
                journal.complete(now(), slot, dto, status, length);
            });
        }
    }

    /// The phase is about to change to `to`, or to stay.
    #[inline(always)]
    pub(super) fn trace_step(&self, inner: &mut Inner, cause: Input, to: Phase) {
        let from = inner.phase;
        if from == to {
            return;
        }
        trace::ep_state(|| trace::Change {
            ep: self.handle.into_raw(),
            qp: inner.qp_number(),
            from: from.name(),
            cause: cause.name(),
            to: to.name(),
        });
        if let Some(journal) = inner.trace.journal() {
            aside(journal, |journal| journal.step(now(), from, cause, to));
        }
    }
}
