// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Waits for a silent peer without a limit: `KDAPL_PEER_TIMEOUT_NONE`, or the module parameter
//! `peer_timeout_ms=0`. Requests that the peer never answers must hold up neither a call of the
//! consumer nor its death.

use super::module::reload;
use super::silent_peer::{two_hosts, PacketsDropped};
use super::tests;
use crate::context::Context;
use crate::end::{Listener, Pair, Shape};
use crate::expect::{connection, connection_over, refused, same};
use crate::harness::skip;
use crate::machine::{self, DeviceGuard};
use crate::peer::{Part, Peer, Step};
use crate::traffic::Traffic;
use anyhow::{bail, ensure, Result};
use libkdapl::sys::KDAPL_PEER_TIMEOUT_NONE;
use libkdapl::{Close, ConnectionEvent, DtoStatus, EpState, Event, Type};
use std::time::{Duration, Instant};

tests! {
    disconnect, 120, "A disconnect ends a connection whose requests wait for a peer without a limit, and the requests are flushed";
    graceful_disconnect, 120, "A graceful disconnect waits for such requests, until an abrupt one ends it";
    free_and_close, 120, "An endpoint and an adapter whose requests wait for a peer without a limit are freed at once";
}

// Run last, since they load the module again, or remove the device.
tests! {
    REMOVAL:
    #[Defaults]
    parameter, 120, "With peer_timeout_ms=0 endpoints wait for their peers without a limit, and a process that waits so is killed at once";
    device_of_peer, 120, "A connection without a limit ends when the peer's device is removed";
    own_device, 120, "A connection without a limit breaks when the own device is removed amid silence";
}

/// Longest time of each call, and until each event.
const SOON: Duration = Duration::from_secs(10);

/// Requests that are outstanding.
const SENDS: u64 = 3;

fn possible(context: &Context) -> Result<()> {
    two_hosts(context)?;
    if context.client.is_iwarp() {
        return skip("over iWARP TCP decides when a peer is dead");
    }
    Ok(())
}

/// Returns a connection amid silence, with requests that the peer does not answer.
fn silent_pair(context: &Context) -> Result<(Pair, PacketsDropped<'_>)> {
    possible(context)?;
    let shape = Shape { peer_timeout_ms: KDAPL_PEER_TIMEOUT_NONE, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    for number in 0..SENDS {
        pair.server.receive(64 * number as usize, 64, number)?;
        pair.client.receive(64 * number as usize, 64, number)?;
    }
    let silence = PacketsDropped::new(context)?;
    for number in 0..SENDS {
        pair.client.send(0, 64, number)?;
    }
    Ok((pair, silence))
}

/// Makes a call, which must return soon.
fn soon<T>(context: &Context, what: &str, call: impl FnOnce() -> T) -> Result<T> {
    let start = Instant::now();
    let result = call();
    let time = start.elapsed();
    ensure!(time < context.scaled(SOON), "{what} took {time:?}");
    Ok(result)
}

/// Checks the end of the client's connection, and that all its requests were flushed before.
fn ended(context: &Context, pair: &Pair, event: ConnectionEvent) -> Result<()> {
    let next = soon(context, "the event", || context.next(&pair.client.connect))??;
    connection(&next, event)?;
    for evd in [&pair.client.request, &pair.client.recv] {
        for number in 0..SENDS {
            match evd.dequeue()?.0 {
                Event::Dto(dto) => {
                    same("cookie", dto.cookie, number)?;
                    same("status", dto.status, DtoStatus::Flushed)?;
                }
                other => bail!("expected the completion of a DTO, got {other}"),
            }
        }
    }
    same("state", pair.client.ep.status()?.state, EpState::Disconnected)
}

fn disconnect(context: &Context) -> Result<()> {
    let (pair, _silence) = silent_pair(context)?;
    soon(context, "the disconnect", || pair.client.ep.disconnect(Close::Abrupt))??;
    ended(context, &pair, ConnectionEvent::Disconnected)?;
    soon(context, "the reset", || pair.client.ep.reset())??;
    same("state", pair.client.ep.status()?.state, EpState::Unconnected)
}

fn graceful_disconnect(context: &Context) -> Result<()> {
    let (pair, _silence) = silent_pair(context)?;
    soon(context, "the disconnect", || pair.client.ep.disconnect(Close::Graceful))??;
    context.quiet(&pair.client.connect)?;
    same("state", pair.client.ep.status()?.state, EpState::DisconnectPending)?;
    soon(context, "the second disconnect", || pair.client.ep.disconnect(Close::Abrupt))??;
    ended(context, &pair, ConnectionEvent::Disconnected)
}

fn free_and_close(context: &Context) -> Result<()> {
    let (pair, _silence) = silent_pair(context)?;
    let Pair { client, server, listener } = pair;
    soon(context, "the free", || client.ep.free())??;
    drop(listener);
    // The other side has not heard of it.
    same("state", server.ep.status()?.state, EpState::Connected)?;
    server.send(0, 64, 7)?;
    let (ia, recv) = (server.ia.clone(), server.recv.clone());
    soon(context, "the close", || ia.close(Close::Abrupt))??;
    refused(recv.dequeue(), Type::INVALID_HANDLE)
}

fn device_of_peer(context: &Context) -> Result<()> {
    possible(context)?;
    let guard = DeviceGuard::new(context)?;
    let shape = Shape { peer_timeout_ms: KDAPL_PEER_TIMEOUT_NONE, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    // The peer has no receive for it.
    pair.client.send(0, 64, 0)?;
    soon(context, "the removal", || guard.delete_of(&context.server))??;
    connection_over(&context.next(&pair.client.connect)?)?;
    same("state", pair.client.ep.status()?.state, EpState::Disconnected)?;
    drop(pair);
    guard.add()
}

fn own_device(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let (pair, silence) = silent_pair(context)?;
    soon(context, "the removal", || guard.delete_of(&context.client))??;
    ended(context, &pair, ConnectionEvent::Broken)?;
    let Pair { client, server, listener } = pair;
    soon(context, "the free", || client.ep.free())??;
    soon(context, "the close", || client.ia.close(Close::Abrupt))??;
    soon(context, "the close of the other side", || drop((server, listener)))?;
    drop(silence);
    guard.add()
}

/// Kills a process amid its traffic, whose peer is silent, and ends the connection of the peer.
fn killed_amid_silence(context: &Context) -> Result<()> {
    let ia = context.open_server()?;
    let listener = Listener::new(context, &ia)?;
    let mut traffic = Traffic::new(context, &ia)?;
    same("time-out", traffic.end.ep.query()?.raw.attr.peer_timeout_ms, KDAPL_PEER_TIMEOUT_NONE)?;
    traffic.post_receives()?;
    let mut peer = Peer::start(context, Part::Client, listener.port, None)?;
    traffic.accept(context, &listener)?;
    traffic.established(context)?;
    traffic.begin()?;
    peer.reaches(Step::Transferring)?;
    let _silence = PacketsDropped::new(context)?;
    // Both have requests that wait for an answer.
    while traffic.end.request.dequeue().is_ok() {}
    traffic.end.send(0, 64, 1)?;
    std::thread::sleep(Duration::from_millis(500));
    soon(context, "the kill", || peer.kill())??;
    soon(context, "the end of its objects", || {
        context.until("its objects are gone", || Ok(machine::count_of("ep")? == 1))
    })??;
    // A disconnect has not arrived.
    same("state", traffic.end.ep.status()?.state, EpState::Connected)?;
    soon(context, "the disconnect", || traffic.end.ep.disconnect(Close::Abrupt))??;
    let last = soon(context, "the event", || traffic.run_out(context))??;
    same("last event", last, ConnectionEvent::Disconnected)
}

fn parameter(context: &Context) -> Result<()> {
    possible(context)?;
    reload(context, c"peer_timeout_ms=0")?;
    let outcome = killed_amid_silence(context);
    // The following tests need the module without parameters.
    reload(context, c"")?;
    outcome
}
