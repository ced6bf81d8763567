// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events at the end of a connection: DISCONNECTED after a disconnect, BROKEN after a failure.

use super::tests;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{connection, connection_over, same};
use crate::harness::skip;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoStatus, EpState, Evd, Event};

tests! {
    #[Address]
    not_after_orderly_end, 60, "A connection that is ended on purpose, in any way, is DISCONNECTED on both sides";
    #[Address]
    after_failed_transfer, 60,
        "A connection on which a transfer fails, in any way, is BROKEN on the side of the failure";
}

type Way = fn(&Pair) -> Result<()>;

/// Ways for the server to disconnect, and whether its endpoint exists afterwards.
const GOODBYES: [(&str, bool, Way); 5] = [
    ("an abrupt disconnect", true, |pair| Ok(pair.server.ep.disconnect(Close::Abrupt)?)),
    ("a graceful disconnect", true, |pair| Ok(pair.server.ep.disconnect(Close::Graceful)?)),
    ("an abrupt disconnect after a graceful one", true, |pair| {
        pair.server.ep.disconnect(Close::Graceful)?;
        Ok(pair.server.ep.disconnect(Close::Abrupt)?)
    }),
    ("a free", false, |pair| Ok(pair.server.ep.free()?)),
    ("a close of the IA", false, |pair| Ok(pair.server.ia.close(Close::Abrupt)?)),
];

fn not_after_orderly_end(context: &Context) -> Result<()> {
    for (name, stays, say) in GOODBYES {
        let pair = Pair::new(context, Shape::default())?;
        // A receive that waits for a message does not cause BROKEN.
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

/// Ways for an operation of the client to fail, for a reason that the server finds.
const FAILURES: [(&str, Way); 4] = [
    ("an RDMA write with a wrong rmr_context", |pair| {
        let mut to = pair.server.lmr.remote_segment(0, 64);
        to.context ^= 0x5500;
        pair.client.write(0, 64, to, 1)
    }),
    ("an RDMA read with a wrong rmr_context", |pair| {
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

/// Returns the status of the next completion.
fn ended(context: &Context, evd: &Evd) -> Result<DtoStatus> {
    match context.next(evd)? {
        Event::Dto(dto) => Ok(dto.status),
        other => bail!("expected a completion, got {other}"),
    }
}

fn after_failed_transfer(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip(
            "over iWARP the peer disconnects: the side that notices it first is DISCONNECTED",
        );
    }
    for (name, post) in FAILURES {
        let pair = Pair::new(context, Shape::default())?;
        post(&pair)?;
        let status = ended(context, &pair.client.request).context(name)?;
        let event = context.next(&pair.client.connect).context(name)?;
        if context.link_is_spoilt() && status == DtoStatus::Flushed {
            // The answer with the error was lost, or arrived after the peer's disconnect.
            connection_over(&event).context(name)?;
        } else {
            let well = [DtoStatus::Success, DtoStatus::Flushed].contains(&status);
            ensure!(!well, "{name}: {status}");
            connection(&event, ConnectionEvent::Broken).context(name)?;
        }
        same("state", pair.client.ep.status()?.state, EpState::Disconnected)?;
        // The other side fails as well, unless it gets the disconnect first.
        connection_over(&context.next(&pair.server.connect).context(name)?).context(name)?;
        for end in [&pair.client, &pair.server] {
            context.quiet(&end.connect).context(name)?;
        }
    }
    Ok(())
}
