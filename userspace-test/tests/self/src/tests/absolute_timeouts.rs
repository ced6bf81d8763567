// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Time-outs that are times of `CLOCK_MONOTONIC`.

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused, same};
use crate::harness::skip;
use crate::peer::Peer;
use crate::raw;
use crate::software::{number, software};
use crate::threads::Worker;
use crate::timeouts::{self, on_time};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{ConnectOptions, ConnectionEvent, EvdFlags, Monotonic, Type};
use std::time::{Duration, Instant};

tests! {
    past_time, 20, "A wait until a past time ends at once, but a queued event takes precedence";
    future_time, 30,
        "A wait until a future time ends then and not before, unless an event arrives earlier";
    cno_wait, 30, "A wait on a CNO until a future time ends then, and at once for a past time";
    submit, 30, "A submit with a past time-out posts its DTOs, and a queued event takes precedence";
    #[Address]
    connect, 60,
        "A connect with a past time-out times out, and one with a future time-out does not";
    infinite, 30, "A relative and an absolute time-out may both be infinite";
    time_namespace, 60, "An absolute time-out is a time of the caller's time namespace";
}

const MS: Duration = Duration::from_millis(1);
const PAST: [Monotonic; 2] = [Monotonic(0), Monotonic(1)];

/// Runs `work`, and checks that it takes nearly no time.
fn at_once<T>(context: &Context, work: impl FnOnce() -> T) -> Result<T> {
    let start = Instant::now();
    let outcome = work();
    let took = start.elapsed();
    ensure!(took < context.scaled(500 * MS), "took {took:?}");
    Ok(outcome)
}

fn past_time(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for time in PAST.into_iter().chain([Monotonic::now()]) {
        refused(at_once(context, || evd.wait_until(time, 1))?, Type::TIMEOUT_EXPIRED)?;
        evd.post_se(7)?;
        same("event", number(evd.wait_until(time, 1))?, (7, 0))?;
        evd.post_se(8)?;
        refused(at_once(context, || evd.wait_until(time, 2))?, Type::TIMEOUT_EXPIRED)?;
        same("the event is still queued", number(evd.dequeue())?, (8, 0))?;
    }
    Ok(())
}

fn future_time(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    // One timer of high resolution, one that waiters share at first.
    for time in [20 * MS, 400 * MS] {
        timeouts::at(time, |until| refused(evd.wait_until(until, 1), Type::TIMEOUT_EXPIRED))?;
        on_time(context.scaled(500 * MS), || {
            let until = Monotonic::after(time);
            refused(evd.wait_until(until, 1), Type::TIMEOUT_EXPIRED)?;
            let late = Monotonic::now().0.checked_sub(until.0);
            Ok(Duration::from_nanos(late.context("ended before its time")?))
        })?;
    }
    let waiting = evd.clone();
    let until = Monotonic::after(context.patience());
    let worker = Worker::start(move || number(waiting.wait_until(until, 1)))?;
    worker.asleep(context)?;
    evd.post_se(9)?;
    same("event", worker.join()??, (9, 0))
}

fn cno_wait(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    for time in PAST {
        refused(at_once(context, || cno.wait_until(time))?, Type::QUEUE_EMPTY)?;
        cno.trigger()?;
        same("EVD", cno.wait_until(time)?, None)?;
    }
    timeouts::at(20 * MS, |until| refused(cno.wait_until(until), Type::QUEUE_EMPTY))
}

fn submit(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let evd = end.ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let mut event = kdapl_event::default();
    let submission = kdapl_ep_submit {
        hdr: kdapl_hdr { flags: KDAPL_FLAG_ABSOLUTE, ..Default::default() },
        handle: end.ep.handle().0,
        evd: evd.handle().0,
        timeout_ns: 1,
        threshold: 1,
        max_events: 1,
        events: std::ptr::from_mut(&mut event) as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    let send = || {
        let mut message = submission;
        raw::call(end.ia.device(), call::EP_SUBMIT, &mut message).map(|()| message.taken)
    };
    refused(at_once(context, send)?, Type::TIMEOUT_EXPIRED)?;
    evd.post_se(5)?;
    same("taken", at_once(context, send)??, 1)
}

fn connect(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let server = context.open_server()?;
    let connect = |listener: &Listener, time| {
        let options = ConnectOptions { until: Some(time), ..Default::default() };
        end.ep.connect_with((context.server_address(), 0).into(), listener.port, &options)
    };
    // This listener does not answer.
    let silent = Listener::new(context, &server)?;
    for time in PAST {
        connect(&silent, time)?;
        connection(&context.next(&end.connect)?, ConnectionEvent::TimedOut)?;
        end.ep.reset()?;
    }
    let until = Monotonic::after(30 * MS);
    connect(&silent, until)?;
    connection(&context.next(&end.connect)?, ConnectionEvent::TimedOut)?;
    ensure!(Monotonic::now() >= until, "ended before its time");
    end.ep.reset()?;
    let listener = Listener::new(context, &server)?;
    connect(&listener, Monotonic::after(context.patience()))?;
    let peer = End::new(&server, Shape::default())?;
    listener.request(context)?.accept(&peer.ep, &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::Established)
}

fn infinite(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    for flags in [0, KDAPL_FLAG_ABSOLUTE] {
        for timeout_ns in [KDAPL_TIMEOUT_INFINITE, u64::MAX] {
            let waiting = evd.clone();
            let worker = Worker::start(move || {
                let mut event = kdapl_event::default();
                let mut message = kdapl_evd_wait {
                    hdr: kdapl_hdr { flags, ..Default::default() },
                    handle: waiting.handle().0,
                    timeout_ns,
                    threshold: 1,
                    max_events: 1,
                    events: std::ptr::from_mut(&mut event) as u64,
                    event_size: size_of::<kdapl_event>() as u32,
                    ..Default::default()
                };
                let outcome = raw::call(waiting.device(), call::EVD_WAIT, &mut message);
                outcome.map(|()| event.cookie)
            })?;
            worker.asleep(context)?;
            evd.post_se(timeout_ns)?;
            same("event", worker.join()??, timeout_ns)?;
        }
    }
    Ok(())
}

fn time_namespace(context: &Context) -> Result<()> {
    // SAFETY: only children of this process are in the new namespace.
    if unsafe { libc::unshare(libc::CLONE_NEWTIME) } != 0 {
        return skip("this kernel has no time namespaces");
    }
    std::fs::write("/proc/self/timens_offsets", "monotonic 3600 0\n")?;
    let peer = Peer::play(context, "Clock 0 0")?;
    peer.ends_well()
}

/// Waits until a past time and until a future time, in a process whose clock is an hour ahead.
pub fn child(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let ahead = Monotonic::now().0;
    ensure!(ahead > 3_600_000_000_000, "the clock is not ahead: {ahead} ns");
    let past = Monotonic(ahead - 1_800_000_000_000);
    refused(at_once(context, || evd.wait_until(past, 1))?, Type::TIMEOUT_EXPIRED)?;
    let until = Monotonic::after(20 * MS);
    refused(at_once(context, || evd.wait_until(until, 1))?, Type::TIMEOUT_EXPIRED)?;
    ensure!(Monotonic::now() >= until, "ended before its time");
    Ok(())
}
