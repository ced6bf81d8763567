// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Sends messages to a peer that has posted no receive. Such a peer answers that the receiver is
//! not ready. The message waits for its receive longer than for a peer that does not answer.

use super::silent_peer::{next_within, MAX_RECOVERY_TIME};
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, same};
use crate::harness::skip;
use crate::plain::{Exchange, Plain};
use anyhow::{bail, Result};
use libkdapl::{Close, ConnectionEvent, DtoStatus, EpState, Event};
use std::time::Duration;

tests! {
    #[Hosts]
    late_receive, 120, "A message waits for its receive longer than the peer time-out";
    #[Hosts]
    plain_peer_is_late, 120, "A message waits for a plain rdma_cm program's receive longer than the peer time-out";
    plain_peer_allows_no_retries, 60, "A message without a receive fails at once with RECEIVER_NOT_READY if the plain rdma_cm peer allows no retries";
}

/// Peer time-out of the endpoints.
const PEER_TIMEOUT: Duration = Duration::from_secs(1);

/// Delay of the receive.
const LATE: Duration = Duration::from_secs(5);

fn shape() -> Shape {
    Shape { peer_timeout_ms: PEER_TIMEOUT.as_millis() as u32, ..Default::default() }
}

fn possible(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("over iWARP a message without a receive ends the connection");
    }
    if context.link_is_spoilt() {
        return skip("over this link a peer time-out of one second may end the connection");
    }
    Ok(())
}

/// Checks the status of the next completion of a request.
fn completes(context: &Context, end: &End, status: DtoStatus) -> Result<()> {
    match next_within(context, &end.request, MAX_RECOVERY_TIME)? {
        Event::Dto(dto) => same("status", dto.status, status),
        other => bail!("expected the completion of the send, got {other}"),
    }
}

fn late_receive(context: &Context) -> Result<()> {
    possible(context)?;
    let pair = Pair::new(context, shape())?;
    pair.client.send(0, 64, 1)?;
    std::thread::sleep(LATE);
    same("state", pair.client.ep.status()?.state, EpState::Connected)?;
    pair.server.receive(0, 64, 2)?;
    completes(context, &pair.client, DtoStatus::Success)?;
    match next_within(context, &pair.server.recv, MAX_RECOVERY_TIME)? {
        Event::Dto(dto) => same("status", dto.status, DtoStatus::Success)?,
        other => bail!("expected the message, got {other}"),
    }
    context.quiet(&pair.client.connect)?;
    context.quiet(&pair.server.connect)
}

/// Connects to a plain program with these options.
fn plain(context: &Context, arguments: &[&str]) -> Result<(End, Plain)> {
    let end = End::new(&context.open()?, shape())?;
    let port = context.port();
    let mut plain = Plain::listen(context, port, arguments)?;
    Exchange { context, end: &end, first: true, immediate: false }.prepare()?;
    end.ep.connect(context.server_address(), port, Some(context.patience()), &[])?;
    plain.says("request")?;
    connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    plain.says("established")?;
    Ok((end, plain))
}

/// Tests the RNR timer that `rdma_cm` sets by default: the peer asks to wait 655 ms each time.
fn plain_peer_is_late(context: &Context) -> Result<()> {
    possible(context)?;
    let late = LATE.as_secs().to_string();
    let (end, mut plain) = plain(context, &["--exchange", "3", "--late", &late])?;
    // The first message waits.
    Exchange { context, end: &end, first: true, immediate: false }.run(3)?;
    plain.says("exchanged 3")?;
    end.ep.disconnect(Close::Graceful)?;
    plain.says("disconnected")?;
    plain.succeeds()
}

fn plain_peer_allows_no_retries(context: &Context) -> Result<()> {
    possible(context)?;
    let (end, mut plain) = plain(context, &["--late", "60", "--rnr-retries", "0"])?;
    end.send(0, 64, 1)?;
    completes(context, &end, DtoStatus::ReceiverNotReady)?;
    connection(&next_within(context, &end.connect, MAX_RECOVERY_TIME)?, ConnectionEvent::Broken)?;
    plain.kill()
}
