// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Scatterlists: memory of a command's data, and parts of a buffer.

use crate::bindings;
use core::ptr::NonNull;
use kdat::{
    Lmr,
    Pz, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*, //
};

/// Memory of a command's data, mapped for the device.
///
/// # Invariants
///
/// `list` has `entries` entries, which describe pages that this value owns.
pub(super) struct Data {
    /// Dropped before the pages are freed, by [`Data::drop`].
    lmr: Option<Lmr>,
    list: NonNull<bindings::scatterlist>,
    entries: u32,
}

// SAFETY: The pages belong to the value.
unsafe impl Send for Data {}

impl Data {
    /// Allocates `length` bytes and maps them. A DTO has up to `segments` entries of the list.
    pub(super) fn new(pz: &Pz, length: u32, segments: u32) -> Result<Self> {
        let mut entries = 0;
        // SAFETY: `entries` is valid for writes.
        let list =
            unsafe { bindings::sgl_alloc(length.into(), bindings::GFP_KERNEL, &raw mut entries) };
        // INVARIANT: The list was just allocated with its pages.
        let mut this = Self {
            lmr: None,
            list: NonNull::new(list).ok_or(ENOMEM)?,
            entries,
        };
        // SAFETY: The list and its pages stay until the drop, which drops the LMR first. A port
        // closes its adapter after all commands of its queues were dropped.
        this.lmr = Some(unsafe { pz.map(list, (entries, length), segments) }?);
        Ok(this)
    }

    pub(super) fn lmr(&self) -> Option<&Lmr> {
        self.lmr.as_ref()
    }

    /// Returns the list and the number of its entries.
    pub(super) fn list(&self) -> (*mut bindings::scatterlist, u32) {
        (self.list.as_ptr(), self.entries)
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        self.lmr = None;
        // SAFETY: By the type invariant. Nobody else uses the list.
        unsafe { bindings::sgl_free(self.list.as_ptr()) };
    }
}

/// Most pages that a part of a buffer touches: 16 KiB, from any byte of a page on.
const MAX_ENTRIES: usize = 5;

/// List of the pages of a part of a buffer.
pub(super) struct Parts {
    list: [bindings::scatterlist; MAX_ENTRIES],
}

impl Parts {
    pub(super) fn new() -> Self {
        Self {
            list: core::array::from_fn(|_| bindings::scatterlist::default()),
        }
    }

    /// Describes bytes. Returns the list and the number of its entries, which are valid as long as
    /// this value and the bytes stay in their places.
    pub(super) fn describe(
        &mut self,
        bytes: &mut [u8],
    ) -> Option<(*mut bindings::scatterlist, u32)> {
        let (mut place, mut left, mut entries) = (bytes.as_mut_ptr(), bytes.len(), 0);
        // SAFETY: The array has as many elements.
        unsafe { bindings::kdapl_nvmet_init_sgl(self.list.as_mut_ptr(), MAX_ENTRIES as u32) };
        while left > 0 {
            let entry = self.list.get_mut(entries)?;
            let in_page = PAGE_SIZE - (place.addr() & (PAGE_SIZE - 1));
            let size = in_page.min(left);
            // SAFETY: These bytes are memory of `KVVec`, within one page.
            unsafe { bindings::kdapl_nvmet_set_sg(entry, place.cast(), size as u32) };
            (place, left, entries) = (place.wrapping_add(size), left - size, entries + 1);
        }
        let last = self.list.get_mut(entries.checked_sub(1)?)?;
        // SAFETY: `last` is an entry that was set.
        unsafe { bindings::kdapl_nvmet_end_sgl(last) };
        Some((self.list.as_mut_ptr(), entries as u32))
    }
}
