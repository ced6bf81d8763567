// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of rings, files and processes while commands wait.

use super::super::tests;
use super::commands::{self, InFlight};
use crate::context::Context;
use crate::expect::{refused, same};
use crate::fork::{self, end_of, fork};
use crate::machine::{self, objects};
use crate::software::{software, take};
use crate::trace::Recording;
use anyhow::{ensure, Result};
use io_uring::{squeue::Flags, IoUring};
use libkdapl::uring::Ring;
use libkdapl::{Evd, EvdFlags, Type};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

tests! {
    ring_closes, 30, "A ring that closes ends the waits of its commands, and takes no event";
    kill, 60, "A process that is killed while commands wait leaves nothing behind";
    kill_under_events, 120, "A process that is killed while events complete its commands leaves nothing behind";
    release_is_own_work, 30, "The adapter of a process that ends with commands waiting is closed by a work item of the module, not by a worker that all users share";
    file_closes_first, 30, "A command keeps the file open: its wait goes on after the program has closed the file";
    shared_ring, 60, "Commands of a parent and its child on one ring: each answer reaches the memory of its own process";
    thread_ends, 30, "A thread that ends with commands in flight loses no event";
}

/// Waits until a thread may wait on the EVD.
fn free_to_wait(context: &Context, evd: &Evd) -> Result<()> {
    context.until("the EVD has no waiter", || {
        Ok(evd.wait(Some(Duration::ZERO), 1).err().and_then(|error| error.kind())
            == Some(Type::TIMEOUT_EXPIRED))
    })
}

fn ring_closes(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evds =
        (0..50).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 4)).collect::<Result<Vec<_>, _>>()?;
    for round in 0..5 {
        let mut ring = IoUring::new(64)?;
        let mut waits = Vec::new();
        for (number, evd) in (0..).zip(&evds) {
            waits.push(InFlight::start(&mut ring, evd, Flags::empty(), number)?);
        }
        if round % 2 == 1 {
            // Their wake-ups have run the commands, or the close cancels them.
            evds.iter().try_for_each(|evd| evd.post_se(round))?;
        }
        drop(ring);
        for (evd, wait) in evds.iter().zip(&waits) {
            context.until("the wait has ended", || {
                let waits = evd.wait(Some(Duration::ZERO), 2).err().and_then(|error| error.kind());
                Ok(waits != Some(Type::INVALID_STATE))
            })?;
            let taken = wait.message.read().taken;
            same("events", u32::from(take(evd).is_ok()) + taken, u32::from(round % 2 == 1))?;
        }
    }
    Ok(evds.iter().try_for_each(Evd::free)?)
}

/// Starts a process that has many commands waiting, and reports when they do.
fn waiting_process(context: &Context, post: bool) -> Result<i32> {
    let (mut ready, mut report) = UnixStream::pair()?;
    let child = fork(|| {
        let ia = context.open()?;
        let mut ring = Ring::new(64)?;
        ring.provide_buffers(4, 4)?;
        let cno = ia.create_cno(None)?;
        let mut evds = Vec::new();
        for tag in 0..60 {
            let evd = ia.create_evd(EvdFlags::SOFTWARE, 16)?;
            match tag % 3 {
                0 => ring.stream(&evd, 1, tag)?,
                1 => ring.wait_evd(&evd, None, 2, 2, tag)?,
                _ => ring.wait_cno(&cno, Some(Duration::from_secs(3600)), tag)?,
            }
            evds.push(evd);
        }
        ring.submit()?;
        report.write_all(&[1])?;
        loop {
            if !post {
                std::thread::sleep(Duration::from_secs(3600));
            }
            for evd in &evds {
                let _ = evd.post_se(1);
            }
            cno.trigger()?;
            ring.submit()?;
            while let Some(completion) = ring.take() {
                let tag = completion.tag;
                let evd = &evds[tag as usize];
                if completion.more {
                    continue;
                }
                match tag % 3 {
                    0 => ring.stream(evd, 1, tag)?,
                    1 => ring.wait_evd(evd, None, 2, 2, tag)?,
                    _ => ring.wait_cno(&cno, None, tag)?,
                }
            }
        }
    })?;
    ready.read_exact(&mut [0])?;
    Ok(child)
}

fn killed(context: &Context, post: bool, rounds: u64) -> Result<()> {
    let before = objects()?;
    let mut rng = context.rng();
    for _ in 0..rounds {
        let child = waiting_process(context, post)?;
        ensure!(machine::count_of("evd")? >= 60, "the child has no EVDs");
        if post {
            std::thread::sleep(Duration::from_micros(rng.u64(0..3000)));
        }
        // SAFETY: it signals a child of this process.
        unsafe { libc::kill(child, libc::SIGKILL) };
        let status = end_of(child)?;
        ensure!(libc::WIFSIGNALED(status), "the child ended by itself: {status:#x}");
        context.until("the objects are as before", || Ok(objects()? == before))?;
    }
    Ok(())
}

/// io_uring ends the commands of a dead process in a worker, and thus drops the last reference to
/// the file there.
fn release_is_own_work(context: &Context) -> Result<()> {
    let before = objects()?;
    let child = waiting_process(context, false)?;
    let recording = Recording::of_work()?;
    fork::kill(child)?;
    end_of(child)?;
    context.until("the objects are as before", || Ok(objects()? == before))?;
    let work = recording.work_of("kdapl")?;
    ensure!(work.iter().any(|name| name.contains("Client")), "work items: {work:?}");
    Ok(())
}

fn kill(context: &Context) -> Result<()> {
    killed(context, false, 3)
}

fn kill_under_events(context: &Context) -> Result<()> {
    killed(context, true, context.count(40).max(5))
}

fn file_closes_first(context: &Context) -> Result<()> {
    let before = objects()?;
    let evd = software(context, 4)?;
    let mut ring = Ring::new(4)?;
    ring.wait_evd(&evd, Some(Duration::from_millis(50)), 1, 1, 1)?;
    ring.submit()?;
    let mut plain = IoUring::new(4)?;
    let other = software(context, 4)?;
    let wait = InFlight::start(&mut plain, &other, Flags::empty(), 1)?;
    // The last descriptor of that file.
    drop(other);
    ensure!(machine::count_of("ia")? >= 2, "the IA has ended");
    refused(super::ring::outcome(&mut ring, 1)?, Type::TIMEOUT_EXPIRED)?;
    drop((ring, evd));
    // The end of the ring ends the command, and with it the file.
    drop(plain);
    context.until("the objects are as before", || Ok(objects()? == before))?;
    same("the message is as it was", wait.message.read().taken, 0)
}

fn shared_ring(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (ours, theirs) =
        (ia.create_evd(EvdFlags::SOFTWARE, 4)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    let mut ring = IoUring::new(8)?;
    let wait = InFlight::start(&mut ring, &ours, Flags::empty(), 1)?;
    // The child uses the same ring and the same file, in memory of its own. It completes its own
    // wait, and leaves another one in flight when it ends.
    let child = fork(|| {
        let inner = InFlight::start(&mut ring, &theirs, Flags::empty(), 2)?;
        theirs.post_se(22)?;
        same("result in the child", commands::result(&mut ring, 2)?, 0)?;
        same("event in the child", inner.event.read().cookie, 22)?;
        same("taken in the child", inner.message.read().taken, 1)?;
        std::mem::forget(InFlight::start(&mut ring, &theirs, Flags::empty(), 3)?);
        Ok(())
    })?;
    same("the child's end", end_of(child)?, 0)?;
    same("the parent's message", wait.message.read().taken, 0)?;
    ours.post_se(11)?;
    same("result", commands::result(&mut ring, 1)?, 0)?;
    same("taken", wait.message.read().taken, 1)?;
    // The event that the dead child's command would have taken is not lost.
    theirs.post_se(33)?;
    drop(ring);
    context.until("the child's wait has ended", || {
        Ok(theirs.wait(Some(Duration::ZERO), 2).err().and_then(|error| error.kind())
            != Some(Type::INVALID_STATE))
    })?;
    same("event", take(&theirs)?, 33)
}

fn thread_ends(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let inner = evd.clone();
    // The ring outlives its thread.
    let (ring, wait) = std::thread::spawn(move || -> Result<_> {
        let mut ring = IoUring::new(8)?;
        let wait = InFlight::start(&mut ring, &inner, Flags::empty(), 1)?;
        Ok((ring, wait))
    })
    .join()
    .map_err(|_| anyhow::anyhow!("the thread panicked"))??;
    evd.post_se(5)?;
    drop(ring);
    context.until("the wait has ended", || {
        Ok(evd.wait(Some(Duration::ZERO), 2).err().and_then(|error| error.kind())
            != Some(Type::INVALID_STATE))
    })?;
    same("taken by the command", wait.message.read().taken, 0)?;
    same("event", take(&evd)?, 5)?;
    free_to_wait(context, &evd)
}
