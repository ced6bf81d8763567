// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of operations.

use super::{Adapter, DatHome};
use crate::bmi::engine::{described, Descriptor, OpId, Place, LONGEST};
use crate::memory::{Memory, Part};
use libkdapl::Segment;

/// Fragments of a list from which on the list is copied through contiguous memory, if they are
/// short: a registration or a bind of a fragment takes as long as the copy of its bytes.
const MANY: usize = 4;

/// Average bytes of such short fragments.
const SHORT: usize = 16 * 1024;

/// Bytes of a receive up to which it gets contiguous memory before its message has come, and thus
/// for its whole length.
const EARLY: usize = 8 << 20;

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

    /// Returns local segments on a device for `length` bytes, from `skip` bytes in the fragment
    /// `first` on.
    pub(super) fn segments(
        &self,
        device: u8,
        (first, skip): (usize, usize),
        length: usize,
    ) -> Vec<Segment> {
        let (mut skip, mut left) = (skip, length);
        let mut segments = Vec::new();
        for part in self.0.iter().skip(first) {
            let now = (part.length() - skip).min(left);
            segments.extend(part.segment(device, skip, now));
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

    /// Registers the memory on a device for a message of `length` bytes, or replaces scattered
    /// fragments.
    fn prepare(
        &mut self,
        on: (u8, &Adapter),
        scratch: &mut Scratch,
        length: usize,
    ) -> libkdapl::Result<()> {
        if let Some(memory) = &mut self.bounce {
            return memory.register(on);
        }
        if self.parts.is_scattered() {
            return self.gather(on, scratch, length);
        }
        let mut left = length;
        for part in &mut self.parts.0 {
            if left == 0 {
                break;
            }
            left -= part.length().min(left);
            part.register(on, self.sends)?;
        }
        Ok(())
    }

    /// Replaces the fragments by contiguous memory, for a message of `length` bytes.
    fn gather(
        &mut self,
        on: (u8, &Adapter),
        scratch: &mut Scratch,
        length: usize,
    ) -> libkdapl::Result<()> {
        let memory = scratch.take(on, length)?;
        if self.sends {
            self.parts.copy_to(memory.buffer(), 0, length);
        }
        self.bounce = Some(memory);
        Ok(())
    }

    /// Returns the bytes of the message: of a receive, those that its peer has described.
    fn message(&self) -> usize {
        match self.sends {
            true => self.parts.length(),
            false => self.parts.length().min(described(&self.remote) as usize),
        }
    }

    /// Returns the memory for RDMA, which is registered.
    pub(super) fn for_rdma(&mut self) -> Parts {
        self.moved = true;
        match &self.bounce {
            Some(memory) => Parts(vec![memory.whole()]),
            None => self.parts.clone(),
        }
    }
}

/// Contiguous memory of earlier operations.
#[derive(Default)]
pub(super) struct Scratch(Vec<Memory>);

impl Scratch {
    /// Returns memory for `length` bytes, which is registered on a device.
    fn take(&mut self, on: (u8, &Adapter), length: usize) -> libkdapl::Result<Memory> {
        let registered = |mut memory: Memory| memory.register(on).map(|()| memory);
        let fits = |memory: &Memory| (length..=length * 4).contains(&memory.length());
        match self.0.iter().position(fits) {
            Some(index) => registered(self.0.swap_remove(index)),
            None => {
                let new = || Memory::new(length.next_power_of_two()).and_then(registered);
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
    /// Makes the memory of an operation that is longer than `limit` ready for RDMA, unless it is a
    /// receive that may need much less contiguous memory.
    pub(crate) fn hold(&mut self, parts: Parts, sends: bool, limit: u64) -> libkdapl::Result<Held> {
        let mut held = Held { parts, sends, ..Held::default() };
        let length = held.parts.length();
        let early = sends || length <= EARLY || !held.parts.is_scattered();
        // The engine refuses a longer send.
        if early && (limit + 1..=LONGEST).contains(&(length as u64)) {
            self.prepare_early(&mut held, length)?;
        }
        Ok(held)
    }

    /// Makes memory ready for RDMA on the first device that can use it. A device that was removed
    /// may not have said so yet.
    fn prepare_early(&mut self, held: &mut Held, length: usize) -> libkdapl::Result<()> {
        let mut outcome = Ok(());
        for device in self.devices.living() {
            outcome = held.prepare(self.devices.on(device), &mut self.scratch, length);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Returns the memory of a transfer, which is ready for RDMA on a device then, and that of the
    /// peer.
    pub(super) fn for_transfer(&mut self, place: Place) -> Option<(Parts, &[Descriptor])> {
        let held = self.held.get_mut(&place.op)?;
        let on = self.devices.on(place.device);
        held.prepare(on, &mut self.scratch, held.message()).ok()?;
        Some((held.for_rdma(), &held.remote))
    }

    /// Returns the memory of an operation with a message of `length` bytes, which is ready for
    /// RDMA on a device then.
    pub(super) fn for_exposure(&mut self, place: Place, length: usize) -> Option<Parts> {
        let held = self.held.get_mut(&place.op)?;
        held.prepare(self.devices.on(place.device), &mut self.scratch, length).ok()?;
        Some(held.for_rdma())
    }

    /// Returns contiguous memory for a message of `length` bytes, in place of a receive's
    /// fragments. Other devices may have exposed the fragments: the bytes of either would be
    /// missing in the other, so then there is none.
    pub(super) fn for_exposure_in_one(&mut self, place: Place, length: usize) -> Option<Parts> {
        let exposed = self.exposures.others(place);
        let held = self.held.get_mut(&place.op);
        let held = held.filter(|held| held.bounce.is_none() && !exposed)?;
        held.gather(self.devices.on(place.device), &mut self.scratch, length).ok()?;
        Some(held.for_rdma())
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
