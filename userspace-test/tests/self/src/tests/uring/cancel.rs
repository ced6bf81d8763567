// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Cancelling commands that wait.

use super::super::tests;
use super::commands::{self, cancel_message, entry, push, reap, HeapMessage, InFlight};
use super::ring::{all_of, events, outcome};
use crate::context::Context;
use crate::expect::{empty, errno, refused, same};
use crate::software::{software, take};
use crate::threads::Worker;
use anyhow::{bail, ensure, Result};
use io_uring::{opcode, squeue::Flags, IoUring};
use libkdapl::raw::call;
use libkdapl::sys::kdapl_uring_cancel;
use libkdapl::uring::{Outcome, Ring};
use libkdapl::{Evd, EvdFlags, Event, Type};
use std::os::fd::AsRawFd;
use std::time::Duration;

tests! {
    completes_cancelled, 20, "A cancelled wait on an EVD or a CNO, and a cancelled stream, complete with ECANCELED";
    finds_by_user_data, 20, "A cancel finds the waits with its user data, in its own ring and file only";
    nothing_to_cancel, 20, "A cancel that finds no command says so, and is refused as a malformed message is";
    beside_events, 120, "A cancel beside an event: the wait returns the event, or is cancelled and the event stays";
    by_async_cancel, 20, "IORING_OP_ASYNC_CANCEL does not find a command of 7.2: the cancel of kDAPL ends it";
    from_a_thread_of_io_uring, 20, "Waits and cancels that begin in a thread of io_uring's occupy no thread, and end";
}

/// Cancels the command `tag` and checks that it was found.
fn cancel(ring: &mut Ring, tag: u64) -> Result<()> {
    ring.cancel(tag, 1000)?;
    let mut results = all_of(ring, &[tag, 1000])?;
    let (_, of_cancel) = results.pop().unwrap_or_else(|| unreachable!());
    ensure!(matches!(of_cancel?, Outcome::Cancelled(1)), "the command was not found");
    let (_, cancelled) = results.pop().unwrap_or_else(|| unreachable!());
    errno(cancelled, libc::ECANCELED)
}

fn completes_cancelled(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let cno = ia.create_cno(None)?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(2, 2)?;
    for timeout in [None, Some(Duration::from_secs(3600))] {
        ring.wait_evd(&evd, timeout, 2, 2, 1)?;
        ring.submit()?;
        cancel(&mut ring, 1)?;
        ring.wait_cno(&cno, timeout, 2)?;
        ring.submit()?;
        cancel(&mut ring, 2)?;
    }
    ring.stream(&evd, 1, 3)?;
    ring.submit()?;
    cancel(&mut ring, 3)?;
    // Nothing waits any more, and the next event is for the next wait.
    evd.post_se(5)?;
    ring.wait_evd(&evd, None, 1, 1, 4)?;
    same("event", events(&mut ring, 4)?, vec![5])?;
    cno.free()?;
    Ok(evd.free()?)
}

/// Cancels commands by their user data with a command for the file of `evd`. Returns their number.
fn cancel_plain(ring: &mut IoUring, evd: &Evd, user_data: u64, flags: Flags) -> Result<u32> {
    let mut message = HeapMessage::new(cancel_message(user_data));
    let (fd, op) = (evd.device().as_raw_fd(), call::URING_CANCEL.request());
    push(ring, &entry(fd, op, [message.address(), 0], 2000).flags(flags))?;
    // A cancelled command may complete first.
    let mut others = Vec::new();
    loop {
        let completion = reap(ring)?;
        if completion.user_data() != 2000 {
            others.push((completion.user_data(), completion.result()));
            continue;
        }
        same("cancel", completion.result(), 0)?;
        same("DAT code", message.read().hdr.ret, 0)?;
        let found = message.read().found;
        while others.len() < found as usize {
            let completion = reap(ring)?;
            others.push((completion.user_data(), completion.result()));
        }
        let all = vec![(user_data, -libc::ECANCELED); found as usize];
        same("cancelled commands", others, all)?;
        return Ok(found);
    }
}

fn finds_by_user_data(context: &Context) -> Result<()> {
    let (ia, other_ia) = (context.open()?, context.open()?);
    let evds = |ia: &libkdapl::Ia| {
        (0..3).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 4)).collect::<Result<Vec<_>, _>>()
    };
    let (evds, other_evds) = (evds(&ia)?, evds(&other_ia)?);
    let (mut one, mut two) = (IoUring::new(16)?, IoUring::new(16)?);
    let none = Flags::empty();
    let mut waits = Vec::new();
    for (evd, user_data) in [(&evds[0], 7), (&evds[1], 7), (&other_evds[0], 7), (&other_evds[1], 8)]
    {
        waits.push(InFlight::start(&mut one, evd, none, user_data)?);
    }
    waits.push(InFlight::start(&mut two, &evds[2], none, 7)?);
    same("of another number", cancel_plain(&mut one, &evds[0], 6, none)?, 0)?;
    same("of this file", cancel_plain(&mut one, &evds[0], 7, none)?, 2)?;
    same("again", cancel_plain(&mut one, &evds[0], 7, none)?, 0)?;
    same("of the other file", cancel_plain(&mut one, &other_evds[0], 7, none)?, 1)?;
    same("of the other ring", cancel_plain(&mut two, &evds[0], 7, none)?, 1)?;
    same("the last", cancel_plain(&mut one, &other_evds[0], 8, none)?, 1)
}

fn nothing_to_cancel(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    same("found", cancel_plain(&mut ring, &evd, 0, Flags::empty())?, 0)?;
    let (fd, op) = (evd.device().as_raw_fd(), call::URING_CANCEL.request());
    let mut message = HeapMessage::new(cancel_message(0));
    // A cancel is no request of ioctl.
    // SAFETY: the message is as long as the request says.
    let asked = unsafe { evd.device().ioctl(op, message.address() as *mut _) };
    same("ioctl", asked.map_err(|error| error.raw_os_error()), Err(Some(libc::ENOTTY)))?;
    let mut padded = HeapMessage::new(kdapl_uring_cancel { pad: 1, ..cancel_message(0) });
    same(
        "padding",
        commands::run(&mut ring, entry(fd, op, [padded.address(), 0], 0))?,
        -libc::EINVAL,
    )?;
    same("unmapped", commands::run(&mut ring, entry(fd, op, [0x10, 0], 0))?, -libc::EFAULT)
}

fn beside_events(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    let (mut with_event, mut without) = (0, 0);
    let (send, numbers) = std::sync::mpsc::sync_channel::<u64>(0);
    let poster = evd.clone();
    let poster = Worker::start(move || -> Result<()> {
        numbers.iter().try_for_each(|number| Ok(poster.post_se(number)?))
    })?;
    for number in 0..context.count(5_000).max(200) {
        ring.wait_evd(&evd, None, 1, 1, 1)?;
        ring.submit()?;
        send.send(number)?;
        ring.cancel(1, 2)?;
        let mut results = all_of(&mut ring, &[1, 2])?;
        let (_, cancelled) = results.pop().unwrap_or_else(|| unreachable!());
        ensure!(matches!(cancelled?, Outcome::Cancelled(0 | 1)), "the cancel");
        let (_, waited) = results.pop().unwrap_or_else(|| unreachable!());
        match waited {
            Ok(Outcome::Events(events)) => {
                same("events", super::ring::numbers(events)?, vec![number])?;
                with_event += 1;
            }
            Err(error) if error.errno() == Some(libc::ECANCELED) => {
                match evd.wait(Some(context.patience()), 1)? {
                    (Event::Software { pointer }, 0) => same("event", pointer, number)?,
                    other => bail!("expected event {number}, got {other:?}"),
                }
                without += 1;
            }
            other => bail!("{other:?}"),
        }
    }
    drop(send);
    poster.join()??;
    println!("{with_event} waits with their event, {without} cancelled");
    empty(&evd)?;
    Ok(evd.free()?)
}

fn by_async_cancel(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = IoUring::new(8)?;
    let _wait = InFlight::start(&mut ring, &evd, Flags::empty(), 7)?;
    let cancelled = commands::run(&mut ring, opcode::AsyncCancel::new(7).build())?;
    same("IORING_OP_ASYNC_CANCEL", cancelled, -libc::ENOENT)?;
    same("found", cancel_plain(&mut ring, &evd, 7, Flags::empty())?, 1)
}

fn from_a_thread_of_io_uring(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let mut ring = IoUring::new(128)?;
    let evds =
        (0..100).map(|_| ia.create_evd(EvdFlags::SOFTWARE, 4)).collect::<Result<Vec<_>, _>>()?;
    let mut waits = Vec::new();
    for (number, evd) in (0..).zip(&evds) {
        waits.push(InFlight::start(&mut ring, evd, Flags::ASYNC, number)?);
    }
    // There are fewer threads than waits. So all waits begin, and are found, only if none of them
    // keeps its thread.
    for (number, evd) in (0_u64..).zip(&evds).step_by(2) {
        context.until("the wait has begun", || {
            Ok(cancel_plain(&mut ring, evd, number, Flags::ASYNC)? == 1)
        })?;
    }
    for (number, evd) in (0_u64..).zip(&evds).skip(1).step_by(2) {
        evd.post_se(number)?;
        same("result", commands::result(&mut ring, number)?, 0)?;
        let wait = &waits[number as usize];
        same("event", (wait.message.read().taken, wait.event.read().cookie), (1, number))?;
    }
    refused(evds[0].wait(Some(Duration::ZERO), 1), Type::TIMEOUT_EXPIRED)?;
    evds[0].post_se(1)?;
    same("event", take(&evds[0])?, 1)?;
    let mut after = Ring::new(4)?;
    after.wait_evd(&evds[1], Some(Duration::ZERO), 1, 1, 1)?;
    refused(outcome(&mut after, 1)?, Type::TIMEOUT_EXPIRED)
}
