// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! How the end of a connection is told: DISCONNECTED if somebody said goodbye, BROKEN if something
//! failed.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{connection, connection_over, same};
use crate::harness::skip;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoStatus, EpState, Evd, Event};

tests! {
    #[Address]
    goodbye, 60, "A connection that somebody ends on purpose is DISCONNECTED on both sides, in whatever way it is ended";
    #[Address]
    failure, 60, "A connection on which a transfer fails is BROKEN where it failed, in whatever way it fails";
}

type Way = fn(&Pair) -> Result<()>;

/// What the server may do, and whether its endpoint is there to be told.
const GOODBYES: [(&str, bool, Way); 5] = [
    ("an abrupt disconnect", true, |pair| Ok(pair.server.ep.disconnect(Close::Abrupt)?)),
    ("a graceful disconnect", true, |pair| Ok(pair.server.ep.disconnect(Close::Graceful)?)),
    ("an abrupt disconnect behind a graceful one", true, |pair| {
        pair.server.ep.disconnect(Close::Graceful)?;
        Ok(pair.server.ep.disconnect(Close::Abrupt)?)
    }),
    ("a free", false, |pair| Ok(pair.server.ep.free()?)),
    ("a close of the IA", false, |pair| Ok(pair.server.ia.close(Close::Abrupt)?)),
];

fn goodbye(context: &Context) -> Result<()> {
    for (name, stays, say) in GOODBYES {
        let pair = Pair::new(context, Shape::default())?;
        // What only waits for a message is no reason for BROKEN.
        for end in [&pair.client, &pair.server] {
            end.receive(0, 64, 1)?;
        }
        say(&pair)?;
        let told = if stays { vec![&pair.client, &pair.server] } else { vec![&pair.client] };
        for end in told {
            let event = context.next(&end.connect).context(name)?;
            connection(&event, ConnectionEvent::Disconnected).context(name)?;
            same("state", end.ep.status()?.state, EpState::Disconnected)?;
            context.quiet(&end.connect)?;
        }
    }
    Ok(())
}

/// What of the client's fails, for a reason that the server finds.
const FAILURES: [(&str, Way); 4] = [
    ("an RDMA write to nowhere", |pair| {
        let mut to = pair.server.lmr.remote_segment(0, 64);
        to.context ^= 0x5500;
        pair.client.write(0, 64, to, 1)
    }),
    ("an RDMA read from nowhere", |pair| {
        let mut from = pair.server.lmr.remote_segment(0, 64);
        from.context ^= 0x5500;
        pair.client.read(0, 64, from, 1)
    }),
    ("an RDMA write beyond the region", |pair| {
        let mut to = pair.server.lmr.remote_segment(0, 64);
        to.address += pair.server.lmr.buffer().len() as u64;
        pair.client.write(0, 64, to, 1)
    }),
    ("a message too long for its receive", |pair| {
        pair.server.receive(0, 32, 1)?;
        pair.client.send(0, 64, 1)
    }),
];

/// How the next DTO ended.
fn ended(context: &Context, evd: &Evd) -> Result<DtoStatus> {
    match context.next(evd)? {
        Event::Dto(dto) => Ok(dto.status),
        other => bail!("expected a completion, got {other}"),
    }
}

fn failure(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP the peer hangs up: whoever hears that first is DISCONNECTED");
    }
    for (name, post) in FAILURES {
        let pair = Pair::new(context, Shape::default())?;
        post(&pair)?;
        let status = ended(context, &pair.client.request).context(name)?;
        let event = context.next(&pair.client.connect).context(name)?;
        if context.link_is_spoilt() && status == DtoStatus::Flushed {
            // The answer that says what was wrong got lost, or came behind the peer's disconnect.
            connection_over(&event).context(name)?;
        } else {
            let well = [DtoStatus::Success, DtoStatus::Flushed].contains(&status);
            ensure!(!well, "{name}: {status}");
            connection(&event, ConnectionEvent::Broken).context(name)?;
        }
        same("state", pair.client.ep.status()?.state, EpState::Disconnected)?;
        // The other side fails as well, unless it hears of the end before.
        connection_over(&context.next(&pair.server.connect).context(name)?).context(name)?;
        for end in [&pair.client, &pair.server] {
            context.quiet(&end.connect).context(name)?;
        }
    }
    Ok(())
}
