// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory of `BMI_memalloc`, found by its address.

use libkdapl_bmi::{Memory, Part};
use std::collections::BTreeMap;
use std::ptr::NonNull;

/// The memory that was allocated and not freed.
#[derive(Default)]
pub struct Allocated(BTreeMap<usize, Memory>);

impl Allocated {
    /// Keeps memory. Returns its address.
    pub fn insert(&mut self, memory: Memory) -> usize {
        let start = memory.buffer().address(0) as usize;
        self.0.insert(start, memory);
        start
    }

    /// Frees memory. Returns `false` if there is none at this address.
    pub fn remove(&mut self, start: usize) -> bool {
        self.0.remove(&start).is_some()
    }

    /// Returns the part at an address: of this memory if it is in it, else of memory of the
    /// program.
    ///
    /// # Safety
    /// That of [`Part::borrowed`].
    pub unsafe fn part(&self, start: NonNull<u8>, length: usize) -> Part {
        let at = start.as_ptr() as usize;
        let before = self.0.range(..=at).next_back();
        let own = before.and_then(|(first, memory)| {
            let offset = at - first;
            let inside = offset.checked_add(length).is_some_and(|end| end <= memory.length());
            inside.then(|| memory.part(offset, length))
        });
        // SAFETY: As above.
        own.unwrap_or_else(|| unsafe { Part::borrowed(start, length) })
    }
}
