// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! File `debugfs/kdapl/trace_entries`: journal length of Endpoints that are created from now on.

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

/// Journal length in entries; 0 disables journals.
static ENTRIES: Atomic<u32> = Atomic::new(0);

/// Returns the journal length for new Endpoints.
pub(super) fn entries() -> u32 {
    ENTRIES.load(Relaxed)
}

/// Contents of the file.
pub(crate) struct TraceEntries;

impl Show for TraceEntries {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", entries())
    }
}

impl Store for TraceEntries {
    /// Parses a decimal number, and rounds it up to a power of two.
    ///
    /// # Errors
    ///
    /// `EINVAL` for other text, and for a number beyond the limit.
    fn store(&self, text: &str) -> Result {
        let asked = text.parse().map_err(|_| EINVAL)?;
        ENTRIES.store(entries_for(asked).ok_or(EINVAL)?, Relaxed);
        Ok(())
    }
}
