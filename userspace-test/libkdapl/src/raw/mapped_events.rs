// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events of an EVD in memory that the kernel shares: see "Mapped events" in
//! `docs/ioctl/events.md`.

use super::mapping::{offset, page_size, Mapping};
use super::Device;
use crate::sys::*;
use std::io;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

/// Number of words of an event.
const EVENT_WORDS: usize = size_of::<kdapl_event>() / size_of::<u64>();

/// The mapped events of an EVD.
#[derive(Debug)]
pub struct MappedEvents {
    /// `struct kdapl_mapped_ring`, and the events in the second page.
    events: Mapping,
    /// `struct kdapl_mapped_index`.
    index: Mapping,
    page: usize,
    slots: u32,
}

impl MappedEvents {
    /// Maps the events of the EVD with this handle.
    ///
    /// # Errors
    /// The errno of `mmap(2)`. An older kernel answers `ENODEV`. `InvalidData` if the events have
    /// another size.
    pub fn new(device: &Device, evd: u64) -> io::Result<Self> {
        let page = page_size()?;
        let events = Mapping::new(device, offset(evd, KDAPL_MAP_EVENTS), 2 * page, false)?;
        let index = Mapping::new(device, offset(evd, KDAPL_MAP_INDEX), page, true)?;
        let mut this = Self { events, index, page, slots: 0 };
        this.slots =
            this.ring_word(std::mem::offset_of!(kdapl_mapped_ring, slots)).load(Ordering::Acquire);
        let is_known = this.event_size() == size_of::<kdapl_event>();
        let room = page / size_of::<kdapl_event>();
        match is_known && this.slots.is_power_of_two() && this.slots as usize <= room {
            true => Ok(this),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Size of a slot. A kernel with longer events needs a newer library.
    fn event_size(&self) -> usize {
        let size = self.ring_word(std::mem::offset_of!(kdapl_mapped_ring, event_size));
        size.load(Ordering::Acquire) as usize
    }

    fn ring_word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: All fields of the struct are atomic integers of 32 bits.
        unsafe { self.events.at(offset) }
    }

    /// Index of the oldest event. Other threads take events, too.
    fn head(&self) -> &AtomicU32 {
        // SAFETY: The field is an atomic integer of 32 bits.
        unsafe { self.index.at(std::mem::offset_of!(kdapl_mapped_index, head)) }
    }

    /// Index after the newest event.
    fn tail(&self) -> u32 {
        self.ring_word(std::mem::offset_of!(kdapl_mapped_ring, tail)).load(Ordering::Acquire)
    }

    /// Checks whether events must be taken by calls. After [`pop`](Self::pop) it means that the
    /// kernel waits for the room, and is to be called: by `KDAPL_EVD_QUERY`.
    #[must_use]
    pub fn calls_only(&self) -> bool {
        let flags = self.ring_word(std::mem::offset_of!(kdapl_mapped_ring, flags));
        flags.load(Ordering::SeqCst) & KDAPL_MAPPED_CALLS_ONLY != 0
    }

    /// Checks whether the kernel claims that no events are queued but the mapped ones. If
    /// [`pop`](Self::pop) then finds none, the queue was empty.
    #[must_use]
    pub fn claims_empty(&self) -> bool {
        let empty = self.ring_word(std::mem::offset_of!(kdapl_mapped_ring, empty));
        empty.load(Ordering::Acquire) == KDAPL_MAPPED_EMPTY
    }

    /// Returns the number of events.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.tail().wrapping_sub(self.head().load(Ordering::Acquire)).min(self.slots)
    }

    /// Checks whether there is no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the index of the oldest event. For tests: any other thread that takes events at the
    /// same time may take one twice, or lose one.
    pub fn set_head(&self, head: u32) {
        self.head().store(head, Ordering::Release);
    }

    /// Takes the oldest event, without a system call.
    #[must_use]
    pub fn pop(&self) -> Option<kdapl_event> {
        if self.calls_only() {
            return None;
        }
        loop {
            let head = self.head().load(Ordering::Acquire);
            if self.tail() == head {
                return None;
            }
            let event = self.read(head);
            let next = head.wrapping_add(1);
            let taken =
                self.head().compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed);
            // Another thread has taken it, and the copy may be torn.
            if taken.is_ok() {
                // Before the caller looks at `calls_only`.
                fence(Ordering::SeqCst);
                return Some(event);
            }
        }
    }

    /// Copies the event with this index.
    fn read(&self, index: u32) -> kdapl_event {
        let slot = (index & (self.slots - 1)) as usize;
        let start = self.page + slot * size_of::<kdapl_event>();
        let words: [u64; EVENT_WORDS] = std::array::from_fn(|word| {
            // SAFETY: The kernel writes events as atomic integers of 64 bits.
            let cell: &AtomicU64 = unsafe { self.events.at(start + word * size_of::<u64>()) };
            cell.load(Ordering::Relaxed)
        });
        // SAFETY: Both have the same size, and every bit pattern is a valid event.
        unsafe { std::mem::transmute::<[u64; EVENT_WORDS], kdapl_event>(words) }
    }
}
