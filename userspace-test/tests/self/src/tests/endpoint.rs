// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints before any connection.

use super::ep_modify::list;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{refused, refused_as, same};
use crate::raw;
use anyhow::{ensure, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{Close, EpAttr, EpConfig, EpState, EvdFlags, Ia, Subtype, Type};

tests! {
    create_and_free, 10,
        "An endpoint begins unconnected and idle, reports its PZ and EVDs, and is freed only once";
    attributes, 10, "An endpoint has exactly the requested attributes";
    #[Defaults]
    default_attributes, 10, "An endpoint without attributes has all documented defaults";
    bad_attributes, 10, "An endpoint with attributes beyond the device's limits is refused";
    bad_handles, 10,
        "Creating an endpoint refuses a bad handle in each argument, and names the argument";
    evds_without_streams, 10, "An endpoint refuses EVDs without the streams that it needs";
    receives_counted, 10,
        "Receives posted before a connection are counted, and are freed with the endpoint";
    unconnected_disconnect_flushes, 10, "A disconnect of an unconnected endpoint flushes its receives";
    full_receive_queue, 20, "An endpoint accepts max_recv_dtos receives and refuses more";
    #[Address]
    psp_create_and_free, 10,
        "A PSP is created, queried and freed only once, and its qualifier is free again at once";
    psp_bad_arguments, 10,
        "A PSP is refused without the CR stream, with unknown flags or too long a backlog";
}

fn create_and_free(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let raw = end.ep.query()?.raw;
    same("state", end.ep.query()?.state, EpState::Unconnected)?;
    same("PZ", raw.pz, end.pz.handle().0)?;
    same("receive EVD", raw.recv_evd, end.recv.handle().0)?;
    same("request EVD", raw.request_evd, end.request.handle().0)?;
    same("connection EVD", raw.connect_evd, end.connect.handle().0)?;
    let status = end.ep.status()?;
    same("state", status.state, EpState::Unconnected)?;
    ensure!(status.recv_idle && status.request_idle, "{status:?}");
    same("receives and requests", (status.recv_outstanding, status.request_outstanding), (0, 0))?;
    end.ep.free()?;
    refused_as(end.ep.free(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)?;
    refused_as(end.ep.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)?;
    refused_as(end.ep.status(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)
}

fn attributes(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let wanted = EpAttr {
        max_recv_dtos: 5,
        max_request_dtos: 9,
        max_recv_iov: 2,
        max_request_iov: 3,
        max_rdma_read_out: 2,
        peer_timeout_ms: 1234,
        keepalive_ms: 65_432,
        ..Default::default()
    };
    let ep = ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(wanted))?;
    let given = ep.query()?.raw.attr;
    let numbers = |attr: EpAttr| {
        [
            attr.max_recv_dtos,
            attr.max_request_dtos,
            attr.max_recv_iov,
            attr.max_request_iov,
            attr.max_rdma_read_out,
            attr.peer_timeout_ms,
            attr.keepalive_ms,
        ]
    };
    same("requested attributes", numbers(given), numbers(wanted))?;
    same("other attribute", given.max_rdma_read_in, documented(&ia)?.max_rdma_read_in)
}

/// Returns the table of defaults in `docs/ioctl/endpoints.md`.
fn documented(ia: &Ia) -> Result<EpAttr> {
    let limits = ia.query()?.raw;
    let dtos = 256.min(limits.max_dto_per_ep);
    let iov = 4.min(limits.max_iov_segments_per_dto);
    Ok(EpAttr {
        max_message_size: limits.max_message_size,
        max_rdma_size: limits.max_message_size,
        service_type: 0,
        qos: 0,
        recv_completion_flags: 0,
        request_completion_flags: 0,
        max_recv_dtos: dtos,
        max_request_dtos: dtos,
        max_recv_iov: iov,
        max_request_iov: iov,
        max_rdma_read_in: 16.min(limits.max_rdma_read_per_ep_in),
        max_rdma_read_out: 16.min(limits.max_rdma_read_per_ep_out),
        max_rdma_read_iov: 4.min(limits.max_iov_segments_per_rdma_read),
        max_rdma_write_iov: iov,
        peer_timeout_ms: 30_000,
        keepalive_ms: KDAPL_KEEPALIVE_NONE,
        ..Default::default()
    })
}

fn default_attributes(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let documented = documented(&ia)?;
    same("without attributes", list(&end.another_ep()?.query()?.raw.attr), list(&documented))?;
    let defaults = Some(EpAttr::default());
    let ep = ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, defaults)?;
    same("with requests for defaults", list(&ep.query()?.raw.attr), list(&documented))?;
    let bare = ia.create_ep_with(&EpConfig::default())?;
    same("without configuration", list(&bare.query()?.raw.attr), list(&documented))
}

fn bad_attributes(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let limits = ia.query()?.raw;
    let end = End::new(&ia, Shape::default())?;
    type Change = fn(&mut EpAttr, &kdapl_ia_query);
    let changes: [(&str, Change); 15] = [
        ("max_recv_dtos", |attr, ia| attr.max_recv_dtos = ia.max_dto_per_ep + 1),
        ("max_request_dtos", |attr, ia| attr.max_request_dtos = ia.max_dto_per_ep + 1),
        ("endless max_recv_dtos", |attr, _| attr.max_recv_dtos = u32::MAX),
        ("max_recv_iov", |attr, ia| attr.max_recv_iov = ia.max_iov_segments_per_dto + 1),
        ("max_request_iov", |attr, ia| attr.max_request_iov = ia.max_iov_segments_per_dto + 1),
        ("max_rdma_read_out", |attr, ia| attr.max_rdma_read_out = ia.max_rdma_read_per_ep_out + 1),
        ("max_rdma_read_in", |attr, ia| attr.max_rdma_read_in = ia.max_rdma_read_per_ep_in + 1),
        ("max_message_size", |attr, ia| attr.max_message_size = ia.max_message_size + 1),
        ("max_rdma_size", |attr, ia| attr.max_rdma_size = ia.max_rdma_size + 1),
        ("recv_completion_flags", |attr, _| attr.recv_completion_flags = 0x8000_0000),
        ("peer_timeout_ms", |attr, _| attr.peer_timeout_ms = KDAPL_PEER_TIMEOUT_MAX + 1),
        ("long peer_timeout_ms", |attr, _| attr.peer_timeout_ms = KDAPL_PEER_TIMEOUT_NONE - 1),
        ("short keepalive_ms", |attr, _| attr.keepalive_ms = KDAPL_KEEPALIVE_MIN - 1),
        ("long keepalive_ms", |attr, _| attr.keepalive_ms = KDAPL_KEEPALIVE_MAX + 1),
        ("keepalive_ms without room for a probe", |attr, ia| {
            attr.keepalive_ms = KDAPL_KEEPALIVE_MIN;
            attr.max_request_dtos = ia.max_dto_per_ep - 2;
        }),
    ];
    for (name, change) in changes {
        let mut attr = EpAttr::default();
        change(&mut attr, &limits);
        let made = ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr));
        refused_as(made, Type::INVALID_PARAMETER, Subtype::INVALID_ARG6)
            .map_err(|error| error.context(name))?;
    }
    let attr = EpAttr { peer_timeout_ms: KDAPL_PEER_TIMEOUT_NONE, ..Default::default() };
    let ep = ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr))?;
    same("no time-out", ep.query()?.raw.attr.peer_timeout_ms, KDAPL_PEER_TIMEOUT_NONE)
}

fn bad_handles(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let right = kdapl_ep_create {
        pz: end.pz.handle().0,
        recv_evd: end.recv.handle().0,
        request_evd: end.request.handle().0,
        connect_evd: end.connect.handle().0,
        ..Default::default()
    };
    type Field = fn(&mut kdapl_ep_create) -> &mut u64;
    let fields: [(Field, Subtype); 4] = [
        (|m| &mut m.pz, Subtype::INVALID_HANDLE_PZ),
        (|m| &mut m.recv_evd, Subtype::INVALID_HANDLE_EVD_RECV),
        (|m| &mut m.request_evd, Subtype::INVALID_HANDLE_EVD_REQUEST),
        (|m| &mut m.connect_evd, Subtype::INVALID_HANDLE_EVD_CONN),
    ];
    for (field, subtype) in fields {
        // An endpoint, a region, the IA, and two handles that never existed.
        let others = [end.ep.handle().0, end.lmr.handle().0, ia.handle().0, u64::MAX, 1 << 40];
        for bad in others {
            let mut message = right;
            *field(&mut message) = bad;
            let made = raw::call(ia.device(), call::EP_CREATE, &mut message);
            refused_as(made, Type::INVALID_HANDLE, subtype)?;
        }
    }
    let mut message = right;
    raw::call(ia.device(), call::EP_CREATE, &mut message)?;
    let mut free = kdapl_handle { handle: message.handle, ..Default::default() };
    Ok(raw::call(ia.device(), call::EP_FREE, &mut free)?)
}

fn evds_without_streams(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let (good, none) = (&end.recv, ia.create_evd(EvdFlags::SOFTWARE | EvdFlags::CR, 4)?);
    let bad = |made, argument| refused_as(made, Type::INVALID_PARAMETER, argument);
    let make = |recv, request, connect| ia.create_ep(&end.pz, recv, request, connect, None);
    bad(make(&none, good, &end.connect), Subtype::INVALID_ARG3)?;
    bad(make(good, &none, &end.connect), Subtype::INVALID_ARG4)?;
    bad(make(good, good, &none), Subtype::INVALID_ARG5)?;
    bad(make(good, good, good), Subtype::INVALID_ARG5)?;
    bad(make(&end.connect, good, &end.connect), Subtype::INVALID_ARG3)?;
    bad(make(good, &end.connect, &end.connect), Subtype::INVALID_ARG4)?;
    // The error names the first bad argument.
    bad(make(&none, &none, &none), Subtype::INVALID_ARG3)
}

fn receives_counted(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    for number in 1..=3 {
        end.receive(0, 64, number)?;
        let status = end.ep.status()?;
        same("receives", u64::from(status.recv_outstanding), number)?;
        ensure!(!status.recv_idle && status.request_idle, "{status:?}");
    }
    end.ep.free()?;
    // A freed endpoint reports no event.
    context.quiet(&end.recv)
}

fn unconnected_disconnect_flushes(context: &Context) -> Result<()> {
    use libkdapl::{DtoOperation, DtoStatus};
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    (1..=3).try_for_each(|cookie| end.receive(0, 64, cookie))?;
    end.ep.disconnect(Close::Abrupt)?;
    for cookie in 1..=3 {
        let event = context.next(&end.recv)?;
        let dto = crate::expect::dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        same("cookie", dto.cookie, cookie)?;
    }
    context.until("no receive is outstanding", || Ok(end.ep.status()?.recv_idle))?;
    refused(end.connect.dequeue(), Type::QUEUE_EMPTY)
}

fn full_receive_queue(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape { receives: 12, ..Default::default() })?;
    let promised = u64::from(end.ep.query()?.raw.attr.max_recv_dtos);
    for cookie in 0..promised {
        end.receive(0, 64, cookie)?;
    }
    let segment = [end.lmr.segment(0, 64)];
    let outcome = end.ep.post_recv(&segment, 99, Default::default());
    refused_as(outcome, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
    same("receives", u64::from(end.ep.status()?.recv_outstanding), promised)
}

fn psp_create_and_free(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let listener = Listener::new(context, &ia)?;
    let query = listener.psp.query()?;
    same("qualifier", query.conn_qual, listener.port)?;
    same("EVD", query.evd, listener.evd.handle())?;
    same("flags", query.flags, 0)?;
    refused(ia.create_psp(listener.port, &listener.evd), Type::CONN_QUAL_IN_USE)?;
    let other = context.open()?;
    let evd = other.create_evd(EvdFlags::CR, 4)?;
    refused(other.create_psp(listener.port, &evd), Type::CONN_QUAL_IN_USE)?;
    listener.psp.free()?;
    refused_as(listener.psp.free(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_PSP)?;
    refused(listener.psp.query(), Type::INVALID_HANDLE)?;
    other.create_psp(listener.port, &evd)?.free()?;
    Ok(())
}

fn psp_bad_arguments(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let good = ia.create_evd(EvdFlags::CR, 4)?;
    for bad in [EvdFlags::DTO, EvdFlags::SOFTWARE, EvdFlags::CONNECTION] {
        let evd = ia.create_evd(bad, 4)?;
        let made = ia.create_psp(context.port(), &evd);
        refused_as(made, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)?;
    }
    for (flags, backlog) in [(2, 0), (u32::MAX, 0), (0, 4097), (1, u32::MAX)] {
        let mut message = kdapl_psp_create {
            conn_qual: context.port(),
            evd: good.handle().0,
            flags,
            backlog,
            ..Default::default()
        };
        let made = raw::call(ia.device(), call::PSP_CREATE, &mut message);
        refused_as(made, Type::INVALID_PARAMETER, Subtype::INVALID_ARG4)?;
    }
    let mut message =
        kdapl_psp_create { conn_qual: context.port(), evd: ia.handle().0, ..Default::default() };
    let made = raw::call(ia.device(), call::PSP_CREATE, &mut message);
    refused_as(made, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EVD_CR)
}
