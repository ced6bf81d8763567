// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Resizes of an EVD, also under traffic.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, empty, refused, refused_as, same};
use crate::software::{post_all, software, take, take_all};
use crate::threads::{Joined, Worker};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{DtoOperation, Evd, EvdFlags, Event, Subtype, Type};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    keeps_events, 20, "An EVD resize keeps queued events and their order";
    too_short, 20,
        "A resize to less than the number of queued events is refused and changes nothing";
    length_range, 10, "A resize to zero, a negative or too large length, or of a stale EVD, is refused";
    during_wait, 20,
        "Resizes do not wake a waiter below its threshold, and a length below that is refused";
    room_for_completions, 30, "A resize of a full EVD makes room for completions that wait in its CQ";
    software_event_storm, 120,
        "Software events posted and taken during resizes of their EVD all arrive once, in order";
    #[Transport]
    completion_storm, 120,
        "Completions that arrive during resizes of their EVD are all reported once, in order";
}

const MS: Duration = Duration::from_millis(1);

/// Posts until the EVD is full. Returns how many events it accepted.
fn fill(evd: &Evd, first: u64) -> Result<u64> {
    for count in 0.. {
        match evd.post_se(first + count) {
            Ok(()) => {}
            Err(error) if error.kind() == Some(Type::QUEUE_FULL) => return Ok(count),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(0)
}

fn take_these(evd: &Evd, expected: std::ops::Range<u64>) -> Result<()> {
    for number in expected {
        same("event", take(evd).with_context(|| format!("event {number}"))?, number)?;
    }
    Ok(())
}

fn keeps_events(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let (mut posted, mut taken) = (0, 0);
    // Each step keeps at most half of the new queue length, so that the ring's indices wrap around.
    for (asked, got) in [(5, 8), (100, 128), (4096, 4096), (60, 64), (16, 16), (3, 4), (4, 4)] {
        let before = evd.query()?;
        let keep = u64::from(before.queued).min(got as u64 / 2);
        take_these(&evd, taken..posted - keep)?;
        taken = posted - keep;
        same("length", evd.resize(asked)?, got)?;
        let query = evd.query()?;
        same("length and events", (query.qlen, u64::from(query.queued)), (got, keep))?;
        posted += fill(&evd, posted)?;
        same("events in a full EVD", posted - taken, got as u64)?;
        same("events after the first", evd.wait(Some(MS), got)?.1 as i32, got - 1)?;
        taken += 1;
    }
    take_these(&evd, taken..posted)?;
    empty(&evd)
}

fn too_short(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    (0..9).try_for_each(|number| evd.post_se(number))?;
    for qlen in [1, 4, 8] {
        refused(evd.resize(qlen), Type::INVALID_STATE)?;
        same("length", evd.query()?.qlen, 16)?;
    }
    same("events in a full EVD", 9 + fill(&evd, 9)?, 16)?;
    take_these(&evd, 0..8)?;
    same("length", evd.resize(8)?, 8)?;
    refused(evd.post_se(77), Type::QUEUE_FULL)?;
    take_these(&evd, 8..16)
}

fn length_range(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let most = i32::try_from(ia.query()?.raw.max_evd_qlen)?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE | EvdFlags::DTO, 4)?;
    for qlen in [0, -1, i32::MIN, most + 1, i32::MAX] {
        refused_as(evd.resize(qlen), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    }
    same("length", evd.query()?.qlen, 4)?;
    same("longest length", evd.resize(most)?, most)?;
    same("length", ia.async_evd().resize(64)?, 64)?;
    evd.free()?;
    refused_as(evd.resize(8), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EVD_REQUEST)
}

fn during_wait(context: &Context) -> Result<()> {
    let evd = software(context, 16)?;
    let waiting = evd.clone();
    let worker = Worker::start(move || waiting.wait(None, 6).map(|(_, more)| more))?;
    worker.asleep(context)?;
    refused_as(evd.resize(4), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER)?;
    for (number, qlen) in [8, 64, 16, 8, 128].into_iter().enumerate() {
        evd.resize(qlen)?;
        evd.post_se(number as u64)?;
        std::thread::sleep(2 * MS);
        ensure!(!worker.finished(), "woken by {} events", number + 1);
    }
    evd.post_se(5)?;
    same("events after the first", worker.join()??, 5)?;
    evd.resize(8)?;
    refused(evd.wait(Some(MS), 9), Type::INVALID_PARAMETER)
}

fn room_for_completions(context: &Context) -> Result<()> {
    const MESSAGES: u64 = 32;
    let pair = Pair::new(context, Shape { receives: 64, requests: 64, ..Default::default() })?;
    let recv = &pair.server.recv;
    same("length", recv.resize(2)?, 2)?;
    for number in 0..MESSAGES {
        pair.server.receive(0, 64, number)?;
        pair.client.send(0, 64, number)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, number)?;
    }
    // Two are queued, the others are still in the CQ.
    ensure!(recv.query()?.queued <= 2, "more events queued than the length allows");
    same("length", recv.resize(64)?, 64)?;
    let (event, more) = recv.wait(Some(context.patience()), MESSAGES as i32)?;
    done(&event, DtoOperation::Receive, 64, 0)?;
    same("events after the first", u64::from(more), MESSAGES - 1)?;
    (1..MESSAGES).try_for_each(|number| done(&recv.dequeue()?.0, DtoOperation::Receive, 64, number))
}

/// Resizes until `stop` is set. Returns the number of successful resizes.
pub fn resize_on(evd: &Evd, mut rng: fastrand::Rng, stop: &AtomicBool) -> Result<u64> {
    let mut resized = 0;
    while !stop.load(Ordering::Relaxed) {
        match evd.resize(1 << rng.u32(0..8)) {
            Ok(_) => resized += 1,
            Err(error) if error.kind() == Some(Type::INVALID_STATE) => {}
            Err(error) => return Err(error.into()),
        }
        std::thread::yield_now();
    }
    Ok(resized)
}

/// Returns the next event, of a wait with a random threshold.
pub fn next(context: &Context, evd: &Evd, rng: &mut fastrand::Rng) -> Result<Event> {
    match evd.wait(Some(2 * MS), rng.i32(1..8)) {
        Ok((event, _)) => Ok(event),
        // So many events may never arrive, or the EVD is shorter than the threshold now.
        Err(error) if error.is_timeout() || error.kind() == Some(Type::INVALID_PARAMETER) => {
            Ok(evd.wait(Some(context.patience()), 1)?.0)
        }
        Err(error) => Err(error.into()),
    }
}

fn software_event_storm(context: &Context) -> Result<()> {
    const POSTERS: u64 = 3;
    let evd = &software(context, 16)?;
    let (each, patience) = (context.count(60_000), context.patience());
    let stop = AtomicBool::new(false);
    let resized = std::thread::scope(|scope| -> Result<u64> {
        let posters: Vec<_> = (0..POSTERS)
            .map(|poster| scope.spawn(move || post_all(evd, poster, each, patience)))
            .collect();
        let resizer = {
            let (stop, rng) = (&stop, context.rng());
            scope.spawn(move || resize_on(evd, rng, stop))
        };
        let mut rng = context.rng();
        let taken = take_all(POSTERS, each, || next(context, evd, &mut rng));
        stop.store(true, Ordering::Relaxed);
        let resized = resizer.join().or_panicked()??;
        taken?;
        for poster in posters {
            poster.join().or_panicked()??;
        }
        Ok(resized)
    })?;
    println!("{resized} resizes");
    ensure!(resized > 0, "the EVD was never resized");
    empty(evd)
}

fn completion_storm(context: &Context) -> Result<()> {
    const WINDOW: u64 = 8;
    let pair = Pair::new(context, Shape::default())?;
    let rounds = context.count(4000);
    let stop = AtomicBool::new(false);
    let (mut rng, mut taken) = (context.rng(), Ok(()));
    let resized = std::thread::scope(|scope| -> Result<u64> {
        let resizers: Vec<_> = [&pair.client.request, &pair.server.recv]
            .into_iter()
            .map(|evd| {
                let (stop, rng) = (&stop, context.rng());
                scope.spawn(move || resize_on(evd, rng, stop))
            })
            .collect();
        for round in 0..rounds {
            taken = window(context, &pair, round * WINDOW..(round + 1) * WINDOW, &mut rng)
                .with_context(|| format!("round {round}"));
            if taken.is_err() {
                break;
            }
        }
        stop.store(true, Ordering::Relaxed);
        let mut resized = 0;
        for resizer in resizers {
            resized += resizer.join().or_panicked()??;
        }
        Ok(resized)
    })?;
    println!("{resized} resizes");
    taken
}

/// Sends a window of messages. Checks that both sides report them in order.
fn window(
    context: &Context,
    pair: &Pair,
    cookies: std::ops::Range<u64>,
    rng: &mut fastrand::Rng,
) -> Result<()> {
    cookies.clone().try_for_each(|cookie| pair.server.receive(0, 64, cookie))?;
    cookies.clone().try_for_each(|cookie| pair.client.send(0, 64, cookie))?;
    for cookie in cookies.clone() {
        done(&next(context, &pair.server.recv, rng)?, DtoOperation::Receive, 64, cookie)?;
    }
    for cookie in cookies {
        done(&next(context, &pair.client.request, rng)?, DtoOperation::Send, 64, cookie)?;
    }
    Ok(())
}
