// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! DTOs that the kernel posts without a call for each: see "Mapped posts" in `docs/ioctl/dto.md`.

use super::mapping::{offset, page_size, ForkMark, Mapping};
use super::Device;
use crate::sys::*;
use std::io;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};

/// Number of words of a DTO.
const DTO_WORDS: usize = size_of::<kdapl_mapped_dto>() / size_of::<u64>();

/// The mapped posts of an endpoint. One thread at a time writes them.
#[derive(Debug)]
pub struct MappedPosts {
    /// `struct kdapl_mapped_promise`.
    promise: Mapping,
    /// `struct kdapl_mapped_posts`, and the DTOs in the second page.
    posts: Mapping,
    /// A forked child inherits the mappings, but may not use them.
    process: ForkMark,
    page: usize,
    slots: u32,
    /// Index after the newest DTO.
    tail: u32,
}

impl MappedPosts {
    /// Maps the posts of the endpoint with this handle.
    ///
    /// # Errors
    /// The errno of `mmap(2)`. An older kernel answers `ENXIO`. `InvalidData` if the DTOs have
    /// another size.
    pub fn new(device: &Device, ep: u64) -> io::Result<Self> {
        let page = page_size()?;
        let offset = |area| KDAPL_MAP_IS_EP | offset(ep, area);
        let promise = Mapping::new(device, offset(KDAPL_MAP_PROMISE), page, false)?;
        let posts = Mapping::new(device, offset(KDAPL_MAP_POSTS), 2 * page, true)?;
        let process = ForkMark::new()?;
        let mut this = Self { promise, posts, process, page, slots: 0, tail: 0 };
        this.slots = this.word(std::mem::offset_of!(kdapl_mapped_promise, slots));
        this.tail = this.shared_tail().load(Ordering::Relaxed);
        let size = this.word(std::mem::offset_of!(kdapl_mapped_promise, dto_size)) as usize;
        let room = page / size_of::<kdapl_mapped_dto>();
        let is_known = size == size_of::<kdapl_mapped_dto>();
        match is_known && this.slots.is_power_of_two() && this.slots as usize <= room {
            true => Ok(this),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn word(&self, offset: usize) -> u32 {
        // SAFETY: All fields of the struct are atomic integers of 32 bits.
        let word: &AtomicU32 = unsafe { self.promise.at(offset) };
        word.load(Ordering::Acquire)
    }

    fn shared_tail(&self) -> &AtomicU32 {
        // SAFETY: The field is an atomic integer of 32 bits.
        unsafe { self.posts.at(std::mem::offset_of!(kdapl_mapped_posts, tail)) }
    }

    /// Returns the number of the kernel's promise. `None` if there is none, and in a forked child.
    #[must_use]
    pub fn promise(&self) -> Option<u32> {
        if !self.process.is_own() {
            return None;
        }
        let promise = self.word(std::mem::offset_of!(kdapl_mapped_promise, promise));
        (promise != 0).then_some(promise)
    }

    /// Returns the number of DTOs that may be mapped under the promise that was just read.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.word(std::mem::offset_of!(kdapl_mapped_promise, room))
    }

    /// Appends a DTO. Returns whether `promise` still holds. Otherwise the kernel may have missed
    /// the DTO, and a call with `KDAPL_FLAG_PROMISE` posts it.
    #[must_use]
    pub fn push(&mut self, dto: &kdapl_mapped_dto, promise: u32) -> bool {
        let start = self.page + (self.tail & (self.slots - 1)) as usize * size_of_val(dto);
        // SAFETY: Both have the same size, and every bit pattern is a valid integer.
        let words = unsafe { std::mem::transmute::<kdapl_mapped_dto, [u64; DTO_WORDS]>(*dto) };
        for (number, word) in words.into_iter().enumerate() {
            // SAFETY: The kernel reads DTOs as atomic integers of 64 bits.
            let cell: &AtomicU64 = unsafe { self.posts.at(start + number * size_of::<u64>()) };
            cell.store(word, Ordering::Relaxed);
        }
        self.set_tail(self.tail.wrapping_add(1));
        // Before the promise is read again.
        fence(Ordering::SeqCst);
        self.promise() == Some(promise)
    }

    /// Writes the index after the newest DTO. For tests: another value than the next one loses
    /// DTOs, or posts old ones again.
    pub fn set_tail(&mut self, tail: u32) {
        self.tail = tail;
        self.shared_tail().store(tail, Ordering::Release);
    }
}
