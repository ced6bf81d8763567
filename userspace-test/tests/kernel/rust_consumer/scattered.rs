// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages as memory of the consumer.

use core::ptr::NonNull;
use kdat::{
    List,
    Scattered, //
};
use kernel::{
    bindings,
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

/// Number of lists that exist.
pub(crate) static LISTS: Atomic<i32> = Atomic::new(0);

/// Pages from an offset of the first one to the end of the last one.
pub(crate) struct Pages {
    pages: KVec<Page>,
    offset: usize,
    entries: KVec<bindings::scatterlist>,
}

// SAFETY: The entries point to pages of the value.
unsafe impl Send for Pages {}

impl Pages {
    pub(crate) fn new(number: usize, offset: usize) -> Result<Self> {
        let (mut pages, mut entries) = (KVec::new(), KVec::new());
        for place in 0..number {
            let page = Page::alloc_page(GFP_KERNEL | __GFP_ZERO)?;
            let first = if place == 0 { offset } else { 0 };
            let is_last = usize::from(place + 1 == number);
            let entry = bindings::scatterlist {
                // SG_END is bit 1.
                page_link: page.as_ptr().addr() | is_last << 1,
                offset: first as u32,
                length: (PAGE_SIZE - first) as u32,
                ..pin_init::zeroed()
            };
            entries.push(entry, GFP_KERNEL)?;
            pages.push(page, GFP_KERNEL)?;
        }
        LISTS.fetch_add(1, Relaxed);
        Ok(Self { pages, offset, entries })
    }

    /// Returns the byte at an offset of the memory.
    pub(crate) fn byte(&self, offset: usize) -> Result<u8> {
        let (at, mut byte) = (self.offset + offset, 0_u8);
        let page = self.pages.get(at / PAGE_SIZE).ok_or(EINVAL)?;
        // SAFETY: `byte` is valid for a write, and the memory is not registered any more.
        unsafe { page.read_raw(&raw mut byte, at % PAGE_SIZE, 1) }?;
        Ok(byte)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        LISTS.fetch_sub(1, Relaxed);
    }
}

// SAFETY: The entries are a list of pages, which the value owns. `byte` makes no references.
unsafe impl Scattered for Pages {
    fn list(&self) -> List {
        let first = self.pages.first().map_or(core::ptr::null_mut(), Page::as_ptr);
        // SAFETY: The page is valid.
        let mapped = unsafe { bindings::kmap_local_page(first) };
        // SAFETY: It was mapped above. Without high memory the address stays valid.
        unsafe { bindings::kunmap_local(mapped) };
        let address = mapped.addr() + self.offset;
        List {
            first: NonNull::from(&self.entries[..]).cast(),
            entries: self.entries.len() as u32,
            address: address as u64,
            length: (self.pages.len() * PAGE_SIZE - self.offset) as u32,
        }
    }
}
