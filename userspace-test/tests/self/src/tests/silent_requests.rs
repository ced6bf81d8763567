// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Requests with suppressed events. Most of them are unsignalled: the device does not report their
//! success, so kDAPL knows of it from a later completion, or from that of a marker.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{connection, done, same};
use crate::harness::skip;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, Dto, DtoOperation, DtoStatus, Event, Submitted,
};
use std::time::{Duration, Instant};

tests! {
    #[Transport]
    status_tells_the_end, 60, "A program that posts suppressed requests only, and asks for the status, learns that they have completed";
    slots_come_back, 60, "Suppressed requests that have completed give their slots back, also if nothing follows";
    #[Transport]
    fill_the_queue, 60, "Requests of which any are suppressed complete in order, and their slots come back";
    graceful_disconnect_waits, 60, "A graceful disconnect lets suppressed requests finish";
    #[Transport]
    end_of_connection, 120, "Suppressed requests that have succeeded do not delay the end of the connection";
    failure_among, 60, "A suppressed request that fails has an event, those before it have none, and those after it are flushed";
    refused_in_list, 60, "A list with suppressed requests ends at the one that is refused, and the others complete";
}

/// Slots for requests. One of 16 is signalled.
const SLOTS: u32 = 64;

const ROUNDS: u32 = 20;

/// Longest sequence of unsignalled requests.
const UNSIGNALLED: u32 = 15;

/// Longest time of an end without requests that fail: a peer's disconnect waits for
/// acknowledgements for 100 ms.
const PROMPT: Duration = Duration::from_millis(1_500);

fn pair(context: &Context) -> Result<Pair> {
    Pair::new(context, Shape { requests: SLOTS, receives: SLOTS, ..Default::default() })
}

/// Posts suppressed RDMA writes, and waits until they have arrived and are acknowledged.
fn write_silently(context: &Context, pair: &Pair, count: u32) -> Result<()> {
    let (client, server) = (&pair.client, &pair.server);
    let mark = context.rng().u64(1..).to_le_bytes();
    client.lmr.buffer().write(8, &mark);
    for number in 0..count {
        // The last write carries the mark.
        let offset = if number + 1 == count { 8 } else { 0 };
        let to = server.lmr.remote_segment(offset, 8);
        let local = [client.lmr.segment(offset, 8)];
        client.ep.post_rdma_write(&local, to, number.into(), CompletionFlags::SUPPRESS)?;
    }
    context.until("the last write arrives", || Ok(server.lmr.buffer().to_vec(8, 8) == mark))?;
    std::thread::sleep(Duration::from_millis(20));
    Ok(())
}

fn status_tells_the_end(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let mut unreported = 0;
    for round in 0..ROUNDS {
        let count = 1 + round % UNSIGNALLED;
        write_silently(context, &pair, count)?;
        let drain = || match client.request.dequeue() {
            Err(error) if error.is_empty() => Ok(()),
            other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
        };
        drain()?;
        // No completion was queued, unless the module has just posted a marker, once a second. The
        // status call posts one.
        unreported += u32::from(client.ep.status()?.request_outstanding == count);
        context.until("the status shows no request", || {
            drain()?;
            Ok(client.ep.status()?.request_idle)
        })?;
    }
    println!("{unreported} of {ROUNDS} rounds had no completion");
    ensure!(context.client.is_iwarp() == (unreported < ROUNDS / 2), "{unreported} rounds");
    Ok(())
}

fn slots_come_back(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a message without a receive ends the connection");
    }
    let pair = pair(context)?;
    let client = &pair.client;
    write_silently(context, &pair, UNSIGNALLED)?;
    // These cannot complete, because the peer has posted no receive for the first.
    std::thread::sleep(Duration::from_millis(2_500));
    let local = [client.lmr.segment(0, 64)];
    for number in 0..SLOTS {
        let sent = client.ep.post_send(&local, number.into(), CompletionFlags::default());
        sent.with_context(|| format!("send {number}"))?;
    }
    (0..SLOTS).try_for_each(|number| pair.server.receive(0, 64, number.into()))?;
    for number in 0..SLOTS {
        done(&context.next(&client.request)?, DtoOperation::Send, 64, number.into())?;
    }
    context.quiet(&client.request)
}

fn fill_the_queue(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let remote = Some(server.lmr.remote_segment(0, 64));
    let local = [client.lmr.segment(0, 64)];
    for round in 0..context.count(200).max(50) {
        let share = context.rng().u32(0..=10);
        let mut has_event: Vec<bool> =
            (0..SLOTS).map(|_| context.rng().u32(0..10) >= share).collect();
        // The last request has an event, which shows that all have completed.
        has_event[SLOTS as usize - 1] = true;
        let flags = |has_event: bool| match has_event {
            true => CompletionFlags::default(),
            false => CompletionFlags::SUPPRESS,
        };
        let dtos: Vec<_> = has_event
            .iter()
            .enumerate()
            .map(|(n, event)| {
                Dto::new(DtoOperation::RdmaWrite, &local, remote, n as u64, flags(*event))
            })
            .collect();
        let length = context.rng().usize(1..=20);
        for list in dtos.chunks(length) {
            let Submitted { posted, event } = client.ep.submit(list, None);
            event?;
            same("posted", posted, list.len())?;
        }
        for (number, _) in has_event.iter().enumerate().filter(|(_, event)| **event) {
            let event = context.next(&client.request)?;
            done(&event, DtoOperation::RdmaWrite, 64, number as u64)?;
        }
        let outstanding = client.ep.status()?.request_outstanding;
        ensure!(outstanding == 0, "round {round}: {outstanding} requests are outstanding");
    }
    context.quiet(&client.request)
}

fn graceful_disconnect_waits(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a send is complete when TCP has it");
    }
    for round in 0..context.count(20).max(4) {
        let pair = pair(context)?;
        let (client, server) = (&pair.client, &pair.server);
        let sends = 1 + round as u32 % UNSIGNALLED;
        let local = [client.lmr.segment(0, 64)];
        for number in 0..sends {
            client.ep.post_send(&local, number.into(), CompletionFlags::SUPPRESS)?;
        }
        client.ep.disconnect(Close::Graceful)?;
        // The peer has posted no receive, so the sends cannot finish.
        std::thread::sleep(Duration::from_millis(30));
        ensure!(client.connect.dequeue().is_err_and(|error| error.is_empty()), "too early an end");
        (0..sends).try_for_each(|number| server.receive(0, 64, number.into()))?;
        for number in 0..sends {
            done(&context.next(&server.recv)?, DtoOperation::Receive, 64, number.into())?;
        }
        for end in [client, server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            context.quiet(&end.request)?;
        }
    }
    Ok(())
}

/// A way in which a connection ends.
#[derive(Clone, Copy, Debug)]
enum Way {
    Abrupt,
    Graceful,
    Peer,
    PeerFreed,
    Freed,
}

fn end_of_connection(context: &Context) -> Result<()> {
    let ways = [Way::Abrupt, Way::Graceful, Way::Peer, Way::PeerFreed, Way::Freed];
    for (round, way) in ways.iter().cycle().enumerate().take(2 * ways.len()) {
        let pair = pair(context)?;
        let (client, server) = (&pair.client, &pair.server);
        write_silently(context, &pair, 1 + round as u32 % UNSIGNALLED)?;
        let start = Instant::now();
        match way {
            Way::Abrupt => client.ep.disconnect(Close::Abrupt)?,
            Way::Graceful => client.ep.disconnect(Close::Graceful)?,
            Way::Peer => server.ep.disconnect(Close::Abrupt)?,
            Way::PeerFreed => server.ep.free()?,
            Way::Freed => {
                client.ep.free()?;
                connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
                context.quiet(&client.request)?;
                continue;
            }
        }
        connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
        let time = start.elapsed();
        ensure!(time < context.scaled(PROMPT), "{way:?}: the end took {time:?}");
        let status = client.ep.status()?;
        same("outstanding requests", status.request_outstanding, 0)?;
        client.ep.reset()?;
        context.quiet(&client.request)?;
    }
    Ok(())
}

fn failure_among(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP an RDMA write is complete when TCP has it");
    }
    for round in 0..context.count(20).max(5) {
        let pair = pair(context)?;
        let (client, server) = (&pair.client, &pair.server);
        let local = [client.lmr.segment(0, 64)];
        let good = server.lmr.remote_segment(0, 64);
        let mut bad = good;
        bad.context ^= 0x00ff_ff00;
        let failing = context.rng().u64(0..20);
        let count = failing + context.rng().u64(0..20);
        let dto = |number: u64| {
            let remote = if number == failing { bad } else { good };
            let suppress = CompletionFlags::SUPPRESS;
            Dto::new(DtoOperation::RdmaWrite, &local, Some(remote), number, suppress)
        };
        let dtos: Vec<_> = (0..=count).map(dto).collect();
        let Submitted { posted, event } = client.ep.submit(&dtos, None);
        event?;
        same("posted", posted, dtos.len())?;
        let failed = context.next(&client.request)?;
        let failed = dto_of(&failed)?;
        ensure!(
            failed == (failing, DtoStatus::RemoteAccess),
            "round {round}: {failed:?} instead of a failure of {failing}"
        );
        for number in failing + 1..=count {
            let event = context.next(&client.request)?;
            same("flushed", dto_of(&event)?, (number, DtoStatus::Flushed))?;
        }
        connection(&context.next(&client.connect)?, ConnectionEvent::Broken)?;
        context.quiet(&client.request)?;
    }
    Ok(())
}

fn dto_of(event: &Event) -> Result<(u64, DtoStatus)> {
    match event {
        Event::Dto(dto) => Ok((dto.cookie, dto.status)),
        other => bail!("{other} instead of a completion"),
    }
}

fn refused_in_list(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let remote = Some(pair.server.lmr.remote_segment(0, 64));
    let good = [client.lmr.segment(0, 64)];
    let outside = [libkdapl::Segment { length: 1 << 30, ..good[0] }];
    for place in 0..40 {
        let dto = |number: u64| {
            let local = if number == place { &outside } else { &good };
            Dto::new(DtoOperation::RdmaWrite, local, remote, number, CompletionFlags::SUPPRESS)
        };
        let dtos: Vec<_> = (0..44).map(dto).collect();
        let Submitted { posted, event } = client.ep.submit(&dtos, None);
        same("posted", posted as u64, place)?;
        ensure!(event.is_err(), "the DTO at {place} was not refused");
        context.until("all are complete", || match client.request.dequeue() {
            Err(error) if error.is_empty() => Ok(client.ep.status()?.request_idle),
            other => bail!("all events are suppressed, but the dequeue returned {other:?}"),
        })?;
    }
    Ok(())
}
