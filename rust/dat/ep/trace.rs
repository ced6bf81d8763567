// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Traces posted and completed DTOs, and state changes.
//!
//! There are two outputs, both disabled by default. Tracepoints cover the whole machine. A
//! [`Journal`] in each Endpoint remembers DTOs that were posted long ago and have not completed.
//! The code that changes an Endpoint calls both with the Endpoint's lock held. So the entries of
//! one Endpoint are in order, and the journal needs no lock.

mod file;
mod knob;

pub(crate) use self::knob::TraceEntries;

use self::file::TraceFile;
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
        event::DtoStatus,
        handle::Direction,
        trace::{
            Journal,
            JournalEntry, //
        },
    },
    sys::{
        debugfs::File,
        kvvec,
        trace,
        wait, //
    },
};
use kernel::alloc::Flags;

/// Journal of one Endpoint, if journals were enabled when it was created.
pub(super) struct Trace(Option<KBox<JournalFile>>);

/// Journal in kernel memory.
type Lines = Journal<KVVec<JournalEntry>>;

/// Journal, and the file that shows it.
struct JournalFile {
    journal: Lines,
    file: Option<File<TraceFile>>,
}

/// Returns the time stamp of an entry.
fn now() -> u64 {
    u64::try_from(wait::now()).unwrap_or(0)
}

impl Trace {
    /// Allocates a journal with the size that `trace_entries` holds now, if any, in memory that is
    /// allocated with `flags`.
    ///
    /// Context: process; sleeps.
    pub(super) fn new(flags: Flags) -> DatResult<Self> {
        let entries = knob::entries();
        if entries == 0 {
            return Ok(Self(None));
        }
        let entries = usize::try_from(entries).map_err(|_| DatError::memory())?;
        let entries = kvvec::from_elem(JournalEntry::EMPTY, entries, flags)?;
        let kept = JournalFile {
            journal: Journal::new(entries),
            file: None,
        };
        Ok(Self(Some(KBox::new(kept, flags)?)))
    }

    /// Returns the journal, if there is one.
    fn journal(&mut self) -> Option<&mut Lines> {
        self.0.as_mut().map(|kept| &mut kept.journal)
    }
}

impl Inner {
    /// Returns the number of the QP, or 0 without one.
    fn qp_number(&self) -> u32 {
        self.qp.as_ref().map_or(0, |qp| qp.number())
    }

    /// Records the post of a DTO in the journal.
    #[cold]
    fn record_post(&mut self, slot: u32, dto: Dto) {
        let now = now();
        match dto.operation.direction() {
            Direction::Receive => self.receives.set_post_time(slot, now),
            Direction::Request => self.requests.set_post_time(slot, now),
        }
        if let Some(journal) = self.trace.journal() {
            journal.post(now, slot, &dto);
        }
    }

    /// Records the completion of a DTO in the journal.
    #[cold]
    fn record_completion(&mut self, slot: u32, dto: Dto, status: DtoStatus, length: u64) {
        if let Some(journal) = self.trace.journal() {
            journal.complete(now(), slot, &dto, status, length);
        }
    }
}

impl Ep {
    /// Collects the fields of a tracepoint for a DTO.
    fn dto_fields(&self, inner: &Inner, slot: u32, dto: Dto, length: u64) -> trace::DtoFields {
        trace::DtoFields {
            ep: self.handle.into_raw(),
            qp: inner.qp_number(),
            operation: dto.operation.name(),
            slot,
            cookie: dto.cookie,
            length,
        }
    }

    /// Traces the post of a DTO.
    #[inline(always)]
    pub(super) fn trace_post(&self, inner: &mut Inner, slot: u32, dto: &Dto) {
        trace::ep_post(|| self.dto_fields(inner, slot, *dto, dto.length));
        if inner.trace.0.is_some() {
            inner.record_post(slot, *dto);
        }
    }

    /// Counts and traces the completion of a DTO.
    #[inline(always)]
    pub(super) fn count_completion(
        &self,
        inner: &mut Inner,
        slot: u32,
        dto: &Dto,
        result: DtoResult,
    ) {
        let DtoResult { status, length, .. } = result;
        inner.traffic.count(dto, result);
        trace::ep_complete(|| (self.dto_fields(inner, slot, *dto, length), status.name()));
        if inner.trace.0.is_some() {
            inner.record_completion(slot, *dto, status, length);
        }
    }

    /// Traces the change of the phase to `to`. Does nothing if the phase stays.
    pub(super) fn trace_step(&self, inner: &mut Inner, cause: Input, to: Phase) {
        let from = inner.phase;
        if from == to {
            return;
        }
        trace::ep_state(|| trace::StateChange {
            ep: self.handle.into_raw(),
            qp: inner.qp_number(),
            from: from.name(),
            cause: cause.name(),
            to: to.name(),
        });
        if let Some(journal) = inner.trace.journal() {
            journal.step(now(), from, cause, to);
        }
    }
}
