// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of io_uring. Each lane has a ring of its own, from its first command on.

use super::memory::{self, AREA, AREA_BYTES};
use crate::program::Way;
use std::cell::RefCell;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Duration;

/// Number of submission entries. There are twice as many completions: they overflow at times.
const ENTRIES: u32 = 8;
/// Size of the mappings in bytes.
const PAGE: usize = 4096;
/// Offsets of the mappings.
const OFF_RINGS: i64 = 0;
const OFF_ENTRIES: i64 = 0x1000_0000;
/// Flags of a ring and of an enter.
const SETUP_DEFER: u32 = (1 << 12) | (1 << 13);
const GETEVENTS: u32 = 1;
/// Operations.
const PROVIDE_BUFFERS: u8 = 31;
const URING_CMD: u8 = 46;
/// Flags of an entry.
const IO_LINK: u8 = 1 << 2;
const ASYNC: u8 = 1 << 4;
const BUFFER_SELECT: u8 = 1 << 5;
const MULTISHOT: u32 = 2;

/// Words of 32 bits of `struct io_uring_params`.
type Params = [u32; 30];

/// A submission entry.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Entry {
    opcode: u8,
    flags: u8,
    priority: u16,
    fd: RawFd,
    /// `cmd_op`, or the group of buffers' first identifier.
    offset: u64,
    address: u64,
    length: u32,
    command_flags: u32,
    user_data: u64,
    group: u16,
    personality: u16,
    file: i32,
    operand: [u64; 2],
}

/// A completion.
#[repr(C)]
#[derive(Clone, Copy)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// Places of the indices in the mapped rings, in bytes.
struct Places {
    submitted: usize,
    array: usize,
    taken: usize,
    completed: usize,
    completions: usize,
    completions_mask: u32,
}

/// A ring.
struct Ring {
    fd: OwnedFd,
    rings: *mut u8,
    entries: *mut Entry,
    places: Places,
    next: u64,
}

thread_local! {
    static RING: RefCell<Option<Ring>> = const { RefCell::new(None) };
}

/// Submits a command. Returns its result, if it completes soon; `None` if it waits.
pub fn command(way: Way, fd: RawFd, request: u32, message: u64) -> Option<i32> {
    let flags = match way {
        Way::Ioctl | Way::Command => 0,
        Way::Stream => BUFFER_SELECT,
        Way::Worker => ASYNC,
        Way::Linked => IO_LINK,
    };
    let entry = Entry {
        opcode: URING_CMD,
        flags,
        fd,
        offset: request.into(),
        command_flags: if way == Way::Stream { MULTISHOT } else { 0 },
        operand: [message, 0],
        ..Entry::default()
    };
    with_ring(|ring| ring.submit(entry)).flatten()
}

/// Provides buffers in a range of the area.
pub fn provide(address: u64, length: u64) {
    let Some((start, length)) = memory::inside(address, length) else { return };
    // An event and a half: buffers that are no multiple of an event.
    let size = 96.min(length);
    let entry = Entry {
        opcode: PROVIDE_BUFFERS,
        fd: (length / size).min(16) as RawFd,
        address: start.clamp(AREA, AREA + AREA_BYTES - size),
        length: size as u32,
        ..Entry::default()
    };
    with_ring(|ring| ring.submit(entry));
}

/// Runs the commands of the lane whose events have come, and takes their completions.
pub fn reap() {
    RING.with_borrow_mut(|ring| {
        if let Some(ring) = ring {
            ring.enter(0);
            while ring.take().is_some() {}
        }
    });
}

/// Closes the ring of the lane, which cancels its commands.
pub fn close() {
    RING.with_borrow_mut(Option::take);
}

fn with_ring<T>(act: impl FnOnce(&mut Ring) -> T) -> Option<T> {
    RING.with_borrow_mut(|ring| {
        if ring.is_none() {
            *ring = Ring::new();
        }
        ring.as_mut().map(act)
    })
}

/// Maps a part of a ring.
fn map(fd: RawFd, offset: i64) -> Option<*mut libc::c_void> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let (null, flags) = (std::ptr::null_mut(), libc::MAP_SHARED | libc::MAP_POPULATE);
    // SAFETY: a mapping at an address of the kernel's choice touches nothing else.
    let at = unsafe { libc::mmap(null, PAGE, prot, flags, fd, offset) };
    (at != libc::MAP_FAILED).then_some(at)
}

impl Ring {
    /// Creates a ring. `None` if the kernel refuses it, or lays it out in another way.
    fn new() -> Option<Self> {
        let mut params: Params = [0; 30];
        params[2] = SETUP_DEFER;
        // SAFETY: the kernel reads and writes the parameters, which have their full size.
        let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, params.as_mut_ptr()) };
        if fd < 0 {
            return None;
        }
        // SAFETY: no other object owns the new descriptor.
        let fd = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
        let (rings, entries) = (map(fd.as_raw_fd(), OFF_RINGS)?, map(fd.as_raw_fd(), OFF_ENTRIES)?);
        // `sq_off` begins at word 10, `cq_off` at word 20.
        let at = |word: usize| params[word] as usize;
        let places = Places {
            submitted: at(11),
            array: at(16),
            taken: at(20),
            completed: at(21),
            completions: at(25),
            completions_mask: params[1].wrapping_sub(1),
        };
        let fits = places.completions + params[1] as usize * 16 <= PAGE
            && places.array + ENTRIES as usize * 4 <= PAGE;
        fits.then(|| Self { fd, rings: rings.cast(), entries: entries.cast(), places, next: 1 })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: `new` has checked the places, and the kernel accesses the words atomically.
        unsafe { &*self.rings.add(at).cast::<AtomicU32>() }
    }

    fn enter(&self, submit: u32) {
        let fd = self.fd.as_raw_fd();
        let null = std::ptr::null::<libc::c_void>();
        // SAFETY: the kernel accesses the ring, and the memory that its entries name: the area, or
        // messages.
        unsafe { libc::syscall(libc::SYS_io_uring_enter, fd, submit, 0, GETEVENTS, null, 0) };
    }

    /// Submits an entry. Returns its result, if it completes soon.
    fn submit(&mut self, mut entry: Entry) -> Option<i32> {
        entry.user_data = self.next;
        self.next += 1;
        let tail = self.word(self.places.submitted);
        let (index, slot) = (tail.load(Acquire), (tail.load(Acquire) % ENTRIES) as usize);
        // SAFETY: the slot is one of the mapped entries. The kernel has taken the last one there:
        // each is submitted at once.
        unsafe { self.entries.add(slot).write_volatile(entry) };
        self.word(self.places.array + slot * 4).store(slot as u32, Release);
        tail.store(index.wrapping_add(1), Release);
        for _ in 0..10 {
            self.enter(1);
            while let Some(completion) = self.take() {
                if completion.user_data == entry.user_data {
                    return Some(completion.result);
                }
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        None
    }

    /// Takes a completion.
    fn take(&self) -> Option<Completion> {
        let taken = self.word(self.places.taken);
        let head = taken.load(Acquire);
        if head == self.word(self.places.completed).load(Acquire) {
            return None;
        }
        let at = self.places.completions + (head & self.places.completions_mask) as usize * 16;
        // SAFETY: `new` has checked the places.
        let found = unsafe { self.rings.add(at).cast::<Completion>().read_volatile() };
        taken.store(head.wrapping_add(1), Release);
        Some(found)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mappings belong to this value.
        unsafe {
            libc::munmap(self.rings.cast(), PAGE);
            libc::munmap(self.entries.cast(), PAGE);
        }
    }
}
