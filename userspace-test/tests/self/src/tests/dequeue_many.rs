// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Taking several events in one call.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, empty, errno, refused, refused_as, same};
use crate::raw::{self, Page};
use crate::software::{number, post_all, software};
use crate::threads::{Joined, Worker};
use anyhow::{ensure, Result};
use libkdapl::raw::{call, Call};
use libkdapl::sys::*;
use libkdapl::{CompletionFlags, Dto, DtoOperation, Evd, Event, Subtype, Type};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    in_order, 20, "A dequeue of many takes the events in order: all of them, or as many as fit";
    wait_takes_many, 20,
        "A wait takes as many events as fit, and none before its threshold is reached";
    no_room_for_events, 10, "A dequeue and a wait without room for an event are refused and take none";
    at_most_256_events, 20, "A call takes 256 events at most, and reports how many are left";
    efault_after_some_events, 20,
        "Events that cannot be copied to the consumer stay queued, and those before them are taken";
    efault_at_first_event, 20,
        "A call whose first event cannot be written takes none, does not wait and posts nothing";
    completions_in_order, 20, "Completions are taken many at a time, in the order of their posts";
    submit_takes_many, 20, "A submit takes as many events as fit";
    during_resizes, 120,
        "Events taken many at a time during resizes of their EVD all arrive once, in order";
    two_threads, 60,
        "Two threads that dequeue many at a time share the events, each once and in order";
}

const MS: Duration = Duration::from_millis(1);

fn numbers(events: Vec<Event>) -> Result<Vec<u64>> {
    events.into_iter().map(|event| Ok(number(Ok((event, 0)))?.0)).collect()
}

fn in_order(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    (0..10).try_for_each(|number| evd.post_se(number))?;
    for (most, expected, left) in [(1, 0..1, 9), (3, 1..4, 6), (100, 4..10, 0)] {
        let (events, nmore) = evd.dequeue_many(most)?;
        same("events", numbers(events)?, expected.collect::<Vec<_>>())?;
        same("left", nmore, left)?;
    }
    refused(evd.dequeue_many(5), Type::QUEUE_EMPTY)?;
    empty(&evd)
}

fn wait_takes_many(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || waiting.wait_many(None, 4, 3))?;
    worker.asleep(context)?;
    (0..3).try_for_each(|number| evd.post_se(number))?;
    std::thread::sleep(5 * MS);
    ensure!(!worker.finished(), "woken by three of four events");
    evd.post_se(3)?;
    let (events, left) = worker.join()??;
    same("events and number left", (numbers(events)?, left), (vec![0, 1, 2], 1))?;
    let (events, left) = evd.wait_many(None, 1, 8)?;
    same("events and number left", (numbers(events)?, left), (vec![3], 0))?;
    refused(evd.wait_many(Some(MS), 1, 8), Type::TIMEOUT_EXPIRED)
}

fn no_room_for_events(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for _ in 0..2 {
        refused_as(evd.dequeue_many(0), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
        let waited = evd.wait_many(None, 1, 0);
        refused_as(waited, Type::INVALID_PARAMETER, Subtype::INVALID_ARG4)?;
        evd.post_se(1)?;
    }
    same("events", numbers(evd.dequeue_many(4)?.0)?, vec![1, 1])
}

fn at_most_256_events(context: &Context) -> Result<()> {
    let evd = software(context, 1024)?;
    (0..600).try_for_each(|number| evd.post_se(number))?;
    let mut room = vec![kdapl_event::default(); 600];
    let mut message = message(&evd, room.as_mut_ptr() as u64, 600);
    for (first, taken, left) in [(0, 256, 344), (256, 256, 88), (512, 88, 0)] {
        take(&evd, call::EVD_DEQUEUE, &mut message)?;
        same("taken and left", (message.taken, message.nmore), (taken, left))?;
        let cookies = room.iter().take(taken as usize).map(|event| event.cookie);
        ensure!(cookies.eq(first..first + u64::from(taken)), "expected the events from {first} on");
    }
    Ok(())
}

/// Returns a message for events at an address.
fn message(evd: &Evd, events: u64, max_events: u32) -> kdapl_evd_wait {
    kdapl_evd_wait {
        handle: evd.handle().0,
        timeout_ns: KDAPL_TIMEOUT_INFINITE,
        threshold: 1,
        max_events,
        events,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    }
}

fn take(
    evd: &Evd,
    call: Call<kdapl_evd_wait>,
    message: &mut kdapl_evd_wait,
) -> libkdapl::Result<()> {
    raw::call(evd.device(), call, message)
}

fn efault_after_some_events(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let page = Page::before_nothing()?;
    for call in [call::EVD_DEQUEUE, call::EVD_WAIT] {
        (0..8).try_for_each(|number| evd.post_se(number))?;
        // The page has room for three events, and a part of the fourth.
        let start = page.end() - 3 * 64 - 32;
        let mut message = message(&evd, start, 8);
        take(&evd, call, &mut message)?;
        same("taken and left", (message.taken, message.nmore), (3, 5))?;
        let cookie = |index: usize| {
            let at = 4096 - 3 * 64 - 32 + index * 64 + std::mem::offset_of!(kdapl_event, cookie);
            u64::from_ne_bytes(page.buffer.to_vec(at, 8).try_into().unwrap_or_default())
        };
        same("events", (0..3).map(cookie).collect::<Vec<_>>(), vec![0, 1, 2])?;
        same("the others", numbers(evd.dequeue_many(8)?.0)?, (3..8).collect())?;
    }
    empty(&evd)
}

fn efault_at_first_event(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let page = Page::before_nothing()?;
    for address in [raw::BAD_ADDRESS, 0, page.end() - 63, u64::MAX - 63, 1 << 63] {
        // There is no event: a wait would sleep forever.
        errno(take(&evd, call::EVD_WAIT, &mut message(&evd, address, 2)), libc::EFAULT)?;
    }
    (0..3).try_for_each(|number| evd.post_se(number))?;
    for address in [raw::BAD_ADDRESS, 0, page.end() - 63, u64::MAX - 63, 1 << 63] {
        for call in [call::EVD_DEQUEUE, call::EVD_WAIT] {
            errno(take(&evd, call, &mut message(&evd, address, 2)), libc::EFAULT)?;
            same("events", evd.query()?.queued, 3)?;
        }
    }
    let pair = Pair::new(context, Shape::default())?;
    let client = &pair.client;
    let from = [client.lmr.segment(0, 64)];
    let dtos = [Dto::send(&from, 1, CompletionFlags::default())];
    let mut message = kdapl_ep_submit {
        handle: client.ep.handle().0,
        dtos: dtos.as_ptr() as u64,
        count: 1,
        dto_size: size_of::<kdapl_dto>() as u32,
        evd: client.request.handle().0,
        threshold: 1,
        max_events: 1,
        events: raw::BAD_ADDRESS,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    errno(raw::call(client.ia.device(), call::EP_SUBMIT, &mut message), libc::EFAULT)?;
    ensure!(client.ep.status()?.request_idle, "a DTO was posted");
    same("events", numbers(evd.dequeue_many(8)?.0)?, vec![0, 1, 2])
}

const SENDS: u64 = 16;

fn pair(context: &Context) -> Result<Pair> {
    let pair = Pair::new(context, Shape::default())?;
    (0..SENDS).try_for_each(|i| pair.server.receive(i as usize * 64, 64, i))?;
    Ok(pair)
}

fn completions_in_order(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    (0..SENDS).try_for_each(|i| pair.client.send(0, 64, i))?;
    let patience = Some(context.patience());
    for (evd, operation) in
        [(&pair.client.request, DtoOperation::Send), (&pair.server.recv, DtoOperation::Receive)]
    {
        let mut cookie = 0;
        while cookie < SENDS {
            let (events, _) = evd.wait_many(patience, 1, 5)?;
            ensure!((1..=5).contains(&events.len()), "{} events", events.len());
            for event in &events {
                done(event, operation, 64, cookie)?;
                cookie += 1;
            }
        }
        empty(evd)?;
    }
    Ok(())
}

fn submit_takes_many(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let from = [client.lmr.segment(0, 64)];
    let dtos: Vec<_> =
        (0..SENDS).map(|cookie| Dto::send(&from, cookie, Default::default())).collect();
    let mut room = [kdapl_event::default(); SENDS as usize];
    let mut message = kdapl_ep_submit {
        handle: client.ep.handle().0,
        dtos: dtos.as_ptr() as u64,
        count: SENDS as u32,
        dto_size: size_of::<kdapl_dto>() as u32,
        evd: client.request.handle().0,
        timeout_ns: KDAPL_TIMEOUT_INFINITE,
        threshold: SENDS as i32,
        max_events: SENDS as u32 - 4,
        events: room.as_mut_ptr() as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    raw::call(client.ia.device(), call::EP_SUBMIT, &mut message)?;
    same("posted", message.posted, SENDS as u32)?;
    same("taken and left", (message.taken, message.nmore), (SENDS as u32 - 4, 4))?;
    ensure!(room.iter().map(|event| event.cookie).take(12).eq(0..12), "wrong order");
    ensure!(room[12..].iter().all(|event| event.number == 0), "more events than fit");
    (12..SENDS).try_for_each(|i| done(&context.next(&client.request)?, DtoOperation::Send, 64, i))
}

fn during_resizes(context: &Context) -> Result<()> {
    let evd = &software(context, 16)?;
    let (each, patience) = (context.count(20_000), context.patience());
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let poster = scope.spawn(move || post_all(evd, 0, each, patience));
        let resizer = scope.spawn(move || -> Result<u64> {
            let mut resizes = 0;
            while resizes < 2 || !stop.load(Ordering::Relaxed) {
                for qlen in [64, 16, 256, 8] {
                    match evd.resize(qlen) {
                        Ok(_) => resizes += 1,
                        // More events than that are queued.
                        Err(error) if error.kind() == Some(Type::INVALID_STATE) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(resizes)
        });
        let taken = (|| -> Result<()> {
            let mut next = 0;
            while next < each {
                for number in numbers(evd.wait_many(Some(patience), 1, 7)?.0)? {
                    same("event", number, next)?;
                    next += 1;
                }
            }
            Ok(())
        })();
        stop.store(true, Ordering::Relaxed);
        println!("{} resizes", resizer.join().or_panicked()??);
        poster.join().or_panicked()??;
        taken
    })?;
    empty(evd)
}

fn two_threads(context: &Context) -> Result<()> {
    let evd = &software(context, 64)?;
    let (each, patience) = (context.count(20_000), context.patience());
    let done = &AtomicBool::new(false);
    let mut all = std::thread::scope(|scope| -> Result<Vec<u64>> {
        let takers = [(); 2].map(|()| {
            scope.spawn(move || -> Result<Vec<u64>> {
                let mut all: Vec<u64> = Vec::new();
                loop {
                    let last = done.load(Ordering::SeqCst);
                    match evd.dequeue_many(9) {
                        Ok((events, _)) => all.extend(numbers(events)?),
                        Err(error) if error.is_empty() && last => return Ok(all),
                        Err(error) if error.is_empty() => std::thread::yield_now(),
                        Err(error) => return Err(error.into()),
                    }
                }
            })
        });
        let posted = post_all(evd, 0, each, patience);
        done.store(true, Ordering::SeqCst);
        let mut all = Vec::new();
        for taker in takers {
            let taken = taker.join().or_panicked()??;
            ensure!(taken.is_sorted(), "a thread has taken events in the wrong order");
            all.extend(taken);
        }
        posted?;
        Ok(all)
    })?;
    all.sort_unstable();
    ensure!(all.into_iter().eq(0..each), "events are missing, or arrived twice");
    Ok(())
}
