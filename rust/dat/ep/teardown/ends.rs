// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts the threads that end Endpoints.
//!
//! An Endpoint leaves the table before its queue pair is destroyed. Until then a device that does
//! not flush may still access the memory of its data transfer operations, which no other thread
//! finds any more. So a thread that makes sure of the end of all accesses waits for these ends.

use super::super::EpContext;
use kernel::{
    sync::atomic::{
        Acquire,
        Relaxed,
        Release, //
    },
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Milliseconds that a thread waits for other threads to end their Endpoints.
const ENDS_MS: u32 = 1_000;

/// End of an Endpoint, or of several, which lasts until the drop. It begins before the Endpoint
/// leaves the table.
pub(in crate::dat) struct Ending<'a>(&'a EpContext);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.ends.fetch_sub(1, Release);
    }
}

impl EpContext {
    /// Begins the end of an Endpoint.
    pub(in crate::dat) fn begin_end(&self) -> Ending<'_> {
        // The caller takes the table's lock next, so a thread that searches the table afterwards
        // sees this count.
        self.ends.fetch_add(1, Relaxed);
        Ending(self)
    }

    /// Waits until no thread ends an Endpoint: the queue pairs of all that have left the table are
    /// destroyed. Returns `false` if there is always one for a second.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn await_ends(&self) -> bool {
        for _ in 0..ENDS_MS {
            if self.ends.load(Acquire) == 0 {
                return true;
            }
            fsleep(Delta::from_millis(1));
        }
        false
    }
}
