// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of messages.
//!
//! [`Memory`] of the library is registered once, and stays registered: no later change of the
//! process's mappings can make this registration wrong. Memory of other owners is registered for
//! each operation that needs RDMA. A cache of these registrations would need to know of each
//! `munmap` of the process.

use libkdapl::{Buffer, Ia, Lmr, Privileges, Pz, Result, Segment};
use std::ptr::NonNull;
use std::sync::Arc;

/// Returns the privileges of the memory, which may be read only if messages are sent from it. Peers
/// get theirs by Remote Memory Regions, for the time of a transfer.
fn privileges(sends_only: bool) -> Privileges {
    match sends_only {
        true => Privileges::LOCAL_READ,
        false => Privileges::LOCAL_READ | Privileges::LOCAL_WRITE,
    }
}

/// Registered memory of the library. Clones share it.
#[derive(Clone, Debug)]
pub struct Memory {
    lmr: Lmr,
}

impl Memory {
    pub(crate) fn new(ia: &Ia, pz: &Pz, length: usize) -> Result<Self> {
        let lmr = ia.register(pz, Buffer::new(length)?, privileges(false))?;
        Ok(Self { lmr })
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.lmr.buffer().len()
    }

    /// Returns the memory, for copies in and out.
    #[must_use]
    pub fn buffer(&self) -> &Arc<Buffer> {
        self.lmr.buffer()
    }

    /// Returns the part of `length` bytes at `offset`.
    ///
    /// # Panics
    /// Beyond the end of the memory.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Part {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length());
        assert!(inside, "{length} bytes at {offset} of {} bytes", self.length());
        Part { buffer: self.buffer().clone(), offset, length, lmr: Some(self.lmr.clone()) }
    }

    /// Returns all of the memory as a part.
    #[must_use]
    pub fn whole(&self) -> Part {
        self.part(0, self.length())
    }
}

/// Fragment of a message.
#[derive(Clone, Debug)]
pub struct Part {
    buffer: Arc<Buffer>,
    offset: usize,
    length: usize,
    /// Registration of `buffer`, if there is one.
    lmr: Option<Lmr>,
}

impl Part {
    /// Makes a part of memory with another owner.
    ///
    /// # Safety
    /// The memory must be mapped, and nothing may assume it unchanging, until the last operation
    /// with the part was taken, or its context was dropped.
    #[must_use]
    #[allow(unsafe_code)]
    pub unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Self {
        // SAFETY: As above.
        let buffer = unsafe { Buffer::borrowed(start, length) };
        Self { buffer: Arc::new(buffer), offset: 0, length, lmr: None }
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Returns a copy of the bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.buffer.to_vec(self.offset, self.length)
    }

    /// Registers the part, unless it is registered.
    pub(crate) fn register(&mut self, ia: &Ia, pz: &Pz, sends_only: bool) -> Result<()> {
        if self.lmr.is_none() {
            self.lmr = Some(ia.register(pz, self.buffer.clone(), privileges(sends_only))?);
        }
        Ok(())
    }

    /// Returns the registration.
    pub(crate) fn lmr(&self) -> Option<&Lmr> {
        self.lmr.as_ref()
    }

    /// Returns the local segment of `length` bytes at `offset`, if the part is registered.
    pub(crate) fn segment(&self, offset: usize, length: usize) -> Option<Segment> {
        Some(self.lmr.as_ref()?.segment(self.offset + offset, length))
    }

    /// Copies `bytes` to the part, at `offset`.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.buffer.write(self.offset + offset, bytes);
    }

    /// Copies the first `length` bytes to `target`, at `at`.
    pub(crate) fn copy_to(&self, target: &Buffer, at: usize, length: usize) {
        target.copy_from(at, &self.buffer, self.offset, length);
    }

    /// Copies `length` bytes from `source`, at `from`.
    pub(crate) fn copy_from(&self, source: &Self, from: usize, length: usize) {
        self.buffer.copy_from(self.offset, &source.buffer, source.offset + from, length);
    }
}
