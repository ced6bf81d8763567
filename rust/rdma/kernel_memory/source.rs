// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Descriptions of kernel memory, and the pieces that they name.

use core::ptr;
use kdapl_bindings as bindings;
use kernel::{
    ffi::c_void,
    page::PAGE_SIZE,
    prelude::*, //
};

/// Page size, as a length in bytes.
const PAGE: u64 = PAGE_SIZE as u64;

/// Description of kernel memory by its owner.
pub(crate) enum Source {
    /// Memory at a kernel address: in the linear mapping, as that of `kmalloc()`, in the vmalloc
    /// area, or static data of a module.
    Virtual(u64),
    /// Physical pages. `addresses` refers to the address of each page, in the order in which they
    /// form the memory. Each is a multiple of `size`.
    Pages { addresses: *const u64, size: u64 },
    /// A scatterlist, which may be chained.
    Scatterlist(*const bindings::scatterlist),
    /// An array of `bio_vec`.
    Bvecs(*const bindings::bio_vec),
}

/// Contiguous part of a memory.
///
/// # Invariants
///
/// `page` is NULL, or a page of the kernel.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// Page in which it begins.
    pub(super) page: *mut bindings::page,
    /// Offset of its first byte in the page.
    pub(super) offset: u64,
    /// Size in bytes.
    pub(super) size: u64,
}

impl Piece {
    /// Returns the access (`KDAPL_ACCESS_*`) to the pages.
    fn access(&self) -> u32 {
        if self.page.is_null() {
            return bindings::KDAPL_ACCESS_NONE;
        }
        // SAFETY: By the type invariant this is a page. The helper checks those that follow it.
        unsafe { bindings::kdapl_helper_access_to_pages(self.page, self.offset, self.size) }
    }

    /// Returns the kernel's address of the first byte.
    fn address(&self) -> u64 {
        // SAFETY: By the type invariant this is a page: `shape` has refused a piece whose page is
        // NULL.
        let page = unsafe { bindings::kdapl_helper_page_address(self.page) };
        (page.addr() as u64).wrapping_add(self.offset)
    }
}

/// Properties of a memory before it is mapped.
pub(super) struct Shape {
    /// Kernel's address of the first byte.
    pub(super) start: u64,
    /// Number of pieces.
    pub(super) pieces: usize,
    /// Size of the first piece and of the others, if these have one size.
    pub(super) regular: Option<(u64, u64)>,
    /// Whether all pages may be written.
    pub(super) is_writable: bool,
}

impl Source {
    /// Checks the first `length` bytes, and counts their pieces.
    ///
    /// # Errors
    ///
    /// Those of [`KernelMemory::map`](super::KernelMemory::map) for an invalid source.
    ///
    /// # Safety
    ///
    /// As for [`KernelMemory::map`](super::KernelMemory::map).
    pub(super) unsafe fn shape(&self, length: u64) -> Result<Shape> {
        if let Self::Virtual(start) = self {
            return shape_of_range(*start, length);
        }
        let mut first = None;
        let (mut pieces, mut access) = (0_usize, bindings::KDAPL_ACCESS_WRITE);
        // SAFETY: The caller guarantees that the source is valid.
        unsafe {
            self.for_each(length, |piece| {
                access = access.min(piece.access());
                first = first.or(Some(piece));
                pieces = pieces.saturating_add(1);
                match access {
                    bindings::KDAPL_ACCESS_NONE => Err(EFAULT),
                    _ => Ok(()),
                }
            })
        }?;
        let regular = match self {
            Self::Pages { size, .. } => Some((*size, *size)),
            Self::Virtual(_) | Self::Scatterlist(_) | Self::Bvecs(_) => None,
        };
        Ok(Shape {
            start: first.ok_or(EINVAL)?.address(),
            pieces,
            regular,
            is_writable: access == bindings::KDAPL_ACCESS_WRITE,
        })
    }

    /// Calls `take` with each piece of the first `length` bytes, the last one cut.
    ///
    /// # Errors
    ///
    /// `EFAULT` for a piece that is no memory, `EINVAL` for a shorter source, errors of `take`.
    ///
    /// # Safety
    ///
    /// As for [`KernelMemory::map`](super::KernelMemory::map).
    pub(super) unsafe fn for_each(
        &self,
        length: u64,
        mut take: impl FnMut(Piece) -> Result,
    ) -> Result {
        let mut left = length;
        let mut give = |mut piece: Piece| {
            piece.size = piece.size.min(left);
            if piece.size == 0 {
                return Err(EFAULT);
            }
            left = left.saturating_sub(piece.size);
            take(piece)?;
            Ok(left > 0)
        };
        // SAFETY: The caller guarantees that the source is valid.
        unsafe {
            match self {
                Self::Virtual(start) => each_of_range(*start, length, &mut give),
                Self::Pages { addresses, size } => each_of_pages(*addresses, *size, &mut give),
                Self::Scatterlist(list) => each_of_list(*list, &mut give),
                Self::Bvecs(bvecs) => each_of_bvecs(*bvecs, &mut give),
            }
        }
    }
}

/// Function that takes a piece. Returns whether more are needed.
type Give<'a> = &'a mut dyn FnMut(Piece) -> Result<bool>;

/// Returns the shape of `length` bytes from a kernel address on.
fn shape_of_range(start: u64, length: u64) -> Result<Shape> {
    let end = start.checked_add(length).ok_or(EFAULT)?;
    // SAFETY: The helper does not dereference the pointers.
    let access = unsafe { bindings::kdapl_helper_access_to_range(pointer(start), pointer(end)) };
    if access == bindings::KDAPL_ACCESS_NONE {
        return Err(EFAULT);
    }
    let (pieces, regular) = if is_scattered(start) {
        let pages = end.div_ceil(PAGE).saturating_sub(start / PAGE);
        let first = PAGE.saturating_sub(start % PAGE);
        (usize::try_from(pages)?, (first, PAGE))
    } else {
        (1, (length, length))
    };
    Ok(Shape {
        start,
        pieces,
        regular: Some(regular),
        is_writable: access == bindings::KDAPL_ACCESS_WRITE,
    })
}

/// Gives the memory at a kernel address: as a whole if it is in the linear mapping, otherwise page
/// by page.
fn each_of_range(start: u64, length: u64, give: Give<'_>) -> Result {
    let mut address = start;
    loop {
        let offset = address % PAGE;
        // INVARIANT: The helper returns a page or NULL.
        let piece = Piece {
            // SAFETY: The helper does not dereference the pointer.
            page: unsafe { bindings::kdapl_helper_page_at(pointer(address)) },
            offset,
            size: if is_scattered(start) {
                PAGE.saturating_sub(offset)
            } else {
                length
            },
        };
        if !give(piece)? {
            return Ok(());
        }
        address = address.checked_add(piece.size).ok_or(EFAULT)?;
    }
}

/// Gives physical pages of `size` bytes.
///
/// # Safety
///
/// `addresses` refers to an address for each page that `give` takes.
unsafe fn each_of_pages(addresses: *const u64, size: u64, give: Give<'_>) -> Result {
    let mut next = addresses;
    loop {
        // SAFETY: The caller guarantees that there is an address.
        let address = unsafe { next.read() };
        if address.checked_rem(size) != Some(0) {
            return Err(EFAULT);
        }
        // INVARIANT: As above.
        let piece = Piece {
            // SAFETY: The helper checks the address.
            page: unsafe { bindings::kdapl_helper_page_of(address) },
            offset: 0,
            size,
        };
        if !give(piece)? {
            return Ok(());
        }
        next = next.wrapping_add(1);
    }
}

/// Gives the entries of a scatterlist.
///
/// # Safety
///
/// `list` is a scatterlist.
unsafe fn each_of_list(list: *const bindings::scatterlist, give: Give<'_>) -> Result {
    let mut next = list;
    while !next.is_null() {
        let (mut page, mut offset, mut length) = (ptr::null_mut(), 0, 0);
        // SAFETY: This is an entry of the list. The others are local variables.
        next = unsafe {
            bindings::kdapl_helper_sg_entry(next, &raw mut page, &raw mut offset, &raw mut length)
        };
        // SAFETY: A scatterlist refers to pages.
        if !give(unsafe { piece_of(page, offset, length) })? {
            return Ok(());
        }
    }
    Err(EINVAL)
}

/// Gives the elements of an array.
///
/// # Safety
///
/// `bvecs` refers to an element for each piece that `give` takes.
unsafe fn each_of_bvecs(bvecs: *const bindings::bio_vec, give: Give<'_>) -> Result {
    let mut next = bvecs;
    loop {
        // SAFETY: The caller guarantees that there is an element.
        let bvec = unsafe { next.read() };
        // SAFETY: A `bio_vec` refers to a page.
        if !give(unsafe { piece_of(bvec.bv_page, bvec.bv_offset, bvec.bv_len) })? {
            return Ok(());
        }
        next = next.wrapping_add(1);
    }
}

/// Returns the piece of an entry.
///
/// # Safety
///
/// `page` is a page of the kernel, or NULL.
unsafe fn piece_of(page: *mut bindings::page, offset: u32, length: u32) -> Piece {
    // INVARIANT: The caller guarantees it.
    Piece {
        page,
        offset: offset.into(),
        size: length.into(),
    }
}

/// Returns whether pages that follow each other at a kernel address may be apart in physical
/// memory: in the vmalloc area, and in static data of modules.
fn is_scattered(start: u64) -> bool {
    // SAFETY: The helper does not dereference the pointer.
    unsafe { bindings::kdapl_helper_is_scattered(pointer(start)) }
}

/// Converts an address to a C pointer.
fn pointer(address: u64) -> *const c_void {
    // Addresses have 64 bits on every machine that has RDMA.
    ptr::without_provenance(address as usize)
}
