// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Disk of a test, as a block device.

use anyhow::{bail, Context as _, Result};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Disk that is read and written without the page cache.
pub struct Disk {
    pub file: File,
}

/// `BLKDISCARD` of `linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

impl Disk {
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_DIRECT).open(path);
        Ok(Self { file: file.with_context(|| format!("cannot open {}", path.display()))? })
    }

    /// Writes bytes, by one request as far as the disk allows.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.try_write(offset, bytes).with_context(|| format!("writing at {offset}"))
    }

    pub fn try_write(&self, offset: usize, bytes: &[u8]) -> std::io::Result<()> {
        let mut aligned = Aligned::new(bytes.len());
        aligned.bytes().copy_from_slice(bytes);
        self.file.write_all_at(aligned.bytes(), offset as u64)
    }

    pub fn read(&self, offset: usize, length: usize) -> Result<Vec<u8>> {
        let read = self.try_read(offset, length);
        read.with_context(|| format!("reading {length} bytes at {offset}"))
    }

    pub fn try_read(&self, offset: usize, length: usize) -> std::io::Result<Vec<u8>> {
        let mut aligned = Aligned::new(length);
        self.file.read_exact_at(aligned.bytes(), offset as u64)?;
        Ok(aligned.bytes().to_vec())
    }

    /// Discards a range.
    pub fn discard(&self, offset: usize, length: usize) -> Result<()> {
        let range = [offset as u64, length as u64];
        // SAFETY: the kernel reads two numbers.
        let result = unsafe { libc::ioctl(self.file.as_raw_fd(), BLKDISCARD, range.as_ptr()) };
        if result != 0 {
            bail!("BLKDISCARD: {}", std::io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Bytes at a page boundary.
struct Aligned {
    memory: Vec<u8>,
    length: usize,
}

impl Aligned {
    fn new(length: usize) -> Self {
        Self { memory: vec![0; length + 4096], length }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.memory.as_ptr().align_offset(4096);
        &mut self.memory[start..start + self.length]
    }
}
