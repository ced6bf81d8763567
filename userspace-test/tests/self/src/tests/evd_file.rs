// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Files of EVDs: `KDAPL_EVD_FD` in `docs/ioctl/events.md`.

pub mod ends;
pub mod hostile;
pub mod other_consumers;
pub mod sleeps;
pub mod threads;
pub mod uring;
pub mod writes;

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, errno, same};
use crate::raw::Page;
use crate::records::{
    cookies, nonblocking, now, open_at_limit, read_at, read_events, read_pieces, word, EVENT,
};
use crate::software::software;
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{DtoOperation, Evd, EvdFile};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

tests! {
    whole_events, 20, "A read returns the oldest events, as many as fit, and whole ones only";
    no_event, 20, "A read without an event fails with EAGAIN if the file or the call is non-blocking";
    completions, 30, "A read returns completions, with those that the EVD has not taken from its device yet";
    record_size, 20, "A file has records of the size that its opener asks for";
    pieces, 20, "A read fills pieces of memory whose borders are no borders of events";
    faults, 20, "An event whose memory faults in its middle stays in the queue, and those before it are read";
    no_position, 20, "An EVD's file has no position, no ioctl and no mapping, and is closed by exec";
    open_file_limit, 20, "A process at its limit of open files gets no file for an EVD";
}

/// Creates an EVD for software events with a non-blocking file.
fn with_file(context: &Context, qlen: i32) -> Result<(Evd, EvdFile)> {
    let evd = software(context, qlen)?;
    let file = evd.file()?;
    file.set_nonblocking(true)?;
    Ok((evd, file))
}

fn whole_events(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 512)?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    for length in [0, 1, EVENT - 1] {
        let mut bytes = vec![0; length];
        let outcome = read_at(&file, bytes.as_mut_ptr() as u64, length);
        same("a read that is too short", outcome, Err(libc::EINVAL))?;
    }
    same("one event", read_events(&file, 1), Ok(vec![0]))?;
    let mut bytes = vec![0; 2 * EVENT + EVENT - 1];
    let outcome = read_at(&file, bytes.as_mut_ptr() as u64, bytes.len());
    same("a read with room for two and a half", outcome, Ok(2 * EVENT))?;
    same("two events", cookies(&bytes[..2 * EVENT], EVENT), vec![1, 2])?;
    same("EVD of the first", word(&bytes[8..]), evd.handle().0)?;
    same("the others", read_events(&file, 100), Ok((3..10).collect()))?;
    same("nothing", read_events(&file, 1), Err(libc::EAGAIN))?;
    // The limit of one read.
    (0..300).try_for_each(|number| evd.post_se(number))?;
    same("a part of many", read_events(&file, 300), Ok((0..256).collect()))?;
    same("the rest of many", read_events(&file, 300), Ok((256..300).collect()))
}

fn no_event(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    same("non-blocking", read_events(&file, 1), Err(libc::EAGAIN))?;
    nonblocking(&file, false)?;
    let mut memory = [0; EVENT];
    let outcome = read_pieces(&file, &mut [&mut memory], libc::RWF_NOWAIT);
    same("RWF_NOWAIT", outcome, Err(libc::EAGAIN))?;
    same("poll", now(&file)?, libc::POLLOUT)?;
    evd.post_se(7)?;
    same("poll with an event", now(&file)?, libc::POLLIN | libc::POLLOUT)?;
    let outcome = read_pieces(&file, &mut [&mut memory], libc::RWF_NOWAIT);
    same("RWF_NOWAIT with an event", outcome, Ok(EVENT))?;
    same("event", cookies(&memory, EVENT), vec![7])
}

fn completions(context: &Context) -> Result<()> {
    const COUNT: u64 = 12;
    let pair = Pair::new(context, Shape::default())?;
    let file = pair.server.recv.file()?;
    file.set_nonblocking(true)?;
    same("an EVD without software events", now(&file)?, 0)?;
    (0..COUNT).try_for_each(|number| pair.server.receive(0, 64, number))?;
    for number in 0..COUNT {
        pair.client.send(0, 64, number)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, number)?;
    }
    let mut taken = 0;
    context.until("all receives complete", || {
        for event in file.read(5).or_else(|error| match error.is_empty() {
            true => Ok(Vec::new()),
            false => Err(error),
        })? {
            done(&event, DtoOperation::Receive, 64, taken)?;
            taken += 1;
        }
        Ok(taken == COUNT)
    })?;
    same("afterwards", now(&file)?, 0)
}

/// Opens a file with records of this size.
fn open_with(evd: &Evd, event_size: u32) -> Result<OwnedFd, libkdapl::Error> {
    let mut message = kdapl_evd_fd { handle: evd.handle().0, event_size, ..Default::default() };
    crate::raw::call(evd.device(), call::EVD_FD, &mut message)?;
    // SAFETY: the kernel has just opened it.
    Ok(unsafe { OwnedFd::from_raw_fd(message.fd) })
}

fn record_size(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for size in [0, 8, 63, 65, 68] {
        errno(open_with(&evd, size), libc::EINVAL)?;
    }
    errno(open_with(&evd, KDAPL_ELEMENT_MAX + 8), libc::E2BIG)?;
    for size in [72, 200, KDAPL_ELEMENT_MAX] {
        let file = open_with(&evd, size)?;
        let size = size as usize;
        evd.post_se(3)?;
        evd.post_se(4)?;
        let mut bytes = vec![0xff; 2 * size];
        let outcome = read_at(&file, bytes.as_mut_ptr() as u64, size - 1);
        same("a read that is too short", outcome, Err(libc::EINVAL))?;
        let outcome = read_at(&file, bytes.as_mut_ptr() as u64, 2 * size);
        same("a read", outcome, Ok(2 * size))?;
        same("events", cookies(&bytes, size), vec![3, 4])?;
        let unknown = bytes.chunks(size).flat_map(|record| &record[EVENT..]);
        ensure!(unknown.into_iter().all(|byte| *byte == 0), "the unknown part is not zero");
    }
    Ok(())
}

fn pieces(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 8)?;
    for lengths in [vec![1, 62, 1], vec![100, 0, 28, 64, 10], vec![3; 70]] {
        let room: usize = lengths.iter().sum();
        let expected = room / EVENT;
        (0..5).try_for_each(|number| evd.post_se(number))?;
        let mut parts: Vec<_> = lengths.iter().map(|length| vec![0; *length]).collect();
        let mut borrowed: Vec<_> = parts.iter_mut().map(Vec::as_mut_slice).collect();
        let outcome = read_pieces(&file, &mut borrowed, 0);
        same("bytes", outcome, Ok(expected * EVENT))?;
        let found = cookies(&parts.concat()[..expected * EVENT], EVENT);
        same("events", found, (0..expected as u64).collect())?;
        same("the others", read_events(&file, 8), Ok((expected as u64..5).collect()))?;
    }
    let outcome = read_pieces(&file, &mut [&mut [0; 40], &mut [0; 23]], 0);
    same("pieces that are too short together", outcome, Err(libc::EINVAL))
}

fn faults(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 16)?;
    let page = Page::before_nothing()?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    // Offsets before the end of the page, and the events that fit.
    for (before, fit, first) in [(1, 0, 0), (63, 0, 0), (64, 1, 0), (100, 1, 1), (200, 3, 2)] {
        let outcome = read_at(&file, page.end() - before, 8 * EVENT);
        let expected = if fit == 0 { Err(libc::EFAULT) } else { Ok(fit * EVENT) };
        same("a read across the end of the memory", outcome, expected)?;
        let mut bytes = vec![0; fit * EVENT];
        page.buffer.read(4096 - before as usize, &mut bytes);
        let numbers: Vec<_> = (first..first + fit as u64).collect();
        same("events", cookies(&bytes, EVENT), numbers)?;
    }
    same("nowhere", read_at(&file, crate::raw::BAD_ADDRESS, EVENT), Err(libc::EFAULT))?;
    same("what is left", read_events(&file, 16), Ok((5..10).collect()))?;
    // Without an event, no memory is touched.
    same("nowhere", read_at(&file, crate::raw::BAD_ADDRESS, EVENT), Err(libc::EAGAIN))
}

fn no_position(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    evd.post_se(1)?;
    let fd = file.as_raw_fd();
    let mut memory = [0_u8; EVENT];
    let (to, from) = (memory.as_mut_ptr().cast(), memory.as_ptr().cast());
    let number = call::EVD_FREE.request();
    // SAFETY: the calls get memory of this function, or none.
    unsafe {
        same("flags", libc::fcntl(fd, libc::F_GETFD), libc::FD_CLOEXEC)?;
        fails("lseek", libc::lseek(fd, 0, libc::SEEK_SET) as isize, libc::ESPIPE)?;
        fails("pread", libc::pread(fd, to, EVENT, 0), libc::ESPIPE)?;
        fails("pwrite", libc::pwrite(fd, from, 8, 0), libc::ESPIPE)?;
        fails("ioctl", libc::ioctl(fd, number as _, from) as isize, libc::ENOTTY)?;
        let mapped = libc::mmap(std::ptr::null_mut(), 4096, 1, libc::MAP_SHARED, fd, 0);
        fails("mmap", mapped as isize, libc::ENODEV)?;
    }
    same("the event", read_events(&file, 1), Ok(vec![1]))
}

/// Checks that a call has just failed with this errno.
fn fails(call: &str, result: isize, errno: i32) -> Result<()> {
    let found = std::io::Error::last_os_error().raw_os_error();
    same(call, (result, found), (-1, Some(errno)))
}

fn open_file_limit(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let file = open_at_limit(|| evd.file())?;
    same("a file", now(&file)?, libc::POLLOUT)
}
