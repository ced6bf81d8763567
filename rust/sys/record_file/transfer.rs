// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of a caller that a file of records reads to, or writes from.

use core::mem::size_of;
use kdapl_bindings as bindings;
use kernel::{
    iov::{
        IovIterDest,
        IovIterSource, //
    },
    prelude::*, //
};

/// Size in bytes of a record that is written.
const WORD: usize = size_of::<u64>();

/// Largest number of records of one call.
const MOST: usize = bindings::KDAPL_EVENTS_MAX as usize;

/// Returns the result of a read or write: the number of transferred bytes, or else the error.
fn outcome(transferred: usize, result: Result) -> isize {
    let count = isize::try_from(transferred).unwrap_or(isize::MAX);
    match result {
        Err(error) if count == 0 => error.to_errno() as isize,
        _ => count,
    }
}

/// Destination of records, in the memory of the caller.
pub(crate) struct RecordDest<'a, 'data> {
    iter: &'a mut IovIterDest<'data>,
    /// Size of a record in bytes.
    size: usize,
    /// Number of records that were put and not undone.
    count: usize,
}

impl<'a, 'data> RecordDest<'a, 'data> {
    /// Calls `read`, and returns the result of the system call. Memory that is too short for a
    /// record of `size` bytes is refused with `EINVAL`.
    pub(super) fn transfer(
        iter: &'a mut IovIterDest<'data>,
        size: usize,
        read: impl FnOnce(&mut Self) -> Result,
    ) -> isize {
        if iter.len() < size {
            return outcome(0, Err(EINVAL));
        }
        let mut to = Self {
            iter,
            size,
            count: 0,
        };
        let result = read(&mut to);
        outcome(to.count.saturating_mul(size), result)
    }

    /// Returns the number of records that were put.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of records that may still be put.
    pub(crate) fn room(&self) -> usize {
        let fit = self.iter.len().checked_div(self.size).unwrap_or(0);
        fit.min(MOST.saturating_sub(self.count))
    }

    /// Copies a record out. It is cut off, or continued with zeros, at the size of a record.
    ///
    /// Context: process; sleeps if the memory is not present.
    ///
    /// # Errors
    ///
    /// `EFAULT`. The record is not put then.
    pub(crate) fn put(&mut self, record: &[u8]) -> Result {
        const ZEROS: [u8; 64] = [0; 64];
        let known = record.len().min(self.size);
        let mut copied = 0_usize;
        while copied < self.size {
            let left = self.size.wrapping_sub(copied);
            let piece = match record.get(copied..known) {
                Some(rest) if !rest.is_empty() => rest,
                _ => ZEROS.get(..left.min(ZEROS.len())).ok_or(EINVAL)?,
            };
            let length = self.iter.copy_to_iter(piece);
            copied = copied.saturating_add(length);
            if length < piece.len() {
                self.revert(copied);
                return Err(EFAULT);
            }
        }
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Takes back the last `count` records. Other records will be put in their place.
    pub(crate) fn undo(&mut self, count: usize) {
        let count = count.min(self.count);
        self.count = self.count.wrapping_sub(count);
        self.revert(count.saturating_mul(self.size));
    }

    /// Moves the place of the next record back, by bytes that were copied before.
    fn revert(&mut self, bytes: usize) {
        // SAFETY: The callers pass numbers of bytes that `put` has advanced the vector by, and
        // that were not reverted since.
        unsafe { self.iter.revert(bytes) };
    }
}

/// Source of words, in the memory of the caller.
pub(crate) struct RecordSource<'a, 'data> {
    iter: &'a mut IovIterSource<'data>,
    /// Number of words that were accepted.
    count: usize,
}

impl<'a, 'data> RecordSource<'a, 'data> {
    /// Calls `write`, and returns the result of the system call. A length that is 0 or no multiple
    /// of a word is refused with `EINVAL`.
    pub(super) fn transfer(
        iter: &'a mut IovIterSource<'data>,
        write: impl FnOnce(&mut Self) -> Result,
    ) -> isize {
        if iter.is_empty() || iter.len() % WORD != 0 {
            return outcome(0, Err(EINVAL));
        }
        let mut from = Self { iter, count: 0 };
        let result = write(&mut from);
        outcome(from.count.saturating_mul(WORD), result)
    }

    /// Copies the next word in; `None` at the end, and after the largest number of records.
    ///
    /// Context: process; sleeps if the memory is not present.
    ///
    /// # Errors
    ///
    /// `EFAULT`.
    pub(crate) fn next(&mut self) -> Result<Option<u64>> {
        if self.iter.is_empty() || self.count >= MOST {
            return Ok(None);
        }
        let mut word = [0; WORD];
        if self.iter.copy_from_iter(&mut word) < WORD {
            return Err(EFAULT);
        }
        Ok(Some(u64::from_ne_bytes(word)))
    }

    /// Accepts the word that was copied in last: the result of the call counts it.
    pub(crate) fn accept(&mut self) {
        self.count = self.count.saturating_add(1);
    }
}
