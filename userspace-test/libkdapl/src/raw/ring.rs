// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands of io_uring on `/dev/kdapl`, and memory that the kernel uses until they complete: see
//! `docs/ioctl/uring.md`.

use super::ring_buffers::RingBuffers;
use super::{Call, Device, Message};
use crate::sys::*;
use io_uring::{cqueue, opcode, squeue, types, IoUring};
use std::io;
use std::marker::PhantomData;
use std::mem;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Number of words of the longest message.
const MESSAGE_WORDS: usize = size_of::<kdapl_ep_query>() / size_of::<u64>();

/// Group of the provided buffers.
const GROUP: u16 = 0;

/// Words of a submission entry in units of 32 bits, and their content for a command.
const WORD_CMD_FLAGS: usize = 7;
const WORD_BUFFER_GROUP: usize = 10;
const MULTISHOT: u32 = 2;

/// Memory of a command. The kernel may access it until the command completes.
struct Slot<T> {
    message: [u64; MESSAGE_WORDS],
    owned: Option<T>,
    tag: u64,
    device: Option<Arc<Device>>,
}

impl<T> Slot<T> {
    fn new() -> Box<Self> {
        Box::new(Self { message: [0; MESSAGE_WORDS], owned: None, tag: 0, device: None })
    }
}

/// A command that has posted a completion.
pub struct Completed<T> {
    /// The value that the command was submitted with.
    pub tag: u64,
    /// 0 or a negated errno; number of bytes for a stream.
    pub result: i32,
    /// The last completion of the command has the memory that it was submitted with.
    pub owned: Option<T>,
    /// Events of a stream, and the device that they are of.
    pub events: Option<(Arc<Device>, Vec<kdapl_event>)>,
    /// More completions of the command follow.
    pub more: bool,
    message: [u64; MESSAGE_WORDS],
}

impl<T> Completed<T> {
    /// Returns the message of the last completion.
    ///
    /// # Panics
    /// If the type is longer than any message.
    #[must_use]
    pub fn message<M: Message>(&self) -> M {
        assert!(size_of::<M>() <= size_of_val(&self.message));
        // SAFETY: Any bytes are a valid message. The words are aligned for it, and as long.
        unsafe { self.message.as_ptr().cast::<M>().read() }
    }

    /// Returns DAT's return code.
    #[must_use]
    pub fn ret(&self) -> u32 {
        // SAFETY: As above: each message begins with the header.
        unsafe { self.message.as_ptr().cast::<kdapl_hdr>().read() }.ret
    }
}

/// A ring of commands. `T` is the memory to which their messages point.
///
/// Only the thread that has created the ring may use it. The drop cancels the commands that are
/// pending, and waits until all have completed.
pub struct Ring<T> {
    uring: IoUring,
    slots: Vec<Box<Slot<T>>>,
    free: Vec<usize>,
    buffers: Option<RingBuffers>,
    _here: PhantomData<*const ()>,
}

impl<T> Ring<T> {
    /// Creates a ring for `entries` submissions at once, and four times as many completions.
    ///
    /// # Errors
    /// Those of `io_uring_setup(2)`; `EPERM` if an administrator has disabled io_uring.
    pub fn new(entries: u32) -> io::Result<Self> {
        let uring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .setup_cqsize(entries.saturating_mul(4))
            .build(entries)?;
        let (slots, free) = (Vec::new(), Vec::new());
        Ok(Self { uring, slots, free, buffers: None, _here: PhantomData })
    }

    /// Provides `count` buffers for `events` events each, for streams. Replaces earlier ones only
    /// if no command is pending.
    ///
    /// # Errors
    /// `EINVAL` for a count that is no power of two, or if a command is pending.
    pub fn provide(&mut self, count: u16, events: usize) -> io::Result<()> {
        if self.pending() != 0 || events == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if self.buffers.take().is_some() {
            self.uring.submitter().unregister_buf_ring(GROUP)?;
        }
        let buffers = RingBuffers::new(count, events)?;
        let (address, entries) = buffers.ring();
        // SAFETY: The memory lives until the ring was closed, or the group was unregistered.
        unsafe {
            self.uring.submitter().register_buf_ring_with_flags(address, entries, GROUP, 0)?;
        }
        self.buffers = Some(buffers);
        Ok(())
    }

    /// Returns the number of commands that have not completed.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Queues a command. `build` makes its message from the memory that the command owns. A stream
    /// takes the provided buffers.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)`, if the queue is full and has to be submitted first.
    ///
    /// # Safety
    /// The addresses in the message refer to memory in `owned`, which does not move with it, or
    /// to memory that the kernel only reads. The message offers no memory to a device.
    pub unsafe fn push<M: Message>(
        &mut self,
        device: &Arc<Device>,
        call: Call<M>,
        stream: bool,
        tag: u64,
        owned: T,
        build: impl FnOnce(&mut T) -> M,
    ) -> io::Result<()> {
        if self.uring.submission().is_full() {
            self.enter(0)?;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::new());
            self.slots.len() - 1
        });
        let slot = &mut *self.slots[index];
        (slot.tag, slot.device) = (tag, Some(device.clone()));
        let mut message = build(slot.owned.insert(owned));
        let header = std::ptr::from_mut(&mut message).cast::<kdapl_hdr>();
        // SAFETY: A `Message` starts with its header, and is exclusively borrowed.
        unsafe { (*header).size = size_of::<M>() as u32 };
        assert!(size_of::<M>() <= size_of_val(&slot.message));
        let place = slot.message.as_mut_ptr();
        // SAFETY: The words are aligned for a message, and as long.
        unsafe { place.cast::<M>().write(message) };
        let entry = Self::entry(device, call.request(), place as u64, stream);
        // SAFETY: The slot keeps all memory of the command until its last completion.
        let pushed = unsafe { self.uring.submission().push(&entry.user_data(index as u64)) };
        pushed.map_err(|_| io::ErrorKind::StorageFull.into())
    }

    /// Makes a submission entry.
    fn entry(device: &Device, request: u32, message: u64, stream: bool) -> squeue::Entry {
        let mut operand = [0; size_of::<kdapl_uring_sqe>()];
        operand[..8].copy_from_slice(&message.to_ne_bytes());
        let fd = types::Fd(device.as_raw_fd());
        let entry = opcode::UringCmd16::new(fd, request).cmd(operand).build();
        if !stream {
            return entry;
        }
        let entry = entry.flags(squeue::Flags::BUFFER_SELECT);
        // SAFETY: An entry is a `repr(C)` struct of 64 bytes without padding.
        let mut words = unsafe { mem::transmute::<squeue::Entry, [u32; 16]>(entry) };
        words[WORD_CMD_FLAGS] = MULTISHOT;
        words[WORD_BUFFER_GROUP] = GROUP.into();
        // SAFETY: As above: any bytes are an entry.
        unsafe { mem::transmute::<[u32; 16], squeue::Entry>(words) }
    }

    /// Submits what is queued, and waits until at least `completions` can be taken.
    ///
    /// # Errors
    /// Those of `io_uring_enter(2)` but `EINTR`.
    pub fn enter(&mut self, completions: usize) -> io::Result<()> {
        loop {
            match self.uring.submit_and_wait(completions) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the events of a buffer that a message has named, and provides the buffer again.
    #[must_use]
    pub fn take_buffer(&mut self, id: u32, count: u32) -> Vec<kdapl_event> {
        let (Some(buffers), Ok(id)) = (&mut self.buffers, u16::try_from(id)) else {
            return Vec::new();
        };
        buffers.take(id, count as usize)
    }

    /// Takes a completion, if there is one.
    pub fn take(&mut self) -> Option<Completed<T>> {
        let entry = self.uring.completion().next()?;
        let index = entry.user_data() as usize;
        let slot = &mut *self.slots[index];
        let (mut events, mut owned) = (None, None);
        let buffer = cqueue::buffer_select(entry.flags());
        if let (Some(id), Some(buffers), Some(device)) = (buffer, &mut self.buffers, &slot.device) {
            let bytes = usize::try_from(entry.result()).unwrap_or(0);
            events = Some((device.clone(), buffers.take(id, bytes / size_of::<kdapl_event>())));
        }
        let message = slot.message;
        let more = cqueue::more(entry.flags());
        if !more {
            owned = slot.owned.take();
            slot.device = None;
            self.free.push(index);
        }
        Some(Completed { tag: slot.tag, result: entry.result(), owned, events, more, message })
    }

    /// Returns the device and the kernel's user data of a pending command with this tag.
    #[must_use]
    pub fn find(&self, tag: u64) -> Option<(Arc<Device>, u64)> {
        let mut slots = self.slots.iter().enumerate();
        let (index, slot) = slots.find(|(_, slot)| slot.tag == tag && slot.device.is_some())?;
        Some((slot.device.clone()?, index as u64))
    }

    /// Cancels the pending commands, and takes all completions.
    fn drain(&mut self) -> io::Result<()> {
        self.enter(0)?;
        for index in 0..self.slots.len() {
            let Some(device) = self.slots[index].device.clone() else { continue };
            let message = kdapl_uring_cancel {
                hdr: kdapl_hdr {
                    size: size_of::<kdapl_uring_cancel>() as u32,
                    ..Default::default()
                },
                user_data: index as u64,
                ..Default::default()
            };
            let mut message = Box::new(message);
            let place = std::ptr::from_mut(&mut *message) as u64;
            let entry = Self::entry(&device, super::call::URING_CANCEL.request(), place, false);
            // SAFETY: A cancel is executed by the next `enter`, which the message outlives.
            let pushed = unsafe { self.uring.submission().push(&entry.user_data(u64::MAX)) };
            pushed.map_err(|_| io::ErrorKind::StorageFull)?;
            self.enter(1)?;
            self.discard();
        }
        while self.pending() != 0 {
            self.enter(1)?;
            self.discard();
        }
        Ok(())
    }

    /// Takes all completions that are there.
    fn discard(&mut self) {
        loop {
            let Some(entry) = self.uring.completion().next() else { return };
            let index = entry.user_data() as usize;
            if entry.user_data() != u64::MAX && !cqueue::more(entry.flags()) {
                self.slots[index].device = None;
                self.free.push(index);
            }
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        if self.drain().is_err() {
            // The kernel may still write to the memory.
            mem::forget(mem::take(&mut self.slots));
            mem::forget(self.buffers.take());
        }
    }
}
