// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Counts the threads that free objects.
//!
//! An object leaves its table before its resources are released. Until then a device may still
//! access the consumer's memory for it, and no other thread finds it any more. So a thread that
//! makes sure of the end of all accesses waits for these threads.

use super::{
    Object,
    Objects, //
};
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

/// Milliseconds that [`Objects::await_frees_shortly`] waits.
const FREES_MS: u32 = 1_000;

/// Free of an object, or of several, which lasts until the drop. It begins before the object leaves
/// the table.
pub(crate) struct Freeing<'a, T: Object>(&'a Objects<T>);

impl<T: Object> Drop for Freeing<'_, T> {
    fn drop(&mut self) {
        self.0.frees.fetch_sub(1, Release);
    }
}

impl<T: Object> Objects<T> {
    /// Begins the free of an object.
    pub(in crate::dat) fn begin_free(&self) -> Freeing<'_, T> {
        // A caller that removes an object takes the table's lock next, so a thread that searches
        // the table afterwards sees this count. For other callers the object's locks order it.
        self.frees.fetch_add(1, Relaxed);
        Freeing(self)
    }

    /// Waits until no thread frees an object, so that the resources of all objects that have left
    /// the table are released. Returns `false` after a second.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn await_frees_shortly(&self) -> bool {
        for _ in 0..FREES_MS {
            if self.frees.load(Acquire) == 0 {
                return true;
            }
            fsleep(Delta::from_millis(1));
        }
        false
    }

    /// As [`Objects::await_frees_shortly`], without a limit: for a closed table, to which no object
    /// is added.
    ///
    /// Context: process; sleeps, for as long as the device needs.
    pub(in crate::dat) fn await_frees(&self) {
        while !self.await_frees_shortly() {}
    }
}
