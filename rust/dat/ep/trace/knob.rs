// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `debugfs/kdapl/trace_entries`: how many operations an Endpoint made from now on remembers.

use crate::{
    dat::prelude::*,
    model::trace::entries_for,
    sys::debugfs::{
        Show,
        Store, //
    },
};
use kernel::{
    fmt,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// What was asked for last; 0 is off.
static ENTRIES: Atomic<u32> = Atomic::new(0);

/// What was asked for last.
pub(super) fn entries() -> u32 {
    ENTRIES.load(Relaxed)
}

/// The file.
pub(crate) struct TraceEntries;

impl Show for TraceEntries {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", entries())
    }
}

impl Store for TraceEntries {
    /// Takes a decimal number, and rounds it up to a power of two.
    ///
    /// # Errors
    ///
    /// `EINVAL` for anything else, and for more than there may be.
    fn store(&self, text: &str) -> Result {
        let asked = text.parse().map_err(|_| EINVAL)?;
        ENTRIES.store(entries_for(asked).ok_or(EINVAL)?, Relaxed);
        Ok(())
    }
}
