// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of operations.

use super::{Adapter, DatHome};
use crate::bmi::engine::{Descriptor, OpId};
use crate::memory::{Memory, Part};
use libkdapl::Segment;

/// Fragments of a list from which on the list is copied through contiguous memory, if they are
/// short: a registration or a bind of a fragment takes as long as the copy of its bytes.
const MANY: usize = 4;

/// Average bytes of such short fragments.
const SHORT: usize = 16 * 1024;

/// Contiguous buffers that are kept for later operations, and their bytes.
const KEPT: usize = 8;
const KEPT_BYTES: usize = 8 << 20;

/// Fragments of a message, none of which is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts(pub(crate) Vec<Part>);

impl Parts {
    /// Makes the list without its empty fragments.
    pub(crate) fn new(parts: &[Part]) -> Self {
        Self(parts.iter().filter(|part| part.length() > 0).cloned().collect())
    }

    /// Returns the bytes of all fragments.
    pub(crate) fn length(&self) -> usize {
        self.0.iter().map(Part::length).sum()
    }

    /// Returns the bytes of each fragment.
    pub(crate) fn lengths(&self) -> Vec<u64> {
        self.0.iter().map(|part| part.length() as u64).collect()
    }

    /// Copies `bytes` to the fragments.
    pub(crate) fn write(&self, bytes: &[u8]) {
        let mut rest = bytes;
        for part in &self.0 {
            let (now, later) = rest.split_at(part.length().min(rest.len()));
            part.write(0, now);
            rest = later;
        }
    }

    /// Copies `length` bytes of the fragments to `target`.
    pub(crate) fn copy_to(&self, target: &libkdapl::Buffer, at: usize, length: usize) {
        let (mut at, mut left) = (at, length);
        for part in &self.0 {
            let now = part.length().min(left);
            part.copy_to(target, at, now);
            (at, left) = (at + now, left - now);
        }
    }

    /// Copies `length` bytes of contiguous memory to the fragments.
    fn copy_from(&self, source: &Part, length: usize) {
        let (mut at, mut left) = (0, length);
        for part in &self.0 {
            let now = part.length().min(left);
            part.copy_from(source, at, now);
            (at, left) = (at + now, left - now);
        }
    }

    /// Returns whether the list is better copied through contiguous memory.
    fn is_scattered(&self) -> bool {
        self.0.len() >= MANY && self.length() / self.0.len() < SHORT
    }

    /// Returns local segments for `length` bytes, from `skip` bytes in the fragment `first` on.
    pub(super) fn segments(&self, first: usize, skip: usize, length: usize) -> Vec<Segment> {
        let (mut skip, mut left) = (skip, length);
        let mut segments = Vec::new();
        for part in self.0.iter().skip(first) {
            let now = (part.length() - skip).min(left);
            segments.extend(part.segment(skip, now));
            (skip, left) = (0, left - now);
            if left == 0 {
                break;
            }
        }
        segments
    }
}

/// Memory of an operation.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The consumer's memory.
    pub(crate) parts: Parts,
    /// Contiguous memory for RDMA in place of scattered fragments.
    bounce: Option<Memory>,
    /// RDMA has been used.
    pub(super) moved: bool,
    /// Memory of the peer.
    pub(super) remote: Vec<Descriptor>,
    /// The operation sends `parts`. Otherwise it receives into them.
    sends: bool,
}

impl Held {
    /// Returns the number of fragments that RDMA moves.
    pub(crate) fn fragments(&self) -> u32 {
        match self.bounce {
            Some(_) => 1,
            None => self.parts.0.len() as u32,
        }
    }

    /// Registers the memory, or replaces scattered fragments.
    fn prepare(&mut self, adapter: &Adapter, scratch: &mut Scratch) -> libkdapl::Result<()> {
        if self.bounce.is_some() {
            return Ok(());
        }
        if !self.parts.is_scattered() {
            let Adapter { ia, pz, .. } = adapter;
            let sends = self.sends;
            return self.parts.0.iter_mut().try_for_each(|part| part.register(ia, pz, sends));
        }
        let memory = scratch.take(adapter, self.parts.length())?;
        if self.sends {
            self.parts.copy_to(memory.buffer(), 0, self.parts.length());
        }
        self.bounce = Some(memory);
        Ok(())
    }

    /// Returns the memory for RDMA, which is registered.
    pub(super) fn for_rdma(&mut self) -> Parts {
        self.moved = true;
        match &self.bounce {
            Some(memory) => Parts(vec![memory.part(0, self.parts.length())]),
            None => self.parts.clone(),
        }
    }
}

/// Contiguous memory of earlier operations.
#[derive(Default)]
pub(super) struct Scratch(Vec<Memory>);

impl Scratch {
    /// Returns memory for `length` bytes.
    fn take(&mut self, adapter: &Adapter, length: usize) -> libkdapl::Result<Memory> {
        let fits = |memory: &Memory| (length..=length * 4).contains(&memory.length());
        match self.0.iter().position(fits) {
            Some(index) => Ok(self.0.swap_remove(index)),
            None => {
                let new = || Memory::new(&adapter.ia, &adapter.pz, length.next_power_of_two());
                new().or_else(|_| {
                    // The memory that is kept for reuse may be the memory that is missing.
                    self.0.clear();
                    new()
                })
            }
        }
    }

    fn give_back(&mut self, memory: Memory) {
        self.0.push(memory);
        let bytes = |kept: &[Memory]| kept.iter().map(Memory::length).sum::<usize>();
        while self.0.len() > KEPT || bytes(&self.0) > KEPT_BYTES {
            self.0.remove(0);
        }
    }
}

impl DatHome {
    /// Makes the memory of an operation that is longer than `limit` ready for RDMA.
    pub(crate) fn hold(&mut self, parts: Parts, sends: bool, limit: u64) -> libkdapl::Result<Held> {
        let mut held = Held { parts, sends, ..Held::default() };
        if held.parts.length() as u64 > limit {
            held.prepare(&self.adapter, &mut self.scratch)?;
        }
        Ok(held)
    }

    /// Makes the memory of an operation ready for RDMA, unless it is.
    pub(super) fn prepare(&mut self, op: OpId) -> libkdapl::Result<()> {
        match self.held.get_mut(&op) {
            Some(held) => held.prepare(&self.adapter, &mut self.scratch),
            None => Ok(()),
        }
    }

    /// Ends the use of an operation's memory. `actual` bytes were received, if it is a receive that
    /// has succeeded.
    pub(crate) fn finish(&mut self, op: OpId, actual: usize) {
        if let Some(held) = self.held.remove(&op) {
            self.release(held, actual);
        }
    }

    /// Ends the use of memory.
    pub(crate) fn release(&mut self, held: Held, actual: usize) {
        let Some(memory) = held.bounce else { return };
        if held.moved && !held.sends {
            held.parts.copy_from(&memory.whole(), actual);
        }
        self.scratch.give_back(memory);
    }
}
