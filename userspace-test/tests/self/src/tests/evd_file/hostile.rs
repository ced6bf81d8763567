// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Slow and vanishing memory, frees and kills beside reads.

use super::sleeps::{pointers, reader};
use super::with_file;
use crate::context::Context;
use crate::expect::{empty, same};
use crate::machine::no_objects_left;
use crate::raw::BAD_ADDRESS;
use crate::records::{now, poll, read_at, read_events, Edge, EVENT};
use crate::software::{post_all, take};
use crate::tests::slow_memory::Withheld;
use crate::tests::tests;
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::MappedEvents;
use libkdapl::{Buffer, Close, EvdFlags};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

tests! {
    withheld_memory, 60, "A read whose memory never comes delays no other consumer, and takes only what it gets";
    passes_wake_up_on, 60, "A read that was woken and whose memory never comes leaves its event to another reader, and its trigger to a waiter";
    vanishing_memory, 120, "Reads into memory that another thread unmaps lose no event and take none twice";
    frees, 240, "Reads, writes and polls end, and nothing is left, while EVDs are freed and IAs closed";
    index_beside_writer, 60, "A process that writes any index of mapped events leaves no write asleep beside room";
    kills, 120, "Processes that are killed in reads and polls leave nothing behind";
}

fn withheld_memory(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 8)?;
    let buffer = Buffer::new(8192)?;
    evd.post_se(1)?;
    evd.post_se(2)?;
    let page = Withheld::new(buffer.address(0))?;
    std::thread::scope(|scope| -> Result<()> {
        let reading = scope.spawn(|| read_at(&file, buffer.address(0), EVENT));
        context.until("the read waits for the page", || Ok(page.is_awaited()))?;
        // Neither a lock nor an event is held meanwhile.
        same("poll", now(&file)? & libc::POLLIN, libc::POLLIN)?;
        same("events by others", (take(&evd)?, read_events(&file, 1)), (1, Ok(vec![2])))?;
        empty(&evd)?;
        evd.post_se(3)?;
        drop(page);
        // The read gets the event that is the oldest when it can be taken.
        let outcome = reading.join().ok().context("the read has panicked")?;
        same("the read", outcome, Ok(EVENT))
    })?;
    let mut bytes = [0; EVENT];
    buffer.read(0, &mut bytes);
    same("event", crate::records::cookies(&bytes, EVENT), vec![3])?;
    // A free does not wait for the reader either.
    evd.post_se(4)?;
    let page = Withheld::new(buffer.address(0))?;
    std::thread::scope(|scope| -> Result<()> {
        let reading = scope.spawn(|| read_at(&file, buffer.address(0), EVENT));
        context.until("the read waits for the page", || Ok(page.is_awaited()))?;
        evd.free()?;
        drop(page);
        let outcome = reading.join().ok().context("the read has panicked")?;
        ensure!(outcome == Ok(EVENT), "the event that was copied is not returned: {outcome:?}");
        Ok(())
    })
}

/// Starts a read that sleeps, and whose memory does not come before the page is dropped.
fn stopped_reader<F: AsFd + Send + Sync + 'static>(
    context: &Context,
    file: F,
    length: usize,
) -> Result<(Withheld, Worker<Result<usize, i32>>)> {
    let buffer = Buffer::new(8192)?;
    let (page, address) = (Withheld::new(buffer.address(0))?, buffer.address(0));
    let reading = Worker::start(move || {
        let _kept = buffer;
        read_at(&file, address, length)
    })?;
    reading.asleep_in(context, libc::SYS_read)?;
    Ok((page, reading))
}

fn passes_wake_up_on(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let (page, stopped) = stopped_reader(context, evd.file()?, EVENT)?;
    let other = reader(context, &Arc::new(file))?;
    evd.post_se(1)?;
    let taken = context.until("the other reader has the event", || Ok(other.finished()));
    drop(page);
    // Ends the read that has got nothing.
    evd.post_se(2)?;
    taken?;
    same("event of the other reader", pointers(&other.join()??)?, vec![1])?;
    same("the stopped read", stopped.join()?, Ok(EVENT))?;

    let ia = context.open()?;
    let (cno, evd) = (ia.create_cno(None)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    evd.modify_cno(Some(&cno))?;
    let length = size_of::<libkdapl::sys::kdapl_trigger>();
    let (page, stopped) = stopped_reader(context, cno.file()?, length)?;
    let waiting = cno.clone();
    let waiting = Worker::start(move || waiting.wait(None))?;
    waiting.asleep(context)?;
    evd.post_se(1)?;
    let taken = context.until("the waiter has the trigger", || Ok(waiting.finished()));
    drop(page);
    cno.trigger()?;
    taken?;
    same("trigger of the waiter", waiting.join()??, Some(evd.handle()))?;
    same("the stopped read", stopped.join()?, Ok(length))
}

pub fn vanishing_memory(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 64)?;
    let total = context.count(5_000);
    let buffer = Buffer::new(8192)?;
    let (over, posted) = (AtomicBool::new(false), &evd);
    let protect = |protection| {
        // SAFETY: this buffer owns the page, and only system calls access it.
        unsafe { libc::mprotect(buffer.address(4096) as *mut _, 4096, protection) }
    };
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                protect(libc::PROT_NONE);
                protect(libc::PROT_READ | libc::PROT_WRITE);
            }
        });
        let patience = context.patience();
        let posting = scope.spawn(move || post_all(posted, 0, total, patience));
        let read = || -> Result<()> {
            let mut next = 0;
            // Across the border of the page, in the middle of an event.
            let start = 4096 - EVENT - 20;
            while next < total {
                match read_at(&file, buffer.address(start), 4 * EVENT) {
                    Ok(length) => {
                        same("page", protect(libc::PROT_READ | libc::PROT_WRITE), 0)?;
                        let mut bytes = vec![0; length.min(EVENT)];
                        buffer.read(start, &mut bytes);
                        same("event", crate::records::cookies(&bytes, EVENT), vec![next])?;
                        next += (length / EVENT) as u64;
                    }
                    Err(errno) => ensure!(
                        [libc::EAGAIN, libc::EFAULT].contains(&errno),
                        "a read fails with errno {errno}"
                    ),
                }
                same("nowhere", read_at(&file, BAD_ADDRESS, EVENT).is_err(), true)?;
            }
            Ok(())
        };
        let outcome = read();
        over.store(true, Ordering::Release);
        outcome?;
        posting.join().ok().context("the poster has panicked")?
    })?;
    empty(&evd)
}

pub fn frees(context: &Context) -> Result<()> {
    let operations = AtomicU64::new(0);
    for round in 0..context.count(200).max(20) {
        let ia = context.open()?;
        let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
        let file = evd.file()?;
        let sleeping = evd.file()?;
        file.set_nonblocking(true)?;
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let (file, sleeping, over, operations) = (&file, &sleeping, &over, &operations);
            scope.spawn(
                move || while read_events(sleeping, 2).is_ok_and(|some| !some.is_empty()) {},
            );
            scope.spawn(move || while sleeping.write(&[1, 2, 3]).is_ok() {});
            let busy: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(move || -> Result<()> {
                        let edge = Edge::of(file, libc::EPOLLIN | libc::EPOLLOUT)?;
                        while !over.load(Ordering::Acquire) {
                            let _ = read_events(file, 2);
                            let _ = file.write(&[7]);
                            poll(file, libc::POLLIN, Duration::from_millis(1))?;
                            edge.next(Duration::ZERO)?;
                            operations.fetch_add(1, Ordering::Relaxed);
                        }
                        same("at the end", poll(file, libc::POLLIN, Duration::ZERO)?, libc::POLLHUP)
                    })
                })
                .collect();
            std::thread::sleep(Duration::from_micros(round % 16 * 50));
            let ended = match round % 2 {
                0 => evd.free().map_err(anyhow::Error::from),
                _ => ia.close(Close::Abrupt).map_err(anyhow::Error::from),
            };
            over.store(true, Ordering::Release);
            for thread in busy {
                thread.join().ok().context("a thread has panicked")??;
            }
            ended
        })?;
    }
    ensure!(operations.load(Ordering::Relaxed) > 0, "no operation ran beside the ends");
    no_objects_left(context.settings.scale)
}

pub fn kills(context: &Context) -> Result<()> {
    for round in 0..context.count(20).max(3) {
        let ia = context.open()?;
        let evd = ia.create_evd(EvdFlags::SOFTWARE, 16)?;
        let file = evd.file()?;
        let mut readers = Vec::new();
        for _ in 0..3 {
            let mut command = Command::new("dd");
            command.args(["bs=64", "status=none"]).stdout(Stdio::null());
            command.stdin(Stdio::from(std::os::fd::AsFd::as_fd(&file).try_clone_to_owned()?));
            readers.push(command.spawn()?);
        }
        (0..10).try_for_each(|number| evd.post_se(number))?;
        std::thread::sleep(Duration::from_millis(round % 5));
        for reader in &mut readers {
            reader.kill()?;
            same("killed by", reader.wait()?.signal(), Some(libc::SIGKILL))?;
        }
        // The file still works.
        file.set_nonblocking(true)?;
        while read_events(&file, 16).is_ok() {}
        evd.post_se(77)?;
        same("event", read_events(&file, 1), Ok(vec![77]))?;
    }
    no_objects_left(context.settings.scale)
}

pub fn index_beside_writer(context: &Context) -> Result<()> {
    let mut rng = context.rng();
    for _ in 0..context.count(50).max(10) {
        let (evd, file) = with_file(context, 8)?;
        file.set_nonblocking(false)?;
        file.write(&[0, 1, 2, 3, 4, 5, 6, 7])?;
        same("first event", take(&evd)?, 0)?;
        let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
        same("second event", take(&evd)?, 1)?;
        same("events that were handed over", mapped.len(), 6)?;
        file.write(&[8, 9])?;
        let worker = Worker::start(move || Ok::<_, anyhow::Error>(file.write(&[77])?))?;
        worker.asleep_in(context, libc::SYS_write)?;
        // No index within the ring: its events are lost, which makes room.
        mapped.set_head(rng.u32(100..u32::MAX - 100));
        evd.query()?;
        context.until("the write returns", || Ok(worker.finished()))?;
        same("words", worker.join()??, 1)?;
        mapped.set_head(6);
        for word in [8, 9, 77] {
            same("event", take(&evd)?, word)?;
        }
        empty(&evd)?;
    }
    Ok(())
}
