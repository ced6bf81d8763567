// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoint queries; duplicate and common connects.

use super::connect::ends;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, refused_as, same};
use crate::hosts::Count;
use crate::raw::{self, Bytes};
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{
    Close, ConnectionEvent, DtoOperation, EpFields, EpState, Qos, Subtype, Transport, Type,
};

tests! {
    returns_requested_fields, 20, "A query returns exactly the requested fields, with the values of a full query";
    unknown_fields, 20, "A query of unknown fields is refused";
    #[Address, Link, Transport]
    addresses, 30,
        "While connected, both ends report both addresses and ports; before and after, no peer";
    idle, 30,
        "An endpoint is idle without outstanding DTOs, receives and requests each on their own";
    #[Address]
    dup_connect_of_active_side, 30,
        "A duplicate of the connecting side's connection goes to the same service point";
    #[Address]
    dup_connect_of_passive_side, 30,
        "A duplicate of an accepted connection goes to the peer's service point of its qualifier";
    dup_connect_bad_arguments, 30,
        "A duplicate connect is refused for an unconnected endpoint, bad arguments or another IA";
    #[Address]
    common_connect_bad_arguments, 30,
        "A common connect without a port, without time or with too long private data is refused";
}

/// Returns the fields of the message, each with its range of bytes.
fn fields() -> Vec<(EpFields, std::ops::Range<usize>)> {
    macro_rules! range {
        ($($field:ident: $($name:ident).+, $bytes:literal;)+) => {
            vec![$((EpFields::$field, {
                let start = std::mem::offset_of!(kdapl_ep_query, $($name).+);
                start..start + $bytes
            }),)+]
        };
    }
    range! {
        IA: ia, 8;
        STATE: state, 4;
        LOCAL_ADDRESS: local_address, 128;
        LOCAL_PORT_QUAL: local_port_qual, 8;
        REMOTE_ADDRESS: remote_address, 128;
        REMOTE_PORT_QUAL: remote_port_qual, 8;
        PZ: pz, 8;
        RECV_EVD: recv_evd, 8;
        REQUEST_EVD: request_evd, 8;
        CONNECT_EVD: connect_evd, 8;
        SRQ: srq, 8;
        SERVICE_TYPE: attr.service_type, 4;
        MAX_MESSAGE_SIZE: attr.max_message_size, 8;
        MAX_RDMA_SIZE: attr.max_rdma_size, 8;
        QOS: attr.qos, 4;
        RECV_COMPLETION_FLAGS: attr.recv_completion_flags, 4;
        REQUEST_COMPLETION_FLAGS: attr.request_completion_flags, 4;
        MAX_RECV_DTOS: attr.max_recv_dtos, 4;
        MAX_REQUEST_DTOS: attr.max_request_dtos, 4;
        MAX_RECV_IOV: attr.max_recv_iov, 4;
        MAX_REQUEST_IOV: attr.max_request_iov, 4;
        MAX_RDMA_READ_IN: attr.max_rdma_read_in, 4;
        MAX_RDMA_READ_OUT: attr.max_rdma_read_out, 4;
        MAX_RDMA_READ_IOV: attr.max_rdma_read_iov, 4;
        MAX_RDMA_WRITE_IOV: attr.max_rdma_write_iov, 4;
        PEER_TIMEOUT: attr.peer_timeout_ms, 4;
        KEEPALIVE: attr.keepalive_ms, 4;
    }
}

/// Returns the bytes of an answer to a query of `mask`.
fn answer(end: &End, mask: EpFields) -> Result<Vec<u8>> {
    let raw = end.ep.query_fields(mask)?.raw;
    let bytes = Bytes::of(&raw);
    Ok(bytes.as_ref().to_vec())
}

fn returns_requested_fields(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    for end in [&pair.client, &pair.server] {
        let whole = answer(end, EpFields::ALL)?;
        let first = std::mem::offset_of!(kdapl_ep_query, ia);
        let qp = std::mem::offset_of!(kdapl_ep_query, qp_num);
        let expected = |asked: &[&(EpFields, std::ops::Range<usize>)]| {
            let mut bytes = vec![0; whole.len()];
            let ranges = asked.iter().map(|(_, range)| range.clone());
            for range in ranges.chain(std::iter::once(qp..qp + 4)) {
                bytes[range.clone()].copy_from_slice(&whole[range]);
            }
            bytes[first..].to_vec()
        };
        let fields = fields();
        let told = fields.iter().filter(|(_, range)| whole[range.clone()].iter().any(|b| *b != 0));
        ensure!(told.count() >= 18, "too few fields are not zero: {whole:02x?}");
        same("no field", answer(end, EpFields::default())?[first..].to_vec(), expected(&[]))?;
        for field in &fields {
            let got = answer(end, field.0)?[first..].to_vec();
            same("one field", got, expected(&[field])).with_context(|| format!("{:?}", field.0))?;
        }
        for _ in 0..context.count(200) {
            let rng = &mut context.rng();
            let asked: Vec<_> = fields.iter().filter(|_| rng.bool()).collect();
            let mask = asked.iter().fold(EpFields::default(), |mask, (field, _)| mask | *field);
            same("some fields", answer(end, mask)?[first..].to_vec(), expected(&asked))?;
        }
    }
    Ok(())
}

fn unknown_fields(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for bit in (31..64).map(|bit| 1_u64 << bit).filter(|bit| KDAPL_EP_FIELD_ALL & bit == 0) {
        for mask in [bit, bit | KDAPL_EP_FIELD_ALL] {
            let mut message =
                kdapl_ep_query { handle: end.ep.handle().0, mask, ..Default::default() };
            let outcome = raw::call(end.ia.device(), call::EP_QUERY, &mut message);
            refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
        }
    }
    Ok(())
}

fn addresses(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let alone = |end: &End| -> Result<()> {
        let query = end.ep.query()?;
        same("remote address", query.remote, None)?;
        same("ports", (query.raw.local_port_qual, query.raw.remote_port_qual), (0, 0))
    };
    alone(&ends.client)?;
    alone(&ends.server)?;
    ends.call(context, &[])?;
    let remote = ends.client.ep.query()?.remote.map(|address| address.ip());
    same("remote address of a connect", remote, Some(context.server_address()))?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    let (client, server) = (ends.client.ep.query()?, ends.server.ep.query()?);
    same("the client's address", client.local.map(|a| a.ip()), Some(context.client.address))?;
    same("the server's address", server.local.map(|a| a.ip()), Some(context.server.address))?;
    same("client's address on both sides", server.remote, client.local)?;
    same("server's address on both sides", client.remote, server.local)?;
    same(
        "address of the IA",
        ends.client.ia.query()?.address.map(|a| a.ip()),
        client.local.map(|a| a.ip()),
    )?;
    ends.client.ep.disconnect(Close::Abrupt)?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        end.ep.reset()?;
        alone(end)?;
    }
    Ok(())
}

fn idle(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let is = |end: &End, recv: bool, request: bool| -> Result<()> {
        let status = end.ep.status()?;
        same("idle", (status.recv_idle, status.request_idle), (recv, request))?;
        let outstanding = (status.recv_outstanding == 0, status.request_outstanding == 0);
        same("outstanding", outstanding, (recv, request))
    };
    let (client, server) = (&pair.client, &pair.server);
    is(client, true, true)?;
    client.receive(0, 64, 1)?;
    is(client, false, true)?;
    if client.ia.query()?.transport != Transport::IWarp {
        // Without a posted receive, the send waits.
        client.send(0, 64, 2)?;
        is(client, false, false)?;
        server.receive(0, 64, 3)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 64, 2)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, 3)?;
    }
    is(client, false, true)?;
    is(server, true, true)?;
    server.send(0, 64, 4)?;
    done(&context.next(&client.recv)?, DtoOperation::Receive, 64, 1)?;
    is(client, true, true)
}

fn dup_connect_of_active_side(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let dup = pair.client.another_ep()?;
    let patience = Some(context.patience());
    dup.dup_connect(&pair.client.ep, patience, b"me too", Qos::LowLatency)?;
    let mut cr = pair.listener.request(context)?;
    super::connect::carried("request", &cr.query()?.private_data, b"me too")?;
    let other = pair.server.another_ep()?;
    cr.accept(&other, &[])?;
    connection(&context.next(&pair.client.connect)?, ConnectionEvent::Established)?;
    let (first, second) = (pair.client.ep.query()?, dup.query()?);
    same("state", second.state, EpState::Connected)?;
    same("remote address", second.remote, first.remote)?;
    same("qualifier", second.raw.remote_port_qual, first.raw.remote_port_qual)
}

fn dup_connect_of_passive_side(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    // On one host, both sides use the same listener.
    let (here, client_ia);
    let listener = if context.settings.layout.hosts == Count::Two {
        client_ia = context.open()?;
        here = Listener::on(&client_ia, pair.listener.port)?;
        &here
    } else {
        &pair.listener
    };
    let dup = pair.server.another_ep()?;
    let patience = Some(context.patience());
    dup.dup_connect(&pair.server.ep, patience, b"and back", Qos::BestEffort)?;
    let mut cr = listener.request(context)?;
    let asked = cr.query()?;
    super::connect::carried("request", &asked.private_data, b"and back")?;
    same("address of the active side", asked.remote.map(|a| a.ip()), Some(context.server.address))?;
    super::connect::reject(context, &mut cr, &[1], &listener.evd, &pair.server.connect)?;
    same("remote address", dup.query()?.remote.map(|a| a.ip()), Some(context.client.address))?;
    same("remote qualifier", dup.query()?.raw.remote_port_qual, pair.listener.port)
}

fn dup_connect_bad_arguments(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let (client, patience) = (&pair.client, Some(context.patience()));
    let dup = client.another_ep()?;
    let try_as = |other, time, data: &[u8]| dup.dup_connect(other, time, data, Qos::BestEffort);
    let handle = |outcome| refused_as(outcome, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE2);
    handle(try_as(&pair.server.ep, patience, &[]))?;
    let freed = client.another_ep()?;
    freed.free()?;
    handle(try_as(&freed, patience, &[]))?;
    let subtype = Subtype::INVALID_HANDLE_EP;
    let outcome = freed.dup_connect(&client.ep, patience, &[], Qos::BestEffort);
    refused_as(outcome, Type::INVALID_HANDLE, subtype)?;
    let argument = |outcome, subtype| refused_as(outcome, Type::INVALID_PARAMETER, subtype);
    let no_time = Some(std::time::Duration::ZERO);
    argument(try_as(&client.ep, no_time, &[]), Subtype::INVALID_ARG3)?;
    let much = vec![1; client.ia.query()?.raw.max_private_data_connect as usize + 1];
    argument(try_as(&client.ep, patience, &much), Subtype::INVALID_ARG4)?;
    let mut message = kdapl_ep_dup_connect {
        handle: dup.handle().0,
        dup: client.ep.handle().0,
        timeout_ns: 1_000_000,
        qos: 3,
        ..Default::default()
    };
    let outcome = raw::call(client.ia.device(), call::EP_DUP_CONNECT, &mut message);
    crate::expect::refused(outcome, Type::MODEL_NOT_SUPPORTED)?;
    same("state", dup.query()?.state, EpState::Unconnected)
}

fn common_connect_bad_arguments(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let (address, patience) = (context.server_address(), Some(context.patience()));
    let outcome = end.ep.common_connect((address, 0).into(), patience, &[]);
    refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_MALFORMED)?;
    let argument = |outcome, subtype| refused_as(outcome, Type::INVALID_PARAMETER, subtype);
    let address = (address, context.port() as u16).into();
    let no_time = Some(std::time::Duration::ZERO);
    argument(end.ep.common_connect(address, no_time, &[]), Subtype::INVALID_ARG3)?;
    let much = vec![1; end.ia.query()?.raw.max_private_data_connect as usize + 1];
    argument(end.ep.common_connect(address, patience, &much), Subtype::INVALID_ARG4)?;
    same("state", end.ep.query()?.state, EpState::Unconnected)
}
