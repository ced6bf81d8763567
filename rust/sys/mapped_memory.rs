// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pages that the kernel shares with processes through `mmap` of `/dev/kdapl`.

use super::user::{
    FixedCharge,
    User, //
};
use crate::model::{
    allowance::Item,
    atomic::{
        AtomicU32,
        AtomicU64, //
    },
    footprint::allocation,
    mapped_posts::{
        PostMemory,
        PostWords,
        DTO_WORDS, //
    },
    mapped_ring::{
        self,
        SharedMemory,
        SharedWords, //
    },
};
use core::{
    ptr::NonNull,
    slice, //
};
use kdapl_bindings as bindings;
use kernel::{
    alloc::flags::__GFP_ZERO,
    mm::virt::{
        flags::SHARED,
        VmaNew, //
    },
    page::{
        Page,
        PAGE_SIZE, //
    },
    prelude::*,
    sync::Arc,
    types::ForeignOwnable, //
};

/// A part of the memory that is mapped for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Area {
    /// `struct kdapl_mapped_ring` in the first page, and the events in the second. The process
    /// reads them.
    Events,
    /// `struct kdapl_mapped_index`. The process writes it.
    Index,
    /// `struct kdapl_mapped_promise`. The process reads it.
    Promise,
    /// `struct kdapl_mapped_posts` in the first page, and the DTOs in the second. The process
    /// writes them.
    Posts,
}

/// Returns the time in nanoseconds that a mapped DTO waits for a call; `None` if DTOs are posted by
/// calls only.
pub(crate) fn post_delay_ns() -> Option<i64> {
    // SAFETY: The helper only reads a parameter of the module.
    let delay = unsafe { bindings::kdapl_helper_mapped_post_delay_us() };
    (delay != 0).then(|| i64::from(delay).saturating_mul(1_000))
}

/// A zeroed page, and its address in the kernel's mapping of all memory.
///
/// # Invariants
///
/// `start` is the first of `PAGE_SIZE` bytes, which are mapped as long as the page is owned.
struct SharedPage {
    page: Page,
    start: NonNull<u8>,
}

impl SharedPage {
    /// Allocates a page. The caller's memory cgroup is charged.
    fn new() -> Result<Self> {
        let page = Page::alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO)?;
        // SAFETY: The page is owned, and was allocated without `__GFP_HIGHMEM`.
        let start = unsafe { bindings::kdapl_helper_page_address(page.as_ptr().cast()) };
        // INVARIANT: Memory without `__GFP_HIGHMEM` is mapped as long as it is allocated.
        Ok(Self {
            start: NonNull::new(start.cast_mut().cast()).ok_or(ENOMEM)?,
            page,
        })
    }

    /// Returns the word with this number of 32 bits.
    fn word(&self, number: usize) -> &AtomicU32 {
        let number = number % (PAGE_SIZE / size_of::<AtomicU32>());
        // SAFETY: By the type invariant the word is mapped, and it is aligned, as the page is.
        // `AtomicU32` has the layout of `u32`. The kernel and processes access it as an atomic
        // variable only; a process that does not can only disturb the value.
        unsafe { self.start.cast::<AtomicU32>().add(number).as_ref() }
    }

    /// Returns all words of 64 bits.
    fn long_words(&self) -> &[AtomicU64] {
        let (start, count) = (self.start.cast(), PAGE_SIZE / size_of::<AtomicU64>());
        // SAFETY: As for `word`.
        unsafe { slice::from_raw_parts(start.as_ptr(), count) }
    }
}

/// Pages of a ring, and the user's charge for them. Each mapping has a reference.
struct MappedPages {
    /// Words that the kernel writes, and the process reads.
    kernel: SharedPage,
    /// Words that the process writes.
    process: SharedPage,
    /// Events or DTOs.
    records: SharedPage,
    _charge: FixedCharge,
}

// SAFETY: The pages belong to no thread, and all accesses are atomic.
unsafe impl Send for MappedPages {}
// SAFETY: As above.
unsafe impl Sync for MappedPages {}

/// Memory of a ring of [events](crate::model::mapped_ring) or
/// [DTOs](crate::model::mapped_posts). The kernel does not use it after the drop. But a process
/// that has mapped it keeps the pages, and its user the charge for them, until the last mapping
/// ends.
#[derive(Clone)]
pub(crate) struct MappedMemory(Arc<MappedPages>);

impl MappedMemory {
    /// Allocates the pages. The caller's memory cgroup and `user` are charged.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, also above the user's limit.
    pub(crate) fn new(user: &User) -> Result<Self> {
        let charge = user.hold(Item::ModuleMemory, allocation(PAGE_SIZE).saturating_mul(3));
        let pages = MappedPages {
            _charge: charge.map_err(|_| ENOMEM)?,
            kernel: SharedPage::new()?,
            process: SharedPage::new()?,
            records: SharedPage::new()?,
        };
        Ok(Self(Arc::new(pages, GFP_KERNEL_ACCOUNT)?))
    }

    /// Writes the number and the size of the slots for events, for the process.
    pub(crate) fn publish_event_slots(&self, slots: u32) {
        let event_size = size_of::<bindings::kdapl_event>();
        let words = &self.0.kernel;
        words.word(EVENT_SIZE).store_release(event_size as u32);
        words.word(SLOTS).store_release(slots);
    }

    /// Writes the number and the size of the slots for DTOs, for the process.
    pub(crate) fn publish_dto_slots(&self, slots: u32) {
        let dto_size = size_of::<bindings::kdapl_mapped_dto>();
        let words = &self.0.kernel;
        words.word(DTO_SIZE).store_release(dto_size as u32);
        words.word(DTO_SLOTS).store_release(slots);
    }

    /// Maps an area into a process.
    ///
    /// # Errors
    ///
    /// `EINVAL` for another length than that of the area, or a private mapping; `EACCES` to write
    /// an area that the process only reads, or to execute; `ENOMEM`.
    pub(crate) fn map(&self, area: Area, vma: &VmaNew) -> Result {
        let (pages, count) = match area {
            Area::Events => ([&self.0.kernel, &self.0.records], 2),
            Area::Posts => ([&self.0.process, &self.0.records], 2),
            Area::Promise => ([&self.0.kernel, &self.0.kernel], 1),
            Area::Index => ([&self.0.process, &self.0.process], 1),
        };
        if vma.flags() & SHARED == 0 || vma.end().wrapping_sub(vma.start()) != count * PAGE_SIZE {
            return Err(EINVAL);
        }
        forbid(area, vma)?;
        vma.set_dontexpand();
        vma.set_dontdump();
        let vma = vma.set_mixedmap();
        let mut address = vma.start();
        for shared in pages.iter().take(count) {
            vma.vm_insert_page(address, &shared.page)?;
            address = address.wrapping_add(PAGE_SIZE);
        }
        // Nothing may fail from here on: the kernel does not call `close` for an area whose mmap
        // failed, so the reference would leak.
        // SAFETY: The area is new and belongs to this call, so nothing else accesses its fields.
        unsafe {
            let raw: *mut bindings::vm_area_struct = vma.as_ptr().cast();
            (*raw).vm_private_data = self.0.clone().into_foreign();
            (*raw).vm_ops = &raw const MAPPING.0;
        }
        Ok(())
    }
}

/// Operations of a mapping.
struct MappingOps(bindings::vm_operations_struct);

// SAFETY: The table is never written.
unsafe impl Sync for MappingOps {}

static MAPPING: MappingOps = MappingOps(bindings::vm_operations_struct {
    open: Some(open),
    close: Some(close),
    ..pin_init::zeroed()
});

/// `vm_operations_struct.open`: a fork, a split or a move has copied the mapping.
///
/// # Safety
///
/// Called by the memory management only, with a copy of a mapping that [`MappedMemory::map`] made.
unsafe extern "C" fn open(vma: *mut bindings::vm_area_struct) {
    // SAFETY: By the safety requirement the pointer is that of `map`. The mapping that was copied
    // has a reference, which is not dropped here.
    let pages = unsafe { <Arc<MappedPages> as ForeignOwnable>::borrow((*vma).vm_private_data) };
    // The copy has the same pointer, and a reference of its own from now on.
    let _ = Arc::from(pages).into_foreign();
}

/// `vm_operations_struct.close`.
///
/// # Safety
///
/// Called by the memory management only, once for each mapping that [`MappedMemory::map`] made, and
/// for each copy.
unsafe extern "C" fn close(vma: *mut bindings::vm_area_struct) {
    // SAFETY: By the safety requirement the pointer is that of `map`, and the mapping has a
    // reference.
    drop(unsafe { <Arc<MappedPages> as ForeignOwnable>::from_foreign((*vma).vm_private_data) });
}

/// Refuses rights that an area does not give, now and for a later `mprotect`.
fn forbid(area: Area, vma: &VmaNew) -> Result {
    vma.try_clear_mayexec().map_err(|_| EACCES)?;
    match area {
        Area::Events | Area::Promise => vma.try_clear_maywrite().map_err(|_| EACCES),
        Area::Index | Area::Posts => Ok(()),
    }
}

/// Returns the number of the word of 32 bits that a field is.
macro_rules! word {
    ($message:ident, $field:ident) => {
        core::mem::offset_of!(bindings::$message, $field) / size_of::<u32>()
    };
}

const TAIL: usize = word!(kdapl_mapped_ring, tail);
const FLAGS: usize = word!(kdapl_mapped_ring, flags);
const SLOTS: usize = word!(kdapl_mapped_ring, slots);
const EMPTY: usize = word!(kdapl_mapped_ring, empty);
const EVENT_SIZE: usize = word!(kdapl_mapped_ring, event_size);
const HEAD: usize = word!(kdapl_mapped_index, head);

const PROMISE: usize = word!(kdapl_mapped_promise, promise);
const DTO_SLOTS: usize = word!(kdapl_mapped_promise, slots);
const DTO_SIZE: usize = word!(kdapl_mapped_promise, dto_size);
const ROOM: usize = word!(kdapl_mapped_promise, room);
const POSTS_TAIL: usize = word!(kdapl_mapped_posts, tail);

// The ring writes these values of `empty` and `flags`.
const _: () = assert!(mapped_ring::EMPTY == bindings::KDAPL_MAPPED_EMPTY);
const _: () = assert!(true as u32 == bindings::KDAPL_MAPPED_CALLS_ONLY);
const _: () = assert!(size_of::<bindings::kdapl_mapped_dto>() == DTO_WORDS * size_of::<u64>());

impl SharedMemory for MappedMemory {
    fn words(&self) -> SharedWords<'_> {
        SharedWords {
            head: self.0.process.word(HEAD),
            tail: self.0.kernel.word(TAIL),
            calls_only: self.0.kernel.word(FLAGS),
            empty: self.0.kernel.word(EMPTY),
            records: self.0.records.long_words(),
        }
    }
}

impl PostMemory for MappedMemory {
    fn words(&self) -> PostWords<'_> {
        PostWords {
            tail: self.0.process.word(POSTS_TAIL),
            promise: self.0.kernel.word(PROMISE),
            room: self.0.kernel.word(ROOM),
            dtos: self.0.records.long_words(),
        }
    }
}
