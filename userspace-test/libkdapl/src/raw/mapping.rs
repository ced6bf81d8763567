// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory that the kernel shares.

use super::Device;
use crate::sys::*;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns the size of a page in bytes.
pub(super) fn page_size() -> io::Result<usize> {
    // SAFETY: The call has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(page).map_err(io::Error::other)
}

/// Returns the offset of an area of the object with this handle: `KDAPL_MAP_OFFSET`.
pub(super) fn offset(handle: u64, area: u32) -> u64 {
    let object = (handle & KDAPL_MAP_EVD_MASK) << KDAPL_MAP_EVD_SHIFT;
    object | (u64::from(area) << KDAPL_MAP_AREA_SHIFT)
}

/// A mapping of a part of `/dev/kdapl`.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: The mapping belongs to this value, and all accesses are atomic.
unsafe impl Send for Mapping {}
// SAFETY: As above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `length` bytes at an offset, to read and perhaps to write.
    pub(super) fn new(
        device: &Device,
        offset: u64,
        length: usize,
        write: bool,
    ) -> io::Result<Self> {
        let protection = if write { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: A mapping at an address that the kernel chooses affects no other memory.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                protection,
                libc::MAP_SHARED,
                device.as_raw_fd(),
                offset,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// Returns the variable at a byte offset, which is a multiple of its size.
    ///
    /// # Safety
    /// `T` is an atomic integer. The other side changes it by atomic accesses only.
    pub(super) unsafe fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.length && offset % size_of::<T>() == 0);
        // SAFETY: It lies within the mapping, which lives as long as `self`, and is aligned. The
        // caller guarantees the rest.
        unsafe { self.start.add(offset).cast::<T>().as_ref() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: This value owns the mapping, and no reference into it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Memory by which a process recognises that it is not a forked child.
#[derive(Debug)]
pub(super) struct ForkMark(Mapping);

impl ForkMark {
    /// Marks this process.
    pub(super) fn new() -> io::Result<Self> {
        let length = page_size()?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: A mapping at an address that the kernel chooses affects no other memory.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let this = Self(Mapping { start, length });
        // SAFETY: The mapping belongs to `this`.
        if unsafe { libc::madvise(start.as_ptr().cast(), length, libc::MADV_WIPEONFORK) } != 0 {
            return Err(io::Error::last_os_error());
        }
        this.mark().store(1, Ordering::Relaxed);
        Ok(this)
    }

    fn mark(&self) -> &AtomicU32 {
        // SAFETY: Only this type accesses the mapping.
        unsafe { self.0.at(0) }
    }

    /// Checks whether this is the process that was marked.
    pub(super) fn is_own(&self) -> bool {
        self.mark().load(Ordering::Relaxed) != 0
    }
}
