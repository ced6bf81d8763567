// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Faults in the delivery of events that other implementations of DAT have, or had. For each, a
//! test shows that it does not exist here.
//!
//! | fault | tests |
//! |---|---|
//! | a failed wait keeps its EVD: the next wait is refused, as if there were a waiter | `event_delivery.evd_usable_after_failed_wait` |
//! | a wait with a bad handle uses it | `handles` (EVD_WAIT) |
//! | each event below the threshold restarts the time-out | `event_delivery.event_does_not_restart_timeout` |
//! | microseconds become milliseconds, rounded down to none | `wait.short_timeouts` |
//! | after a resize the EVD reports no events, or loses or invents some | `evd_resize.completion_storm`, `evd_resize.software_event_storm`, `evd_cqs.completion_storm` |
//! | an EVD cannot shrink, or overwrites queued events when it does | `evd_resize.keeps_events`, `evd_resize.too_short` |
//! | a DTO event does not name its operation and its endpoint | `event_delivery.event_names_its_object` |
//! | an overflow of an EVD names another object, or crashes the program | `wakeup.overflow_wakes_once` |
//! | several asynchronous events have the same number | `event_delivery.event_names_its_object`; there are no shared receive queues |
//! | the class of QUEUE_EMPTY is not ERROR | `evd.dequeue_of_empty_evd`, `cno.wait_times_out`; every refusal is looked at |
//! | a full queue has another return code | `evd.full_evd_refuses_software_events` |
//! | a time-out of a CNO wait consumes a trigger | `cno.wait_times_out` |
//! | a CNO stores only the last of its EVDs, or none after it has triggered | `cno.evds_in_trigger_order`, `cno.unemptied_evd_triggers_again`, `cno_storm.poll_and_wait_find_filled_evd` |
//! | the agent is signalled only once, and lost when it is replaced | `cno_storm.each_trigger_signals_agent` |
//! | an EVD that moves to another CNO triggers the old one | `cno.trigger_moves_with_evd` |
//! | completions do not trigger the CNO of their EVD | `cno.each_stream_triggers` |
//! | the function that triggers a CNO does not exist | `cno.consumer_trigger` |
//! | UNSIGNALLED has no effect, and no EVD reports its configuration | `signalled`, `completion_flags` |
//! | a threshold is a hint: a waiter for N events is woken earlier | `wait.threshold`, `wakeup.threshold_wakes_once` |
//! | an EVD with an unknown CNO is created, and has no handle | `handles` (EVD_CREATE) |
//! | an event that cannot be copied to the consumer is lost | `event_delivery.not_lost_on_efault` |
//! | a connection event is lost if memory is short: here it needs no allocation | `evd_full.reset_leaves_room`, `evd_full.early_messages_find_room` |
//! | an event of an EVD that is being unlinked uses a freed CNO | `event_delivery.evd_moves_between_cnos` |
//! | a wait on an EVD that becomes unwaitable does not end | `wait.unwaitable` |
//! | the removal of a device is not reported | `device_removal.idle`, `device_removal.under_waiters`, `device_removal_by_state` |
//! | DISCONNECTED precedes the last DTO event, or a DTO event ESTABLISHED | `end_of_connection`, `evd_full.early_messages_find_room` |
//!
//! Watermarks and shared receive queues have tests of their own (`watermarks`, `srq`). A port that
//! goes down is reported as the end of its connections.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{empty, refused, refused_as, same};
use crate::raw::{send_from_nowhere, Bytes, BAD_ADDRESS};
use crate::software::{number, software, take, take_all};
use crate::threads::{Joined, Worker};
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_evd_wait, kdapl_event};
use libkdapl::{CompletionFlags, DtoOperation, DtoStatus, EvdFlags, Event, Subtype, Type};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

tests! {
    evd_usable_after_failed_wait, 30,
        "A wait that fails, for any reason, leaves the EVD usable for the next waiter";
    event_does_not_restart_timeout, 30, "Events below the threshold do not restart a wait's time-out";
    event_names_its_object, 60, "An event names its operation and its object";
    not_lost_on_efault, 30, "A wait or a dequeue whose result cannot be written takes no event";
    evd_moves_between_cnos, 120,
        "Events that arrive while their EVD moves between short-lived CNOs are all taken once";
}

const MS: Duration = Duration::from_millis(1);

fn evd_usable_after_failed_wait(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    let next_waits = |what: &str| -> Result<()> {
        evd.post_se(1)?;
        number(evd.wait(Some(context.patience()), 1))
            .map_err(|error| error.context(what.to_string()))?;
        empty(&evd)
    };
    refused(evd.wait(Some(MS), 1), Type::TIMEOUT_EXPIRED)?;
    next_waits("after a time-out")?;
    for threshold in [0, -1, 5] {
        refused(evd.wait(Some(MS), threshold), Type::INVALID_PARAMETER)?;
        next_waits("after a bad threshold")?;
    }
    // The EVD is full, and below the threshold: no more events can arrive.
    (0..4).try_for_each(|number| evd.post_se(number))?;
    refused(evd.post_se(4), Type::QUEUE_FULL)?;
    same("events after the first", number(evd.wait(Some(MS), 4))?, (0, 3))?;
    (1..4).try_for_each(|number| same("event", take(&evd)?, number))?;
    next_waits("after a full queue")?;
    evd.set_unwaitable()?;
    let unwaitable = Subtype::INVALID_STATE_EVD_UNWAITABLE;
    refused_as(evd.wait(Some(MS), 1), Type::INVALID_STATE, unwaitable)?;
    evd.clear_unwaitable()?;
    next_waits("after it was unwaitable")?;
    let waiting = evd.clone();
    let worker = Worker::start(move || waiting.wait(None, 1).map(|(event, _)| event))?;
    worker.asleep(context)?;
    let waiter = Subtype::INVALID_STATE_EVD_WAITER;
    refused_as(evd.wait(Some(MS), 1), Type::INVALID_STATE, waiter)?;
    evd.post_se(2)?;
    ensure!(matches!(worker.join()??, Event::Software { pointer: 2 }), "wrong event");
    next_waits("after a second waiter")
}

fn event_does_not_restart_timeout(context: &Context) -> Result<()> {
    /// More events than are posted before the wait ends, unless events restart its time-out.
    const MAX_EVENTS: i32 = 2_000;
    let evd = software(context, MAX_EVENTS)?;
    let (step, time) = (context.scaled(8 * MS), context.scaled(40 * MS));
    let waiting = evd.clone();
    let start = Instant::now();
    let worker =
        Worker::start(move || (waiting.wait(Some(time), MAX_EVENTS).map(drop), start.elapsed()))?;
    let mut posted = 0;
    while !worker.finished() {
        ensure!(posted + 1 < MAX_EVENTS, "each event restarts the time-out");
        evd.post_se(posted as u64)?;
        posted += 1;
        std::thread::sleep(step);
    }
    let (outcome, took) = worker.join()?;
    refused(outcome, Type::TIMEOUT_EXPIRED)?;
    ensure!(took >= time, "ended after {took:?}, before {time:?}");
    (0..posted).try_for_each(|number| same("event", take(&evd)?, number as u64))
}

fn event_names_its_object(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, server) = (&pair.client, &pair.server);
    let (to, flags) = (server.lmr.remote_segment(0, 64), CompletionFlags::default());
    let segment = [client.lmr.segment(0, 64)];
    server.receive(0, 64, 7)?;
    client.send(0, 64, 1)?;
    client.ep.post_rdma_write(&segment, to, 2, flags)?;
    client.ep.post_rdma_read(&segment, to, 3, flags)?;
    let expected = [DtoOperation::Send, DtoOperation::RdmaWrite, DtoOperation::RdmaRead];
    for (cookie, operation) in (1..).zip(expected) {
        let event = context.next(&client.request)?;
        let Event::Dto(dto) = event else { anyhow::bail!("unexpected {event}") };
        same("operation", dto.operation, operation)?;
        same("endpoint", dto.ep, client.ep.handle())?;
        same("cookie and status", (dto.cookie, dto.status), (cookie, DtoStatus::Success))?;
        same("length and RMR context", (dto.length, dto.rmr_context), (64, 0))?;
    }
    let event = context.next(&server.recv)?;
    let Event::Dto(dto) = event else { anyhow::bail!("unexpected {event}") };
    same("operation", dto.operation, DtoOperation::Receive)?;
    same("endpoint", dto.ep, server.ep.handle())?;
    same("cookie", dto.cookie, 7)?;
    client.ep.disconnect(libkdapl::Close::Abrupt)?;
    for end in [client, server] {
        match context.next(&end.connect)? {
            Event::Connection { ep, .. } => same("endpoint", ep, end.ep.handle())?,
            other => anyhow::bail!("unexpected {other}"),
        }
    }
    Ok(())
}

fn not_lost_on_efault(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    (0..3).try_for_each(|number| evd.post_se(number))?;
    let buffer = libkdapl::Buffer::new(4096)?;
    let mut event = kdapl_event::default();
    let message = kdapl_evd_wait {
        handle: evd.handle().0,
        timeout_ns: 1_000_000,
        threshold: 1,
        max_events: 1,
        events: std::ptr::from_mut(&mut event) as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    buffer.write(0, Bytes::of(&message).as_ref());
    // SAFETY: the buffer owns the page.
    unsafe { libc::mprotect(buffer.address(0) as *mut _, 4096, libc::PROT_READ) };
    for request in [call::EVD_WAIT.request(), call::EVD_DEQUEUE.request()] {
        for address in [buffer.address(0), BAD_ADDRESS] {
            let outcome = send_from_nowhere(ia.device(), request, address);
            same("outcome", outcome, Err(libc::EFAULT))?;
            same("events", evd.query()?.queued, 3)?;
        }
    }
    (0..3).try_for_each(|number| same("event", take(&evd)?, number))
}

fn evd_moves_between_cnos(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = &ia.create_evd(EvdFlags::SOFTWARE, 16)?;
    let (each, patience) = (context.count(10_000), context.patience());
    let stop = AtomicBool::new(false);
    let moves = std::thread::scope(|scope| -> Result<u64> {
        let poster = scope.spawn(move || crate::software::post_all(evd, 0, each, patience));
        let mover = {
            let (stop, ia) = (&stop, &ia);
            scope.spawn(move || -> Result<u64> {
                let mut moves = 0;
                // At least once, even with few events.
                while moves == 0 || !stop.load(Ordering::Relaxed) {
                    let cno = ia.create_cno(None)?;
                    evd.modify_cno(Some(&cno))?;
                    match cno.wait(Some(Duration::from_micros(50))) {
                        Ok(_) => {}
                        Err(error) if error.is_empty() => {}
                        Err(error) => return Err(error.into()),
                    }
                    evd.modify_cno(None)?;
                    cno.free()?;
                    moves += 1;
                }
                Ok(moves)
            })
        };
        let taken = take_all(1, each, || context.next(evd));
        stop.store(true, Ordering::Relaxed);
        let moves = mover.join().or_panicked()??;
        poster.join().or_panicked()??;
        taken?;
        Ok(moves)
    })?;
    println!("{moves} CNOs");
    ensure!(moves > 0, "the EVD was never moved");
    empty(evd)
}
