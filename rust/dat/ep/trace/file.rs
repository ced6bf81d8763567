// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `debugfs/kdapl/ep-HANDLE`: what an Endpoint remembers.
//!
//! The Endpoint's lock is taken anew for each line, so that a reader does not hold up the traffic
//! that it looks at. What changes in between shows.

use super::{
    super::{
        Ep,
        Inner,
        SlotStorage, //
    },
    now, //
};
use crate::{
    dat::prelude::*,
    model::{
        dto::{
            DtoSlots, //
            Scan,
        },
        trace::Seconds, //
    },
    sys::debugfs::{
        File,
        Show, //
    },
};
use kernel::{
    fmt,
    str::CString, //
};

/// The contents of the file: the Endpoint that it tells of.
///
/// Endpoint and file hold each other until [`Ep::hide_trace`].
pub(super) struct Shown(Arc<Ep>);

impl Show for Shown {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_summary(f)?;
        writeln!(f, "\noutstanding, by the time of the post:")?;
        self.0.write_outstanding(f, |inner| &inner.receives)?;
        self.0.write_outstanding(f, |inner| &inner.requests)?;
        self.0.write_journal(f)
    }
}

impl Ep {
    /// Makes the file, if there is something to show. Context: process; sleeps.
    pub(in super::super) fn show_trace(self: &Arc<Self>) -> DatResult {
        if self.inner.lock().trace.0.is_none() {
            return Ok(());
        }
        let name = CString::try_from_fmt(fmt!("ep-{:x}", self.handle.into_raw()))?;
        let file = File::new(&name, Shown(self.clone()))?;
        if let Some(kept) = &mut self.inner.lock().trace.0 {
            kept.file = Some(file);
        }
        Ok(())
    }

    /// Takes the file away, once nobody reads it any more. Context: process; sleeps.
    pub(in super::super) fn hide_trace(&self) {
        let file = match &mut self.inner.lock().trace.0 {
            Some(kept) => kept.file.take(),
            None => None,
        };
        drop(file);
    }

    fn write_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.domain.ia.attr().adapter_name;
        let name = name.split(|&byte| byte == 0).next();
        let device = name.and_then(|name| core::str::from_utf8(name).ok());
        let (phase, qp, waiting, attr) = {
            let inner = self.inner.lock();
            let waiting = inner.waiting.unwrap_or(0);
            (inner.phase, inner.qp_number(), waiting, inner.attr)
        };
        let status = self.status();
        writeln!(
            f,
            "ep={:#x} device={} qp={qp} state={}",
            self.handle.into_raw(),
            device.unwrap_or(""),
            phase.name()
        )?;
        writeln!(
            f,
            "receives outstanding: {} of {}, {waiting} of them wait for a connection",
            status.receives, attr.max_recv_dtos,
        )?;
        writeln!(
            f,
            "requests outstanding: {} of {}\n[{}] now",
            status.requests,
            attr.max_request_dtos,
            Seconds(now())
        )
    }

    fn write_outstanding(
        &self,
        f: &mut fmt::Formatter<'_>,
        slots: fn(&Inner) -> &DtoSlots<SlotStorage>,
    ) -> fmt::Result {
        let mut next = 0;
        loop {
            let found = slots(&self.inner.lock()).find_busy(next);
            let (slot, dto) = match found {
                Scan::Busy(slot, dto) => (slot, dto),
                Scan::Idle(behind) => {
                    next = behind;
                    continue;
                }
                Scan::End => return Ok(()),
            };
            writeln!(
                f,
                "[{}] operation={} slot={slot} cookie={:#x} length={} age={}",
                Seconds(dto.posted_at),
                dto.operation.name(),
                dto.cookie,
                dto.length,
                Seconds(now().saturating_sub(dto.posted_at))
            )?;
            next = slot.saturating_add(1);
        }
    }

    fn write_journal(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut next, end) = {
            let inner = self.inner.lock();
            let Some(kept) = &inner.trace.0 else {
                return Ok(());
            };
            (kept.journal.first_kept(), kept.journal.recorded())
        };
        writeln!(f, "\nthe last {} of {end}:", end.saturating_sub(next))?;
        loop {
            let found = {
                let inner = self.inner.lock();
                let journal = inner.trace.0.as_ref().map(|kept| &kept.journal);
                journal.and_then(|journal| journal.entry_from(next))
            };
            match found {
                // What is newer than the reader it leaves to the next one: else it might never end.
                Some((number, entry)) if number < end => {
                    writeln!(f, "{entry}")?;
                    next = number.saturating_add(1);
                }
                Some(_) | None => return Ok(()),
            }
        }
    }
}
