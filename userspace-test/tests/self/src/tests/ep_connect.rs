// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Results of a connect, by the sentences of the manual page of `dat_ep_connect`.
//!
//! | manual page | tests |
//! |---|---|
//! | *Parameters* | |
//! | `ep_handle` is that of an Endpoint | `ep_connect.bad_handles` |
//! | `remote_ia_address` and `remote_conn_qual` name the peer | `ep_connect.bad_addresses`, `ep_connect.highest_port`, `wide_qualifiers` |
//! | `timeout` is in microseconds, positive, or infinite | `ep_connect.timed_out`, `ep_connect.no_time_out`, `connect_without_timeout`, `ep_connect.bad_parameters` |
//! | `private_data` may be NULL if its size is 0 | `ep_connect.null_private_data` |
//! | `qos` is the requested quality of service | `ep_connect.unsupported_models`, `qos` |
//! | `connect_flags` request multipath, by default none | `ep_connect.unsupported_models`, `ep_states.single_path` |
//! | *Description* | |
//! | the active side requests a connection to a remote Endpoint | `ep_connect.established` |
//! | the Endpoint is bound to a local port, which is in the request | `ep_connect.local_port` |
//! | the private data are in the request | `connect.private_data_both_ways`, `ep_connect.bad_parameters` |
//! | the provider may pass on attributes that the transport needs | `read_depth.sent_to_peer` |
//! | after success the Endpoint is ACTIVE_CONNECTION_PENDING | `ep_connect.established` |
//! | an unavailable quality of service is MODEL_NOT_SUPPORTED at once | `ep_connect.unsupported_models` |
//! | one unavailable at the peer is NON_PEER_REJECTED | no transport asks the peer: `qos.each_class_connects` |
//! | other failures are NON_PEER_REJECTED: no listener, a full backlog, a failed transport | `ep_connect.no_listener`, `ep_connect.backlog_full`, `ep_connect.request_queue_full`, `device_removal_by_state.connecting` |
//! | then the Endpoint is DISCONNECTED | the same |
//! | an accept is ESTABLISHED and CONNECTED | `ep_connect.established` |
//! | a reject is PEER_REJECTED and DISCONNECTED | `ep_connect.peer_rejected` |
//! | a host that cannot be reached is UNREACHABLE and DISCONNECTED | `ep_connect.unreachable`, `silent_peer`; not without a time-out: `connect_without_timeout` |
//! | an invalid address may be INVALID_ADDRESS at once | `ep_connect.bad_addresses`, `connect_routes` |
//! | a time-out is TIMED_OUT and DISCONNECTED | `ep_connect.timed_out` |
//! | *Return values* | |
//! | INSUFFICIENT_RESOURCES | a device that is gone: `device_removal.idle`; memory: `faults.connects`; ports: `connect_routes.no_free_port` |
//! | INVALID_PARAMETER, INVALID_ADDRESS, INVALID_HANDLE | `ep_connect.bad_parameters`, `ep_connect.bad_addresses`, `ep_connect.bad_handles` |
//! | INVALID_STATE unless UNCONNECTED | `ep_states`, each state |
//! | *Usage* | |
//! | the consumers agree on RDMA read depths, or connecting might fail | `read_depth.excess_reads_wait`: it does not fail |
//! | they may do so in private data | `connect.private_data_both_ways` |
//! | both depths may be set to 0 | `read_depth.zero_out_refuses_reads`, `read_depth.zero_in_refuses_peer` |
//! | the provider chooses defaults, and may change them | `endpoint.default_attributes`, `read_depth.reported_as_negotiated` |
//! | *Attributes*: calls are not thread-safe | here they are: `handles`, `ep_races` |

mod outcome;

use super::connect::{carried, ends, random, Ends};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, refused, refused_as, same};
use crate::harness::skip;
use crate::hosts::Count;
use crate::raw;
use crate::timeouts::on_time;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{ConnectionEvent, EpState, EvdFlags, Multipath, PspOptions, Subtype, Type};
pub use outcome::accepted;
use outcome::failed_as;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

tests! {
    #![Address]
    #[Link]
    established, 30, "An accepted connect reports ESTABLISHED once, and both sides are CONNECTED";
    local_port, 30, "A connect binds a local port, and the request and both ends report it";
    peer_rejected, 30,
        "A rejected connect is PEER_REJECTED and DISCONNECTED, and works after a reset";
    no_listener, 30,
        "A connect without a listener is NON_PEER_REJECTED, DISCONNECTED, and works after a reset";
    backlog_full, 30,
        "A connect beyond the backlog is NON_PEER_REJECTED, and those within it can be accepted";
    request_queue_full, 30,
        "A connect is NON_PEER_REJECTED if the peer's EVD has no room for its request";
    unreachable, 240, "A connect with a long time-out to a missing host is UNREACHABLE";
    timed_out, 60,
        "An unanswered connect is TIMED_OUT after its time, not before, and works after a reset";
    no_time_out, 30, "A connect without a time-out waits for its answer";
    bad_addresses, 30,
        "A connect to an address of no family, or of another one, is INVALID_ADDRESS";
    bad_parameters, 30,
        "A connect with no time, no qualifier or excess private data is refused, with the argument";
    bad_handles, 30, "A connect with a handle that is no endpoint of the IA is INVALID_HANDLE";
    unsupported_models, 30,
        "A connect with an unknown QoS, several, or required multipath is MODEL_NOT_SUPPORTED";
    null_private_data, 30, "A connect without private data needs no pointer";
    highest_port, 30, "A connect to port 65535 works like any other";
    refusal_changes_nothing, 30,
        "A refused connect leaves the endpoint unconnected and usable, and its receives posted";
}

const US: Duration = Duration::from_micros(1);

fn established(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.call(context, &[])?;
    same("state", ends.client.ep.query()?.state, EpState::ActiveConnectionPending)?;
    accepted(context, &ends)?;
    for end in [&ends.client, &ends.server] {
        same("state", end.ep.query()?.state, EpState::Connected)?;
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn local_port(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.call(context, &[])?;
    let mut cr = ends.listener.request(context)?;
    let asked = cr.query()?;
    cr.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    let (client, server) = (ends.client.ep.query()?, ends.server.ep.query()?);
    let port = client.raw.local_port_qual;
    ensure!(port != 0, "no local port");
    same("port in the local address", client.local.map(|a| a.port().into()), Some(port))?;
    same("port of the request", asked.remote_port_qual, port)?;
    same("address of the request", asked.remote, client.local)?;
    same("the peer's remote port", server.raw.remote_port_qual, port)?;
    same("the peer's remote address", server.remote, client.local)?;
    same("the peer's local port", server.raw.local_port_qual, ends.listener.port)?;
    same("remote qualifier", client.raw.remote_port_qual, ends.listener.port)
}

fn peer_rejected(context: &Context) -> Result<()> {
    // `failed_as` takes the event, and allows no other: not even a repeated request.
    context.rejects_arrive()?;
    let ends = ends(context)?;
    ends.client.receive(0, 64, 1)?;
    let reason = random(context, 40);
    ends.call(context, &[])?;
    ends.listener.request(context)?.reject(&reason)?;
    context.until("an answer", || Ok(ends.client.connect.query()?.queued == 1))?;
    carried("reason", &ends.client.ep.private_data()?, &reason)?;
    failed_as(context, &ends, ConnectionEvent::PeerRejected)
}

fn no_listener(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.client.receive(0, 64, 1)?;
    let (address, patience) = (context.server_address(), Some(context.patience()));
    ends.client.ep.connect(address, context.port(), patience, &[])?;
    failed_as(context, &ends, ConnectionEvent::NonPeerRejected)
}

/// Checks that `room` clients get through to a listener, and one more does not. Accepts the
/// requests of the others.
fn one_too_many(context: &Context, room: usize, qlen: i32, backlog: Option<u32>) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let evd = server_ia.create_evd(EvdFlags::CR, qlen)?;
    let port = context.port();
    let options = PspOptions { conn_qual: Some(port), backlog, ..Default::default() };
    let psp = context.server.inside(|| server_ia.create_psp_with(&evd, &options))??;
    let listener = Listener { psp, evd, port };
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape { ..Default::default() })?;
    let patience = Some(context.patience() * 3);
    let call = |ep: &libkdapl::Ep| ep.connect(context.server_address(), port, patience, &[]);
    let eps = (0..room).map(|_| client.another_ep()).collect::<Result<Vec<_>>>()?;
    eps.iter().try_for_each(call)?;
    let queued = || Ok(listener.evd.query()?.queued as usize == room);
    context.until("the requests are queued", queued)?;
    call(&client.ep)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::NonPeerRejected)?;
    same("state", client.ep.query()?.state, EpState::Disconnected)?;
    let accepted = (0..room).map(|_| server.another_ep()).collect::<Result<Vec<_>>>()?;
    for ep in &accepted {
        listener.request(context)?.accept(ep, &[])?;
        connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
        connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    }
    // Now there is room again.
    client.ep.reset()?;
    call(&client.ep)?;
    listener.request(context)?.accept(&server.ep, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)
}

fn backlog_full(context: &Context) -> Result<()> {
    one_too_many(context, 1, 16, Some(1))?;
    one_too_many(context, 3, 16, Some(3))
}

fn request_queue_full(context: &Context) -> Result<()> {
    one_too_many(context, 2, 2, None)
}

fn unreachable(context: &Context) -> Result<()> {
    if context.settings.layout.hosts != Count::Two {
        return skip("unless a network device fails to resolve the address, this takes minutes");
    }
    let ends = ends(context)?;
    ends.client.receive(0, 64, 1)?;
    let time = Some(6 * context.patience());
    ends.client.ep.connect(context.client.nobody(), ends.listener.port, time, &[])?;
    // Resolving the address takes four seconds on any kernel.
    std::thread::sleep(Duration::from_secs(3));
    failed_as(context, &ends, ConnectionEvent::Unreachable)
}

fn timed_out(context: &Context) -> Result<()> {
    for micros in [1, 999, 1500, 20_000, 300_000] {
        let most = context.scaled(Duration::from_millis(500));
        on_time(most, || times_out(context, micros * US))
            .with_context(|| format!("after {micros} us"))?;
        Pair::new(context, Shape::default())?;
    }
    Ok(())
}

/// Connects to a listener that never answers, and returns how late the connect ended.
fn times_out(context: &Context, time: Duration) -> Result<Duration> {
    let ends = ends(context)?;
    let end = &ends.client;
    end.receive(0, 64, 1)?;
    let start = Instant::now();
    end.ep.connect(context.server_address(), ends.listener.port, Some(time), &[])?;
    context.until("an event", || Ok(end.connect.query()?.queued == 1))?;
    let took = start.elapsed();
    ensure!(took >= time, "TIMED_OUT after {took:?} instead of {time:?}");
    // The request may have arrived. Its client has ended the attempt.
    while ends.listener.evd.dequeue().is_ok() {}
    connection(&context.next(&end.connect)?, ConnectionEvent::TimedOut)?;
    same("state", end.ep.query()?.state, EpState::Disconnected)?;
    context.next(&end.recv).context("the receive that was posted")?;
    context.quiet(&end.connect)?;
    end.ep.reset()?;
    Ok(took - time)
}

fn no_time_out(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    ends.client.ep.connect(context.server_address(), ends.listener.port, None, &[])?;
    let mut cr = ends.listener.request(context)?;
    std::thread::sleep(Duration::from_millis(1500));
    same("state", ends.client.ep.query()?.state, EpState::ActiveConnectionPending)?;
    context.quiet(&ends.client.connect)?;
    cr.accept(&ends.server.ep, &[])?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)
}

fn bad_addresses(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let mut message = kdapl_ep_connect {
        handle: end.ep.handle().0,
        conn_qual: context.port(),
        timeout_ns: 1_000_000_000,
        ..Default::default()
    };
    // No family, AF_UNIX, AF_IPX, and an unknown one.
    for family in [0_u16, 1, 4, 0xffff] {
        message.remote_address = context.server_address().into();
        message.remote_address.sa[..2].copy_from_slice(&family.to_ne_bytes());
        let outcome = raw::call(end.ia.device(), call::EP_CONNECT, &mut message);
        refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)
            .with_context(|| format!("family {family}"))?;
        same("state", end.ep.query()?.state, EpState::Unconnected)?;
    }
    // An adapter connects to addresses of its own family only.
    let other = match context.server_address() {
        IpAddr::V4(_) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv4Addr::LOCALHOST.into(),
    };
    let time = Some(Duration::from_millis(300));
    let outcome = end.ep.connect(other, context.port(), time, &[]);
    refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
    same("state", end.ep.query()?.state, EpState::Unconnected)
}

fn bad_parameters(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let ep = &ends.client.ep;
    let (address, port, patience) =
        (context.server_address(), ends.listener.port, Some(context.patience()));
    let argument = |outcome, subtype| refused_as(outcome, Type::INVALID_PARAMETER, subtype);
    argument(ep.connect(address, 0, patience, &[]), Subtype::INVALID_ARG3)?;
    let no_time = Some(Duration::ZERO);
    argument(ep.connect(address, port, no_time, &[]), Subtype::INVALID_ARG4)?;
    let limit = ends.client.ia.query()?.raw.max_private_data_connect as usize;
    let much = ep.connect(address, port, patience, &vec![1; limit + 1]);
    argument(much, Subtype::INVALID_ARG5)?;
    same("state", ep.query()?.state, EpState::Unconnected)?;
    ends.call(context, &random(context, limit))?;
    accepted(context, &ends)
}

fn bad_handles(context: &Context) -> Result<()> {
    let (mine, other) = (
        End::new(&context.open()?, Shape::default())?,
        End::new(&context.open()?, Shape::default())?,
    );
    let freed = mine.another_ep()?;
    freed.free()?;
    let handles = [mine.pz.handle(), mine.recv.handle(), other.ep.handle(), freed.handle()];
    for handle in handles.map(|handle| handle.0).into_iter().chain([0, u64::MAX]) {
        let mut message = kdapl_ep_connect {
            handle,
            remote_address: context.server_address().into(),
            conn_qual: context.port(),
            timeout_ns: 1_000_000_000,
            ..Default::default()
        };
        let outcome = raw::call(mine.ia.device(), call::EP_CONNECT, &mut message);
        refused_as(outcome, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)?;
    }
    Ok(())
}

fn unsupported_models(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let right = kdapl_ep_connect {
        handle: ends.client.ep.handle().0,
        remote_address: context.server_address().into(),
        conn_qual: ends.listener.port,
        timeout_ns: 10_000_000_000,
        ..Default::default()
    };
    let models = [3, 5, 9, 15, 16, 1 << 31, u32::MAX].map(|qos| kdapl_ep_connect { qos, ..right });
    let required = Multipath::Required as u32;
    let flags =
        [required, required | 1, 4, 1 << 31].map(|flags| kdapl_ep_connect { flags, ..right });
    for mut message in models.into_iter().chain(flags) {
        let outcome = raw::call(ends.client.ia.device(), call::EP_CONNECT, &mut message);
        refused(outcome, Type::MODEL_NOT_SUPPORTED)
            .with_context(|| format!("qos {}, flags {}", message.qos, message.flags))?;
    }
    same("state", ends.client.ep.query()?.state, EpState::Unconnected)?;
    ends.call(context, &[])?;
    accepted(context, &ends)
}

fn null_private_data(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let mut message = kdapl_ep_connect {
        handle: ends.client.ep.handle().0,
        remote_address: context.server_address().into(),
        conn_qual: ends.listener.port,
        timeout_ns: context.patience().as_nanos() as u64,
        private_data: 0,
        private_data_size: 0,
        ..Default::default()
    };
    raw::call(ends.client.ia.device(), call::EP_CONNECT, &mut message)?;
    accepted(context, &ends)
}

fn highest_port(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let ends = Ends {
        client: End::new(&client_ia, Shape::default())?,
        listener: Listener::on(&server_ia, 65_535)?,
        server: End::new(&server_ia, Shape::default())?,
    };
    ends.call(context, &[])?;
    accepted(context, &ends)?;
    same("qualifier", ends.client.ep.query()?.raw.remote_port_qual, 65_535)
}

fn refusal_changes_nothing(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let ep = &ends.client.ep;
    (0..3).try_for_each(|cookie| ends.client.receive(0, 64, cookie))?;
    refused(ep.connect(context.server_address(), 0, None, &[]), Type::INVALID_PARAMETER)?;
    let query = ep.query()?;
    same("state", query.state, EpState::Unconnected)?;
    same("remote address", query.remote, None)?;
    same("receives", ep.status()?.recv_outstanding, 3)?;
    ends.call(context, &[])?;
    accepted(context, &ends)?;
    for cookie in 0..3 {
        ends.server.send(0, 64, cookie)?;
        let event = context.next(&ends.client.recv)?;
        crate::expect::done(&event, libkdapl::DtoOperation::Receive, 64, cookie)?;
    }
    Ok(())
}
