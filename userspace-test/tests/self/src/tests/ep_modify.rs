// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Changes of an endpoint's PZ, EVDs and attributes before a connection.

use super::connect::ends;
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, done, refused, refused_as, same};
use crate::raw;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{
    Close, ConnectionEvent, DtoOperation, Ep, EpAttr, EpChange, EpConfig, EpState, Evd, EvdFlags,
    Pz, Subtype, Type,
};

tests! {
    configures_endpoint, 20,
        "An endpoint without a PZ is unconfigured until a modify has set it, with or without EVDs";
    each_attribute, 20, "A modify changes each attribute, and only that one";
    beyond_limits, 20,
        "A modify to attributes beyond the device's limits is refused and changes nothing";
    bad_fields, 20, "A modify of unknown or unchangeable fields is refused and changes nothing";
    all_or_nothing, 20, "A modify with one bad field changes none of the valid ones";
    replaced_objects_can_be_freed, 20, "After a modify the old PZ and EVDs can be freed and the new ones cannot";
    new_sizes_apply, 20,
        "After a modify an endpoint accepts as many receives and segments as it now reports";
    bad_handles, 20,
        "A modify refuses handles of another kind, of another IA, freed ones, and a null PZ";
}

const DTO: EvdFlags = EvdFlags::DTO;

fn end(context: &Context) -> Result<End> {
    End::new(&context.open()?, Shape::default())
}

/// Returns the handles of an endpoint's PZ and EVDs.
fn parts(ep: &Ep) -> Result<[u64; 4]> {
    let raw = ep.query()?.raw;
    Ok([raw.pz, raw.recv_evd, raw.request_evd, raw.connect_evd])
}

fn attributes(ep: &Ep) -> Result<Vec<u64>> {
    Ok(list(&ep.query()?.raw.attr))
}

pub fn list(attr: &EpAttr) -> Vec<u64> {
    let kdapl_ep_attr {
        max_message_size,
        max_rdma_size,
        service_type,
        qos,
        recv_completion_flags,
        request_completion_flags,
        max_recv_dtos,
        max_request_dtos,
        max_recv_iov,
        max_request_iov,
        max_rdma_read_in,
        max_rdma_read_out,
        max_rdma_read_iov,
        max_rdma_write_iov,
        peer_timeout_ms,
        keepalive_ms,
        reserved: _,
    } = *attr;
    let numbers = [
        service_type,
        qos,
        recv_completion_flags,
        request_completion_flags,
        max_recv_dtos,
        max_request_dtos,
        max_recv_iov,
        max_request_iov,
        max_rdma_read_in,
        max_rdma_read_out,
        max_rdma_read_iov,
        max_rdma_write_iov,
        peer_timeout_ms,
        keepalive_ms,
    ];
    let sizes = [max_message_size, max_rdma_size];
    sizes.into_iter().chain(numbers.map(u64::from)).collect()
}

fn configures_endpoint(context: &Context) -> Result<()> {
    let whole = end(context)?;
    let ep = whole.ia.create_ep_with(&EpConfig::default())?;
    let changes = [
        EpChange::new().request(&whole.request),
        EpChange::new().max_recv_dtos(7),
        EpChange::new().connect(&whole.connect),
        EpChange::new().recv(&whole.recv),
        EpChange::new().pz(&whole.pz),
    ];
    for change in changes {
        let query = ep.query()?;
        same("state", query.state, EpState::UnconfiguredUnconnected)?;
        same("QP number", query.raw.qp_num, 0)?;
        let subtype = Subtype::INVALID_STATE_EP_UNCONFIGURED;
        refused_as(ep.post_recv(&[], 1, Default::default()), Type::INVALID_STATE, subtype)?;
        ep.modify(change)?;
    }
    let query = ep.query()?;
    same("state", query.state, EpState::Unconnected)?;
    ensure!(query.raw.qp_num != 0, "no QP");
    same("parts", parts(&ep)?, parts(&whole.ep)?)?;
    same("max_recv_dtos", query.raw.attr.max_recv_dtos, 7)?;
    // The endpoint works like any other.
    let ends = ends(context)?;
    let made = End { ep, ..whole };
    let patience = Some(context.patience());
    made.ep.connect(context.server_address(), ends.listener.port, patience, &[])?;
    ends.server.receive(0, 64, 1)?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&made, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    made.send(0, 64, 2)?;
    done(&context.next(&ends.server.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&context.next(&made.request)?, DtoOperation::Send, 64, 2)
}

fn each_attribute(context: &Context) -> Result<()> {
    let end = end(context)?;
    let limits = end.ia.query()?.raw;
    let new = EpChange::new;
    // In the order of `list()`. The values differ from all defaults.
    let changes = [
        (0, 4321, new().max_message_size(4321)),
        (1, 54_321, new().max_rdma_size(54_321)),
        (3, 8, new().qos(8)),
        (4, 0x10, new().recv_completion_flags(0x10)),
        (5, 0x10, new().request_completion_flags(0x10)),
        (6, 33, new().max_recv_dtos(33)),
        (7, 44, new().max_request_dtos(44)),
        (8, 3, new().max_recv_iov(3)),
        (9, 2, new().max_request_iov(2)),
        (10, 5, new().max_rdma_read_in(5)),
        (11, 6, new().max_rdma_read_out(6)),
        (12, 1, new().max_rdma_read_iov(1)),
        (13, 3, new().max_rdma_write_iov(3)),
        (14, 20_000, new().peer_timeout_ms(20_000)),
        (15, 7_000, new().keepalive_ms(7_000)),
    ];
    ensure!(
        limits.max_dto_per_ep >= 44 && limits.max_iov_segments_per_dto >= 3,
        "the device supports too little"
    );
    let mut expected = attributes(&end.ep)?;
    for (index, value, change) in changes {
        if index == 12 && limits.max_iov_segments_per_rdma_read == 1 {
            // There is no other value, as for iWARP.
            continue;
        }
        ensure!(expected[index] != value, "attribute {index} was {value} before");
        expected[index] = value;
        same("returned attributes", list(&end.ep.modify(change)?), expected.clone())?;
        same("attributes", attributes(&end.ep)?, expected.clone())?;
    }
    same("no change", list(&end.ep.modify(new())?), expected.clone())?;
    same("the only service type", list(&end.ep.modify(new().service_type(0))?), expected)
}

fn beyond_limits(context: &Context) -> Result<()> {
    let end = end(context)?;
    let limits = end.ia.query()?.raw;
    let (before, new) = (attributes(&end.ep)?, EpChange::new);
    let (dtos, iov) = (limits.max_dto_per_ep + 1, limits.max_iov_segments_per_dto + 1);
    let (reads_in, reads_out) = (limits.max_rdma_read_per_ep_in, limits.max_rdma_read_per_ep_out);
    let changes = [
        new().max_message_size(limits.max_message_size + 1),
        new().max_rdma_size(limits.max_rdma_size + 1),
        new().recv_completion_flags(0x8000_0000),
        new().request_completion_flags(0x40),
        new().max_recv_dtos(dtos),
        new().max_request_dtos(dtos),
        new().max_recv_dtos(u32::MAX),
        new().max_recv_iov(iov),
        new().max_request_iov(iov),
        new().max_rdma_read_in(reads_in + 1),
        new().max_rdma_read_out(reads_out + 1),
        new().max_rdma_read_iov(limits.max_iov_segments_per_rdma_read + 1),
        new().max_rdma_write_iov(limits.max_iov_segments_per_rdma_write + 1),
        new().peer_timeout_ms(KDAPL_PEER_TIMEOUT_MAX + 1),
        new().keepalive_ms(KDAPL_KEEPALIVE_MIN - 1),
        new().keepalive_ms(KDAPL_KEEPALIVE_MAX + 1),
        new().keepalive_ms(7_000).max_request_dtos(limits.max_dto_per_ep - 2),
        // The valid field is refused with the bad one.
        new().max_recv_dtos(5).max_request_dtos(dtos),
    ];
    for change in changes {
        let outcome = end.ep.modify(change);
        refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3)
            .with_context(|| format!("{change:?}"))?;
        same("attributes", attributes(&end.ep)?, before.clone())?;
    }
    for change in [new().service_type(1), new().qos(3), new().qos(0x10)] {
        refused(end.ep.modify(change), Type::MODEL_NOT_SUPPORTED)?;
    }
    same("attributes", attributes(&end.ep)?, before)
}

fn bad_fields(context: &Context) -> Result<()> {
    let end = end(context)?;
    let (before, before_parts) = (attributes(&end.ep)?, parts(&end.ep)?);
    let good = KDAPL_EP_FIELD_MAX_RECV_DTOS | KDAPL_EP_FIELD_QOS;
    let fixed = [
        KDAPL_EP_FIELD_IA,
        KDAPL_EP_FIELD_STATE,
        KDAPL_EP_FIELD_COMM,
        KDAPL_EP_FIELD_LOCAL_ADDRESS,
        KDAPL_EP_FIELD_LOCAL_PORT_QUAL,
        KDAPL_EP_FIELD_REMOTE_ADDRESS,
        KDAPL_EP_FIELD_REMOTE_PORT_QUAL,
        KDAPL_EP_FIELD_SRQ,
        KDAPL_EP_FIELD_SRQ_SOFT_HW,
    ];
    let own = KDAPL_EP_FIELD_PEER_TIMEOUT | KDAPL_EP_FIELD_KEEPALIVE;
    let unknown = (27..64).map(|bit| 1_u64 << bit).filter(|bit| own & *bit == 0);
    for bit in fixed.map(u64::from).into_iter().chain(unknown).chain([u64::MAX]) {
        for mask in [bit, bit | u64::from(good)] {
            let mut message = kdapl_ep_modify {
                handle: end.ep.handle().0,
                mask,
                attr: EpAttr { max_recv_dtos: 5, ..Default::default() },
                ..Default::default()
            };
            let outcome = raw::call(end.ia.device(), call::EP_MODIFY, &mut message);
            refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)
                .with_context(|| format!("mask {mask:#x}"))?;
        }
    }
    same("attributes", attributes(&end.ep)?, before)?;
    same("parts", parts(&end.ep)?, before_parts)
}

/// Creates another PZ and other EVDs.
fn others(end: &End) -> Result<(Pz, Evd, Evd, Evd)> {
    let ia = &end.ia;
    Ok((
        ia.create_pz()?,
        ia.create_evd(DTO, 16)?,
        ia.create_evd(DTO, 16)?,
        ia.create_evd(EvdFlags::CONNECTION, 4)?,
    ))
}

fn all_or_nothing(context: &Context) -> Result<()> {
    let end = end(context)?;
    let (pz, recv, request, connect) = others(&end)?;
    let (before, before_attr) = (parts(&end.ep)?, attributes(&end.ep)?);
    let qp = end.ep.query()?.raw.qp_num;
    let good = EpChange::new().pz(&pz).recv(&recv).request(&request).max_recv_dtos(9);
    let parameter = |made, subtype| refused_as(made, Type::INVALID_PARAMETER, subtype);
    parameter(end.ep.modify(good.connect(&recv)), Subtype::INVALID_ARG5)?;
    let good = good.connect(&connect);
    parameter(end.ep.modify(good.recv(&connect)), Subtype::INVALID_ARG3)?;
    parameter(end.ep.modify(good.request(&connect)), Subtype::INVALID_ARG4)?;
    let limit = end.ia.query()?.raw.max_dto_per_ep;
    parameter(end.ep.modify(good.max_request_dtos(limit + 1)), Subtype::INVALID_ARG3)?;
    same("parts", parts(&end.ep)?, before)?;
    same("attributes", attributes(&end.ep)?, before_attr)?;
    same("QP number", end.ep.query()?.raw.qp_num, qp)?;
    // None of the new objects is in use. All old ones are.
    pz.free()?;
    [&recv, &request, &connect].into_iter().try_for_each(Evd::free)?;
    in_use(&end.pz, [&end.recv, &end.request, &end.connect])
}

/// Checks that none of them can be freed.
fn in_use(pz: &Pz, evds: [&Evd; 3]) -> Result<()> {
    refused_as(pz.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_PZ_IN_USE)?;
    evds.into_iter().try_for_each(|evd| {
        refused_as(evd.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_EVD_IN_USE)
    })
}

fn replaced_objects_can_be_freed(context: &Context) -> Result<()> {
    let end = end(context)?;
    end.lmr.free()?;
    let (pz, recv, request, connect) = others(&end)?;
    end.ep.modify(EpChange::new().pz(&pz).recv(&recv).request(&request).connect(&connect))?;
    in_use(&pz, [&recv, &request, &connect])?;
    end.pz.free()?;
    [&end.recv, &end.request, &end.connect].into_iter().try_for_each(Evd::free)?;
    // Change to the present PZ and EVD.
    end.ep.modify(EpChange::new().pz(&pz).recv(&recv))?;
    in_use(&pz, [&recv, &request, &connect])?;
    end.ep.free()?;
    pz.free()?;
    for evd in [recv, request, connect] {
        evd.free()?;
    }
    Ok(())
}

fn new_sizes_apply(context: &Context) -> Result<()> {
    let end = end(context)?;
    let full = |count: u64| -> Result<()> {
        (0..count).try_for_each(|cookie| end.receive(0, 64, cookie))?;
        let segment = [end.lmr.segment(0, 64)];
        let more = end.ep.post_recv(&segment, 99, Default::default());
        refused(more, Type::INSUFFICIENT_RESOURCES)
    };
    end.ep.modify(EpChange::new().max_recv_dtos(3))?;
    full(3)?;
    // Neither fewer receives than posted, nor fewer segments.
    let argument = |outcome| refused_as(outcome, Type::INVALID_PARAMETER, Subtype::INVALID_ARG3);
    argument(end.ep.modify(EpChange::new().max_recv_dtos(2)))?;
    end.ep.modify(EpChange::new().max_recv_dtos(5))?;
    full(2)?;
    end.ep.disconnect(Close::Abrupt)?;
    for _ in 0..5 {
        context.next(&end.recv)?;
    }
    end.ep.reset()?;
    let segments = [end.lmr.segment(0, 8), end.lmr.segment(8, 8), end.lmr.segment(16, 8)];
    end.ep.modify(EpChange::new().max_recv_iov(2))?;
    let too_many = end.ep.post_recv(&segments, 1, Default::default());
    refused_as(too_many, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    end.ep.modify(EpChange::new().max_recv_iov(3))?;
    end.ep.post_recv(&segments, 1, Default::default())?;
    argument(end.ep.modify(EpChange::new().max_recv_iov(2)))
}

fn bad_handles(context: &Context) -> Result<()> {
    let (mine, other) = (end(context)?, end(context)?);
    let before = parts(&mine.ep)?;
    let freed = mine.ia.create_evd(DTO, 4)?;
    freed.free()?;
    type Field = fn(&mut kdapl_ep_modify) -> &mut u64;
    let fields: [(u32, Field, Subtype); 4] = [
        (KDAPL_EP_FIELD_PZ, |m| &mut m.pz, Subtype::INVALID_HANDLE_PZ),
        (KDAPL_EP_FIELD_RECV_EVD, |m| &mut m.recv_evd, Subtype::INVALID_HANDLE_EVD_RECV),
        (KDAPL_EP_FIELD_REQUEST_EVD, |m| &mut m.request_evd, Subtype::INVALID_HANDLE_EVD_REQUEST),
        (KDAPL_EP_FIELD_CONNECT_EVD, |m| &mut m.connect_evd, Subtype::INVALID_HANDLE_EVD_CONN),
    ];
    for (mask, field, subtype) in fields {
        let foreign = [other.pz.handle(), other.recv.handle(), freed.handle(), mine.lmr.handle()];
        let null = (mask == KDAPL_EP_FIELD_PZ).then_some(0);
        for handle in foreign.map(|handle| handle.0).into_iter().chain([1 << 40]).chain(null) {
            let mut message = kdapl_ep_modify {
                handle: mine.ep.handle().0,
                mask: mask.into(),
                ..Default::default()
            };
            *field(&mut message) = handle;
            let outcome = raw::call(mine.ia.device(), call::EP_MODIFY, &mut message);
            refused_as(outcome, Type::INVALID_HANDLE, subtype)?;
        }
    }
    same("parts", parts(&mine.ep)?, before)?;
    let mut message = kdapl_ep_modify { handle: mine.pz.handle().0, ..Default::default() };
    let outcome = raw::call(mine.ia.device(), call::EP_MODIFY, &mut message);
    refused_as(outcome, Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_EP)
}
