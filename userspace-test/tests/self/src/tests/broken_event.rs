// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events at the end of a connection: DISCONNECTED after a disconnect, BROKEN after a failure.

use super::connect::ends;
use super::kernel::{run_with, Loaded};
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, connection_over, dto, same};
use crate::harness::skip;
use crate::udapl::{possible, Program, Provider, ADAPTER};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{AsyncEvent, Close, ConnectionEvent, DtoOperation, DtoStatus, EpState, Evd, Event};

tests! {
    #[Address]
    not_after_orderly_end, 60, "A connection that is ended on purpose, in any way, is DISCONNECTED on both sides";
    #[Transport]
    before_connection, 60, "A queue pair that fails before a connection is ASYNC_EP_BROKEN, once, and the endpoint works after a reset";
    before_connection_in_kernel, 60, "In the kernel, a queue pair that fails before a connection is EP_BROKEN, once";
    #[Udapl]
    before_connection_of_udapl, 60, "uDAPL: a queue pair that fails before a connection is EP_BROKEN, once";
    on_connect_evd_only, 60, "A queue pair that fails during a connect or a connection is an event on the connect EVD, and no other";
    #[Address]
    after_failed_transfer, 60,
        "A connection on which a transfer fails, in any way, is BROKEN on the side of the failure";
}

/// Module that can make the latest queue pair of the client's device fail.
fn disguise(context: &Context) -> Result<Loaded> {
    Loaded::new("kdapl_disguise", &format!("device={}", context.client.device))
}

fn before_connection(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    let ends = ends(context)?;
    let server = ends.server;
    // The client's queue pair is the latest one.
    let client = End::new(&ends.client.ia, Shape::default())?;
    client.receive(0, 64, 1)?;
    fail_twice(&disguise)?;
    match context.next(client.ia.async_evd())? {
        Event::Async { event: AsyncEvent::EpBroken, object, .. } => {
            same("endpoint", object, client.ep.handle())?;
        }
        other => bail!("expected ASYNC_EP_BROKEN, got {other}"),
    }
    dto(&context.next(&client.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    same("state", client.ep.status()?.state, EpState::Disconnected)?;
    disguise.set("fail_qp", 1)?;
    context.quiet(client.ia.async_evd())?;
    context.quiet(&client.connect)?;
    client.ep.reset()?;
    let (address, port) = (context.server_address(), ends.listener.port);
    client.ep.connect(address, port, Some(context.patience()), &[])?;
    ends.listener.request(context)?.accept(&server.ep, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    drop((client, server));
    disguise.unload()
}

/// Reports twice that the latest queue pair has failed.
fn fail_twice(disguise: &Loaded) -> Result<()> {
    (0..2).try_for_each(|_| disguise.set("fail_qp", 1))
}

fn before_connection_in_kernel(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    run_with(context, "async_failure", "", |_| fail_twice(&disguise))?;
    disguise.unload()
}

fn before_connection_of_udapl(context: &Context) -> Result<()> {
    possible(context)?;
    let disguise = disguise(context)?;
    let line = format!("udapl-consumer failure {ADAPTER}");
    let mut program = Program::start(&context.client, Provider::Ours, &line)?;
    program.says(context, "ready")?;
    fail_twice(&disguise)?;
    program.resume()?;
    program.succeeds(context.patience() * 2)?;
    disguise.unload()
}

fn on_connect_evd_only(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    let ends = ends(context)?;
    let client = End::new(&ends.client.ia, Shape::default())?;
    let (address, port) = (context.server_address(), ends.listener.port);
    let call = || client.ep.connect(address, port, Some(3 * context.patience()), &[]);
    let fails_as = |event| -> Result<()> {
        disguise.set("fail_qp", 1)?;
        connection(&context.next(&client.connect)?, event)?;
        context.quiet(client.ia.async_evd())?;
        context.quiet(&client.connect)
    };
    call()?;
    let request = ends.listener.request(context)?;
    fails_as(ConnectionEvent::NonPeerRejected)?;
    drop(request);
    client.ep.reset()?;
    call()?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    fails_as(ConnectionEvent::Broken)?;
    drop((client, ends));
    disguise.unload()
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
