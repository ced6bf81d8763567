// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory that a device may read and write at any moment.

use crate::error::{Error, Result};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, Ordering};

/// Page-aligned, zeroed memory of one's own, to be registered.
///
/// A peer may change it at any time through RDMA, so there is never a Rust
/// reference to its bytes: they are copied in and out. Offsets past the end
/// panic, as an index past the end of a slice does.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    /// Whether it is unmapped when dropped.
    own: bool,
}

// SAFETY: the mapping belongs to this value alone, or to who has promised `borrowed`, and all access is by copying through raw
// pointers; concurrent copies may see each other's bytes half done, as with any RDMA target.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps `length` bytes (at least 1), rounded up to whole pages by the kernel.
    ///
    /// # Errors
    /// [`Error::Memory`] if the memory is not to be had.
    pub fn new(length: usize) -> Result<Self> {
        // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing else.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length.max(1),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(Error::Memory { length, source: io::Error::last_os_error() });
        }
        let start = NonNull::new(start.cast())
            .ok_or_else(|| Error::Memory { length, source: io::ErrorKind::OutOfMemory.into() })?;
        Ok(Self { start, length: length.max(1), own: true })
    }

    /// Memory that belongs to somebody else: a C program that wants its own registered. It stays as it
    /// is when this is dropped.
    ///
    /// # Safety
    /// Whoever copies in or out through the result sees to it that the bytes are mapped then, and that
    /// nothing in Rust believes them unchanging. To have it registered it need not even be mapped: the
    /// kernel looks.
    #[must_use]
    pub unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Self {
        Self { start, length, own: false }
    }

    /// Length in bytes, as asked for.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Virtual address of the byte at `offset`, for a [`Segment`](crate::Segment).
    #[must_use]
    pub fn address(&self, offset: usize) -> u64 {
        self.start.as_ptr() as u64 + offset as u64
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.at(offset, bytes.len());
        // SAFETY: `at()` checked the range; the source is a slice and cannot overlap our mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        fence(Ordering::SeqCst);
    }

    /// Copies out what is at `offset`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        fence(Ordering::SeqCst);
        let source = self.at(offset, bytes.len());
        // SAFETY: as in `write()`.
        unsafe { ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// [`read`](Self::read) into a new vector.
    #[must_use]
    pub fn to_vec(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.read(offset, &mut bytes);
        bytes
    }

    /// Sets `length` bytes at `offset` to `value`.
    pub fn fill(&self, offset: usize, length: usize, value: u8) {
        let target = self.at(offset, length);
        // SAFETY: `at()` checked the range.
        unsafe { ptr::write_bytes(target, value, length) };
        fence(Ordering::SeqCst);
    }

    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.length);
        assert!(inside, "{length} bytes at {offset} of a buffer of {} bytes", self.length);
        // SAFETY: `offset` is not past the end of the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        // SAFETY: the mapping is ours and nobody holds a reference into it. A device that still
        // has it registered keeps the pages themselves pinned.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::Buffer;

    #[test]
    fn bytes_go_in_and_come_out() {
        let buffer = Buffer::new(100).unwrap();
        buffer.write(10, b"hello");
        buffer.fill(15, 2, b'!');
        assert_eq!(buffer.to_vec(9, 9), b"\0hello!!\0");
        assert_eq!(buffer.address(0) % 4096, 0);
    }

    #[test]
    #[should_panic(expected = "5 bytes at 96")]
    fn past_the_end_panics() {
        Buffer::new(100).unwrap().fill(96, 5, 0);
    }
}
