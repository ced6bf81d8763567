// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Malformed commands, and memory that goes away.

use super::super::tests;
use super::commands::{
    self, entry, push, reap, result, run, stream_entry, stream_message, wait_message, with_words,
    HeapMessage, MULTISHOT,
};
use crate::context::Context;
use crate::expect::{empty, same};
use crate::machine::objects;
use crate::raw::{request, send, Bytes, BAD_ADDRESS};
use crate::software::{software, take};
use anyhow::{ensure, Context as _, Result};
use io_uring::{cqueue, opcode, squeue::Flags, IoUring};
use libkdapl::raw::call::{self, EVD_DEQUEUE, EVD_POST_SE, EVD_WAIT};
use libkdapl::raw::Device;
use libkdapl::sys::{
    kdapl_evd_post_se, kdapl_event, kdapl_hdr, kdapl_uring_stream, KDAPL_EVENT_SIZE_MIN,
};
use libkdapl::Evd;
use std::os::fd::AsRawFd;

tests! {
    same_answers, 60, "Each request has the same answer as a command and as an ioctl, also with malformed messages";
    malformed_entries, 20, "A malformed submission entry is refused with its errno, and executes nothing";
    bad_addresses, 20, "A message at an address that cannot be read or written is refused, and executes nothing";
    malformed_streams, 20, "A stream with a malformed message, or of another request, is refused";
    unmapped_in_flight, 30, "A message or events that are unmapped while a wait is in flight lose no event";
    bad_buffers, 20, "A provided buffer that is too short or not mapped ends the stream, and no event is lost";
    overflow, 30, "A stream that finds its completion queue full ends, and its message names the last buffer: no event is lost";
}

pub fn of(evd: &Evd) -> i32 {
    evd.device().as_raw_fd()
}

/// Returns the answer of a request as a command: DAT's code, or the errno.
fn command(
    ring: &mut IoUring,
    device: &Device,
    op: u32,
    bytes: &mut Bytes,
) -> Result<Result<u32, i32>> {
    let address = bytes.as_mut().as_mut_ptr() as u64;
    let result = run(ring, entry(device.as_raw_fd(), op, [address, 0], 0))?;
    if result < 0 {
        return Ok(Err(-result));
    }
    same("result", result, 0)?;
    let at = std::mem::offset_of!(kdapl_hdr, ret);
    let ret = bytes.as_ref()[at..at + 4].try_into().context("the header")?;
    Ok(Ok(u32::from_ne_bytes(ret)))
}

/// Change to a message of zeros.
type ChangeMessage = fn(&mut Bytes);

const CHANGES: [(&str, ChangeMessage); 4] = [
    ("zeros", |_| {}),
    ("a header flag", |bytes| bytes.set_u32(4, 0x8000)),
    ("a reserved field", |bytes| bytes.set_u32(12, 1)),
    ("a wrong size", |bytes| bytes.set_u32(0, 17)),
];

pub fn same_answers(context: &Context) -> Result<()> {
    let before = objects()?;
    let device = Device::open()?;
    let with_ia = context.open()?;
    let mut ring = IoUring::new(8)?;
    let message = |size: usize| {
        let mut bytes = Bytes::zeroed(size);
        bytes.set_u32(0, size as u32);
        bytes
    };
    for (name, op, size) in call::ALL {
        // Its answer has the age of an adapter, which grows.
        if *op == call::IA_STAT.request() {
            continue;
        }
        for device in [&device, &**with_ia.device()] {
            for (what, change) in &CHANGES {
                // With an IA, zeros may succeed, and would create two objects.
                if *what == "zeros" && std::ptr::eq(device, &**with_ia.device()) {
                    continue;
                }
                let (mut one, mut two) = (message(*size), message(*size));
                change(&mut one);
                change(&mut two);
                let by_ioctl = send(device, *op, &mut one);
                let by_command = command(&mut ring, device, *op, &mut two)?;
                same(&format!("{name} with {what}"), by_command, by_ioctl)?;
                same(&format!("answer of {name}"), two.as_ref(), one.as_ref())?;
            }
        }
    }
    drop((with_ia, device));
    context.until("the objects are as before", || Ok(objects()? == before))
}

pub fn malformed_entries(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    let post = kdapl_evd_post_se {
        hdr: commands::hdr::<kdapl_evd_post_se>(),
        handle: evd.handle().0,
        pointer: 1,
    };
    let mut message = HeapMessage::new(post);
    let (fd, op, at) = (of(&evd), EVD_POST_SE.request(), message.address());
    let good = || entry(fd, op, [at, 0], 0);
    for (what, entry, errno) in [
        ("a reserved word", entry(fd, op, [at, 1], 0), libc::EINVAL),
        ("another type letter", entry(fd, op ^ 0x100, [at, 0], 0), libc::ENOTTY),
        ("an unknown number", entry(fd, request(0xff, 32), [at, 0], 0), libc::ENOTTY),
        ("no type", entry(fd, 0, [at, 0], 0), libc::ENOTTY),
        ("no direction", entry(fd, op & 0x3fff_ffff, [at, 0], 0), libc::ENOTTY),
        ("one direction", entry(fd, op & 0x7fff_ffff, [at, 0], 0), libc::ENOTTY),
        ("a size of 0", entry(fd, request(0x25, 0), [at, 0], 0), libc::EINVAL),
        ("an unknown flag", with_words(good(), &[(7, 1 << 20)]), libc::EINVAL),
        ("a registered buffer", with_words(good(), &[(7, 1)]), libc::EINVAL),
        ("several completions", with_words(good(), &[(7, MULTISHOT)]), libc::EINVAL),
        ("a buffer to select", good().flags(Flags::BUFFER_SELECT), libc::EINVAL),
        (
            "a stream of another request",
            with_words(good().flags(Flags::BUFFER_SELECT), &[(7, MULTISHOT)]),
            libc::EINVAL,
        ),
        ("a closed file", entry(-1, op, [at, 0], 0), libc::EBADF),
    ] {
        same(what, run(&mut ring, entry)?, -errno)?;
        empty(&evd)?;
    }
    same("a good command", run(&mut ring, good())?, 0)?;
    same("event", take(&evd)?, 1)
}

/// Pages of memory of their own.
struct Pages(*mut libc::c_void, usize);

impl Pages {
    fn new(pages: usize, protection: i32) -> Result<Self> {
        let (flags, length) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, pages * 4096);
        // SAFETY: a new mapping affects no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        ensure!(start != libc::MAP_FAILED, "mmap: {}", std::io::Error::last_os_error());
        Ok(Self(start, length))
    }

    fn address(&self) -> u64 {
        self.0 as u64
    }

    fn put<M>(&self, offset: usize, value: M) {
        assert!(offset + size_of::<M>() <= self.1);
        // SAFETY: it lies within the mapping, and is writable and aligned at the callers'.
        unsafe { self.0.byte_add(offset).cast::<M>().write(value) };
    }

    fn protect(&self, protection: i32) -> Result<()> {
        // SAFETY: only the tests use the mapping, and not after this.
        let done = unsafe { libc::mprotect(self.0, self.1, protection) };
        ensure!(done == 0, "mprotect: {}", std::io::Error::last_os_error());
        Ok(())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: nothing uses the mapping any more.
        unsafe { libc::munmap(self.0, self.1) };
    }
}

const WRITABLE: i32 = libc::PROT_READ | libc::PROT_WRITE;

pub fn bad_addresses(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    evd.post_se(1)?;
    let mut ring = IoUring::new(8)?;
    let read_only = Pages::new(1, WRITABLE)?;
    let mut event = HeapMessage::new(kdapl_event::default());
    read_only.put(0, wait_message(&evd, event.address()));
    read_only.protect(libc::PROT_READ)?;
    for op in [EVD_WAIT.request(), EVD_DEQUEUE.request()] {
        for address in [BAD_ADDRESS, 0, u64::MAX - 63, 1 << 63, read_only.address()] {
            let result = run(&mut ring, entry(of(&evd), op, [address, 0], 0))?;
            same(&format!("a message at {address:#x}"), result, -libc::EFAULT)?;
        }
        for address in [BAD_ADDRESS, u64::MAX - 63, read_only.address()] {
            let mut message = HeapMessage::new(wait_message(&evd, address));
            let result = run(&mut ring, entry(of(&evd), op, [message.address(), 0], 0))?;
            same(&format!("events at {address:#x}"), result, -libc::EFAULT)?;
        }
    }
    same("the event is left", take(&evd)?, 1)
}

pub fn malformed_streams(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    let good = stream_message(&evd);
    let with = |change: fn(&mut kdapl_hdr)| {
        let mut message = good;
        change(&mut message.hdr);
        message
    };
    let short = KDAPL_EVENT_SIZE_MIN - 8;
    for (what, message, errno) in [
        ("a header flag", with(|hdr| hdr.flags = 2), libc::EINVAL),
        ("a reserved field", with(|hdr| hdr.reserved = 1), libc::EINVAL),
        ("another size", with(|hdr| hdr.size = 40), libc::EINVAL),
        ("short events", kdapl_uring_stream { event_size: short, ..good }, libc::EINVAL),
        ("odd events", kdapl_uring_stream { event_size: 68, ..good }, libc::EINVAL),
        ("long events", kdapl_uring_stream { event_size: 8192, ..good }, libc::E2BIG),
    ] {
        let mut message = HeapMessage::new(message);
        let stream = stream_entry(of(&evd), message.address(), 0, 0);
        same(what, run(&mut ring, stream)?, -errno)?;
    }
    let mut message = HeapMessage::new(good);
    let op = call::URING_STREAM.request();
    let single = entry(of(&evd), op, [message.address(), 0], 0);
    same("a stream for one completion", run(&mut ring, single)?, -libc::EINVAL)?;
    // SAFETY: the message is as long as the request says.
    let asked = unsafe { evd.device().ioctl(op, message.address() as *mut _) };
    same("ioctl", asked.map_err(|error| error.raw_os_error()), Err(Some(libc::ENOTTY)))?;
    // None of them has become the waiter.
    Ok(evd.free()?)
}

pub fn unmapped_in_flight(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    let op = EVD_WAIT.request();
    for of_events in [false, true] {
        let (message, events) = (Pages::new(1, WRITABLE)?, Pages::new(1, WRITABLE)?);
        message.put(0, wait_message(&evd, events.address()));
        push(&mut ring, &entry(of(&evd), op, [message.address(), 0], 5))?;
        if of_events { &events } else { &message }.protect(libc::PROT_NONE)?;
        evd.post_se(6)?;
        same("result", result(&mut ring, 5)?, -libc::EFAULT)?;
        same("the event is left", take(&evd)?, 6)?;
    }
    Ok(evd.free()?)
}

pub fn bad_buffers(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    let memory = Pages::new(1, WRITABLE)?;
    let unmapped = Pages::new(1, libc::PROT_NONE)?;
    let (short, faulting) = (memory.address(), unmapped.address());
    for (group, address, length, errno) in
        [(1, short, 63, libc::EINVAL), (2, faulting, 4096, libc::EFAULT)]
    {
        let provide = opcode::ProvideBuffers::new(address as *mut u8, length, 1, group, 0);
        same("provide", run(&mut ring, provide.build())?, 0)?;
        let mut message = HeapMessage::new(stream_message(&evd));
        push(&mut ring, &stream_entry(of(&evd), message.address(), group, 3))?;
        evd.post_se(8)?;
        same("result", result(&mut ring, 3)?, -errno)?;
        same("the event is left", take(&evd)?, 8)?;
        // The buffer was given back.
        let removed = run(&mut ring, opcode::RemoveBuffers::new(1, group).build())?;
        same("buffers left", removed, 1)?;
    }
    Ok(evd.free()?)
}

pub fn overflow(context: &Context) -> Result<()> {
    // Two completions have room, and the third ends a stream.
    const EVENTS: u64 = 63;
    let evd = software(context, 64)?;
    let mut ring = IoUring::builder().setup_cqsize(2).build(1)?;
    let size = size_of::<kdapl_event>();
    let memory = Pages::new(1, WRITABLE)?;
    let provide =
        opcode::ProvideBuffers::new(memory.address() as *mut u8, size as i32, EVENTS as u16, 0, 0);
    same("provide", run(&mut ring, provide.build())?, 0)?;
    (0..EVENTS).try_for_each(|number| evd.post_se(number))?;
    let (mut seen, mut ends) = (Vec::new(), 0);
    while seen.len() < EVENTS as usize {
        let mut message = HeapMessage::new(stream_message(&evd));
        push(&mut ring, &stream_entry(of(&evd), message.address(), 0, 3))?;
        loop {
            let completion = reap(&mut ring)?;
            let id = match cqueue::more(completion.flags()) {
                true => {
                    same("bytes", completion.result(), size as i32)?;
                    cqueue::buffer_select(completion.flags()).context("no buffer")?
                }
                false => {
                    same("result", completion.result(), 0)?;
                    let end = message.read();
                    same("the end", (end.hdr.ret, end.taken), (0, 1))?;
                    end.buffer as u16
                }
            };
            // SAFETY: the kernel has filled this buffer, and does not use it any more.
            let event = unsafe { memory.0.cast::<kdapl_event>().add(id.into()).read() };
            seen.push(event.cookie);
            if !cqueue::more(completion.flags()) {
                ends += 1;
                break;
            }
        }
    }
    same("events", seen, (0..EVENTS).collect())?;
    ensure!(ends > 1, "the completion queue has never been full");
    empty(&evd)
}
