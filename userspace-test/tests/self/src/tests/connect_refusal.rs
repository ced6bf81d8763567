// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests connects that are refused, and connects without an answer.

use super::connect::{carried, ends, random, Ends};
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, errno, refused, refused_as, same};
use crate::machine::DeviceGuard;
use crate::raw;
use crate::timeouts::on_time;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{Close, ConnectionEvent, Cr, EpState, Evd, EventKind, Subtype, Type};
use std::time::{Duration, Instant};

tests! {
    #[Address, Transport]
    rejected, 20, "A rejected request is PEER_REJECTED, with the private data of the reject";
    no_listener, 20, "Without a listener a connect is NON_PEER_REJECTED";
    #[Address]
    unused_address, 60, "A connect to an unused address ends in time";
    #[Address]
    net_device_down, 60, "A connect ends in time if the network device goes down meanwhile, and is refused while it is down";
    #[Address]
    too_much_private_data, 20, "More private data than the transport carries is refused, and the call can be repeated";
    #[Address]
    bad_addresses, 20, "A connect with an invalid address, qualifier, quality or flags is refused";
    wrong_states, 30, "A second connect, a connect while connected and one after the end are refused with the state";
    accept_on_wrong_ep, 30, "An accept on a wrong, freed or connected endpoint is refused, and the request stays";
    second_answer_is_refused, 20, "A request can be answered only once";
    ia_close_answers_pending_request, 30, "A client whose unanswered request is freed with the server's IA gets an answer";
    accept_of_abandoned_request, 60, "Accepting the request of a client that has given up leads to no connection and leaks nothing";
}

const MS: Duration = Duration::from_millis(1);

fn rejected(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let limit = context.open()?.query()?.raw.max_private_data_reject as usize;
    // Over iWARP a reject without private data is the same as a closed connection.
    let least = usize::from(context.client.is_iwarp());
    for length in [least, 1, limit] {
        let ends = ends(context)?;
        ends.call(context, b"may I?")?;
        let reason = random(context, length);
        ends.listener.request(context)?.reject(&reason)?;
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::PeerRejected)?;
        carried("reason", &ends.client.ep.private_data()?, &reason)?;
        same("state", ends.client.ep.status()?.state, EpState::Disconnected)?;
        context.quiet(&ends.client.connect)?;
    }
    Ok(())
}

fn no_listener(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    end.ep.connect(context.server_address(), context.port(), Some(context.patience()), &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::NonPeerRejected)?;
    same("state", end.ep.status()?.state, EpState::Disconnected)?;
    context.quiet(&end.connect)
}

/// Checks for TIMED_OUT after the time-out, or UNREACHABLE. Returns how late the event came.
fn unused_address(context: &Context) -> Result<()> {
    let mut number = 0;
    // Less than the three seconds after which the kernel gives up a neighbour's address. Each
    // attempt has a neighbour of its own.
    for time in [20 * MS, 500 * MS, 1500 * MS] {
        on_time(context.scaled(500 * MS), || {
            number = number % 15 + 1;
            calls_nobody(context, number, time)
        })
        .with_context(|| format!("{time:?}"))?;
    }
    Ok(())
}

/// Connects to an address without a host, and returns how late the connect ended.
fn calls_nobody(context: &Context, number: u8, time: Duration) -> Result<Duration> {
    let end = End::new(&context.open()?, Shape::default())?;
    end.receive(0, 64, 1)?;
    let start = Instant::now();
    let address = context.client.nobody_at(number);
    end.ep.connect(address, context.port(), Some(time), &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::TimedOut)?;
    let took = start.elapsed();
    ensure!(took >= time, "TIMED_OUT after {took:?} instead of {time:?}");
    same("state", end.ep.status()?.state, EpState::Disconnected)?;
    // The receive comes back flushed.
    context.next(&end.recv)?;
    context.quiet(&end.connect)?;
    Ok(took.saturating_sub(time))
}

fn net_device_down(context: &Context) -> Result<()> {
    // Restores the device, also after a failure.
    let guard = DeviceGuard::new(context)?;
    let ends = ends(context)?;
    let time = 800 * MS;
    let start = Instant::now();
    let address = context.client.nobody();
    ends.client.ep.connect(address, ends.listener.port, Some(time), &[])?;
    context.client.command(&format!("ip link set {} down", context.client.netdev))?;
    let event = context.next(&ends.client.connect)?;
    // News of any neighbour lets the kernel look again, and find no route. A host has no neighbours
    // if it talks to itself only.
    let is_unreachable = connection(&event, ConnectionEvent::Unreachable).is_ok();
    if context.hosts().len() == 1 || !is_unreachable {
        connection(&event, ConnectionEvent::TimedOut)?;
        ensure!(start.elapsed() >= time, "TIMED_OUT after {:?}", start.elapsed());
    }
    ensure!(start.elapsed() < time + context.scaled(1000 * MS), "took {:?}", start.elapsed());
    // There is no route meanwhile.
    let late = ends.client.another_ep()?;
    let refusal = late.connect(context.server_address(), ends.listener.port, Some(time), &[]);
    refused_as(refusal, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNREACHABLE)?;
    context.client.command(&format!("ip link set {} up", context.client.netdev))?;
    // Soft-RoCE's own QP for connection management does not survive a send that the network device
    // refuses; then rping hangs too. Only a new device has a working one.
    guard.delete()?;
    guard.add()?;
    Pair::new(context, Shape::default()).context("connecting after the device came back")?;
    Ok(())
}

fn too_much_private_data(context: &Context) -> Result<()> {
    let limits = context.open()?.query()?.raw;
    let ends = ends(context)?;
    let too_much = |outcome, subtype| refused_as(outcome, Type::INVALID_PARAMETER, subtype);
    let connect = |length: u32| {
        let data = vec![7; length as usize];
        ends.client.ep.connect(context.server_address(), ends.listener.port, None, &data)
    };
    for length in [limits.max_private_data_connect + 1, 257, 70_000] {
        too_much(connect(length), Subtype::INVALID_ARG5)?;
    }
    same("state", ends.client.ep.status()?.state, EpState::Unconnected)?;
    connect(limits.max_private_data_connect)?;
    let mut cr = ends.listener.request(context)?;
    for length in [limits.max_private_data_accept + 1, 257, 70_000] {
        let outcome = cr.accept(&ends.server.ep, &vec![7; length as usize]);
        too_much(outcome, Subtype::INVALID_ARG3)?;
    }
    for length in [limits.max_private_data_reject + 1, 257] {
        too_much(cr.reject(&vec![7; length as usize]), Subtype::INVALID_ARG2)?;
    }
    same("state", ends.server.ep.status()?.state, EpState::Unconnected)?;
    cr.accept(&ends.server.ep, &[])?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)
}

fn bad_addresses(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let right = kdapl_ep_connect {
        handle: end.ep.handle().0,
        remote_address: context.server_address().into(),
        conn_qual: context.port(),
        timeout_ns: 1_000_000_000,
        ..Default::default()
    };
    let send = |change: &dyn Fn(&mut kdapl_ep_connect)| {
        let mut message = right;
        change(&mut message);
        raw::call(end.ia.device(), call::EP_CONNECT, &mut message)
    };
    let malformed =
        |outcome| refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED);
    malformed(send(&|m| m.remote_address.sa = [0; 128]))?;
    malformed(send(&|m| m.remote_address.sa = [0xff; 128]))?;
    malformed(send(&|m| m.remote_address.sa[0] = 1))?;
    refused_as(send(&|m| m.conn_qual = 0), Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
    refused(send(&|m| m.qos = 3), Type::MODEL_NOT_SUPPORTED)?;
    refused(send(&|m| m.flags = 0x80), Type::MODEL_NOT_SUPPORTED)?;
    errno(
        send(&|m| {
            m.private_data = raw::BAD_ADDRESS;
            m.private_data_size = 8;
        }),
        libc::EFAULT,
    )?;
    refused_as(
        send(&|m| m.handle = end.pz.handle().0),
        Type::INVALID_HANDLE,
        Subtype::INVALID_HANDLE_EP,
    )?;
    same("state", end.ep.status()?.state, EpState::Unconnected)
}

fn wrong_states(context: &Context) -> Result<()> {
    let state = |result, subtype| refused_as(result, Type::INVALID_STATE, subtype);
    let ends = ends(context)?;
    let again = || ends.client.ep.connect(context.server_address(), ends.listener.port, None, &[]);
    ends.call(context, &[])?;
    state(again(), Subtype::INVALID_STATE_EP_ACTCONNPENDING)?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    state(again(), Subtype::INVALID_STATE_EP_CONNECTED)?;
    ends.client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Disconnected)?;
    state(again(), Subtype::INVALID_STATE_EP_DISCONNECTED)?;
    // There is no connection to end, and no further event.
    ends.client.ep.disconnect(Close::Abrupt)?;
    context.quiet(&ends.client.connect)
}

fn accept_on_wrong_ep(context: &Context) -> Result<()> {
    let connected = Pair::new(context, Shape::default())?;
    let server = &connected.server;
    let client = End::new(&context.open()?, Shape::default())?;
    client.ep.connect(
        context.server_address(),
        connected.listener.port,
        Some(context.patience()),
        &[],
    )?;
    let mut cr = connected.listener.request(context)?;
    let subtype = Subtype::INVALID_STATE_EP_CONNECTED;
    refused_as(cr.accept(&server.ep, &[]), Type::INVALID_STATE, subtype)?;
    let freed = server.another_ep()?;
    freed.free()?;
    let handle = Subtype::INVALID_HANDLE_EP;
    refused_as(cr.accept(&freed, &[]), Type::INVALID_HANDLE, handle)?;
    refused_as(cr.accept(&client.ep, &[]), Type::INVALID_HANDLE, handle)?;
    let mut message =
        kdapl_cr_answer { handle: cr.handle().0, ep: server.pz.handle().0, ..Default::default() };
    let outcome = raw::call(server.ia.device(), call::CR_ACCEPT, &mut message);
    refused_as(outcome, Type::INVALID_HANDLE, handle)?;
    let right = server.another_ep()?;
    cr.accept(&right, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)
}

fn second_answer_is_refused(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let ends = ends(context)?;
    ends.call(context, &[])?;
    let mut cr = ends.listener.request(context)?;
    cr.reject(b"no")?;
    let gone = Subtype::INVALID_HANDLE_CR;
    refused_as(cr.reject(&[]), Type::INVALID_HANDLE, gone)?;
    refused_as(cr.accept(&ends.server.ep, &[]), Type::INVALID_HANDLE, gone)?;
    refused_as(cr.query(), Type::INVALID_HANDLE, gone)?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::PeerRejected)?;
    same("state", ends.server.ep.status()?.state, EpState::Unconnected)
}

fn ia_close_answers_pending_request(context: &Context) -> Result<()> {
    for taken in [false, true] {
        let ends = ends(context)?;
        ends.call(context, &[])?;
        context.until("the request arrives", || Ok(ends.listener.evd.query()?.queued == 1))?;
        if taken {
            let _ = ends.listener.request(context)?.into_handle();
        }
        ends.server.ia.close(Close::Abrupt)?;
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::NonPeerRejected)?;
    }
    Ok(())
}

/// Returns a request whose client has ended its attempt since.
///
/// On a busy machine a client may do so before its request has left. The next one has twice the
/// time.
fn abandoned(context: &Context, ends: &Ends) -> Result<Cr> {
    let (client, requests) = (&ends.client, &ends.listener.evd);
    let is_queued = |evd: &Evd| -> Result<bool> { Ok(evd.query()?.queued > 0) };
    let mut time = 100 * MS;
    while time < context.patience() {
        client.ep.connect(context.server_address(), ends.listener.port, Some(time), &[])?;
        context.until("the request or the end of its time is there", || {
            Ok(is_queued(requests)? || is_queued(&client.connect)?)
        })?;
        let cr = is_queued(requests)?.then(|| ends.listener.request(context)).transpose()?;
        connection(&context.next(&client.connect)?, ConnectionEvent::TimedOut)?;
        if let Some(cr) = cr {
            return Ok(cr);
        }
        client.ep.reset()?;
        time *= 2;
    }
    bail!("no request came in {time:?}")
}

fn accept_of_abandoned_request(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let mut cr = abandoned(context, &ends)?;
    std::thread::sleep(context.scaled(50 * MS));
    match cr.accept(&ends.server.ep, &[]) {
        // The request was freed with its client.
        Err(error) => {
            refused_as::<()>(Err(error), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CR)
        }
        Ok(()) => {
            let mut event = context.next(&ends.server.connect)?;
            if context.server.is_iwarp() {
                // On this transport the accepting side connects without the peer's confirmation.
                connection(&event, ConnectionEvent::Established)?;
                event = context.next(&ends.server.connect)?;
            }
            let ended = matches!(
                event.kind(),
                EventKind::Connection(
                    ConnectionEvent::AcceptCompletionError
                        | ConnectionEvent::Disconnected
                        | ConnectionEvent::Broken
                )
            );
            ensure!(ended, "the client has given up, but the event is {event}");
            Ok(())
        }
    }
}
