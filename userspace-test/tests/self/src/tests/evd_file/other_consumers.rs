// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Files beside the other consumers of an EVD: its waiter, its CNO, and mapped memory.

use super::sleeps::{pointers, reader};
use super::with_file;
use crate::context::Context;
use crate::expect::{empty, refused_as, same};
use crate::records::{now, read_events};
use crate::software::{number, take};
use crate::tests::tests;
use crate::threads::Worker;
use anyhow::{ensure, Result};
use libkdapl::raw::MappedEvents;
use libkdapl::{EvdFlags, Subtype, Type};
use std::sync::Arc;
use std::time::Duration;

tests! {
    waiter, 60, "A waiter and a reader of one EVD are both woken, and one of them gets the event";
    no_waiter, 20, "A sleeping read is not the waiter of its EVD: another thread may wait";
    cno, 20, "An event triggers the EVD's CNO and wakes the reader of its file";
    mapped, 20, "A read takes mapped events first, and each event is taken once";
    unwaitable, 20, "On an unwaitable EVD a sleeping read fails with EPERM, and poll and other reads work";
    resized, 20, "A read gets all events, in order, while its EVD is resized";
}

fn waiter(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    for round in 0..context.count(100).max(5) {
        let reading = reader(context, &file)?;
        let waiting = evd.clone();
        let waiting = Worker::start(move || number(waiting.wait(None, 1)))?;
        waiting.asleep(context)?;
        evd.post_se(2 * round)?;
        context.until("one has the event", || Ok(reading.finished() || waiting.finished()))?;
        // The other one sleeps on. A second event ends it, too.
        evd.post_se(2 * round + 1)?;
        let mut found = pointers(&reading.join()??)?;
        if found.len() == 1 {
            found.push(waiting.join()??.0);
        } else {
            // The reader took both before the waiter looked.
            evd.post_se(0)?;
            same("of the waiter", waiting.join()??.0, 0)?;
        }
        found.sort_unstable();
        same("events", found, vec![2 * round, 2 * round + 1])?;
        empty(&evd)?;
    }
    Ok(())
}

fn no_waiter(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let reading = reader(context, &file)?;
    let second = reader(context, &file)?;
    match evd.wait(Some(Duration::from_millis(1)), 1) {
        Err(error) => ensure!(error.is_timeout(), "{error}"),
        Ok(event) => anyhow::bail!("there is an event: {event:?}"),
    }
    evd.free()?;
    same("the end", reading.join()??.len(), 0)?;
    same("the end", second.join()??.len(), 0)
}

fn cno(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    evd.modify_cno(Some(&cno))?;
    let file = Arc::new(evd.file()?);
    for round in 0..context.count(50).max(5) {
        let reading = reader(context, &file)?;
        evd.post_se(round)?;
        same("trigger", cno.wait(Some(context.patience()))?, Some(evd.handle()))?;
        same("events", pointers(&reading.join()??)?, vec![round])?;
        context.untriggered(&cno)?;
    }
    Ok(())
}

fn mapped(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 16)?;
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    same("the first", take(&evd)?, 0)?;
    same("handed over", mapped.len(), 9)?;
    evd.post_se(10)?;
    same("poll", now(&file)? & libc::POLLIN, libc::POLLIN)?;
    same("one mapped event", read_events(&file, 1), Ok(vec![1]))?;
    let popped = mapped.pop().map(|event| event.cookie);
    same("the next, from memory", popped, Some(2))?;
    same("the others, and the one after them", read_events(&file, 16), Ok((3..=10).collect()))?;
    same("left in memory", mapped.len(), 0)?;
    empty(&evd)?;
    same("left for a read", read_events(&file, 1), Err(libc::EAGAIN))?;
    same("poll", now(&file)?, libc::POLLOUT)
}

fn unwaitable(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let reading = reader(context, &file)?;
    evd.set_unwaitable()?;
    let errno = reading.join()?.map_err(|error| error.errno());
    same("a sleeping read", errno.err(), Some(Some(libc::EPERM)))?;
    refused_as(evd.wait(None, 1), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_UNWAITABLE)?;
    same("another read", read_events(&*file, 1), Err(libc::EPERM))?;
    evd.post_se(1)?;
    same("poll", now(&*file)?, libc::POLLIN | libc::POLLOUT)?;
    same("with an event", read_events(&*file, 2), Ok(vec![1]))?;
    file.set_nonblocking(true)?;
    same("non-blocking", read_events(&*file, 1), Err(libc::EAGAIN))?;
    file.set_nonblocking(false)?;
    evd.clear_unwaitable()?;
    let reading = reader(context, &file)?;
    evd.post_se(2)?;
    same("waitable again", pointers(&reading.join()??)?, vec![2])
}

fn resized(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 16)?;
    let total = context.count(20_000);
    let resizing = evd.clone();
    let worker = Worker::start(move || -> Result<()> {
        for number in 0..total {
            while resizing.post_se(number).is_err() {
                std::thread::yield_now();
            }
            if number % 97 == 0 {
                // Refused while more events are queued than that.
                let _ = resizing.resize(16 << (number % 5));
            }
        }
        Ok(())
    })?;
    let mut next = 0;
    while next < total {
        match read_events(&file, 7) {
            Ok(events) => {
                let expected: Vec<_> = (next..next + events.len() as u64).collect();
                next += events.len() as u64;
                same("events", events, expected)?;
            }
            Err(errno) => same("errno", errno, libc::EAGAIN)?,
        }
    }
    worker.join()?
}
