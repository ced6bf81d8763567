// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Buffers that a ring provides for streams of events.

use crate::sys::*;
use io_uring::types::BufRingEntry;
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

/// Alignment of the ring of entries.
const PAGE: usize = 4096;

/// Provided buffers, and the ring of entries through which the kernel gets them.
pub(super) struct RingBuffers {
    entries: NonNull<BufRingEntry>,
    layout: Layout,
    events: NonNull<kdapl_event>,
    events_layout: Layout,
    count: u16,
    /// Number of events in each buffer.
    size: usize,
    tail: u16,
}

impl RingBuffers {
    /// Makes `count` buffers for `size` events each.
    pub(super) fn new(count: u16, size: usize) -> io::Result<Self> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        if !count.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let layout = Layout::array::<BufRingEntry>(count.into())
            .and_then(|layout| layout.align_to(PAGE))
            .map_err(invalid)?;
        let events_layout =
            Layout::array::<kdapl_event>(usize::from(count) * size).map_err(invalid)?;
        // SAFETY: Neither size is 0.
        let (entries, events) = unsafe { (alloc_zeroed(layout), alloc_zeroed(events_layout)) };
        let entries = NonNull::new(entries.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let events = NonNull::new(events.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut this = Self { entries, layout, events, events_layout, count, size, tail: 0 };
        (0..count).for_each(|id| this.provide(id));
        Ok(this)
    }

    /// Returns the address and the length of the ring of entries.
    pub(super) fn ring(&self) -> (u64, u16) {
        (self.entries.as_ptr() as u64, self.count)
    }

    /// Returns the first event of a buffer.
    fn buffer(&self, id: u16) -> NonNull<kdapl_event> {
        assert!(id < self.count);
        // SAFETY: It lies within the memory.
        unsafe { self.events.add(usize::from(id) * self.size) }
    }

    /// Hands a buffer to the kernel.
    fn provide(&mut self, id: u16) {
        let address = self.buffer(id).as_ptr() as u64;
        let index = usize::from(self.tail & (self.count - 1));
        let bytes = self.size * size_of::<kdapl_event>();
        // SAFETY: The entry lies within the ring. The kernel reads it after the tail has passed it.
        // Its last field is not written: the first entry has the tail there.
        unsafe {
            let entry = &mut *self.entries.as_ptr().add(index);
            entry.set_addr(address);
            entry.set_len(bytes as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: The tail is a part of the first entry, is aligned, and is accessed atomically.
        let tail = unsafe {
            let tail = BufRingEntry::tail(self.entries.as_ptr());
            AtomicU16::from_ptr(tail.cast_mut())
        };
        tail.store(self.tail, Ordering::Release);
    }

    /// Copies the first events of a buffer that the kernel has filled, and provides it again.
    pub(super) fn take(&mut self, id: u16, count: usize) -> Vec<kdapl_event> {
        let first = self.buffer(id).as_ptr();
        let count = count.min(self.size);
        // SAFETY: The buffer is not provided, so the kernel does not access it.
        let events = unsafe { std::slice::from_raw_parts(first, count) }.to_vec();
        self.provide(id);
        events
    }
}

impl Drop for RingBuffers {
    fn drop(&mut self) {
        // SAFETY: Both were allocated with these layouts.
        unsafe {
            dealloc(self.entries.as_ptr().cast(), self.layout);
            dealloc(self.events.as_ptr().cast(), self.events_layout);
        }
    }
}
