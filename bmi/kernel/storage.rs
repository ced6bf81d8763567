// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Storage of the engine.

use crate::engine::{
    Bucket,
    Entry,
    Op,
    Peer,
    Storage,
    LINKS, //
};
use kernel::{
    alloc::AllocError,
    prelude::*, //
};

/// Storage in vectors.
pub(crate) struct Vectors;

impl Storage for Vectors {
    type Ops = KVVec<Entry<Op, LINKS>>;
    type Peers = KVVec<Entry<Peer, 1>>;
    type Buckets = KVVec<Bucket>;
}

/// Allocates `number` entries.
pub(crate) fn filled<T>(number: usize, new: impl Fn() -> T) -> Result<KVVec<T>, AllocError> {
    let mut vector = KVVec::with_capacity(number, GFP_KERNEL)?;
    for _ in 0..number {
        vector.push_within_capacity(new()).map_err(|_| AllocError)?;
    }
    Ok(vector)
}

/// Appends entries until there are `number`.
pub(crate) fn extend<T>(
    vector: &mut KVVec<T>,
    number: usize,
    new: impl Fn() -> T,
) -> Result<(), AllocError> {
    let more = number.saturating_sub(vector.len());
    vector.reserve(more, GFP_KERNEL)?;
    for _ in 0..more {
        vector.push_within_capacity(new()).map_err(|_| AllocError)?;
    }
    Ok(())
}

/// Values with numbers, none of which is 0 or used twice.
pub(crate) struct Slab<T> {
    entries: KVVec<(u32, Option<T>)>,
    free: KVVec<u32>,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Self {
        Self {
            entries: KVVec::new(),
            free: KVVec::new(),
        }
    }

    /// Stores a value, and returns its number. An error drops the value.
    pub(crate) fn insert(&mut self, value: T) -> Result<u64, AllocError> {
        if self.free.is_empty() {
            let index = u32::try_from(self.entries.len()).map_err(|_| AllocError)?;
            // So that a removal never allocates.
            self.free.reserve(self.entries.len() + 1, GFP_KERNEL)?;
            self.entries.push((0, None), GFP_KERNEL)?;
            let _ = self.free.push_within_capacity(index);
        }
        let index = self.free.pop().ok_or(AllocError)?;
        let entry = self.entries.get_mut(index as usize).ok_or(AllocError)?;
        *entry = (entry.0.wrapping_add(1), Some(value));
        Ok(u64::from(entry.0) << 32 | u64::from(index) + 1)
    }

    fn entry(&mut self, number: u64) -> Option<&mut Option<T>> {
        // The lower half is the index, plus 1.
        let index = (number as u32).checked_sub(1)?;
        let (generation, value) = self.entries.get_mut(index as usize)?;
        (u64::from(*generation) == number >> 32).then_some(value)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        self.entry(number)?.as_mut()
    }

    /// Removes a value. Its number may be an invention.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let value = self.entry(number)?.take()?;
        let _ = self
            .free
            .push_within_capacity((number as u32).wrapping_sub(1));
        Some(value)
    }

    /// Removes a value for which `condition` holds.
    pub(crate) fn take_where(&mut self, condition: impl Fn(&T) -> bool) -> Option<T> {
        let mut entries = self.entries.iter_mut();
        let index = entries.position(|(_, value)| value.as_ref().is_some_and(&condition))?;
        let value = self.entries.get_mut(index)?.1.take();
        let _ = self.free.push_within_capacity(index as u32);
        value
    }
}
