// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reads that sleep, and polls.

use super::with_file;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, empty, same};
use crate::records::{in_time, now, read_events, Edge};
use crate::tests::completion_flags::flagged::{FlaggedPair, NO_FLAGS, UNSIGNALLED};
use crate::tests::tests;
use crate::tests::wait::{interrupt, interruptible};
use crate::threads::Worker;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{DtoOperation, EvdFile, Event};
use std::sync::Arc;
use std::time::Duration;

tests! {
    read_sleeps, 60, "A read sleeps until a software event or a completion arrives";
    poll_sleeps, 60, "A completion wakes poll and edge-triggered epoll on an EVD's file";
    edge_after_calls, 60, "Edge-triggered epoll is woken after a dequeue has found the EVD empty";
    signals, 60, "A signal ends a sleeping read with EINTR, or the read is restarted, and no event is lost";
    exclusive_polls, 60, "An event wakes a read although an exclusive poll for room came first";
    quiet_completions, 60, "Unsignalled completions wake neither poll nor a read, and are read with the next that wakes";
}

/// Starts a thread that reads, and sleeps.
pub fn reader(
    context: &Context,
    file: &Arc<EvdFile>,
) -> Result<Worker<Result<Vec<Event>, libkdapl::Error>>> {
    let file = file.clone();
    let worker = Worker::start(move || file.read(4))?;
    worker.asleep_in(context, libc::SYS_read)?;
    Ok(worker)
}

/// Returns the pointers of software events.
pub fn pointers(events: &[Event]) -> Result<Vec<u64>> {
    let pointer = |event: &Event| match event {
        Event::Software { pointer } => Ok(*pointer),
        other => bail!("expected a software event, got {other}"),
    };
    events.iter().map(pointer).collect()
}

fn read_sleeps(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let pair = Pair::new(context, Shape::default())?;
    let completions = Arc::new(pair.server.recv.file()?);
    for round in 0..context.count(100).max(3) {
        let worker = reader(context, &file)?;
        evd.post_se(round)?;
        same("events", pointers(&worker.join()??)?, vec![round])?;
        pair.server.receive(0, 64, round)?;
        let worker = reader(context, &completions)?;
        pair.client.send(0, 64, round)?;
        let events = worker.join()??;
        same("number of events", events.len(), 1)?;
        done(&events[0], DtoOperation::Receive, 64, round)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn poll_sleeps(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let file = Arc::new(pair.server.recv.file()?);
    file.set_nonblocking(true)?;
    let edge = Edge::of(&file, libc::EPOLLIN)?;
    for round in 0..context.count(100).max(3) {
        pair.server.receive(0, 64, round)?;
        same("edge before", edge.next(Duration::ZERO)?, 0)?;
        let (polled, patience) = (file.clone(), context.patience());
        let worker = Worker::start(move || in_time(&polled, libc::POLLIN, patience))?;
        worker.asleep_in(context, libc::SYS_poll)?;
        pair.client.send(0, 64, round)?;
        same("poll", worker.join()??, libc::POLLIN)?;
        same("edge", edge.in_time(patience)?, libc::EPOLLIN)?;
        let events = file.read(4)?;
        same("number of events", events.len(), 1)?;
        done(&events[0], DtoOperation::Receive, 64, round)?;
        same("afterwards", read_events(&*file, 1), Err(libc::EAGAIN))?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn edge_after_calls(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let recv = &pair.server.recv;
    let file = recv.file()?;
    let edge = Edge::of(&file, libc::EPOLLIN)?;
    for round in 0..context.count(100).max(3) {
        pair.server.receive(0, 64, round)?;
        pair.client.send(0, 64, round)?;
        same("edge", edge.in_time(context.patience())?, libc::EPOLLIN)?;
        done(&context.next(recv)?, DtoOperation::Receive, 64, round)?;
        // With this the program knows that it has to wait for the next edge.
        empty(recv)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, round)?;
    }
    Ok(())
}

fn exclusive_polls(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    let edge = Edge::of(&*file, libc::EPOLLOUT | libc::EPOLLEXCLUSIVE)?;
    same("room", edge.next(Duration::ZERO)?, libc::EPOLLOUT)?;
    let poll = Worker::start(move || edge.next(Duration::from_secs(3600)))?;
    poll.asleep_in(context, libc::SYS_epoll_wait)?;
    for round in 0..3 {
        let worker = reader(context, &file)?;
        evd.post_se(round)?;
        context.until("the read returns", || Ok(worker.finished()))?;
        same("events", pointers(&worker.join()??)?, vec![round])?;
    }
    ensure!(!poll.finished(), "an event has ended a poll for room");
    evd.free()?;
    same("poll", poll.join()?? & libc::EPOLLHUP, libc::EPOLLHUP)
}

/// Installs a handler for SIGUSR1 after which system calls are restarted.
fn restarting() {
    extern "C" fn ignore(_: libc::c_int) {}
    // SAFETY: the handler does nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
}

fn signals(context: &Context) -> Result<()> {
    let (evd, file) = with_file(context, 4)?;
    file.set_nonblocking(false)?;
    let file = Arc::new(file);
    interruptible(0);
    for round in 0..context.count(50).max(3) {
        let worker = reader(context, &file)?;
        interrupt(worker.tid);
        let errno = worker.join()?.map_err(|error| error.errno());
        same("an interrupted read", errno.err(), Some(Some(libc::EINTR)))?;
        // The event and the signal race. The event is there either way.
        let worker = reader(context, &file)?;
        evd.post_se(round)?;
        interrupt(worker.tid);
        let events = match worker.join()? {
            Err(error) if error.errno() == Some(libc::EINTR) => file.read(4)?,
            outcome => outcome?,
        };
        same("events", pointers(&events)?, vec![round])?;
    }
    restarting();
    let worker = reader(context, &file)?;
    for _ in 0..10 {
        interrupt(worker.tid);
        std::thread::sleep(Duration::from_millis(2));
        ensure!(!worker.finished(), "a signal has ended a read that is to be restarted");
    }
    evd.post_se(77)?;
    same("events", pointers(&worker.join()??)?, vec![77])
}

fn quiet_completions(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let file = client.request.file()?;
    file.set_nonblocking(true)?;
    let edge = Edge::of(&file, libc::EPOLLIN)?;
    for round in 0..context.count(20).max(5) {
        for cookie in 0..4 {
            same("poll", now(&file)?, 0)?;
            same("edge", edge.next(Duration::ZERO)?, 0)?;
            server.receive(cookie, NO_FLAGS)?;
            client.send(cookie, if cookie == 3 { NO_FLAGS } else { UNSIGNALLED })?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        let edge = edge.in_time(context.patience()).with_context(|| format!("round {round}"))?;
        same("edge", edge, libc::EPOLLIN)?;
        let events = file.read(8)?;
        same("number of events", events.len(), 4)?;
        for (cookie, event) in (0..).zip(&events) {
            done(event, DtoOperation::Send, 64, cookie)?;
        }
        same("another read", read_events(&file, 1), Err(libc::EAGAIN))?;
    }
    Ok(())
}
