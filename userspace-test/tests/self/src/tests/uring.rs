// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls as commands of io_uring.

pub mod cancel;
pub mod commands;
pub mod echo_server;
pub mod ends;
pub mod hostile;
pub mod limits;
pub mod removal;
mod ring;
pub mod rings;
pub mod sizes;
pub mod stopped;
pub mod stream;

use self::ring::{all_of, events, next, outcome};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{done, empty, refused, refused_as, same};
use crate::software::{number, software, take};
use crate::threads::Worker;
use anyhow::{bail, ensure, Result};
use libkdapl::uring::{Outcome, Ring};
use libkdapl::{
    Close, CompletionFlags, ConnectOptions, ConnectionEvent, Dto, DtoOperation, EvdFlags, Event,
    Subtype, Type,
};
use std::net::SocketAddr;
use std::time::Duration;

tests! {
    wait_for_queued, 20, "A wait for events that are queued completes at once, with the oldest in their order";
    wait_for_later, 20, "A wait as a command completes when a thread posts an event, and occupies no thread meanwhile";
    threshold, 20, "A wait for several events completes with the last of them, and not before";
    timeouts, 30, "The time-out of a wait completes the command with the code of the call, and loses no event";
    many_waits, 60, "One thread waits on five hundred EVDs, and each event completes the wait on its own EVD";
    one_waiter, 20, "A command that waits is the only waiter of its EVD, for threads and for other commands";
    dequeue_beside_wait, 20, "A thread that takes the event first leaves the command waiting for the next one";
    cno, 20, "A wait on a CNO completes with the EVD that has triggered, or by the consumer's trigger";
    cno_one_each, 30, "Each trigger of a CNO completes one of the commands and threads that wait";
    connection, 60, "Connect, accept, posts and waits of both ends of a connection are commands of one ring";
    refused_dtos, 20, "A refused DTO completes its command with the code of DAT, and those before it were posted";
    end_of_ia, 20, "A close of the IA completes the waits with ABORT, also that of a stream";
    unwaitable, 20, "An EVD that becomes unwaitable completes the wait with INVALID_STATE";
    refused_waits, 20, "A wait with an invalid argument is refused as the call is, and does not become the waiter";
}

/// Number of threads of this process.
fn threads() -> Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

fn wait_for_queued(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    (0..3).try_for_each(|number| evd.post_se(number))?;
    let mut ring = Ring::new(8)?;
    ring.wait_evd(&evd, Some(Duration::ZERO), 1, 2, 5)?;
    ring.wait_evd(&evd, None, 1, 2, 6)?;
    same("first", events(&mut ring, 5)?, vec![0, 1])?;
    same("second", events(&mut ring, 6)?, vec![2])?;
    same("pending", ring.pending(), 0)?;
    empty(&evd)
}

fn wait_for_later(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    let mut ring = Ring::new(8)?;
    let before = threads()?;
    ring.wait_evd(&evd, None, 1, 8, 1)?;
    ring.submit()?;
    same("threads", threads()?, before)?;
    ensure!(ring.take().is_none(), "the command completed without an event");
    let poster = evd.clone();
    let poster = Worker::start(move || poster.post_se(77))?;
    same("event", events(&mut ring, 1)?, vec![77])?;
    poster.join()??;
    // The EVD has no waiter any more.
    refused(evd.wait(Some(Duration::ZERO), 1), Type::TIMEOUT_EXPIRED)
}

fn threshold(context: &Context) -> Result<()> {
    let evd = software(context, 8)?;
    let mut ring = Ring::new(8)?;
    ring.wait_evd(&evd, None, 3, 8, 1)?;
    ring.submit()?;
    for number in 0..2 {
        evd.post_se(number)?;
        ring.submit()?;
        ensure!(ring.take().is_none(), "{} of 3 events were enough", number + 1);
    }
    evd.post_se(2)?;
    same("events", events(&mut ring, 1)?, vec![0, 1, 2])?;
    // The next wait is for one again.
    evd.post_se(3)?;
    same("next", number(evd.wait(Some(context.patience()), 1))?, (3, 0))
}

fn timeouts(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 8)?;
    let cno = ia.create_cno(None)?;
    let mut ring = Ring::new(8)?;
    for timeout in [Duration::ZERO, Duration::from_millis(3), Duration::from_millis(350)] {
        let start = std::time::Instant::now();
        ring.wait_evd(&evd, Some(timeout), 1, 1, 1)?;
        refused(outcome(&mut ring, 1)?, Type::TIMEOUT_EXPIRED)?;
        ensure!(start.elapsed() >= timeout, "it ended before {timeout:?}");
        ring.wait_cno(&cno, Some(timeout), 2)?;
        refused(outcome(&mut ring, 2)?, Type::QUEUE_EMPTY)?;
    }
    evd.post_se(9)?;
    ring.wait_evd(&evd, Some(Duration::from_millis(1)), 2, 2, 3)?;
    refused(outcome(&mut ring, 3)?, Type::TIMEOUT_EXPIRED)?;
    same("the event is left", take(&evd)?, 9)
}

fn many_waits(context: &Context) -> Result<()> {
    const EVDS: u64 = 500;
    let ia = context.open()?;
    let mut ring = Ring::new(64)?;
    let mut evds = Vec::new();
    for tag in 0..EVDS {
        let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
        ring.wait_evd(&evd, None, 1, 4, tag)?;
        evds.push(evd);
    }
    ring.submit()?;
    same("pending", ring.pending(), EVDS as usize)?;
    let mut rng = context.rng();
    for round in 0..context.count(3000).max(100) {
        let tag = rng.u64(0..EVDS);
        let evd = &evds[tag as usize];
        evd.post_se(round)?;
        same("event", events(&mut ring, tag)?, vec![round])?;
        ring.wait_evd(evd, None, 1, 4, tag)?;
    }
    ring.submit()?;
    same("pending", ring.pending(), EVDS as usize)?;
    // The drop cancels all waits: the EVDs can be freed.
    drop(ring);
    Ok(evds.iter().try_for_each(libkdapl::Evd::free)?)
}

fn one_waiter(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    ring.wait_evd(&evd, None, 1, 1, 1)?;
    ring.submit()?;
    let waiter = (Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_WAITER);
    refused_as(evd.wait(Some(Duration::ZERO), 1), waiter.0, waiter.1)?;
    ring.wait_evd(&evd, None, 1, 1, 2)?;
    refused_as(outcome(&mut ring, 2)?, waiter.0, waiter.1)?;
    refused_as(evd.free(), waiter.0, waiter.1)?;
    evd.post_se(4)?;
    same("event", events(&mut ring, 1)?, vec![4])?;
    // A thread that waits keeps commands out.
    let (other, patience) = (evd.clone(), context.patience());
    let thread = Worker::start(move || other.wait(Some(patience), 1))?;
    thread.asleep(context)?;
    ring.wait_evd(&evd, None, 1, 1, 3)?;
    refused_as(outcome(&mut ring, 3)?, waiter.0, waiter.1)?;
    evd.post_se(5)?;
    same("event of the thread", number(thread.join()?)?, (5, 0))?;
    Ok(evd.free()?)
}

fn dequeue_beside_wait(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    ring.wait_evd(&evd, None, 1, 1, 1)?;
    ring.submit()?;
    // The wake-up runs the command in the next call of this thread, which finds the event taken.
    evd.post_se(1)?;
    same("taken by the thread", take(&evd)?, 1)?;
    ring.submit()?;
    ensure!(ring.take().is_none(), "the command completed without an event");
    evd.post_se(2)?;
    same("event", events(&mut ring, 1)?, vec![2])
}

fn cno(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, 4)?;
    evd.modify_cno(Some(&cno))?;
    let mut ring = Ring::new(8)?;
    let triggered = |ring: &mut Ring| match outcome(ring, 1)?? {
        Outcome::Triggered(evd) => Ok(evd),
        other => bail!("expected a trigger, got {other:?}"),
    };
    ring.wait_cno(&cno, None, 1)?;
    ring.submit()?;
    ensure!(ring.take().is_none(), "the command completed without a trigger");
    refused_as(cno.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_CNO_IN_USE)?;
    evd.post_se(1)?;
    same("EVD", triggered(&mut ring)?, Some(evd.handle()))?;
    same("event", take(&evd)?, 1)?;
    ring.wait_cno(&cno, None, 1)?;
    ring.submit()?;
    cno.trigger()?;
    same("by the consumer", triggered(&mut ring)?, None)?;
    // A trigger that came first.
    cno.trigger()?;
    ring.wait_cno(&cno, None, 1)?;
    same("by the consumer", triggered(&mut ring)?, None)?;
    // The last EVD leaves.
    ring.wait_cno(&cno, None, 1)?;
    ring.submit()?;
    evd.free()?;
    refused(outcome(&mut ring, 1)?, Type::ABORT)?;
    Ok(cno.free()?)
}

fn cno_one_each(context: &Context) -> Result<()> {
    const WAITS: u64 = 5;
    let ia = context.open()?;
    let cno = ia.create_cno(None)?;
    let mut ring = Ring::new(8)?;
    let (waited, patience) = (cno.clone(), context.patience());
    let thread = Worker::start(move || waited.wait(Some(patience)))?;
    thread.asleep(context)?;
    (0..WAITS).try_for_each(|tag| ring.wait_cno(&cno, None, tag))?;
    ring.submit()?;
    // The thread came first.
    cno.trigger()?;
    same("of the thread", thread.join()??, None)?;
    ensure!(ring.take().is_none(), "one trigger has ended two waits");
    for left in (0..WAITS as usize).rev() {
        cno.trigger()?;
        let completion = next(context, &mut ring)?;
        ensure!(matches!(completion.result?, Outcome::Triggered(None)), "no trigger");
        ring.submit()?;
        ensure!(ring.take().is_none(), "one trigger has ended two waits");
        same("pending", ring.pending(), left)?;
    }
    Ok(cno.free()?)
}

/// Takes the events of an EVD by commands, until there are `count`.
fn some(ring: &mut Ring, evd: &libkdapl::Evd, count: usize) -> Result<Vec<Event>> {
    ring.wait_evd(evd, None, count as i32, count, 99)?;
    match outcome(ring, 99)?? {
        Outcome::Events(events) if events.len() == count => Ok(events),
        other => bail!("expected {count} events, got {other:?}"),
    }
}

fn connection(context: &Context) -> Result<()> {
    const LENGTH: usize = 64;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let mut ring = Ring::new(16)?;
    let none = CompletionFlags::default();
    for end in [&client, &server] {
        ring.post(&end.ep, &[Dto::recv(&[end.lmr.segment(0, LENGTH)], 1, none)], 1)?;
        ensure!(matches!(outcome(&mut ring, 1)??, Outcome::Done), "the receive");
    }
    let to = SocketAddr::new(context.server_address(), 0);
    let options = ConnectOptions {
        timeout: Some(context.patience()),
        private_data: b"by a command",
        ..Default::default()
    };
    ring.connect(&client.ep, to, listener.port, &options, 2)?;
    ensure!(matches!(outcome(&mut ring, 2)??, Outcome::Done), "the connect");
    let cr = listener.request(context)?;
    ensure!(cr.query()?.private_data.starts_with(b"by a command"), "private data");
    ring.accept(cr, &server.ep, b"accepted", 3)?;
    ensure!(matches!(outcome(&mut ring, 3)??, Outcome::Done), "the accept");
    for end in [&client, &server] {
        let established = some(&mut ring, &end.connect, 1)?;
        crate::expect::connection(&established[0], ConnectionEvent::Established)?;
    }
    ensure!(client.ep.private_data()?.starts_with(b"accepted"), "private data of the accept");
    for (from, to) in [(&client, &server), (&server, &client)] {
        from.lmr.buffer().write(0, &[7; LENGTH]);
        ring.post(&from.ep, &[Dto::send(&[from.lmr.segment(0, LENGTH)], 2, none)], 4)?;
        ensure!(matches!(outcome(&mut ring, 4)??, Outcome::Done), "the send");
        done(&some(&mut ring, &from.request, 1)?[0], DtoOperation::Send, LENGTH as u64, 2)?;
        done(&some(&mut ring, &to.recv, 1)?[0], DtoOperation::Receive, LENGTH as u64, 1)?;
    }
    client.ep.disconnect(Close::Graceful)?;
    for end in [&client, &server] {
        let over = some(&mut ring, &end.connect, 1)?;
        crate::expect::connection(&over[0], ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

fn refused_dtos(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let mut ring = Ring::new(8)?;
    let none = CompletionFlags::default();
    let segment = [end.lmr.segment(0, 8)];
    let dtos = [Dto::recv(&segment, 1, none), Dto::send(&segment, 2, none)];
    ring.post(&end.ep, &dtos, 1)?;
    refused_as(outcome(&mut ring, 1)?, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_UNCONNECTED)?;
    // The receive was posted: it is flushed.
    end.ep.disconnect(Close::Abrupt)?;
    let flushed = some(&mut ring, &end.recv, 1)?;
    crate::expect::dto(&flushed[0], DtoOperation::Receive, libkdapl::DtoStatus::Flushed)?;
    Ok(())
}

fn end_of_ia(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let (one, two) = (ia.create_evd(EvdFlags::SOFTWARE, 4)?, ia.create_evd(EvdFlags::SOFTWARE, 4)?);
    let cno = ia.create_cno(None)?;
    let mut ring = Ring::new(8)?;
    ring.provide_buffers(4, 4)?;
    ring.wait_evd(&one, None, 1, 1, 1)?;
    ring.stream(&two, 1, 2)?;
    ring.wait_cno(&cno, None, 3)?;
    ring.submit()?;
    ia.close(Close::Abrupt)?;
    for (tag, result) in all_of(&mut ring, &[1, 2, 3])? {
        refused(result, Type::ABORT).map_err(|error| error.context(format!("command {tag}")))?;
    }
    // Nothing waits on an IA that was closed.
    ring.wait_evd(&one, None, 1, 1, 4)?;
    refused_as(outcome(&mut ring, 4)?, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_IA)
}

fn unwaitable(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    for _ in 0..2 {
        ring.wait_evd(&evd, None, 1, 1, 1)?;
        ring.submit()?;
        evd.set_unwaitable()?;
        let unwaitable = Subtype::INVALID_STATE_EVD_UNWAITABLE;
        refused_as(outcome(&mut ring, 1)?, Type::INVALID_STATE, unwaitable)?;
        ring.wait_evd(&evd, None, 1, 1, 2)?;
        refused_as(outcome(&mut ring, 2)?, Type::INVALID_STATE, unwaitable)?;
        evd.clear_unwaitable()?;
    }
    evd.post_se(3)?;
    ring.wait_evd(&evd, None, 1, 1, 3)?;
    same("event", events(&mut ring, 3)?, vec![3])
}

fn refused_waits(context: &Context) -> Result<()> {
    let evd = software(context, 4)?;
    let mut ring = Ring::new(8)?;
    for (threshold, most, argument) in [(0, 1, 3), (5, 1, 3), (-1, 1, 3), (1, 0, 4)] {
        ring.wait_evd(&evd, None, threshold, most, 1)?;
        let invalid = Subtype(36 + argument);
        refused_as(outcome(&mut ring, 1)?, Type::INVALID_PARAMETER, invalid)?;
    }
    refused(evd.wait(Some(Duration::ZERO), 1), Type::TIMEOUT_EXPIRED)?;
    Ok(evd.free()?)
}
