// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory of operations.
//!
//! Memory of `bmi_memalloc()` is moved by RDMA. Other memory is copied through registered memory:
//! to register it would take one request for each of its pages, and as much time.

use super::{
    Adapter,
    KernelHome, //
};
use crate::{
    engine::{
        descriptors,
        Descriptor,
        OpId, //
    },
    foreign::Foreign, //
};
use kdat::{
    Access,
    Part,
    Shared, //
};
use kernel::prelude::*;

/// Fragments of a list from which on the list is copied through contiguous memory, if they are
/// short.
const MANY: usize = 4;
/// Average bytes of such short fragments.
const SHORT: usize = 16 * 1024;

/// Fragment of a message, which is not empty.
pub(crate) enum Fragment {
    /// Bytes of registered memory: offset and length.
    Registered(Shared, usize, usize),
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
            Self::Registered(shared, offset, _) => {
                // It lies within the memory.
                let _ = shared.write(*offset, from);
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
            Self::Registered(shared, offset, _) => {
                let _ = shared.read(*offset, to);
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
    bounce: Option<Shared>,
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

    /// Keeps the descriptors of a message. Without memory there are none, and no RDMA follows.
    pub(super) fn keep(&mut self, body: &[u8]) {
        self.remote = KVVec::new();
        for descriptor in descriptors(body) {
            if self.remote.push(descriptor, GFP_KERNEL).is_err() {
                self.remote = KVVec::new();
                return;
            }
        }
    }

    fn needs_bounce(&self) -> bool {
        let foreign = |fragment: &Fragment| matches!(fragment, Fragment::Foreign(_));
        let count = self.fragments.len();
        self.fragments.iter().any(foreign) || count >= MANY && self.length() / count < SHORT
    }

    /// Makes the memory ready for RDMA.
    pub(crate) fn prepare(&mut self, adapter: &Adapter) -> kdat::Result {
        if self.bounce.is_some() || !self.needs_bounce() {
            return Ok(());
        }
        let memory = adapter.pz.share(self.length().max(1), Access::Bind)?;
        if self.sends {
            let mut at = 0;
            for fragment in &self.fragments {
                at += copy_to(fragment, &memory, at)?;
            }
        }
        self.bounce = Some(memory);
        Ok(())
    }

    /// Returns the memory that RDMA moves.
    pub(super) fn registered(&mut self) -> kdat::Result<Parts> {
        self.moved = true;
        let mut parts = KVec::new();
        if let Some(memory) = &self.bounce {
            parts.push((memory.clone(), 0, self.length()), GFP_KERNEL)?;
            return Ok(parts);
        }
        for fragment in &self.fragments {
            if let Fragment::Registered(shared, offset, length) = fragment {
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
fn copy_to(fragment: &Fragment, memory: &Shared, at: usize) -> kdat::Result<usize> {
    match fragment {
        Fragment::Foreign(foreign) => memory.write(at, foreign.bytes())?,
        Fragment::Registered(from, offset, length) => {
            copy_registered((from, *offset), (memory, at), *length)?;
        }
    }
    Ok(fragment.length())
}

/// Copies bytes of memory to a fragment.
fn copy_from(fragment: &mut Fragment, memory: &Shared, (at, length): (usize, usize)) {
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
    (from, offset): (&Shared, usize),
    (to, at): (&Shared, usize),
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
    /// Makes the memory of an operation ready for RDMA, unless it is, and returns it.
    pub(super) fn prepared(&mut self, op: OpId) -> Option<Parts> {
        let (found, held) = self.held.get_mut(op.0.index() as usize)?.as_mut()?;
        if *found != op {
            return None;
        }
        held.prepare(&self.adapter).ok()?;
        held.registered().ok()
    }

    /// Ends the use of an operation's memory. `actual` bytes were received, if it is a receive that
    /// has succeeded.
    pub(crate) fn finish(&mut self, op: OpId, actual: usize) {
        if let Some(mut held) = self.take_held(op) {
            held.finish(actual);
        }
    }
}
