// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Writes of software events to a file of an EVD.

use super::with_file;
use crate::context::Context;
use crate::expect::same;
use crate::fork::{end_of, fork};
use crate::raw::{Page, BAD_ADDRESS};
use crate::records::{in_time, now, read_events, write_at, Edge};
use crate::software::take;
use crate::tests::mapped_events::call_dequeue;
use crate::tests::tests;
use crate::threads::Worker;
use anyhow::{ensure, Result};
use libkdapl::raw::MappedEvents;
use libkdapl::{Evd, EvdFile, EvdFlags};
use std::sync::Arc;

tests! {
    posts, 20, "A write posts a software event for each word, in their order";
    lengths, 20, "A write of a part of a word, or of words that cannot be read, posts whole words only";
    full, 20, "A write to a full EVD posts as many events as fit, or fails with EAGAIN, and poll reports no room";
    other_evds, 20, "The file of an EVD without software events cannot be written";
    sleeps_for_room, 60, "A write sleeps until there is room, which a read, a call, a resize or mapped memory make";
    beside_mapped, 120, "A write that waits for room is woken by another process, which takes mapped events without a call";
    poll_for_room, 20, "Poll and edge-triggered epoll are woken by room";
}

fn posts(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 64)?;
    same("words", file.write(&[5, 0, u64::MAX])?, 3)?;
    same("by calls", (take(&evd)?, take(&evd)?, take(&evd)?), (5, 0, u64::MAX))?;
    let words: Vec<_> = (0..50).collect();
    same("words", file.write(&words)?, 50)?;
    same("by a read", read_events(&file, 64), Ok(words))
}

fn lengths(context: &Context) -> Result<()> {
    let (_evd, file) = with_file(context, 16)?;
    let words = [1_u64, 2, 3];
    for length in [0, 1, 7, 9, 23] {
        let outcome = write_at(&file, words.as_ptr() as u64, length);
        same("no whole words", outcome, Err(libc::EINVAL))?;
    }
    let page = Page::before_nothing()?;
    page.buffer.write(4096 - 20, &[7; 20]);
    same("nowhere", write_at(&file, BAD_ADDRESS, 8), Err(libc::EFAULT))?;
    same("the end of the memory", write_at(&file, page.end() - 4, 8), Err(libc::EFAULT))?;
    same("two words and a half", write_at(&file, page.end() - 20, 24), Ok(16))?;
    let word = u64::from_ne_bytes([7; 8]);
    same("posted", read_events(&file, 16), Ok(vec![word, word]))
}

fn full(context: &Context) -> Result<()> {
    let (_evd, file) = with_file(context, 4)?;
    same("six words", file.write(&[0, 1, 2, 3, 4, 5])?, 4)?;
    let errno = file.write(&[4]).map_err(|error| error.errno());
    same("without room", errno.err(), Some(Some(libc::EAGAIN)))?;
    same("poll", now(&file)?, libc::POLLIN)?;
    same("the first", read_events(&file, 1), Ok(vec![0]))?;
    same("poll", now(&file)?, libc::POLLIN | libc::POLLOUT)?;
    same("two words", file.write(&[4, 5])?, 1)?;
    same("all", read_events(&file, 8), Ok(vec![1, 2, 3, 4]))
}

fn other_evds(context: &Context) -> Result<()> {
    let ia = context.open()?;
    for flags in [EvdFlags::DTO, EvdFlags::CONNECTION | EvdFlags::CR] {
        let file = ia.create_evd(flags, 4)?.file()?;
        let errno = file.write(&[4]).map_err(|error| error.errno());
        same("a write", errno.err(), Some(Some(libc::EBADF)))?;
        same("poll", now(&file)?, 0)?;
    }
    Ok(())
}

/// Starts a thread that writes a word, and sleeps.
fn writer(context: &Context, file: &Arc<EvdFile>, word: u64) -> Result<Worker<Result<usize>>> {
    let file = file.clone();
    let worker = Worker::start(move || Ok(file.write(&[word])?))?;
    worker.asleep_in(context, libc::SYS_write)?;
    Ok(worker)
}

fn sleeps_for_room(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.write(&[0, 1, 2, 3])?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let mut next = 4;
    let mut makes = |what: &str, room: &dyn Fn() -> Result<()>| {
        let worker = writer(context, &file, next)?;
        room()?;
        next += 1;
        same(what, worker.join()??, 1)
    };
    let first = |evd: &Evd| take(evd).map(drop);
    makes("a read", &|| same("events", read_events(&file, 1), Ok(vec![0])))?;
    makes("a dequeue", &|| first(&evd))?;
    makes("a wait", &|| Ok(evd.wait(None, 1).map(drop)?))?;
    makes("a resize", &|| Ok(evd.resize(8).map(drop)?))?;
    // Now 4 to 7 and three more are queued. The second dequeue hands the others over.
    file.write(&[8, 9, 10])?;
    same("mapped by", take(&evd)?, 3)?;
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    same("handed over after", take(&evd)?, 4)?;
    file.write(&[11, 12])?;
    let worker = writer(context, &file, 13)?;
    context.until("the process has to call", || Ok(mapped.calls_only()))?;
    taken_by_call(&evd, &mapped)?;
    same("a process that takes mapped events", worker.join()??, 1)?;
    drop(file);
    Ok(())
}

/// Takes an event as a process does that has to call, because a thread waits for room.
fn taken_by_call(evd: &Evd, mapped: &MappedEvents) -> Result<()> {
    // `MappedEvents::pop` takes nothing while only calls take events.
    same("mapped event", mapped.pop().is_some(), false)?;
    take(evd).map(drop)
}

/// Takes numbered events as a process does that has mapped them: without a call if it may.
fn take_mapped(evd: &Evd, words: u64) -> Result<()> {
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    let mut without_call = 0;
    for word in 0..words {
        let taken = loop {
            if let Some(event) = mapped.pop() {
                without_call += 1;
                if mapped.calls_only() {
                    evd.query()?;
                }
                break event.cookie;
            }
            match call_dequeue(evd)? {
                Some(taken) => break taken,
                None => std::thread::yield_now(),
            }
        };
        same("event", taken, word)?;
    }
    ensure!(without_call > 0, "each event was taken by a call");
    Ok(())
}

fn beside_mapped(context: &Context) -> Result<()> {
    let words = context.count(20_000).max(2_000);
    let (evd, file) = with_file(context, 8)?;
    file.set_nonblocking(false)?;
    let child = fork(|| take_mapped(&evd, words))?;
    let worker = Worker::start(move || -> Result<()> {
        (0..words).try_for_each(|word| same("words", file.write(&[word])?, 1))
    })?;
    same("the child's end", end_of(child)?, 0)?;
    worker.join()?
}

fn poll_for_room(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 2)?;
    file.write(&[0, 1])?;
    let edge = Edge::of(&file, libc::EPOLLOUT)?;
    for round in 0..context.count(100).max(5) {
        same("edge without room", edge.next(std::time::Duration::ZERO)?, 0)?;
        let patience = context.patience();
        let other = file.evd().file()?;
        let worker = Worker::start(move || in_time(&other, libc::POLLOUT, patience))?;
        worker.asleep_in(context, libc::SYS_poll)?;
        same("event", take(&evd)?, round)?;
        same("poll", worker.join()??, libc::POLLOUT)?;
        same("edge", edge.in_time(patience)?, libc::EPOLLOUT)?;
        same("one word", file.write(&[round + 2, 0])?, 1)?;
    }
    Ok(())
}
