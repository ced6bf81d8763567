// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Malformed messages, which the library does not send.

use anyhow::Result;
use libkdapl::raw::{Call, Device, Message};
use libkdapl::sys::{
    kdapl_hdr, KDAPL_MAP_AREA_SHIFT, KDAPL_MAP_EVD_MASK, KDAPL_MAP_EVD_SHIFT, KDAPL_MAP_IS_EP,
};
use libkdapl::{Buffer, Error};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, ptr};

/// An address that is never mapped.
pub const BAD_ADDRESS: u64 = 0x10;

/// A message as bytes.
pub struct Bytes(Vec<u64>, usize);

impl Bytes {
    pub fn of<M: Message>(message: &M) -> Self {
        let mut bytes = Self::zeroed(size_of::<M>());
        // SAFETY: a `Message` is plain integers without padding (the header has none, and bindgen's
        // layout tests would fail), so all its bytes are initialised.
        let raw = unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(message).cast::<u8>(), size_of::<M>())
        };
        bytes.as_mut().copy_from_slice(raw);
        bytes.set_u32(0, size_of::<M>() as u32);
        bytes
    }

    /// Returns `length` zero bytes, aligned as a message.
    pub fn zeroed(length: usize) -> Self {
        Self(vec![0; length.div_ceil(8)], length)
    }

    pub fn resize(&mut self, length: usize) {
        let mut new = Self::zeroed(length);
        let common = length.min(self.1);
        new.as_mut()[..common].copy_from_slice(&self.as_ref()[..common]);
        *self = new;
    }

    pub fn set_u32(&mut self, at: usize, value: u32) {
        self.as_mut()[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    pub fn set_u64(&mut self, at: usize, value: u64) {
        self.as_mut()[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    }

    pub fn as_ref(&self) -> &[u8] {
        // SAFETY: the words are initialised, and the length is within them.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.1) }
    }

    pub fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_ref()`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
}

/// Returns the ioctl number of call `number` with a message of `size` bytes.
pub fn request(number: u32, size: usize) -> u32 {
    (3 << 30) | ((size as u32) << 16) | (0xda << 8) | number
}

/// Returns the number within the interface, without direction and size.
pub fn number<M: Message>(call: Call<M>) -> u32 {
    call.request() & 0xff
}

/// Sends `bytes` unchanged under `request`. Returns `hdr.ret`, or the errno as error.
pub fn send(device: &Device, request: u32, bytes: &mut Bytes) -> Result<u32, i32> {
    // SAFETY: the kernel writes at most as many bytes as `request` says. The callers limit that to
    // the length of `bytes`.
    let outcome = unsafe { device.ioctl(request, bytes.as_mut().as_mut_ptr().cast()) };
    outcome.map_err(|error| error.raw_os_error().unwrap_or(0))?;
    let at = std::mem::offset_of!(kdapl_hdr, ret);
    let ret = bytes.as_ref().get(at..at + 4).and_then(|ret| ret.try_into().ok());
    Ok(ret.map_or(0, u32::from_ne_bytes))
}

/// Sends `bytes` under the request of `call` with the size of `bytes`.
pub fn send_sized<M: Message>(
    device: &Device,
    call: Call<M>,
    bytes: &mut Bytes,
) -> Result<u32, i32> {
    let request = request(number(call), bytes.as_ref().len());
    send(device, request, bytes)
}

/// Sends a well-formed message with any contents.
pub fn call<M: Message>(device: &Device, call: Call<M>, message: &mut M) -> Result<(), Error> {
    // SAFETY: the tests register only memory that they own and read by volatile copies, and
    // addresses that are not mapped at all.
    unsafe { device.call(call, message) }
}

/// Calls the ioctl with an argument at an address that is not mapped.
pub fn send_from_nowhere(device: &Device, request: u32, address: u64) -> Result<i32, i32> {
    // SAFETY: no memory of this process is at that address, so the kernel changes none.
    unsafe { device.ioctl(request, address as *mut _) }
        .map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// A page followed by an unmapped page.
pub struct Page {
    pub buffer: Buffer,
}

impl Page {
    pub fn before_nothing() -> Result<Self> {
        let buffer = Buffer::new(8192)?;
        // SAFETY: this buffer owns the second page, and nothing uses it.
        let outcome =
            unsafe { libc::mprotect(buffer.address(4096) as *mut _, 4096, libc::PROT_NONE) };
        anyhow::ensure!(outcome == 0, "{}", std::io::Error::last_os_error());
        Ok(Self { buffer })
    }

    /// Returns the address after the page.
    pub fn end(&self) -> u64 {
        self.buffer.address(4096)
    }
}

/// Length of the common header.
pub const HEADER: usize = size_of::<kdapl_hdr>();

/// A mapping of a part of `/dev/kdapl`. Removed when dropped.
#[derive(Debug)]
pub struct Mapped {
    start: *mut libc::c_void,
    length: usize,
}

impl Mapped {
    /// Unmaps all but the first `length` bytes.
    pub fn truncate(&mut self, length: usize) -> io::Result<()> {
        let rest = self.length.saturating_sub(length);
        // SAFETY: the mapping belongs to this value, and nothing refers to it.
        if unsafe { libc::munmap(self.start.byte_add(length), rest) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.length = length;
        Ok(())
    }

    /// Moves the mapping to another address.
    pub fn relocate(&mut self) -> io::Result<()> {
        let (start, length) = (self.start, self.length);
        let (none, private) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let fixed = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: the kernel chooses an address that is not in use. The mapping belongs to this
        // value, and nothing refers to it.
        let moved = unsafe {
            let free = libc::mmap(ptr::null_mut(), length, none, private, -1, 0);
            if free == libc::MAP_FAILED {
                free
            } else {
                libc::mremap(start, length, length, fixed, free)
            }
        };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.start = moved;
        Ok(())
    }
}

impl Mapped {
    /// Writes the word with this number, or with its remainder by the number of words, of a mapping
    /// that may be written.
    pub fn write(&self, number: usize, word: u64) {
        let place = number % (self.length / size_of::<AtomicU64>());
        // SAFETY: it lies within the mapping, which lives as long as `self`, and is aligned. The
        // kernel accesses it as atomic integers.
        let cell = unsafe { &*self.start.cast::<AtomicU64>().add(place) };
        cell.store(word, Ordering::Relaxed);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value, and nothing refers to it.
        unsafe { libc::munmap(self.start, self.length) };
    }
}

/// Returns the offset of an area of an EVD in the file.
pub fn offset_of(evd: u64, area: u32) -> u64 {
    ((evd & KDAPL_MAP_EVD_MASK) << KDAPL_MAP_EVD_SHIFT) | (u64::from(area) << KDAPL_MAP_AREA_SHIFT)
}

/// Returns the offset of an area of an Endpoint's mapped posts.
pub fn posts_offset_of(ep: u64, area: u32) -> u64 {
    KDAPL_MAP_IS_EP | offset_of(ep, area)
}

/// Calls `mmap(2)`.
pub fn map(
    device: &Device,
    offset: u64,
    length: usize,
    protection: i32,
    flags: i32,
) -> io::Result<Mapped> {
    let (file, offset) = (device.as_raw_fd(), offset as libc::off_t);
    // SAFETY: a mapping at an address that the kernel chooses affects no other memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, file, offset) };
    match start {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        start => Ok(Mapped { start, length }),
    }
}

/// Calls `mprotect(2)`.
pub fn protect(mapped: &Mapped, protection: i32) -> io::Result<()> {
    // SAFETY: nothing refers to the mapping.
    match unsafe { libc::mprotect(mapped.start, mapped.length, protection) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
