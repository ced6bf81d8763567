// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Number of context switches from an event to its waiter.
//!
//! A thread waits, and once it sleeps the event is caused. The scheduler's tracepoints show how
//! often the thread was switched to, and which thread woke it: a thread in between is one more
//! switch. Each event should cost one switch, that of the waiter. The DTO is compared with
//! `ib_send_lat --events`, whose waits are observed in the same way.
//!
//! With a threshold of 64 the wake-ups are counted: only the last of 64 completions should wake the
//! waiter.

use crate::benchmark::Sink;
use crate::ends::{answer, arrived, established, Ends, PATIENCE};
use crate::sample::Sample;
use crate::side::{Client, Server};
use anyhow::{ensure, Context, Result};
use libkdapl::{AsyncEvent, DtoOperation, Error, Evd, EvdFlags, Event};
use observe::threads::tid;
use observe::trace::{Recording, Sleep};
use observe::Waiter;

const ROUNDS: u64 = 50;
/// Number of rounds in which each makes a connection or several attempts.
const FEWER: u64 = 20;
const THRESHOLD: u32 = 64;
/// Number of messages of `ib_send_lat`.
const MESSAGES: u32 = 200;

fn waiter(evd: &Evd) -> Result<Waiter<Event, Error>> {
    let evd = evd.clone();
    Waiter::with(move |threshold| evd.wait(Some(PATIENCE), threshold).map(|(event, _)| event))
}

/// Returns the sleeps that have ended.
fn finished(sleeps: &[Sleep]) -> impl Iterator<Item = &Sleep> {
    sleeps.iter().filter(|sleep| sleep.over)
}

/// Returns the context switches for each of `rounds` events.
fn switches(recording: &Recording, waiter: i32, rounds: u64) -> Result<f64> {
    let sleeps = recording.sleeps(waiter)?;
    let all: usize = finished(&sleeps).map(|sleep| sleep.switches(tid())).sum();
    ensure!(all > 0, "the waiter never slept");
    Ok(all as f64 / rounds as f64)
}

fn dto(ends: &Ends) -> Result<f64> {
    let recv = ends.ia.create_evd(EvdFlags::DTO, 8)?;
    let pair = ends.pair(&recv, 8)?;
    let waiter = waiter(&recv)?;
    let recording = Recording::start()?;
    for round in 0..ROUNDS {
        ends.receive(&pair, round)?;
        waiter.asleep(&PATIENCE, 1)?;
        ends.send(&pair)?;
        ensure!(arrived(&waiter.event()?, DtoOperation::Receive)? == round, "unexpected message");
        ends.all_sent(1)?;
    }
    switches(&recording, waiter.tid(), ROUNDS)
}

fn cno(ends: &Ends) -> Result<f64> {
    let recv = ends.ia.create_evd(EvdFlags::DTO, 8)?;
    let cno = ends.ia.create_cno(None)?;
    recv.modify_cno(Some(&cno))?;
    let pair = ends.pair(&recv, 8)?;
    let waiter = {
        let cno = cno.clone();
        Waiter::with(move |_| cno.wait(Some(PATIENCE)))?
    };
    let recording = Recording::start()?;
    for round in 0..ROUNDS {
        ends.receive(&pair, round)?;
        waiter.asleep(&PATIENCE, 1)?;
        ends.send(&pair)?;
        ensure!(waiter.event()? == Some(recv.handle()), "unexpected EVD");
        ensure!(arrived(&recv.dequeue()?.0, DtoOperation::Receive)? == round, "unexpected message");
        // The EVD has to be empty to trigger again with the next completion.
        ensure!(recv.dequeue().is_err_and(|error| error.is_empty()), "unexpected message");
        ends.all_sent(1)?;
    }
    switches(&recording, waiter.tid(), ROUNDS)
}

/// Returns the context switches for a connection request and for ESTABLISHED.
fn connections(ends: &Ends) -> Result<(f64, f64)> {
    let (there, here) = (
        ends.ia.create_evd(EvdFlags::CONNECTION, 32)?,
        ends.ia.create_evd(EvdFlags::CONNECTION, 32)?,
    );
    let eps = |evd: &Evd| (0..FEWER).map(|_| ends.bare_ep(evd)).collect::<Result<Vec<_>>>();
    let (callers, called) = (eps(&here)?, eps(&there)?);
    let (requests, outcomes) = (waiter(&ends.requests)?, waiter(&here)?);
    let recording = Recording::start()?;
    for (caller, called) in callers.iter().zip(&called) {
        requests.asleep(&PATIENCE, 1)?;
        outcomes.asleep(&PATIENCE, 1)?;
        ends.connect(caller)?;
        answer(requests.event()?, called)?;
        established(&outcomes.event()?)?;
        established(&there.wait(Some(PATIENCE), 1)?.0)?;
    }
    let requested = switches(&recording, requests.tid(), FEWER)?;
    Ok((requested, switches(&recording, outcomes.tid(), FEWER)?))
}

/// Returns the context switches for an EVD overflow: connects that are never accepted have more
/// outcomes than the EVD has entries.
fn asynchronous(ends: &Ends) -> Result<f64> {
    /// Number of entries of the shortest ring, and one more for the overflow.
    const EPS: usize = 9;
    let short = ends.ia.create_evd(EvdFlags::CONNECTION, 1)?;
    let eps = (0..EPS).map(|_| ends.bare_ep(&short)).collect::<Result<Vec<_>>>()?;
    let waiter = waiter(ends.ia.async_evd())?;
    let recording = Recording::start()?;
    for _ in 0..FEWER {
        waiter.asleep(&PATIENCE, 1)?;
        eps.iter().try_for_each(|ep| ends.connect_to_nobody(ep))?;
        let event = waiter.event()?;
        let overflow = matches!(event, Event::Async { event: AsyncEvent::EvdOverflow, .. });
        ensure!(overflow, "{event} instead of an overflow");
        for _ in 1..EPS {
            short.dequeue()?;
        }
        eps.iter().try_for_each(|ep| ep.reset())?;
    }
    switches(&recording, waiter.tid(), FEWER)
}

fn software(ends: &Ends) -> Result<f64> {
    let evd = ends.ia.create_evd(EvdFlags::SOFTWARE, 8)?;
    let waiter = waiter(&evd)?;
    let recording = Recording::start()?;
    for round in 0..ROUNDS {
        waiter.asleep(&PATIENCE, 1)?;
        evd.post_se(round)?;
        waiter.event()?;
    }
    switches(&recording, waiter.tid(), ROUNDS)
}

/// Returns the wake-ups of a waiter with a threshold, for each group of completions.
fn threshold(ends: &Ends) -> Result<f64> {
    let recv = ends.ia.create_evd(EvdFlags::DTO, 2 * THRESHOLD as i32)?;
    let pair = ends.pair(&recv, THRESHOLD)?;
    let waiter = waiter(&recv)?;
    let recording = Recording::start()?;
    for _ in 0..FEWER {
        (0..THRESHOLD).try_for_each(|number| ends.receive(&pair, number.into()))?;
        waiter.asleep(&PATIENCE, THRESHOLD as i32)?;
        for number in 0..THRESHOLD {
            ends.send(&pair)?;
            // Each message arrives before the next is sent, and could wake the waiter too early.
            ends.all_sent(1).with_context(|| format!("message {number}"))?;
        }
        ensure!(arrived(&waiter.event()?, DtoOperation::Receive)? == 0, "not the first message");
        for number in 1..THRESHOLD {
            let cookie = arrived(&recv.dequeue()?.0, DtoOperation::Receive)?;
            ensure!(cookie == u64::from(number), "message {cookie} instead of {number}");
        }
    }
    let sleeps = recording.sleeps(waiter.tid())?;
    let woken: usize = sleeps.iter().map(|sleep| sleep.wakers.len()).sum();
    ensure!(woken > 0, "the waiter never slept");
    Ok(woken as f64 / FEWER as f64)
}

/// Returns the context switches for each sleep of `ib_send_lat`, which sleeps for each message.
fn peer() -> Result<f64> {
    let line = format!("ib_send_lat --events --ib-dev rxe0 --size 64 --iters {MESSAGES}");
    let server = Server::start(&format!("stdbuf -oL {line}"))?;
    // It prints that it waits before it listens.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let recording = Recording::start()?;
    let client = Client::start(&format!("{line} 10.7.0.1"))?;
    let thread = client.id();
    client.ends()?;
    server.ends()?;
    let sleeps = recording.sleeps(thread)?;
    let count = finished(&sleeps).count();
    ensure!(count >= MESSAGES as usize, "ib_send_lat slept {count} times for {MESSAGES} messages");
    let all: usize = finished(&sleeps).map(|sleep| sleep.switches(thread)).sum();
    Ok(all as f64 / count as f64)
}

pub fn run(sink: Sink<'_>) -> Result<()> {
    let ends = Ends::open()?;
    let mut tell = |what: &str, unit: &str, ours: f64| {
        sink(Sample::alone("wakeups", what, unit, ours, Some(1.0)))
    };
    tell("a DTO wakes its waiter", "switches", dto(&ends)?)?;
    tell("a DTO wakes the waiter of a CNO", "switches", cno(&ends)?)?;
    let (request, established) = connections(&ends)?;
    tell("a connection request wakes its waiter", "switches", request)?;
    tell("ESTABLISHED wakes its waiter", "switches", established)?;
    tell("an asynchronous event wakes its waiter", "switches", asynchronous(&ends)?)?;
    tell("a software event wakes its waiter", "switches", software(&ends)?)?;
    tell("64 DTOs wake a waiter for 64", "wake-ups", threshold(&ends)?)?;
    let what = "a DTO wakes its waiter, beside a user-space completion channel";
    sink(Sample::new("wakeups", what, "switches", (dto(&ends)?, peer()?), 1.0))
}
