// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Mapped events of EVDs, and mapped posts of Endpoints. They lie in windows: memory that is always
//! mapped, so that every thread may access it at any time, also while another one maps or unmaps
//! pages there.
//!
//! ```text
//!   window:  | ring    | events | index | unused |    four pages; anonymous memory while unmapped
//!       or:  | promise | unused | tail  | DTOs   |
//! ```

use super::memory;
use crate::abi::Abi;
use crate::kinds::SLOTS;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const PAGE: u64 = 4096;
/// Address of the first window.
pub const WINDOWS: u64 = 0x3c00_0000;
/// Bytes of each window.
const WINDOW_BYTES: u64 = 4 * PAGE;
/// Bytes of all windows.
pub const WINDOWS_BYTES: u64 = WINDOW_BYTES * SLOTS as u64;
/// Offsets in a window.
const EVENTS_AT: u64 = PAGE;
const INDEX_AT: u64 = 2 * PAGE;
const POSTS_AT: u64 = INDEX_AT;
const DTOS_AT: u64 = 3 * PAGE;
/// What a program writes near the head or the tail is less by this than its argument.
const MIDDLE: u32 = 65;

fn constant(name: &str) -> u64 {
    Abi::get().constant(name)
}

/// Returns the offset of a field in a struct of the header.
fn offset(name: &str, path: &str) -> u64 {
    let layout = Abi::get().element(name);
    let field = layout.and_then(|layout| Some(&layout.fields[layout.field(path)?]));
    field.map_or(0, |field| field.offset as u64)
}

/// An area that a program wants to map. Zeros stand for the valid values.
pub struct Wish {
    /// Whether it is of an Endpoint, and not of an EVD.
    pub is_ep: bool,
    /// Handle of the object.
    pub object: u64,
    /// `KDAPL_MAP_EVENTS` or `KDAPL_MAP_INDEX`, or `KDAPL_MAP_PROMISE` or `KDAPL_MAP_POSTS`.
    pub area: u64,
    /// Number of pages.
    pub pages: u64,
    /// `PROT_...`.
    pub protection: i32,
    /// Whether it is to be private.
    pub private: bool,
}

impl Wish {
    /// Returns the offset in the file: `KDAPL_MAP_OFFSET` or `KDAPL_MAP_POSTS_OFFSET`.
    fn offset(&self) -> i64 {
        let low_bits = self.object & constant("KDAPL_MAP_EVD_MASK");
        let object = low_bits << constant("KDAPL_MAP_EVD_SHIFT");
        let kind = if self.is_ep { constant("KDAPL_MAP_IS_EP") } else { 0 };
        (kind | object | (self.area << constant("KDAPL_MAP_AREA_SHIFT"))) as i64
    }

    /// Returns the offset in the window of the area, its number of pages, and the rights with which
    /// it can be mapped.
    fn valid(&self) -> (u64, u64, i32) {
        let write = libc::PROT_READ | libc::PROT_WRITE;
        match self.is_ep {
            true if self.area == constant("KDAPL_MAP_POSTS") => (POSTS_AT, 2, write),
            true => (0, 1, libc::PROT_READ),
            false if self.area == constant("KDAPL_MAP_INDEX") => (INDEX_AT, 1, write),
            false => (0, 2, libc::PROT_READ),
        }
    }
}

/// A DTO to map. `kdapl_mapped_dto` describes the fields.
pub struct Mapped {
    /// `operation` and `flags`.
    pub kind: [u64; 2],
    /// Address, length and context of the local segment.
    pub local: [u64; 3],
    /// The same of the peer's.
    pub remote: [u64; 3],
}

/// A window for mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    start: u64,
}

impl Window {
    /// Returns the window with this number.
    #[must_use]
    pub fn number(number: u8) -> Self {
        Self { start: WINDOWS + WINDOW_BYTES * (u64::from(number) % SLOTS as u64) }
    }

    /// Returns the window at an address, if one begins there.
    #[must_use]
    pub fn at(address: u64) -> Option<Self> {
        let offset = address.checked_sub(WINDOWS)?;
        let begins = offset < WINDOWS_BYTES && offset % WINDOW_BYTES == 0;
        begins.then_some(Self { start: address })
    }

    /// Returns its address.
    #[must_use]
    pub fn address(self) -> u64 {
        self.start
    }

    /// Maps an area. It moves into the window only if it has the valid length and rights, so that
    /// no later access fails; other mappings end at once.
    pub fn map(self, file: RawFd, wish: &Wish) {
        let (place, valid_pages, valid_protection) = wish.valid();
        let pages = if wish.pages == 0 { valid_pages } else { wish.pages };
        let protection = if wish.protection == 0 { valid_protection } else { wish.protection };
        let fits = (pages, protection) == (valid_pages, valid_protection);
        let (length, null) = ((pages * PAGE) as usize, std::ptr::null_mut());
        let flags = if wish.private { libc::MAP_PRIVATE } else { libc::MAP_SHARED };
        // SAFETY: the kernel chooses the address, so the mapping affects no other memory.
        let found = unsafe { libc::mmap(null, length, protection, flags, file, wish.offset()) };
        if found != libc::MAP_FAILED {
            self.take_over(found, length, fits.then_some(self.start + place));
        }
    }

    /// Moves a mapping to an address in the window, or ends it.
    fn take_over(self, found: *mut libc::c_void, length: usize, place: Option<u64>) {
        let moves = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the caller has made the mapping. The window contains no Rust object but atomic
        // integers, and stays mapped.
        let moved = place.is_some_and(|place| unsafe {
            let place = place as *mut libc::c_void;
            libc::mremap(found, length, length, moves, place) != libc::MAP_FAILED
        });
        if !moved {
            // SAFETY: as above.
            unsafe { libc::munmap(found, length) };
        }
    }

    /// Unmaps the pages of the window from the page `first` on, `count` or all.
    pub fn unmap(self, first: u64, count: u64) {
        let first = first % 4;
        let count = if count == 0 { 4 } else { count }.min(4 - first);
        memory::map_at(self.start + first * PAGE, count * PAGE);
    }

    fn word(self, offset: u64) -> &'static AtomicU32 {
        // SAFETY: the window is always mapped, and contains atomic integers only.
        unsafe { &*((self.start + offset) as *const AtomicU32) }
    }

    fn long_word(self, offset: u64) -> &'static AtomicU64 {
        // SAFETY: as above.
        unsafe { &*((self.start + offset) as *const AtomicU64) }
    }

    fn head(self) -> &'static AtomicU32 {
        self.word(INDEX_AT + offset("kdapl_mapped_index", "head"))
    }

    fn tail(self) -> u32 {
        self.word(offset("kdapl_mapped_ring", "tail")).load(Ordering::Acquire)
    }

    /// Writes to the index `times` times: the value itself, a number near the tail or near the
    /// head, or numbers without a relation.
    pub fn scribble(self, from: u64, value: u64, times: u64) {
        for n in 0..times.clamp(1, 1000) {
            let near = (value.wrapping_add(n) as u32).wrapping_sub(MIDDLE);
            match from {
                0 => self.long_word(INDEX_AT).store(value.wrapping_add(n), Ordering::Release),
                1 => self.head().store(self.tail().wrapping_add(near), Ordering::Release),
                2 => drop(self.head().fetch_add(near, Ordering::SeqCst)),
                _ => {
                    let word = value.wrapping_add(n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    self.long_word(INDEX_AT + 8 * (word & 511)).store(word, Ordering::Release);
                }
            }
            std::thread::yield_now();
        }
    }

    /// Maps a DTO `count` times, as `docs/ioctl/dto.md` describes it, with or without a promise.
    pub fn map_dto(self, dto: &Mapped, count: u64) {
        let field = |path: &str| offset("kdapl_mapped_dto", path);
        let tail = self.word(POSTS_AT + offset("kdapl_mapped_posts", "tail"));
        let slots = self.word(offset("kdapl_mapped_promise", "slots")).load(Ordering::Acquire);
        let size = Abi::get().element("kdapl_mapped_dto").map_or(PAGE, |found| found.size as u64);
        for _ in 0..count.clamp(1, 64) {
            let index = tail.load(Ordering::Relaxed);
            let slot = u64::from(index & slots.wrapping_sub(1)) % (PAGE / size);
            let at = DTOS_AT + slot * size;
            let write = |path, value: u64| {
                self.word(at + field(path)).store(value as u32, Ordering::Relaxed);
            };
            write("operation", dto.kind[0]);
            write("flags", dto.kind[1]);
            self.long_word(at + field("cookie")).store(u64::from(index), Ordering::Relaxed);
            let segments = [("local.address", dto.local), ("remote.address", dto.remote)];
            for (path, [address, length, context]) in segments {
                let segment = at + field(path);
                self.long_word(segment).store(address, Ordering::Relaxed);
                self.word(segment + 8).store(length as u32, Ordering::Relaxed);
                self.word(segment + 12).store(context as u32, Ordering::Relaxed);
            }
            tail.store(index.wrapping_add(1), Ordering::SeqCst);
        }
    }

    /// Takes up to `count` events without a call, as `docs/ioctl/events.md` describes it. Returns
    /// the connection requests among them.
    pub fn take(self, count: u64) -> Vec<u64> {
        let mut requests = Vec::new();
        for _ in 0..count.clamp(1, 64) {
            let flags = self.word(offset("kdapl_mapped_ring", "flags"));
            let head = self.head().load(Ordering::Acquire);
            let calls_only =
                u64::from(flags.load(Ordering::SeqCst)) & constant("KDAPL_MAPPED_CALLS_ONLY");
            if calls_only != 0 || self.tail() == head {
                break;
            }
            let request = self.request(head);
            let next = head.wrapping_add(1);
            let taken =
                self.head().compare_exchange(head, next, Ordering::SeqCst, Ordering::Relaxed);
            requests.extend(request.filter(|_| taken.is_ok()));
        }
        requests
    }

    /// Reads an event. Returns the handle of its connection request, if it is one.
    fn request(self, index: u32) -> Option<u64> {
        let slots = self.word(offset("kdapl_mapped_ring", "slots")).load(Ordering::Acquire);
        let size = Abi::get().element("kdapl_event").map_or(PAGE, |layout| layout.size as u64);
        let slot = u64::from(index & slots.wrapping_sub(1)) % (PAGE / size);
        let record = EVENTS_AT + slot * size;
        let number = self.word(record + offset("kdapl_event", "number"));
        let object = self.long_word(record + offset("kdapl_event", "object"));
        let wanted = constant("KDAPL_EVENT_CONNECTION_REQUEST");
        let is_request = u64::from(number.load(Ordering::Relaxed)) == wanted;
        is_request.then(|| object.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::{Window, WINDOWS, WINDOW_BYTES};

    #[test]
    fn only_addresses_of_windows_are_accessed() {
        assert_eq!(Window::at(Window::number(7).address()), Some(Window::number(7)));
        assert_eq!(Window::at(WINDOWS + 8 * WINDOW_BYTES), None);
        assert_eq!(Window::at(WINDOWS + 8), None);
        assert_eq!(Window::at(0), None);
        assert_eq!(Window::at(u64::MAX), None);
    }
}
