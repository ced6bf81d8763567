// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of consumers.

use core::{
    ptr::NonNull,
    slice, //
};

/// Memory that a consumer has lent to an operation.
///
/// # Invariants
///
/// The memory is valid until the operation was tested for. Until then its owner does not access it,
/// but for reads if the operation only reads it.
pub(crate) struct Foreign {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: Memory of the kernel is the same for all threads.
unsafe impl Send for Foreign {}

impl Foreign {
    /// Creates a value.
    ///
    /// # Safety
    ///
    /// By the type invariant, which the caller promises for the consumer.
    pub(crate) unsafe fn new(start: NonNull<u8>, length: usize) -> Self {
        // INVARIANT: By the safety requirement.
        Self { start, length }
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: By the type invariant. Writes need `bytes_mut`, which borrows exclusively.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Returns the bytes of memory that the operation may write to.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: By the type invariant. The operation receives, so that its owner does not access
        // the memory at all.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}
