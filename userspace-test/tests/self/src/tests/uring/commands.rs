// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Commands that the library does not send.

use anyhow::{bail, ensure, Context as _, Result};
use io_uring::{cqueue, opcode, squeue, types, IoUring};
use libkdapl::sys::{
    kdapl_evd_wait, kdapl_event, kdapl_hdr, kdapl_uring_cancel, kdapl_uring_stream,
    KDAPL_TIMEOUT_INFINITE,
};
use libkdapl::{DatError, Error, Evd};
use std::os::fd::{AsRawFd, RawFd};

/// Value for `uring_cmd_flags`.
pub const MULTISHOT: u32 = 2;

/// A message in memory of its own.
pub struct HeapMessage<M>(Box<M>);

impl<M> HeapMessage<M> {
    pub fn new(message: M) -> Self {
        Self(Box::new(message))
    }

    pub fn address(&mut self) -> u64 {
        std::ptr::from_mut(&mut *self.0) as u64
    }

    /// Reads the message, which the kernel may have written.
    pub fn read(&self) -> M {
        // SAFETY: it is initialised, and the kernel writes a valid message.
        unsafe { std::ptr::from_ref(&*self.0).read_volatile() }
    }
}

pub fn hdr<M>() -> kdapl_hdr {
    kdapl_hdr { size: size_of::<M>() as u32, ..Default::default() }
}

/// Returns the answer of a call, from the code in its message.
pub fn answer(code: u32) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        code => Err(Error::Dat(DatError { call: "command", code })),
    }
}

/// Makes the message of a wait without a time-out. `events` is the address of the events.
pub fn wait_message(evd: &Evd, events: u64) -> kdapl_evd_wait {
    kdapl_evd_wait {
        hdr: hdr::<kdapl_evd_wait>(),
        handle: evd.handle().0,
        timeout_ns: KDAPL_TIMEOUT_INFINITE,
        threshold: 1,
        max_events: 1,
        events,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    }
}

/// Makes the message of a stream without a time-out.
pub fn stream_message(evd: &Evd) -> kdapl_uring_stream {
    kdapl_uring_stream {
        hdr: hdr::<kdapl_uring_stream>(),
        handle: evd.handle().0,
        timeout_ns: KDAPL_TIMEOUT_INFINITE,
        threshold: 1,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    }
}

pub fn cancel_message(user_data: u64) -> kdapl_uring_cancel {
    kdapl_uring_cancel { hdr: hdr::<kdapl_uring_cancel>(), user_data, ..Default::default() }
}

/// Makes a submission entry for a command whose operand is `operand`.
pub fn entry(fd: RawFd, op: u32, operand: [u64; 2], user_data: u64) -> squeue::Entry {
    let mut cmd = [0; 16];
    cmd[..8].copy_from_slice(&operand[0].to_ne_bytes());
    cmd[8..].copy_from_slice(&operand[1].to_ne_bytes());
    opcode::UringCmd16::new(types::Fd(fd), op).cmd(cmd).build().user_data(user_data)
}

/// Changes words of 32 bits of a submission entry.
pub fn with_words(entry: squeue::Entry, changes: &[(usize, u32)]) -> squeue::Entry {
    // SAFETY: an entry is a `repr(C)` struct of 64 bytes without padding, of which any are valid.
    let mut words = unsafe { std::mem::transmute::<squeue::Entry, [u32; 16]>(entry) };
    changes.iter().for_each(|(at, value)| words[*at] = *value);
    // SAFETY: as above.
    unsafe { std::mem::transmute::<[u32; 16], squeue::Entry>(words) }
}

/// Makes a submission entry for a stream from the provided buffers of `group`.
pub fn stream_entry(fd: RawFd, message: u64, group: u16, user_data: u64) -> squeue::Entry {
    let op = libkdapl::raw::call::URING_STREAM.request();
    let entry = entry(fd, op, [message, 0], user_data).flags(squeue::Flags::BUFFER_SELECT);
    with_words(entry, &[(7, MULTISHOT), (10, group.into())])
}

/// Submits an entry.
pub fn push(ring: &mut IoUring, entry: &squeue::Entry) -> Result<()> {
    // SAFETY: the callers keep the memory of the command until it has completed, or the kernel
    // refuses its address.
    unsafe { ring.submission().push(entry) }.context("the submission queue is full")?;
    ring.submit()?;
    Ok(())
}

/// Waits for a completion.
pub fn reap(ring: &mut IoUring) -> Result<cqueue::Entry> {
    loop {
        if let Some(entry) = ring.completion().next() {
            return Ok(entry);
        }
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => bail!("io_uring_enter: {error}"),
        }
    }
}

/// Waits for the completion of this command, and returns its result.
pub fn result(ring: &mut IoUring, user_data: u64) -> Result<i32> {
    let entry = reap(ring)?;
    ensure!(
        entry.user_data() == user_data,
        "command {} completed with {}, expected {user_data}",
        entry.user_data(),
        entry.result()
    );
    Ok(entry.result())
}

/// Submits an entry, and returns its result.
pub fn run(ring: &mut IoUring, entry: squeue::Entry) -> Result<i32> {
    push(ring, &entry.user_data(u64::MAX - 1))?;
    result(ring, u64::MAX - 1)
}

/// A wait on an EVD that is in flight, with its memory.
pub struct InFlight {
    pub message: HeapMessage<kdapl_evd_wait>,
    pub event: HeapMessage<kdapl_event>,
}

impl InFlight {
    /// Submits a wait with these flags of the submission entry.
    pub fn start(
        ring: &mut IoUring,
        evd: &Evd,
        flags: squeue::Flags,
        user_data: u64,
    ) -> Result<Self> {
        let mut event = HeapMessage::new(kdapl_event::default());
        let mut message = HeapMessage::new(wait_message(evd, event.address()));
        let op = libkdapl::raw::call::EVD_WAIT.request();
        let fd = evd.device().as_raw_fd();
        push(ring, &entry(fd, op, [message.address(), 0], user_data).flags(flags))?;
        Ok(Self { message, event })
    }
}
