// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Registered buffers of one size, which are made when they are needed and used again.

use super::Adapter;
use libkdapl::{Buffer, Lmr, Privileges, Segment};

/// Buffers of one size, by their numbers.
pub(super) struct Buffers {
    /// Bytes of a buffer.
    size: usize,
    /// Buffers that are registered together.
    per_chunk: usize,
    privileges: Privileges,
    chunks: Vec<Lmr>,
    free: Vec<usize>,
}

impl Buffers {
    pub(super) fn new(size: usize, per_chunk: usize, privileges: Privileges) -> Self {
        Self { size, per_chunk, privileges, chunks: Vec::new(), free: Vec::new() }
    }

    /// Returns the bytes of a buffer.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Returns the registered bytes.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * self.per_chunk * self.size
    }

    /// Takes a buffer, and registers others if none is free.
    pub(super) fn take(&mut self, adapter: &Adapter) -> libkdapl::Result<usize> {
        if let Some(buffer) = self.free.pop() {
            return Ok(buffer);
        }
        let memory = Buffer::new(self.per_chunk * self.size)?;
        let lmr = adapter.ia.register(&adapter.pz, memory, self.privileges)?;
        let first = self.chunks.len() * self.per_chunk;
        self.chunks.push(lmr);
        self.free.extend((first + 1..first + self.per_chunk).rev());
        Ok(first)
    }

    /// Returns whether a buffer can be taken without a registration.
    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Gives a buffer back.
    pub(super) fn free(&mut self, buffer: usize) {
        self.free.push(buffer);
    }

    /// Returns the registration of a buffer, and its offset there.
    fn at(&self, buffer: usize) -> (&Lmr, usize) {
        (&self.chunks[buffer / self.per_chunk], buffer % self.per_chunk * self.size)
    }

    /// Returns the memory of a buffer, and its offset there.
    pub(super) fn memory(&self, buffer: usize) -> (&Buffer, usize) {
        let (lmr, at) = self.at(buffer);
        (lmr.buffer(), at)
    }

    /// Returns the segment of the first `length` bytes.
    pub(super) fn segment(&self, buffer: usize, length: usize) -> Segment {
        let (lmr, at) = self.at(buffer);
        lmr.segment(at, length)
    }
}
