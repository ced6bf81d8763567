// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Checks which completions wake a waiter: suppressed, unsignalled and solicited ones.

use super::completion_flags::flagged::{FlaggedPair, NO_FLAGS, SOLICITED, SUPPRESS, UNSIGNALLED};
use super::tests;
use crate::context::Context;
use crate::expect::{connection, denied_by_peer, done, dto, empty, same};
use crate::threads::Worker;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, DtoStatus, Error, Evd, Event};
use std::time::Duration;

tests! {
    #[Transport]
    suppressed_failure, 60, "A suppressed request that fails produces an event, and wakes its waiter";
    unsignalled_suppressed, 60, "A request that is unsignalled and suppressed gives no event";
    unsignalled_does_not_wake, 60, "Unsignalled completions do not wake a waiter; the next signalled one does, and all are queued";
    unsignalled_failure, 60, "An unsignalled DTO that fails wakes its waiter";
    unsignalled_receives, 60, "Unsignalled receives do not wake a waiter until a signalled one completes";
    unsignalled_full_evd, 60, "A waiter is woken when unsignalled events fill its EVD before a signalled one";
    unsignalled_cno, 60, "Unsignalled completions do not trigger a CNO; the next signalled one does";
    signalled_behind_full_evd, 60, "Signalled completions beyond a full queue trigger its CNO again once there is room, even if it was never found empty";
    unsignalled_storm, 300, "Each signalled completion among unsignalled ones wakes a waiter, and no event is lost";
    solicited_wakes, 60, "A waiter for solicited messages sleeps through the others, and gets all of them";
    solicited_cno, 60, "A solicited message triggers a CNO, and the others do not";
    solicited_waiter_gets_disconnect, 60, "A disconnect and flushed receives wake a waiter for solicited messages";
    solicited_full_evd, 60, "Receives that are flushed beyond a full queue wake a waiter for solicited messages, on the EVD and on its CNO";
    solicited_storm, 300, "Each solicited message among others wakes a waiter, and no event is lost";
}

fn suppressed_failure(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, NO_FLAGS)?;
    let (client, server) = (&pair.client, &pair.server);
    let worker = sleeper(context, &client.request)?;
    server.receive(1, NO_FLAGS)?;
    client.send(1, SUPPRESS)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 1)?;
    ensure!(!worker.finished(), "a suppressed completion woke the waiter");
    // An RDMA read of memory that the peer does not have. A send completes over iWARP when TCP
    // has it.
    let mut nowhere = server.end.lmr.remote_segment(0, 64);
    nowhere.context ^= 0x00ff_ff00;
    client.ep.post_rdma_read(&client.segment(), nowhere, 2, SUPPRESS)?;
    match woken(context, worker)?.0 {
        Event::Dto(dto) if context.client.is_iwarp() && dto.cookie == 2 => {
            ensure!(dto.status != DtoStatus::Success, "the read succeeded");
            Ok(())
        }
        event => denied_by_peer(context, &event, DtoOperation::RdmaRead),
    }
}

fn unsignalled_suppressed(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    for (cookie, flags) in [(1, UNSIGNALLED | SUPPRESS), (2, UNSIGNALLED)] {
        server.receive(cookie, NO_FLAGS)?;
        client.send(cookie, flags)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
    }
    // Requests complete in their order.
    done(&taken(context, &client.request)?, DtoOperation::Send, 64, 2)?;
    context.quiet(&client.request)
}

/// Starts a thread that waits on an EVD without a time-out, and returns when it sleeps. The thread
/// returns its event and the number of events left.
pub fn sleeper(context: &Context, evd: &Evd) -> Result<Worker<Result<(Event, u32), Error>>> {
    let evd = evd.clone();
    let worker = Worker::start(move || evd.wait(None, 1))?;
    worker.asleep(context)?;
    Ok(worker)
}

/// Returns the event that woke the thread.
pub fn woken(
    context: &Context,
    worker: Worker<Result<(Event, u32), Error>>,
) -> Result<(Event, u32)> {
    context.until("the waiter is woken", || Ok(worker.finished()))?;
    Ok(worker.join()??)
}

/// Checks that the thread sleeps on for a while.
pub fn sleeps_on<T: Send + 'static>(context: &Context, worker: &Worker<T>) -> Result<()> {
    std::thread::sleep(context.scaled(Duration::from_millis(20)));
    ensure!(!worker.finished(), "the waiter was woken by an event that should not wake it");
    Ok(())
}

fn unsignalled_does_not_wake(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    for first in (0..context.count(20).max(5)).map(|round| round * 8) {
        let worker = sleeper(context, &client.request)?;
        for cookie in first..first + 7 {
            server.receive(cookie, NO_FLAGS)?;
            client.send(cookie, UNSIGNALLED)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        sleeps_on(context, &worker)?;
        context.until("the events are queued", || Ok(client.request.query()?.queued == 7))?;
        ensure!(!worker.finished(), "unsignalled events woke the waiter");
        server.receive(first + 7, NO_FLAGS)?;
        client.send(first + 7, NO_FLAGS)?;
        let (event, more) = woken(context, worker)?;
        done(&event, DtoOperation::Send, 64, first)?;
        same("further events", more, 7)?;
        for cookie in first + 1..first + 8 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, first + 7)?;
    }
    // A later waiter takes queued events at once.
    server.receive(1, NO_FLAGS)?;
    client.send(1, UNSIGNALLED)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&taken(context, &client.request)?, DtoOperation::Send, 64, 1)
}

/// Returns the next event, which need not wake a waiter.
pub fn taken(context: &Context, evd: &Evd) -> Result<Event> {
    let mut found = None;
    context.until("an event is queued", || match evd.dequeue() {
        Ok((event, _)) => {
            found = Some(event);
            Ok(true)
        }
        Err(error) if error.is_empty() => Ok(false),
        Err(error) => Err(error.into()),
    })?;
    found.context("there is no event")
}

fn unsignalled_failure(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, UNSIGNALLED, UNSIGNALLED)?;
    let client = &pair.client;
    client.receive(7, UNSIGNALLED)?;
    let worker = sleeper(context, &client.recv)?;
    sleeps_on(context, &worker)?;
    client.ep.disconnect(Close::Abrupt)?;
    let (event, _) = woken(context, worker)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 7)
}

fn unsignalled_receives(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, UNSIGNALLED, NO_FLAGS)?;
    let client = &pair.client;
    for cookie in 1..=4 {
        client.receive(cookie, if cookie == 4 { NO_FLAGS } else { UNSIGNALLED })?;
    }
    let worker = sleeper(context, &client.recv)?;
    for cookie in 1..=3 {
        // The sender's flag does not change the receiver's.
        pair.message(context, cookie, SOLICITED)?;
        sleeps_on(context, &worker)?;
    }
    pair.message(context, 4, NO_FLAGS)?;
    let (event, more) = woken(context, worker)?;
    done(&event, DtoOperation::Receive, 64, 1)?;
    same("further events", more, 3)
}

fn unsignalled_full_evd(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    same("length", client.request.resize(4)?, 4)?;
    let worker = sleeper(context, &client.request)?;
    for cookie in 1..=8 {
        server.receive(cookie, NO_FLAGS)?;
        client.send(cookie, if cookie == 8 { NO_FLAGS } else { UNSIGNALLED })?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
    }
    done(&woken(context, worker)?.0, DtoOperation::Send, 64, 1)?;
    for cookie in 2..=8 {
        done(&context.next(&client.request)?, DtoOperation::Send, 64, cookie)?;
    }
    empty(&client.request)
}

fn unsignalled_cno(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let cno = client.end.ia.create_cno(None)?;
    client.request.modify_cno(Some(&cno))?;
    context.untriggered(&cno)?;
    for round in 0..context.count(20).max(5) {
        let post = |cookie: u64, flags| -> Result<()> {
            server.receive(cookie, NO_FLAGS)?;
            client.send(cookie, flags)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)
        };
        (0..3).try_for_each(|cookie| post(cookie, UNSIGNALLED))?;
        context.untriggered(&cno).with_context(|| format!("round {round}"))?;
        post(3, NO_FLAGS)?;
        let triggered = cno.wait(Some(context.patience()))?;
        same("EVD that triggered", triggered, Some(client.request.handle()))?;
        for cookie in 0..4 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        empty(&client.request)?;
        context.untriggered(&cno).context("after the EVD was emptied")?;
        // Completions that arrive unobserved. The signalled one in the middle is dequeued.
        post(4, UNSIGNALLED)?;
        post(5, NO_FLAGS)?;
        post(6, UNSIGNALLED)?;
        same("EVD that triggered", cno.wait(Some(context.patience()))?, triggered)?;
        for cookie in 4..6 {
            done(&client.request.dequeue()?.0, DtoOperation::Send, 64, cookie)?;
        }
        context.untriggered(&cno).context("with an unsignalled event left")?;
        // This event is not announced, and may be late.
        let mut last = None;
        context.until("the unsignalled event", || {
            last = client.request.dequeue().ok();
            Ok(last.is_some())
        })?;
        let (last, _) = last.context("there is no event")?;
        done(&last, DtoOperation::Send, 64, 6)?;
        empty(&client.request)?;
    }
    Ok(())
}

fn signalled_behind_full_evd(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let request = &client.request;
    same("length", request.resize(4)?, 4)?;
    for round in 0..context.count(20).max(5) {
        let cno = client.end.ia.create_cno(None)?;
        request.modify_cno(Some(&cno))?;
        for cookie in 1..=6 {
            server.receive(cookie, NO_FLAGS)?;
            client.send(cookie, NO_FLAGS)?;
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        context.until("the queue is full", || Ok(request.query()?.queued == 4))?;
        // The consumer never finds the queue empty: it takes only the events that triggered.
        for told in [1..5, 5..7] {
            let triggered = cno.wait(Some(context.patience()));
            let triggered = triggered.with_context(|| format!("round {round}, {told:?}"))?;
            same("EVD that triggered", triggered, Some(request.handle()))?;
            for cookie in told {
                // The peer may have the message before the sender has its completion.
                done(&taken(context, request)?, DtoOperation::Send, 64, cookie)?;
            }
        }
        empty(request)?;
        request.modify_cno(None)?;
    }
    Ok(())
}

fn unsignalled_storm(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, NO_FLAGS, UNSIGNALLED)?;
    let (client, server) = (&pair.client, &pair.server);
    let mut rng = context.rng();
    let mut next = 0;
    for round in 0..context.count(3000) {
        let first = next;
        next += rng.u64(1..=16);
        for cookie in first..next {
            server.receive(cookie, NO_FLAGS)?;
            client.send(cookie, if cookie + 1 == next { NO_FLAGS } else { UNSIGNALLED })?;
        }
        for cookie in first..next {
            // Sleeps whenever no event is queued.
            let event = context.next(&client.request).with_context(|| format!("round {round}"))?;
            done(&event, DtoOperation::Send, 64, cookie)?;
        }
        (first..next).try_for_each(|cookie| {
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, cookie)
        })?;
    }
    empty(&client.request)
}

fn solicited_wakes(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, NO_FLAGS)?;
    let client = &pair.client;
    for first in (0..context.count(20).max(5)).map(|round| round * 4) {
        (first..first + 4).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
        let worker = sleeper(context, &client.recv)?;
        if !context.client.is_iwarp() {
            for cookie in first..first + 3 {
                pair.message(context, cookie, NO_FLAGS)?;
            }
            sleeps_on(context, &worker)?;
            pair.message(context, first + 3, SOLICITED)?;
            let (event, more) = woken(context, worker)?;
            done(&event, DtoOperation::Receive, 64, first)?;
            same("further events", more, 3)?;
        } else {
            // Over iWARP any message wakes.
            pair.message(context, first, NO_FLAGS)?;
            done(&woken(context, worker)?.0, DtoOperation::Receive, 64, first)?;
            (first + 1..first + 4)
                .try_for_each(|cookie| pair.message(context, cookie, NO_FLAGS))?;
        }
        for cookie in first + 1..first + 4 {
            done(&context.next(&client.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        empty(&client.recv)?;
    }
    Ok(())
}

fn solicited_cno(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, NO_FLAGS)?;
    let client = &pair.client;
    let cno = client.end.ia.create_cno(None)?;
    client.recv.modify_cno(Some(&cno))?;
    for round in 0..context.count(20).max(5) {
        (0..3).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
        context.untriggered(&cno)?;
        if !context.client.is_iwarp() {
            (0..2).try_for_each(|cookie| pair.message(context, cookie, NO_FLAGS))?;
            context.untriggered(&cno).with_context(|| format!("round {round}"))?;
        } else {
            (0..2).try_for_each(|cookie| pair.message(context, cookie, NO_FLAGS))?;
        }
        pair.message(context, 2, SOLICITED)?;
        let triggered = cno.wait(Some(context.patience()))?;
        same("EVD that triggered", triggered, Some(client.recv.handle()))?;
        for cookie in 0..3 {
            done(&context.next(&client.recv)?, DtoOperation::Receive, 64, cookie)?;
        }
        empty(&client.recv)?;
    }
    Ok(())
}

fn solicited_waiter_gets_disconnect(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, NO_FLAGS)?;
    let client = &pair.client;
    (1..=2).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
    let worker = sleeper(context, &client.recv)?;
    pair.server.ep.disconnect(Close::Abrupt)?;
    let (event, _) = woken(context, worker)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 1)?;
    let event = context.next(&client.recv)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 2)?;
    connection(&context.next(&client.end.connect)?, ConnectionEvent::Disconnected)
}

fn solicited_full_evd(context: &Context) -> Result<()> {
    for on_cno in [false, true] {
        let pair = FlaggedPair::new(context, SOLICITED, NO_FLAGS)?;
        let client = &pair.client;
        same("length", client.recv.resize(4)?, 4)?;
        (1..=8).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
        let patience = context.patience();
        let cno = client.end.ia.create_cno(None)?;
        let recv = client.recv.clone();
        let worker = if on_cno {
            client.recv.modify_cno(Some(&cno))?;
            Worker::start(move || cno.wait(Some(patience)).map(drop))?
        } else {
            Worker::start(move || recv.wait(Some(patience), 1).map(drop))?
        };
        worker.asleep(context)?;
        let messages = if context.client.is_iwarp() { 0 } else { 6 };
        (1..=messages).try_for_each(|cookie| pair.message(context, cookie, NO_FLAGS))?;
        pair.server.ep.disconnect(Close::Abrupt)?;
        worker.join()??;
        let first = if on_cno { 1 } else { 2 };
        for cookie in first..=8 {
            let event = context.next(&client.recv)?;
            let status = if cookie > messages { DtoStatus::Flushed } else { DtoStatus::Success };
            same("cookie", dto(&event, DtoOperation::Receive, status)?.cookie, cookie)?;
        }
        connection(&context.next(&client.end.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

fn solicited_storm(context: &Context) -> Result<()> {
    let pair = FlaggedPair::new(context, SOLICITED, NO_FLAGS)?;
    let client = &pair.client;
    let mut rng = context.rng();
    let mut next = 0;
    for round in 0..context.count(3000) {
        let first = next;
        next += rng.u64(1..=16);
        (first..next).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
        for cookie in first..next {
            pair.server.send(cookie, if cookie + 1 == next { SOLICITED } else { NO_FLAGS })?;
        }
        for cookie in first..next {
            let event = context.next(&client.recv).with_context(|| format!("round {round}"))?;
            done(&event, DtoOperation::Receive, 64, cookie)?;
        }
        (first..next).try_for_each(|cookie| {
            done(&context.next(&pair.server.request)?, DtoOperation::Send, 64, cookie)
        })?;
    }
    empty(&client.recv)
}
