// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of messages.
//!
//! [`Memory`] of the library is registered once, and stays registered: no later change of the
//! process's mappings can make this registration wrong. Memory of other owners is registered for
//! each operation that needs RDMA. A cache of these registrations would need to know of each
//! `munmap` of the process.

use crate::bmi::engine::MAX_RAILS;
use crate::home::Adapter;
use libkdapl::{Buffer, Lmr, Privileges, Result, Segment};
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

/// Registrations of memory, by the numbers of the devices.
type Lmrs = [Option<Lmr>; MAX_RAILS];

/// Registers memory on a device, unless it is registered there.
fn register(
    lmrs: &mut Lmrs,
    buffer: &Arc<Buffer>,
    (device, adapter): (u8, &Adapter),
    sends_only: bool,
) -> Result<()> {
    let lmr = &mut lmrs[usize::from(device)];
    if lmr.is_none() {
        let privileges = privileges(sends_only);
        *lmr = Some(adapter.ia.register(&adapter.pz, buffer.clone(), privileges)?);
    }
    Ok(())
}

/// Registered memory of the library. Clones share it.
#[derive(Clone, Debug)]
pub struct Memory {
    buffer: Arc<Buffer>,
    lmrs: Lmrs,
}

impl Memory {
    /// Allocates memory that is not registered yet.
    pub(crate) fn new(length: usize) -> Result<Self> {
        Ok(Self { buffer: Arc::new(Buffer::new(length)?), lmrs: Lmrs::default() })
    }

    /// Registers the memory on a device, unless it is registered there.
    pub(crate) fn register(&mut self, on: (u8, &Adapter)) -> Result<()> {
        register(&mut self.lmrs, &self.buffer, on, false)
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.buffer.len()
    }

    /// Returns the memory, for copies in and out.
    #[must_use]
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// Returns the part of `length` bytes at `offset`.
    ///
    /// # Panics
    /// Beyond the end of the memory.
    #[must_use]
    pub fn part(&self, offset: usize, length: usize) -> Part {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length());
        assert!(inside, "{length} bytes at {offset} of {} bytes", self.length());
        Part { buffer: self.buffer.clone(), offset, length, lmrs: self.lmrs.clone() }
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
    /// Registrations of `buffer`.
    lmrs: Lmrs,
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
        Self { buffer: Arc::new(buffer), offset: 0, length, lmrs: Lmrs::default() }
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

    /// Registers the part on a device, unless it is registered there.
    pub(crate) fn register(&mut self, on: (u8, &Adapter), sends_only: bool) -> Result<()> {
        register(&mut self.lmrs, &self.buffer, on, sends_only)
    }

    /// Returns the registration on a device.
    pub(crate) fn lmr(&self, device: u8) -> Option<&Lmr> {
        self.lmrs[usize::from(device)].as_ref()
    }

    /// Returns the local segment of `length` bytes at `offset`, if the part is registered on the
    /// device.
    pub(crate) fn segment(&self, device: u8, offset: usize, length: usize) -> Option<Segment> {
        Some(self.lmr(device)?.segment(self.offset + offset, length))
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
