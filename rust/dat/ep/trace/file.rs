// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! File `debugfs/kdapl/ep-HANDLE`: the state and the journal of an Endpoint.
//!
//! The Endpoint's lock is taken for each line, so that a reader does not delay the traffic. The
//! output may thus mix states.

use super::{
    super::{
        Ep,
        Inner, //
    },
    now, //
};
use crate::{
    dat::{
        base::SlotStorage,
        prelude::*, //
    },
    model::{
        dto::DtoSlots,
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

/// Contents of the file, which shows one Endpoint.
///
/// Endpoint and file hold references to each other until [`Ep::hide_trace`].
pub(super) struct TraceFile(Arc<Ep>);

impl Show for TraceFile {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_summary(f)?;
        writeln!(f, "\noutstanding, by the time of the post:")?;
        self.0.write_outstanding(f, |inner| &inner.receives)?;
        self.0
            .write_outstanding(f, |inner| inner.requests.slots())?;
        self.0.write_journal(f)
    }
}

impl Ep {
    /// Creates the file, if the Endpoint has a journal. Context: process; sleeps.
    pub(in super::super) fn show_trace(self: &Arc<Self>) -> DatResult {
        if self.inner.lock().trace.0.is_none() {
            return Ok(());
        }
        let name = CString::try_from_fmt(fmt!("ep-{:x}", self.handle.into_raw()))?;
        let file = File::new(&name, TraceFile(self.clone()))?;
        if let Some(kept) = &mut self.inner.lock().trace.0 {
            kept.file = Some(file);
        }
        Ok(())
    }

    /// Removes the file, and waits for its readers. Context: process; sleeps.
    pub(in super::super) fn hide_trace(&self) {
        let mut inner = self.inner.lock();
        let file = inner.trace.0.as_mut().and_then(|kept| kept.file.take());
        drop(inner);
        drop(file);
    }

    fn write_summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.context.ia.attr().adapter_name;
        let name = name.split(|&byte| byte == 0).next();
        let device = name.and_then(|name| core::str::from_utf8(name).ok());
        // Unlike `Ep::status` this posts no marker: a reader does not change the Endpoint.
        let (phase, qp, waiting, attr, receives, requests) = {
            let inner = self.inner.lock();
            (
                inner.phase,
                inner.qp_number(),
                inner.preposted_count.unwrap_or(0),
                inner.attr,
                inner.receives_outstanding(),
                inner.requests.outstanding_of_consumer(),
            )
        };
        writeln!(
            f,
            "ep={:#x} device={} qp={qp} state={}",
            self.handle.into_raw(),
            device.unwrap_or(""),
            phase.name()
        )?;
        writeln!(
            f,
            "receives outstanding: {receives} of {}, {waiting} of them wait for a connection",
            attr.max_recv_dtos,
        )?;
        writeln!(
            f,
            "requests outstanding: {requests} of {}\n[{}] now",
            attr.max_request_dtos,
            Seconds(now())
        )
    }

    fn write_outstanding(
        &self,
        f: &mut fmt::Formatter<'_>,
        slots: fn(&Inner) -> &DtoSlots<SlotStorage>,
    ) -> fmt::Result {
        let mut next = Some(0);
        while let Some(from) = next {
            let scan = slots(&self.inner.lock()).find_busy(from);
            next = scan.next;
            let Some((slot, dto)) = scan.found else {
                continue;
            };
            writeln!(
                f,
                "[{}] operation={} slot={slot} cookie={:#x} length={} age={}",
                Seconds(dto.posted.time_ns()),
                dto.operation.name(),
                dto.cookie,
                dto.length,
                Seconds(now().saturating_sub(dto.posted.time_ns()))
            )?;
        }
        Ok(())
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
                // Entries that are newer than the open are left out: else the loop might never end.
                Some((number, entry)) if number < end => {
                    writeln!(f, "{entry}")?;
                    next = number.saturating_add(1);
                }
                Some(_) | None => return Ok(()),
            }
        }
    }
}
