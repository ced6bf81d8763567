// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Plain reads and polls by io_uring.

use super::with_file;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, same};
use crate::harness::skip;
use crate::records::{cookies, now, EVENT};
use crate::tests::tests;
use anyhow::{Context as _, Result};
use io_uring::{opcode, types, IoUring};
use libkdapl::{DtoOperation, EvdFile};
use std::io::ErrorKind;
use std::os::fd::AsRawFd;

tests! {
    plain_reads, 60, "io_uring reads an EVD's file: at once, or after a software event or a completion";
    plain_writes, 20, "io_uring writes software events to an EVD's file, at once or when there is room";
    reads_end, 20, "A free of the EVD ends a read of io_uring";
}

/// A ring, and memory for one read.
struct Ring {
    ring: IoUring,
    memory: Box<[u8; 2 * EVENT]>,
}

impl Ring {
    fn new() -> Result<Self> {
        match IoUring::new(8) {
            Ok(ring) => Ok(Self { ring, memory: Box::new([0; 2 * EVENT]) }),
            Err(error)
                if [ErrorKind::Unsupported, ErrorKind::PermissionDenied]
                    .contains(&error.kind()) =>
            {
                skip(format!("this kernel has no io_uring: {error}"))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Submits a read.
    fn read(&mut self, file: &EvdFile) -> Result<()> {
        let length = self.memory.len() as u32;
        let entry =
            opcode::Read::new(types::Fd(file.as_raw_fd()), self.memory.as_mut_ptr(), length);
        // SAFETY: the ring waits for the end of each read before the memory is used or freed.
        unsafe { self.ring.submission().push(&entry.offset(u64::MAX).build()) }?;
        self.ring.submit()?;
        Ok(())
    }

    /// Submits a write.
    fn write(&mut self, file: &EvdFile, words: &[u64]) -> Result<()> {
        let length = size_of_val(words) as u32;
        let entry = opcode::Write::new(types::Fd(file.as_raw_fd()), words.as_ptr().cast(), length);
        // SAFETY: the callers keep the words until the write has ended.
        unsafe { self.ring.submission().push(&entry.offset(u64::MAX).build()) }?;
        self.ring.submit()?;
        Ok(())
    }

    /// Returns the result of an operation, if it has ended.
    fn ended(&mut self) -> Option<i32> {
        self.ring.completion().next().map(|entry| entry.result())
    }

    /// Waits for the end of an operation. Returns its result.
    fn result(&mut self) -> Result<i32> {
        self.ring.submit_and_wait(1)?;
        self.ended().context("io_uring has returned without an end")
    }

    /// Waits for the end of a read. Returns the cookies of the events.
    fn events(&mut self) -> Result<Vec<u64>> {
        let length = usize::try_from(self.result()?).context("a read has failed")?;
        Ok(cookies(&self.memory[..length], EVENT))
    }
}

fn plain_reads(context: &Context) -> Result<()> {
    let mut ring = Ring::new()?;
    let (evd, file) = with_file(context, 8)?;
    file.set_nonblocking(false)?;
    (0..3).try_for_each(|number| evd.post_se(number))?;
    ring.read(&file)?;
    same("at once", ring.events()?, vec![0, 1])?;
    ring.read(&file)?;
    same("at once", ring.events()?, vec![2])?;
    let pair = Pair::new(context, Shape::default())?;
    let completions = pair.server.recv.file()?;
    for round in 0..context.count(100).max(3) {
        ring.read(&file)?;
        same("before the event", ring.ended(), None)?;
        evd.post_se(round)?;
        same("after the event", ring.events()?, vec![round])?;
        pair.server.receive(0, 64, round)?;
        ring.read(&completions)?;
        same("before the completion", ring.ended(), None)?;
        pair.client.send(0, 64, round)?;
        same("after the completion", ring.events()?, vec![round])?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn plain_writes(context: &Context) -> Result<()> {
    let mut ring = Ring::new()?;
    let (evd, file) = with_file(context, 2)?;
    file.set_nonblocking(false)?;
    let words = [5, 6];
    ring.write(&file, &words)?;
    same("bytes", ring.result()?, 16)?;
    let more = [7];
    ring.write(&file, &more)?;
    same("without room", ring.ended(), None)?;
    same("event", crate::software::take(&evd)?, 5)?;
    same("with room", ring.result()?, 8)?;
    same("the others", crate::records::read_events(&file, 4), Ok(vec![6, 7]))
}

fn reads_end(context: &Context) -> Result<()> {
    let mut ring = Ring::new()?;
    let (evd, file) = with_file(context, 2)?;
    file.set_nonblocking(false)?;
    ring.read(&file)?;
    same("before the end", ring.ended(), None)?;
    evd.free()?;
    same("the end", ring.result()?, 0)?;
    same("poll", now(&file)?, libc::POLLHUP)
}
