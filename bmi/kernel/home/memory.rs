// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of operations.
//!
//! Memory of `bmi_memalloc()` is moved by RDMA. Other memory is copied through registered memory:
//! to register it would take one request for each of its pages, and as much time.

use super::KernelHome;
use crate::{
    engine::{
        described,
        descriptors,
        Descriptor,
        OpId,
        Place,
        Rails,
        LONGEST, //
    },
    foreign::Foreign,
    memory::Memory, //
};
use kdat::{
    Part,
    Pz,
    Shared, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// Fragments of a list from which on the list is copied through contiguous memory, if they are
/// short.
const MANY: usize = 4;
/// Average bytes of such short fragments.
const SHORT: usize = 16 * 1024;

/// Bytes of a receive up to which its memory is made ready before its message has come, and thus
/// for its whole length.
const EARLY: u64 = 8 << 20;

/// Fragment of a message, which is not empty.
pub(crate) enum Fragment {
    /// Bytes of registered memory: offset and length.
    Registered(Memory, usize, usize),
    /// Other memory.
    Foreign(Foreign),
}

impl Fragment {
    fn length(&self) -> usize {
        match self {
            Self::Registered(_, _, length) => *length,
            Self::Foreign(memory) => memory.length(),
        }
    }

    /// Copies the first bytes of `from` into the fragment, and returns how many.
    fn write(&mut self, from: &[u8]) -> usize {
        let length = self.length().min(from.len());
        let from = from.get(..length).unwrap_or(&[]);
        match self {
            Self::Registered(memory, offset, _) => {
                // It lies within the memory.
                let _ = memory.write(*offset, from);
            }
            Self::Foreign(memory) => {
                if let Some(to) = memory.bytes_mut().get_mut(..length) {
                    to.copy_from_slice(from);
                }
            }
        }
        length
    }

    /// Copies the first bytes of the fragment to `to`, and returns how many.
    fn read(&self, to: &mut [u8]) -> usize {
        let length = self.length().min(to.len());
        let to = to.get_mut(..length).unwrap_or(&mut []);
        match self {
            Self::Registered(memory, offset, _) => {
                let _ = memory.read(*offset, to);
            }
            Self::Foreign(memory) => {
                to.copy_from_slice(memory.bytes().get(..length).unwrap_or(&[]))
            }
        }
        length
    }
}

/// Memory of an operation.
pub(crate) struct Held {
    fragments: KVec<Fragment>,
    /// Registered memory for RDMA, in place of the fragments.
    bounce: Option<Memory>,
    /// RDMA has been used.
    moved: bool,
    /// Memory of the peer.
    pub(super) remote: KVVec<Descriptor>,
    /// The operation sends the fragments. Otherwise it receives into them.
    sends: bool,
}

impl Held {
    pub(crate) fn new(fragments: KVec<Fragment>, sends: bool) -> Self {
        Self {
            fragments,
            bounce: None,
            moved: false,
            remote: KVVec::new(),
            sends,
        }
    }

    /// Returns the bytes of all fragments.
    pub(crate) fn length(&self) -> usize {
        self.fragments.iter().map(Fragment::length).sum()
    }

    /// Returns the number of fragments that RDMA moves.
    pub(crate) fn count(&self) -> u32 {
        match self.bounce {
            Some(_) => 1,
            None => self.fragments.len() as u32,
        }
    }

    /// Copies `bytes` to the fragments.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        for fragment in &mut self.fragments {
            let done = fragment.write(rest);
            rest = rest.get(done..).unwrap_or(&[]);
        }
    }

    /// Copies the fragments to `to`, as far as there is room.
    pub(super) fn read(&self, to: &mut [u8]) {
        let mut at = 0;
        for fragment in &self.fragments {
            at += to.get_mut(at..).map_or(0, |rest| fragment.read(rest));
        }
    }

    /// Keeps the descriptors of a message, and returns their rails. Without memory there are none.
    pub(super) fn keep(&mut self, body: &[u8], named: bool) -> Rails {
        self.remote = KVVec::new();
        let mut rails = Rails::NONE;
        for descriptor in descriptors(body, named) {
            rails = rails.or(descriptor.rails);
            if self.remote.push(descriptor, GFP_KERNEL).is_err() {
                self.remote = KVVec::new();
                return Rails::NONE;
            }
        }
        rails
    }

    fn needs_bounce(&self) -> bool {
        let foreign = |fragment: &Fragment| matches!(fragment, Fragment::Foreign(_));
        let count = self.fragments.len();
        self.fragments.iter().any(foreign) || count >= MANY && self.length() / count < SHORT
    }

    /// Makes the memory ready for RDMA of a message of `length` bytes on a device.
    fn prepare(&mut self, on: (u8, &Pz), length: usize) -> kdat::Result {
        if let Some(memory) = &mut self.bounce {
            return memory.register(on);
        }
        if self.needs_bounce() {
            return self.gather(on, length);
        }
        for fragment in &mut self.fragments {
            if let Fragment::Registered(memory, ..) = fragment {
                memory.register(on)?;
            }
        }
        Ok(())
    }

    /// Replaces the fragments by contiguous memory, for a message of `length` bytes.
    fn gather(&mut self, on: (u8, &Pz), length: usize) -> kdat::Result {
        let memory = Memory::new(on, length.max(1))?;
        if self.sends {
            let mut at = 0;
            for fragment in &self.fragments {
                at += copy_to(fragment, &memory, at)?;
            }
        }
        self.bounce = Some(memory);
        Ok(())
    }

    /// Returns the bytes of the message: of a receive, those that its peer has described.
    fn message(&self) -> usize {
        match self.sends {
            true => self.length(),
            false => self.length().min(described(&self.remote) as usize),
        }
    }

    /// Returns the memory that RDMA moves on a device, on which it is registered.
    fn registered(&mut self, device: u8) -> kdat::Result<Parts> {
        self.moved = true;
        let mut parts = KVec::new();
        if let Some(memory) = &self.bounce {
            let shared = memory.on(device).ok_or(AllocError)?;
            parts.push((shared.clone(), 0, memory.size()), GFP_KERNEL)?;
            return Ok(parts);
        }
        for fragment in &self.fragments {
            if let Fragment::Registered(memory, offset, length) = fragment {
                let shared = memory.on(device).ok_or(AllocError)?;
                parts.push((shared.clone(), *offset, *length), GFP_KERNEL)?;
            }
        }
        Ok(parts)
    }

    /// Copies `actual` received bytes to the consumer's memory, unless they are there.
    pub(crate) fn finish(&mut self, actual: usize) {
        let Some(memory) = self.bounce.take().filter(|_| self.moved && !self.sends) else {
            return;
        };
        let (mut at, mut left) = (0, actual);
        for fragment in &mut self.fragments {
            let length = fragment.length().min(left);
            copy_from(fragment, &memory, (at, length));
            (at, left) = (at + length, left - length);
        }
    }
}

/// Bytes that are copied at a time between registered memory.
const STEP: usize = 4096;

/// Copies a fragment to memory at `at`. Returns its length.
fn copy_to(fragment: &Fragment, memory: &Memory, at: usize) -> kdat::Result<usize> {
    match fragment {
        Fragment::Foreign(foreign) => memory.write(at, foreign.bytes())?,
        Fragment::Registered(from, offset, length) => {
            copy_registered((from, *offset), (memory, at), *length)?;
        }
    }
    Ok(fragment.length())
}

/// Copies bytes of memory to a fragment.
fn copy_from(fragment: &mut Fragment, memory: &Memory, (at, length): (usize, usize)) {
    // All lie within their memory, and the allocation is a page.
    let _ = match fragment {
        Fragment::Foreign(foreign) => {
            let to = foreign.bytes_mut().get_mut(..length).unwrap_or(&mut []);
            memory.read(at, to)
        }
        Fragment::Registered(to, offset, _) => copy_registered((memory, at), (to, *offset), length),
    };
}

fn copy_registered(
    (from, offset): (&Memory, usize),
    (to, at): (&Memory, usize),
    length: usize,
) -> kdat::Result {
    let mut bytes = KVec::from_elem(0_u8, length.min(STEP), GFP_KERNEL)?;
    for start in (0..length).step_by(STEP) {
        let step = (length - start).min(STEP);
        let bytes = bytes.get_mut(..step).unwrap_or(&mut []);
        from.read(offset + start, bytes)?;
        to.write(at + start, bytes)?;
    }
    Ok(())
}

/// Parts of registered memory that RDMA moves: offset and length.
pub(super) type Parts = KVec<(Shared, usize, usize)>;

/// Returns local parts for at most `length` bytes, from `skip` bytes in the part `first` on, as
/// many as a DTO with `segments` segments may have, and their bytes.
pub(super) fn local_parts(
    parts: &Parts,
    (first, skip): (usize, usize),
    length: usize,
    segments: usize,
) -> kdat::Result<(KVec<Part>, usize)> {
    let (mut skip, mut left, mut room) = (skip, length, segments);
    let mut local = KVec::new();
    for (shared, offset, available) in parts.iter().skip(first) {
        let (start, wanted) = (offset + skip, available.saturating_sub(skip).min(left));
        let (bytes, used) = shared.fitting(start, wanted, room);
        if bytes > 0 {
            local.push(shared.part(start, bytes)?, GFP_KERNEL)?;
        }
        (left, room) = (left - bytes, room.saturating_sub(used));
        if bytes < wanted || left == 0 {
            break;
        }
        skip = 0;
    }
    Ok((local, length - left))
}

impl KernelHome {
    /// Makes the memory of an operation that is longer than `limit` ready for RDMA, unless it is a
    /// receive that may need much less: on the first device that can use it. A device that was
    /// removed may not have said so yet.
    pub(crate) fn prepare_early(&self, held: &mut Held, limit: u64) -> kdat::Result {
        // The engine refuses a longer send.
        let most = if held.sends { LONGEST } else { EARLY };
        let length = held.length();
        let mut outcome = Ok(());
        if !(limit + 1..=most).contains(&(length as u64)) {
            return outcome;
        }
        for device in self.devices.living() {
            outcome = held.prepare(self.devices.on(device), length);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Returns the memory of an operation, and a device.
    fn held_and_device(&mut self, place: Place) -> Option<(&mut Held, (u8, &Pz))> {
        let Place { op, device } = place;
        let (found, held) = self.held.get_mut(op.0.index() as usize)?.as_mut()?;
        (*found == op).then_some((held, self.devices.on(device)))
    }

    /// Returns the memory of a transfer, which is ready for RDMA on a device then.
    pub(super) fn for_transfer(&mut self, place: Place) -> Option<Parts> {
        let (held, on) = self.held_and_device(place)?;
        held.prepare(on, held.message()).ok()?;
        held.registered(place.device).ok()
    }

    /// Returns the memory of an operation with a message of `length` bytes, which is ready for
    /// RDMA on a device then.
    pub(super) fn for_exposure(&mut self, place: Place, length: usize) -> Option<Parts> {
        let (held, on) = self.held_and_device(place)?;
        held.prepare(on, length).ok()?;
        held.registered(place.device).ok()
    }

    /// Returns contiguous memory for a message of `length` bytes, in place of a receive's
    /// fragments. Other devices may have exposed the fragments: the bytes of either would be
    /// missing in the other, so then there is none.
    pub(super) fn for_exposure_in_one(&mut self, place: Place, length: usize) -> Option<Parts> {
        let exposed = self.exposures.others(place);
        let (held, on) = self.held_and_device(place)?;
        if held.bounce.is_some() || exposed {
            return None;
        }
        held.gather(on, length).ok()?;
        held.registered(place.device).ok()
    }

    /// Ends the use of an operation's memory. `actual` bytes were received, if it is a receive that
    /// has succeeded.
    pub(crate) fn finish(&mut self, op: OpId, actual: usize) {
        if let Some(mut held) = self.take_held(op) {
            held.finish(actual);
        }
    }
}
