// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Disconnects of every kind, in situations that the table of calls does not cover.

use super::connect::ends;
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, dto, refused, same};
use crate::threads::Joined;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, EpState, Event, EventKind,
    Type,
};
use std::sync::Barrier;

tests! {
    #[Hosts]
    both_at_once, 240,
        "When both sides disconnect at once in any way, DTOs complete once before DISCONNECTED";
    abrupt_ends_graceful, 60,
        "An abrupt disconnect ends a graceful one early: outstanding requests are flushed";
    graceful_waits_for_requests, 60, "A graceful disconnect waits for a request that waits for the peer";
    unconnected_flushes_receives, 60,
        "A disconnect of an unconnected endpoint flushes all receives, and a reset makes it usable";
    repeated_disconnect, 60,
        "A disconnect of a disconnected endpoint succeeds and reports nothing, however often";
    #[Hosts]
    cancels_connect, 120,
        "A disconnect cancels a connect: DISCONNECTED on this side, no connection on the other";
    reset_and_free_of_one_side, 60,
        "A reset or a free of one side's disconnected endpoint does not disturb the other side";
}

const RECEIVES: u32 = 8;
const SENDS: u64 = 6;

fn merged() -> Shape {
    Shape { merged: true, receives: RECEIVES, requests: 16, ..Default::default() }
}

/// Takes the events of one side up to DISCONNECTED. Checks that each posted DTO completes once, in
/// the order of the posts.
fn all_told(context: &Context, end: &End, receives: u64, sends: u64) -> Result<()> {
    let mut next = [0; 2];
    let iwarp = context.client.is_iwarp();
    loop {
        match context.next(&end.connect)? {
            Event::Dto(dto) => {
                let which = usize::from(dto.operation == DtoOperation::Send);
                same("cookie", dto.cookie, next[which])?;
                next[which] += 1;
                // Over TCP, a send fails here when the peer disconnects.
                let sent = iwarp && dto.operation == DtoOperation::Send;
                let ended = [DtoStatus::Success, DtoStatus::Flushed].contains(&dto.status)
                    || sent && dto.status == DtoStatus::LocalEp;
                ensure!(ended, "{} of {:?}", dto.status, dto.operation);
            }
            Event::Connection { event, .. } if context.ends_of_traffic().contains(&event) => break,
            other => bail!("unexpected: {other}"),
        }
    }
    same("completed receives and sends", next, [receives, sends])?;
    same("state", end.ep.query()?.state, EpState::Disconnected)?;
    let status = end.ep.status()?;
    ensure!(status.recv_idle && status.request_idle, "{status:?}");
    refused(end.connect.dequeue(), Type::QUEUE_EMPTY)
}

fn both_at_once(context: &Context) -> Result<()> {
    for round in 0..context.count(60) {
        let pair = Pair::new(context, merged())?;
        let ends = [&pair.client, &pair.server];
        for end in ends {
            (0..RECEIVES.into()).try_for_each(|cookie| end.receive(0, 64, cookie))?;
        }
        let kinds = [Close::Graceful, Close::Abrupt];
        let how = [kinds[round as usize % 2], kinds[round as usize / 2 % 2]];
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            let threads = [0, 1].map(|side| {
                let (end, start) = (ends[side], &start);
                scope.spawn(move || -> Result<()> {
                    let segment = [end.lmr.segment(64, 64)];
                    for cookie in 0..SENDS {
                        end.ep.post_send(&segment, cookie, CompletionFlags::default())?;
                    }
                    start.wait();
                    Ok(end.ep.disconnect(how[side])?)
                })
            });
            threads.into_iter().try_for_each(|thread| thread.join().or_panicked()?)
        })
        .with_context(|| format!("round {round}, {how:?}"))?;
        for end in ends {
            all_told(context, end, RECEIVES.into(), SENDS)
                .with_context(|| format!("round {round}, {how:?}"))?;
        }
        context.quiet(&pair.client.connect)?;
    }
    Ok(())
}

/// Returns a pair whose client has a send without a posted receive, and has started a graceful
/// disconnect.
fn draining(context: &Context) -> Result<Pair> {
    let pair = Pair::new(context, merged())?;
    if pair.client.ia.query()?.transport == libkdapl::Transport::IWarp {
        return crate::harness::skip(
            "over iWARP a message without a posted receive ends the connection",
        );
    }
    pair.client.receive(0, 64, 0)?;
    pair.client.send(0, 64, 0)?;
    pair.client.ep.disconnect(Close::Graceful)?;
    same("state", pair.client.ep.query()?.state, EpState::DisconnectPending)?;
    Ok(pair)
}

fn abrupt_ends_graceful(context: &Context) -> Result<()> {
    let pair = draining(context)?;
    pair.client.ep.disconnect(Close::Abrupt)?;
    let mut told = Vec::new();
    for _ in 0..2 {
        let Event::Dto(dto) = context.next(&pair.client.connect)? else { bail!("no DTO") };
        same("status", dto.status, DtoStatus::Flushed)?;
        told.push(dto.operation);
    }
    ensure!(told.contains(&DtoOperation::Send), "{told:?}");
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

fn graceful_waits_for_requests(context: &Context) -> Result<()> {
    let pair = draining(context)?;
    context.quiet(&pair.client.connect)?;
    same("state", pair.server.ep.query()?.state, EpState::Connected)?;
    pair.server.receive(0, 64, 0)?;
    let event = context.next(&pair.client.connect)?;
    dto(&event, DtoOperation::Send, DtoStatus::Success)?;
    let event = context.next(&pair.server.connect)?;
    dto(&event, DtoOperation::Receive, DtoStatus::Success)?;
    let event = context.next(&pair.client.connect)?;
    dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

fn unconnected_flushes_receives(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let end = &ends.server;
    for how in [Close::Abrupt, Close::Graceful] {
        for count in [0, 1, u64::from(Shape::default().receives)] {
            (0..count).try_for_each(|cookie| end.receive(0, 64, cookie))?;
            end.ep.disconnect(how)?;
            for cookie in 0..count {
                let event = context.next(&end.recv)?;
                let dto = dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
                same("cookie", dto.cookie, cookie)?;
            }
            same("state", end.ep.query()?.state, EpState::Disconnected)?;
            context.until("nothing is outstanding", || Ok(end.ep.status()?.recv_idle))?;
            refused(end.connect.dequeue(), Type::QUEUE_EMPTY)?;
            end.ep.reset()?;
        }
    }
    end.receive(0, 64, 5)?;
    ends.call(context, &[])?;
    ends.listener.request(context)?.accept(&end.ep, &[])?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)?;
    ends.client.send(0, 64, 6)?;
    let event = context.next(&end.recv)?;
    crate::expect::done(&event, DtoOperation::Receive, 64, 5)
}

fn repeated_disconnect(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    pair.server.ep.disconnect(Close::Graceful)?;
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        for how in [Close::Abrupt, Close::Graceful].into_iter().cycle().take(10) {
            end.ep.disconnect(how)?;
        }
        same("state", end.ep.query()?.state, EpState::Disconnected)?;
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn cancels_connect(context: &Context) -> Result<()> {
    for accepted in [false, true] {
        let ends = ends(context)?;
        ends.client.receive(0, 64, 1)?;
        ends.call(context, &[])?;
        let mut cr = ends.listener.request(context)?;
        ends.client.ep.disconnect(Close::Abrupt)?;
        let event = context.next(&ends.client.recv)?;
        dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::Disconnected)?;
        context.quiet(&ends.client.connect)?;
        if !accepted {
            cr.reject(&[])?;
        } else if cr.accept(&ends.server.ep, &[]).is_ok() {
            // The request may have vanished with its client, or the accept reports it. Over iWARP
            // the TCP connection lasts until siw gets the answer, and an accept is not confirmed.
            let events = if context.client.is_iwarp() {
                &[ConnectionEvent::Established, ConnectionEvent::Disconnected][..]
            } else {
                &[ConnectionEvent::AcceptCompletionError][..]
            };
            for expected in events {
                connection(&context.next(&ends.server.connect)?, *expected)?;
            }
            same("state", ends.server.ep.query()?.state, EpState::Disconnected)?;
        }
        ends.client.ep.reset()?;
        context.quiet(&ends.client.connect)?;
    }
    Ok(())
}

fn reset_and_free_of_one_side(context: &Context) -> Result<()> {
    for free in [false, true] {
        let pair = Pair::new(context, merged())?;
        (0..RECEIVES.into()).try_for_each(|cookie| pair.server.receive(0, 64, cookie))?;
        pair.client.ep.disconnect(Close::Abrupt)?;
        let event = context.next(&pair.client.connect)?.kind();
        same("event", event, EventKind::Connection(ConnectionEvent::Disconnected))?;
        if free {
            pair.client.ep.free()?;
        } else {
            pair.client.ep.reset()?;
        }
        all_told(context, &pair.server, RECEIVES.into(), 0)?;
        context.quiet(&pair.server.connect)?;
    }
    Ok(())
}
