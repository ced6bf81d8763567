// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! System calls on files of events and triggers, with lengths and addresses that the library does
//! not use.

use crate::expect::{refused, same};
use anyhow::{bail, ensure, Result};
use libkdapl::sys::kdapl_event;
use libkdapl::Type;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Size of an event in bytes.
pub const EVENT: usize = size_of::<kdapl_event>();

/// Offset of the cookie in an event.
const COOKIE: usize = std::mem::offset_of!(kdapl_event, cookie);

/// Returns the result of a system call, or its errno.
fn checked(result: isize) -> Result<usize, i32> {
    let errno = || io::Error::last_os_error().raw_os_error().unwrap_or(0);
    usize::try_from(result).map_err(|_| errno())
}

/// Calls `read(2)` for memory of this process, or for an address that the kernel may refuse.
pub fn read_at(file: &impl AsFd, address: u64, length: usize) -> Result<usize, i32> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the callers pass memory of a `Buffer`, or memory that is not mapped.
    checked(unsafe { libc::read(file, address as *mut _, length) })
}

/// Calls `write(2)`, as for [`read_at`].
pub fn write_at(file: &impl AsFd, address: u64, length: usize) -> Result<usize, i32> {
    let file = file.as_fd().as_raw_fd();
    // SAFETY: the kernel only reads the memory.
    checked(unsafe { libc::write(file, address as *const _, length) })
}

/// Calls `preadv2(2)` for pieces of memory at the position of the file.
pub fn read_pieces(file: &impl AsFd, pieces: &mut [&mut [u8]], flags: i32) -> Result<usize, i32> {
    let vectors: Vec<_> = pieces
        .iter_mut()
        .map(|piece| libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() })
        .collect();
    let (file, count) = (file.as_fd().as_raw_fd(), vectors.len() as i32);
    // SAFETY: the pieces are borrowed exclusively.
    checked(unsafe { libc::preadv2(file, vectors.as_ptr(), count, -1, flags) })
}

/// Reads at most `most` events. Returns the pointers of software events, or cookies.
pub fn read_events(file: &impl AsFd, most: usize) -> Result<Vec<u64>, i32> {
    let mut bytes = vec![0; most * EVENT];
    let length = read_at(file, bytes.as_mut_ptr() as u64, bytes.len())?;
    Ok(cookies(&bytes[..length], EVENT))
}

/// Returns the cookies of events with this size of a record.
pub fn cookies(bytes: &[u8], size: usize) -> Vec<u64> {
    let records = bytes.chunks(size);
    records.map(|record| word(&record[COOKIE..])).collect()
}

/// Returns the first word of these bytes.
pub fn word(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |word, byte| (word << 8) | u64::from(*byte))
}

/// Sets or clears `O_NONBLOCK`.
pub fn nonblocking(file: &impl AsFd, on: bool) -> Result<()> {
    let flags = if on { libc::O_NONBLOCK } else { 0 };
    // SAFETY: the call takes no memory.
    let set = unsafe { libc::fcntl(file.as_fd().as_raw_fd(), libc::F_SETFL, flags) };
    ensure!(set == 0, "fcntl: {}", io::Error::last_os_error());
    Ok(())
}

/// Polls a file for these events. Returns those that occurred; 0 is none.
pub fn poll(file: &impl AsFd, events: i16, time: Duration) -> Result<i16> {
    let mut asked = libc::pollfd { fd: file.as_fd().as_raw_fd(), events, revents: 0 };
    // SAFETY: it is one valid entry.
    match unsafe { libc::poll(&mut asked, 1, time.as_millis() as i32) } {
        -1 => bail!("poll: {}", io::Error::last_os_error()),
        _ => Ok(asked.revents),
    }
}

/// Polls a file for input and output without waiting.
pub fn now(file: &impl AsFd) -> Result<i16> {
    poll(file, libc::POLLIN | libc::POLLOUT, Duration::ZERO)
}

/// Polls a file for input, and checks that the poll was woken. At its time-out, `poll()` checks
/// again, and would find the same.
pub fn in_time(file: &impl AsFd, events: i16, patience: Duration) -> Result<i16> {
    let start = Instant::now();
    let found = poll(file, events, patience)?;
    ensure!(start.elapsed() < patience / 2, "the poll was not woken");
    Ok(found)
}

/// An epoll instance.
pub struct Epoll(OwnedFd);

impl Epoll {
    pub fn new() -> Result<Self> {
        // SAFETY: the call takes no memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        ensure!(epoll >= 0, "epoll_create1: {}", io::Error::last_os_error());
        // SAFETY: nothing else uses the new descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(epoll) }))
    }

    /// Watches a file for these events. They are reported with `data`.
    pub fn add(&self, file: &impl AsFd, events: i32, data: u64) -> Result<()> {
        let mut wish = libc::epoll_event { events: events as u32, u64: data };
        let (add, fd) = (libc::EPOLL_CTL_ADD, file.as_fd().as_raw_fd());
        // SAFETY: both files are open, and the argument is valid.
        let added = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), add, fd, &mut wish) };
        ensure!(added == 0, "epoll_ctl: {}", io::Error::last_os_error());
        Ok(())
    }

    /// Waits for the next file with events. Returns these and the file's data.
    pub fn next(&self, patience: Duration) -> Result<Option<(i32, u64)>> {
        let mut found = libc::epoll_event { events: 0, u64: 0 };
        let time = patience.as_millis() as i32;
        // SAFETY: there is room for one event.
        match unsafe { libc::epoll_wait(self.0.as_raw_fd(), &mut found, 1, time) } {
            0 => Ok(None),
            1 => Ok(Some((found.events as i32, found.u64))),
            _ => bail!("epoll_wait: {}", io::Error::last_os_error()),
        }
    }
}

/// An epoll instance that watches one file, edge-triggered.
pub struct Edge(Epoll);

impl Edge {
    pub fn of(file: &impl AsFd, events: i32) -> Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(file, events | libc::EPOLLET, 0)?;
        Ok(Self(epoll))
    }

    /// Waits for the next edge. Returns its events; 0 is none.
    pub fn next(&self, patience: Duration) -> Result<i32> {
        Ok(self.0.next(patience)?.map_or(0, |(events, _)| events))
    }

    /// As [`next`](Self::next), and checks that the wait was woken.
    pub fn in_time(&self, patience: Duration) -> Result<i32> {
        let start = Instant::now();
        let found = self.next(patience)?;
        ensure!(start.elapsed() < patience / 2, "epoll was not woken");
        Ok(found)
    }
}

/// Opens a file while the process may open no further one, which is refused, and then again. Only
/// the limit was the reason.
pub fn open_at_limit<F>(open: impl Fn() -> Result<F, libkdapl::Error>) -> Result<F> {
    let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: there is room for the answer.
    ensure!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) } == 0, "getrlimit");
    let limit = |rlim_cur| {
        let limit = libc::rlimit { rlim_cur, ..before };
        // SAFETY: it is a valid limit.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }
    };
    same("setrlimit", limit(3), 0)?;
    let outcome = open();
    same("setrlimit", limit(before.rlim_cur), 0)?;
    refused(outcome.map(drop), Type::INSUFFICIENT_RESOURCES)?;
    Ok(open()?)
}
