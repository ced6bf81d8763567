// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Signals that end a wait, and those that do not: "Signals" in `docs/ioctl.md`.

use super::tests;
use super::uring::commands::{self, InFlight};
use super::wait::{interrupt, interruptible};
use crate::context::Context;
use crate::expect::{empty, refused, same};
use crate::fork::Child;
use crate::software::{number, software, take};
use crate::threads::{sleeps, Worker};
use anyhow::{ensure, Result};
use io_uring::{squeue::Flags, IoUring};
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_evd_wait, kdapl_event};
use libkdapl::{Evd, EvdFlags, Type};
use std::fs;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

tests! {
    stopped_and_continued, 30, "A process that is stopped amid a wait and continued gets its event";
    time_out, 30, "A process that is stopped amid a wait does not wait longer for its time-out";
    durations, 30, "A stop ends a wait for a duration in nanoseconds with EINTR, and changes no field";
    restarting_handler, 20, "A handler ends waits on EVDs and CNOs, also with SA_RESTART";
    beside_io_uring, 60, "Work of io_uring for a thread does not end its waits";
    polls_beside_io_uring, 60, "Work of io_uring for a thread does not end its waits without time";
}

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));

/// Waits until a child sleeps.
fn asleep(context: &Context, child: &Child) -> Result<()> {
    context.until("the child sleeps", || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.pid))?;
        ensure!(!stat.contains(") Z "), "the child has ended");
        sleeps(child.pid, child.pid)
    })
}

/// Stops a child, and continues it unless it has ended. Returns whether it was stopped.
fn pause(child: &mut Child) -> Result<bool> {
    child.signal(libc::SIGSTOP)?;
    let stopped = child.stops()?;
    child.signal(libc::SIGCONT)?;
    Ok(stopped)
}

/// Stops a child once it sleeps, and continues it.
fn stop_and_continue(context: &Context, child: &mut Child) -> Result<()> {
    asleep(context, child)?;
    ensure!(pause(child)?, "the child has ended: {:#x}", child.end()?);
    Ok(())
}

fn stopped_and_continued(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, evd) = (ia.create_cno(None)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    for timeout in [None, HOUR] {
        let on_evd = || same("event", number(evd.wait(timeout, 2))?, (1, 1));
        let on_cno = || same("trigger", cno.wait(timeout)?, None);
        let wait = |child: &mut Child| -> Result<()> {
            for _ in 0..3 {
                stop_and_continue(context, child)?;
            }
            asleep(context, child)
        };
        let mut child = Child::start(on_evd)?;
        wait(&mut child)?;
        (1..3).try_for_each(|number| evd.post_se(number))?;
        same("status of the wait on the EVD", child.end()?, 0)?;
        same("event that is left", take(&evd)?, 2)?;
        let mut child = Child::start(on_cno)?;
        wait(&mut child)?;
        cno.trigger()?;
        same("status of the wait on the CNO", child.end()?, 0)?;
    }
    Ok(())
}

fn time_out(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let timeout = Duration::from_secs(1);
    let mut child = Child::start(|| {
        let start = Instant::now();
        refused(evd.wait(Some(timeout), 1), Type::TIMEOUT_EXPIRED)?;
        ensure!(start.elapsed() >= timeout, "the wait ended early");
        Ok(())
    })?;
    // A time-out that began anew with each stop would never expire.
    let start = Instant::now();
    loop {
        if !pause(&mut child)? {
            return same("status", child.end()?, 0);
        }
        let elapsed = start.elapsed();
        ensure!(elapsed <= timeout + context.patience(), "no time-out in {elapsed:?}");
        sleep(timeout / 50);
    }
}

fn durations(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut child = Child::start(|| {
        let mut event = kdapl_event::default();
        let mut message = kdapl_evd_wait {
            timeout_ns: 3_600_000_000_000,
            taken: 17,
            ..commands::wait_message(&evd, std::ptr::from_mut(&mut event) as u64)
        };
        message.hdr.ret = 18;
        let (request, address) = (call::EVD_WAIT.request(), std::ptr::from_mut(&mut message));
        // SAFETY: the message is as long as the request says, and has room for an event.
        let waited = unsafe { evd.device().ioctl(request, address.cast()) };
        same("errno", waited.map_err(|error| error.raw_os_error()), Err(Some(libc::EINTR)))?;
        same("fields", (message.hdr.ret, message.taken), (18, 17))
    })?;
    stop_and_continue(context, &mut child)?;
    same("status", child.end()?, 0)?;
    empty(&evd)
}

fn restarting_handler(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (cno, evd) = (ia.create_cno(None)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    for flags in [0, libc::SA_RESTART] {
        interruptible(flags);
        for timeout in [None, HOUR] {
            let waits: [Box<dyn FnOnce() -> Result<(), libkdapl::Error> + Send>; 2] = [
                Box::new({
                    let evd = evd.clone();
                    move || evd.wait(timeout, 1).map(drop)
                }),
                Box::new({
                    let cno = cno.clone();
                    move || cno.wait(timeout).map(drop)
                }),
            ];
            for wait in waits {
                let worker = Worker::start(wait)?;
                worker.asleep(context)?;
                interrupt(worker.tid);
                refused(worker.join()?, Type::INTERRUPTED_CALL)?;
            }
        }
    }
    Ok(())
}

fn beside_io_uring(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (by_command, by_call) =
        (ia.create_evd(EvdFlags::SOFTWARE, 4)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    for round in 0..context.count(100).max(10) {
        let (commanded, called) = (by_command.clone(), by_call.clone());
        let timeout = if round % 2 == 0 { None } else { HOUR };
        let worker = Worker::start(move || -> Result<()> {
            let mut ring = IoUring::new(4)?;
            let wait = InFlight::start(&mut ring, &commanded, Flags::empty(), 7)?;
            same("event of the call", number(called.wait(timeout, 1))?, (round, 0))?;
            same("result of the command", commands::result(&mut ring, 7)?, 0)?;
            same("event of the command", wait.event.read().cookie, round)
        })?;
        worker.asleep(context)?;
        by_command.post_se(round)?;
        context.until("the command takes its event", || Ok(by_command.query()?.queued == 0))?;
        by_call.post_se(round)?;
        worker.join()??;
    }
    Ok(())
}

/// Waits without time, while commands of the thread complete, until `enough` have.
fn poll(commanded: &Evd, polled: &Evd, enough: u64, next: impl Fn() -> Result<()>) -> Result<()> {
    let mut ring = IoUring::new(4)?;
    for number in 0..enough {
        let wait = InFlight::start(&mut ring, commanded, Flags::empty(), number)?;
        next()?;
        while ring.completion().is_empty() {
            for timeout in [Duration::ZERO, Duration::from_nanos(1)] {
                refused(polled.wait(Some(timeout), 1), Type::TIMEOUT_EXPIRED)?;
            }
        }
        same("result of the command", commands::result(&mut ring, number)?, 0)?;
        same("event of the command", wait.event.read().cookie, number)?;
    }
    Ok(())
}

fn polls_beside_io_uring(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (commanded, polled) =
        (ia.create_evd(EvdFlags::SOFTWARE, 4)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    let (ask, asked) = channel();
    let posted = commanded.clone();
    let enough = context.count(2000).max(100);
    let worker = Worker::start(move || poll(&commanded, &polled, enough, || Ok(ask.send(())?)))?;
    for number in 0..enough {
        if asked.recv().is_err() {
            break;
        }
        posted.post_se(number)?;
    }
    worker.join()?
}
