// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Memory that a device may read and write at any time.

use crate::error::{Error, Result};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{fence, Ordering};

/// Page-aligned, zeroed memory that can be registered.
///
/// A peer may change it at any time through RDMA. There is therefore never a Rust reference to its
/// bytes; they are copied in and out. Offsets past the end panic, like an index past the end of a
/// slice.
#[derive(Debug)]
pub struct Buffer {
    start: NonNull<u8>,
    length: usize,
    /// The memory is unmapped on drop.
    own: bool,
}

// SAFETY: The mapping belongs to this value, or the caller of `borrowed` keeps it valid. All access
// is by copying through raw pointers. Concurrent copies may see each other's bytes partly written,
// like any target of RDMA.
unsafe impl Send for Buffer {}
// SAFETY: As above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps `length` bytes (at least 1), rounded up to whole pages by the kernel.
    ///
    /// # Errors
    /// [`Error::Memory`] if the kernel cannot map the memory.
    pub fn new(length: usize) -> Result<Self> {
        // SAFETY: An anonymous mapping at an address that the kernel chooses affects no other
        // memory.
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

    /// Wraps memory with another owner, for example that of a C program to be registered. Dropping
    /// the value leaves the memory unchanged.
    ///
    /// # Safety
    /// During a copy in or out, the bytes must be mapped, and no Rust code may assume them
    /// unchanging. For a registration the memory need not be mapped: the kernel checks it.
    #[must_use]
    pub unsafe fn borrowed(start: NonNull<u8>, length: usize) -> Self {
        Self { start, length, own: false }
    }

    /// Returns the requested length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // It is never empty.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns the virtual address of the byte at `offset`, for a [`Segment`](crate::Segment).
    #[must_use]
    pub fn address(&self, offset: usize) -> u64 {
        self.start.as_ptr() as u64 + offset as u64
    }

    /// Copies `bytes` to `offset`.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let target = self.at(offset, bytes.len());
        // SAFETY: `at()` checked the range. `bytes` is a Rust slice, which cannot overlap the
        // mapping.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
        fence(Ordering::SeqCst);
    }

    /// Copies the bytes at `offset` to `bytes`.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) {
        fence(Ordering::SeqCst);
        let source = self.at(offset, bytes.len());
        // SAFETY: As in `write()`.
        unsafe { ptr::copy_nonoverlapping(source, bytes.as_mut_ptr(), bytes.len()) };
    }

    /// Copies `length` bytes at `from` of `source` to `offset`.
    pub fn copy_from(&self, offset: usize, source: &Self, from: usize, length: usize) {
        let (source, target) = (source.at(from, length), self.at(offset, length));
        // SAFETY: `at()` checked both ranges, which may overlap.
        unsafe { ptr::copy(source, target, length) };
        fence(Ordering::SeqCst);
    }

    /// Returns a copy of `length` bytes at `offset`.
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
        // SAFETY: `offset` does not exceed the length of the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.own {
            return;
        }
        // SAFETY: This value owns the mapping, and there is no reference into it. A device that
        // still has it registered keeps the pages themselves pinned.
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
        let other = Buffer::new(10).unwrap();
        other.copy_from(1, &buffer, 10, 7);
        assert_eq!(other.to_vec(0, 9), b"\0hello!!\0");
    }

    #[test]
    #[should_panic(expected = "5 bytes at 96")]
    fn past_the_end_panics() {
        Buffer::new(100).unwrap().fill(96, 5, 0);
    }
}
