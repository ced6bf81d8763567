// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events that a process takes from memory: "Mapped events" in `docs/ioctl/events.md`.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{connection, done, empty, refused, same};
use crate::raw::{map, offset_of, protect, Mapped};
use crate::software::{number, post_all, software, take, take_all};
use crate::threads::Worker;
use anyhow::{ensure, Result};
use libkdapl::raw::{call, MappedEvents};
use libkdapl::sys::*;
use libkdapl::{Close, ConnectionEvent, DtoOperation, Evd, EvdFlags, Type};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    handed_over, 20, "A call that leaves events behind hands them over to mapped memory, in their order";
    every_taker, 120, "Calls and threads that take mapped events get each event once, in order";
    counts, 20, "Mapped events count for a wait, a query, a resize, a CNO and the queue length";
    calls_only, 20, "Mapped events are taken by calls, which fail as they should, once waits are stopped";
    rights, 20, "A process cannot write mapped events, map other lengths, or map an EVD that is gone";
    outlives, 20, "A mapping outlives its EVD and its IA";
    room_is_used, 60, "Completions that wait for room use that of events which were just taken from memory";
    scribbled, 120, "A process that scribbles over its index under load harms only its own events";
}

/// Takes one event, and lets the next call hand the others over.
fn map_by_dequeue(evd: &Evd, first: u64) -> Result<MappedEvents> {
    same("first event", take(evd)?, first)?;
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    same("events that were handed over before", mapped.len(), 0)?;
    same("second event", take(evd)?, first + 1)?;
    Ok(mapped)
}

fn handed_over(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    let mapped = map_by_dequeue(&evd, 0)?;
    same("events that were handed over", mapped.len(), 8)?;
    evd.post_se(10)?;
    for expected in 2..9 {
        let (found, nmore) = number(evd.dequeue())?;
        same("event", found, expected)?;
        same("mapped events that are left", u64::from(nmore), 9 - expected)?;
        same("length", mapped.len(), nmore)?;
    }
    // The last of them is taken by a call, which knows of the one that is not mapped, and maps it.
    same("last event, and number left", number(evd.dequeue())?, (9, 1))?;
    same("events that were handed over", mapped.len(), 1)?;
    same("event after those, and number left", number(evd.dequeue())?, (10, 0))?;
    empty(&evd)
}

/// Takes an event by a call.
pub fn call_dequeue(evd: &Evd) -> Result<Option<u64>> {
    let mut event = kdapl_event::default();
    let mut message = kdapl_evd_wait {
        handle: evd.handle().0,
        max_events: 1,
        events: std::ptr::from_mut(&mut event) as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    match crate::raw::call(evd.device(), call::EVD_DEQUEUE, &mut message) {
        Ok(()) => Ok(Some(event.cookie)),
        Err(error) if error.is_empty() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn every_taker(context: &Context) -> Result<()> {
    const POSTERS: u64 = 2;
    let each = context.count(20_000);
    let evd = software(context, 64)?;
    let (done, patience) = (AtomicBool::new(false), context.patience());
    let taken = std::thread::scope(|scope| -> Result<Vec<Vec<u64>>> {
        let (evd, done) = (&evd, &done);
        let takers: Vec<_> = (0..3)
            .map(|taker| {
                scope.spawn(move || -> Result<Vec<u64>> {
                    let mut own = Vec::new();
                    loop {
                        let last = done.load(Ordering::Acquire);
                        let found = match taker {
                            0 => call_dequeue(evd)?,
                            _ => match number(evd.dequeue()) {
                                Ok((found, _)) => Some(found),
                                Err(error)
                                    if error
                                        .downcast_ref()
                                        .is_some_and(libkdapl::Error::is_empty) =>
                                {
                                    None
                                }
                                Err(error) => return Err(error),
                            },
                        };
                        match found {
                            Some(found) => own.push(found),
                            None if last => return Ok(own),
                            None => std::thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| scope.spawn(move || post_all(evd, poster, each, patience)))
            .collect();
        let posted = posters.into_iter().try_for_each(|poster| poster.join().expect("it ends"));
        done.store(true, Ordering::Release);
        let taken = takers.into_iter().map(|taker| taker.join().expect("it ends")).collect();
        posted.and(taken)
    })?;
    check_each_once(&taken, POSTERS, each)
}

/// Checks that each poster's events were taken once, and by each taker in their order.
fn check_each_once(taken: &[Vec<u64>], posters: u64, each: u64) -> Result<()> {
    let (poster_of, all) = (|word: u64| word >> 32, taken.concat());
    for own in taken {
        for poster in 0..posters {
            let words: Vec<_> = own.iter().filter(|word| poster_of(**word) == poster).collect();
            ensure!(words.is_sorted(), "a taker got events of poster {poster} out of order");
        }
    }
    let mut all = all;
    all.sort_unstable();
    let expected = (0..posters).flat_map(|poster| (0..each).map(move |n| (poster << 32) | n));
    ensure!(all.iter().copied().eq(expected), "{} events were taken", all.len());
    println!("taken by a call {}, and otherwise {}", taken[0].len(), all.len() - taken[0].len());
    Ok(())
}

fn counts(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 8)?;
    (0..8).try_for_each(|number| evd.post_se(number))?;
    let mapped = map_by_dequeue(&evd, 0)?;
    same("events that were handed over", mapped.len(), 6)?;
    same("queued", evd.query()?.queued, 6)?;
    refused(evd.resize(4), Type::INVALID_STATE)?;
    (8..10).try_for_each(|number| evd.post_se(number))?;
    refused(evd.post_se(10), Type::QUEUE_FULL)?;
    (2..6).try_for_each(|number| same("event", take(&evd)?, number))?;
    (10..12).try_for_each(|number| evd.post_se(number))?;
    same("queued", evd.query()?.queued, 6)?;
    same("mapped of them", mapped.len(), 2)?;
    let cno = ia.create_cno(None)?;
    evd.modify_cno(Some(&cno))?;
    same("EVD with mapped events", cno.wait(Some(context.patience()))?, Some(evd.handle()))?;
    let waiter = evd.clone();
    let patience = Some(context.patience());
    let worker = Worker::start(move || waiter.wait(patience, 7))?;
    worker.asleep(context)?;
    evd.post_se(12)?;
    same("event", number(worker.join()?)?.0, 6)?;
    (7..13).try_for_each(|number| same("event", take(&evd)?, number))
}

fn calls_only(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    (0..8).try_for_each(|number| evd.post_se(number))?;
    let mapped = map_by_dequeue(&evd, 0)?;
    evd.set_unwaitable()?;
    ensure!(mapped.pop().is_none(), "an event was taken without a call");
    refused(evd.wait(Some(Duration::ZERO), 1), Type::INVALID_STATE)?;
    same("event by a call", take(&evd)?, 2)?;
    evd.clear_unwaitable()?;
    same("event by a wait", number(evd.wait(Some(Duration::ZERO), 1))?.0, 3)?;
    same("event from memory", mapped.pop().map(|event| event.cookie), Some(4))?;
    evd.free()?;
    ensure!(mapped.pop().is_none(), "an event of a freed EVD was taken");
    refused(evd.dequeue(), Type::INVALID_HANDLE)
}

fn rights(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    let (device, handle) = (evd.device(), evd.handle().0);
    let page = 4096;
    let (events, index) = (offset_of(handle, KDAPL_MAP_EVENTS), offset_of(handle, KDAPL_MAP_INDEX));
    let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    let execute = libc::PROT_READ | libc::PROT_EXEC;
    let (shared, private) = (libc::MAP_SHARED, libc::MAP_PRIVATE);
    let stale = offset_of(handle ^ (1 << 20), KDAPL_MAP_EVENTS);
    for (what, offset, length, protection, flags, errno) in [
        ("events to write", events, 2 * page, write, shared, libc::EACCES),
        ("events to execute", events, 2 * page, execute, shared, libc::EACCES),
        ("index to execute", index, page, execute, shared, libc::EACCES),
        ("events, private", events, 2 * page, read, private, libc::EINVAL),
        ("index, private", index, page, write, private, libc::EINVAL),
        ("too few events", events, page, read, shared, libc::EINVAL),
        ("too many events", events, 3 * page, read, shared, libc::EINVAL),
        ("too much index", index, 2 * page, write, shared, libc::EINVAL),
        ("between the areas", events + page as u64, page, read, shared, libc::ENXIO),
        ("a stale EVD", stale, 2 * page, read, shared, libc::ENXIO),
        ("no EVD", 0x7fff_ffff_0000, 2 * page, read, shared, libc::ENXIO),
    ] {
        let error = map(device, offset, length, protection, flags).err();
        same(what, error.and_then(|error| error.raw_os_error()), Some(errno))?;
    }
    let mapped: Mapped = map(device, events, 2 * page, read, shared)?;
    let error = protect(&mapped, write).err();
    same("mprotect", error.and_then(|error| error.raw_os_error()), Some(libc::EACCES))
}

fn outlives(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 8)?;
    (0..8).try_for_each(|number| evd.post_se(number))?;
    let mapped = map_by_dequeue(&evd, 0)?;
    let other = ia.create_evd(EvdFlags::SOFTWARE, 8)?;
    let of_other = MappedEvents::new(other.device(), other.handle().0)?;
    other.free()?;
    same("events of a freed EVD", of_other.len(), 0)?;
    ia.close(Close::Abrupt)?;
    ensure!(mapped.pop().is_none(), "an event of a closed adapter was taken");
    mapped.set_head(u32::MAX);
    Ok(())
}

fn room_is_used(context: &Context) -> Result<()> {
    const SENDS: u64 = 16;
    let Pair { client, server, listener: _listener } = Pair::new(context, Shape::default())?;
    let send_all = || -> Result<()> {
        (0..SENDS).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        (0..SENDS).try_for_each(|cookie| client.send(0, 64, cookie))?;
        (0..SENDS).try_for_each(|_| context.next(&server.recv).map(drop))
    };
    send_all()?;
    client.request.wait(Some(context.patience()), SENDS as i32)?;
    let mapped = MappedEvents::new(client.request.device(), client.request.handle().0)?;
    client.request.dequeue()?;
    same("events that were handed over", u64::from(mapped.len()), SENDS - 2)?;
    send_all()?;
    // Its event comes when all requests have completed. Two of them find room.
    client.ep.disconnect(Close::Graceful)?;
    context.until("completions wait for room", || Ok(mapped.calls_only()))?;
    // Threads take events that have looked at the flag before.
    mapped.set_head(SENDS as u32 - 2);
    same("queued", u64::from(client.request.query()?.queued), 2)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    for cookie in 0..SENDS {
        done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
    }
    Ok(())
}

fn scribbled(context: &Context) -> Result<()> {
    let (evd, other) = (software(context, 64)?, software(context, 64)?);
    let mapped = MappedEvents::new(evd.device(), evd.handle().0)?;
    let (stop, patience) = (AtomicBool::new(false), context.patience());
    let each = context.count(5_000);
    std::thread::scope(|scope| -> Result<()> {
        let mut rng = context.rng();
        let (stop, evd, other) = (&stop, &evd, &other);
        let running = || !stop.load(Ordering::Acquire);
        scope.spawn(move || {
            while running() {
                mapped.set_head(rng.u32(..));
                mapped.set_head(rng.u32(0..200));
            }
        });
        // Any outcome is right for this EVD, but each call ends.
        scope.spawn(move || {
            while running() {
                let _ = evd.post_se(1);
                let _ = evd.query();
            }
        });
        scope.spawn(move || {
            while running() {
                let _ = call_dequeue(evd);
                let _ = evd.wait(Some(Duration::from_micros(10)), 3);
                let _ = evd.resize(32);
            }
        });
        let poster = scope.spawn(move || post_all(other, 0, each, patience));
        let taken = take_all(1, each, || Ok(other.wait(Some(patience), 1)?.0));
        stop.store(true, Ordering::Release);
        poster.join().expect("it ends").and(taken)
    })?;
    empty(&other)?;
    Ok(evd.free()?)
}
