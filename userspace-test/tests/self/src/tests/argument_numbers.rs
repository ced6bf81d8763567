// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The number of each argument that a call refuses, as the documents in `docs/ioctl/` have it. The
//! flags of posts are in `completion_flags.rs` and `extensions.rs`.

use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::refused_as;
use crate::raw;
use crate::tests::connect::ends;
use anyhow::{Context as _, Result};
use libkdapl::raw::{call, Call, Device, Message};
use libkdapl::sys::*;
use libkdapl::{Buffer, Error, EvdFlags, Ia, Privileges, Subtype, Type};
use std::fmt::Debug;

tests! {
    ia_calls, 10, "IA_OPEN, IA_CLOSE and LMR_CREATE number their arguments as DAT does";
    evd_and_cno_calls, 10, "The calls on EVDs and CNOs number their arguments as DAT does";
    ep_calls, 10, "EP_CREATE, EP_QUERY, EP_MODIFY and EP_DISCONNECT number their arguments as DAT does";
    connect_calls, 10, "The calls that connect number their arguments as DAT does";
    posts, 10, "A DTO that is refused has the numbers of the call that posts it";
    service_point_calls, 20, "The calls on service points and requests number their arguments as DAT does";
}

/// The call refuses argument `number`.
#[track_caller]
fn invalid<T: Debug>(number: u16, outcome: Result<T, Error>) -> Result<()> {
    let at = std::panic::Location::caller();
    refused_as(outcome, Type::INVALID_PARAMETER, Subtype(36 + number))
        .with_context(|| format!("argument {number}, line {}", at.line()))
}

/// The adapter's file refuses argument `number` of this message.
#[track_caller]
fn sent<M: Message>(device: &Device, number: u16, call: Call<M>, mut message: M) -> Result<()> {
    invalid(number, raw::call(device, call, &mut message))
}

const DTO: u32 = EvdFlags::DTO.0;

fn ia_calls(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let name = &context.client.device;
    invalid(2, Ia::open(name, 0))?;
    sent(ia.device(), 2, call::IA_CLOSE, kdapl_ia_close { flags: 2, ..Default::default() })?;
    let pz = ia.create_pz()?;
    invalid(6, ia.register(&pz, Buffer::new(64)?, Privileges(0x80)))
}

fn evd_and_cno_calls(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let device = ia.device();
    let create = kdapl_evd_create { qlen: 4, flags: DTO, vector: -1, ..Default::default() };
    sent(device, 2, call::EVD_CREATE, kdapl_evd_create { qlen: 0, ..create })?;
    sent(device, 4, call::EVD_CREATE, kdapl_evd_create { flags: 0, ..create })?;
    sent(device, 6, call::EVD_CREATE, kdapl_evd_create { vector: 1 << 20, ..create })?;
    let evd = ia.create_evd(EvdFlags::DTO, 4)?;
    invalid(2, evd.resize(0))?;
    invalid(1, evd.post_se(1))?;
    let mut event = kdapl_event::default();
    let wait = kdapl_evd_wait {
        handle: evd.handle().0,
        threshold: 1,
        max_events: 1,
        events: std::ptr::from_mut(&mut event) as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..Default::default()
    };
    sent(device, 3, call::EVD_WAIT, kdapl_evd_wait { threshold: 0, ..wait })?;
    sent(device, 3, call::EVD_WAIT, kdapl_evd_wait { threshold: 5, ..wait })?;
    sent(device, 4, call::EVD_WAIT, kdapl_evd_wait { max_events: 0, ..wait })?;
    sent(device, 2, call::EVD_DEQUEUE, kdapl_evd_wait { max_events: 0, ..wait })?;
    let cno = ia.create_cno(None)?;
    let no_file = kdapl_cno { agent_fd: -2, handle: cno.handle().0, ..Default::default() };
    sent(device, 2, call::CNO_CREATE, kdapl_cno { handle: 0, ..no_file })?;
    sent(device, 2, call::CNO_MODIFY_AGENT, no_file)
}

fn ep_calls(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let device = end.ia.device();
    let (recv, request) = (end.recv.handle().0, end.request.handle().0);
    let connect = end.connect.handle().0;
    let most = kdapl_ep_attr { max_recv_dtos: u32::MAX, ..Default::default() };
    let create = kdapl_ep_create {
        pz: end.pz.handle().0,
        recv_evd: recv,
        request_evd: request,
        connect_evd: connect,
        ..Default::default()
    };
    let attr = kdapl_ep_create { attr: most, flags: KDAPL_EP_HAS_ATTR, ..create };
    sent(device, 3, call::EP_CREATE, kdapl_ep_create { recv_evd: connect, ..create })?;
    sent(device, 4, call::EP_CREATE, kdapl_ep_create { request_evd: connect, ..create })?;
    sent(device, 5, call::EP_CREATE, kdapl_ep_create { connect_evd: recv, ..create })?;
    sent(device, 6, call::EP_CREATE, attr)?;
    let handle = end.ep.handle().0;
    let query = kdapl_ep_query { handle, mask: 1 << 63, ..Default::default() };
    sent(device, 2, call::EP_QUERY, query)?;
    let modify = |bit: u32| kdapl_ep_modify {
        handle,
        mask: bit.into(),
        recv_evd: connect,
        request_evd: connect,
        connect_evd: recv,
        attr: most,
        ..Default::default()
    };
    for (number, bit) in [
        (2, KDAPL_EP_FIELD_STATE),
        (3, KDAPL_EP_FIELD_MAX_RECV_DTOS),
        (3, KDAPL_EP_FIELD_RECV_EVD),
        (4, KDAPL_EP_FIELD_REQUEST_EVD),
        (5, KDAPL_EP_FIELD_CONNECT_EVD),
    ] {
        sent(device, number, call::EP_MODIFY, modify(bit))?;
    }
    let disconnect = kdapl_ep_disconnect { handle, flags: 2, ..Default::default() };
    sent(device, 2, call::EP_DISCONNECT, disconnect)
}

fn connect_calls(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let device = end.ia.device();
    let (handle, other) = (end.ep.handle().0, end.another_ep()?);
    let (timeout_ns, private_data_size) = (1_000_000_000, 300);
    let connect = kdapl_ep_connect {
        handle,
        remote_address: context.server_address().into(),
        conn_qual: 7000,
        timeout_ns,
        ..Default::default()
    };
    sent(device, 3, call::EP_CONNECT, kdapl_ep_connect { conn_qual: 0, ..connect })?;
    sent(device, 4, call::EP_CONNECT, kdapl_ep_connect { timeout_ns: 0, ..connect })?;
    sent(device, 5, call::EP_CONNECT, kdapl_ep_connect { private_data_size, ..connect })?;
    let dup = other.handle().0;
    let connect = kdapl_ep_dup_connect { handle, dup, timeout_ns, ..Default::default() };
    sent(device, 3, call::EP_DUP_CONNECT, kdapl_ep_dup_connect { timeout_ns: 0, ..connect })?;
    sent(device, 4, call::EP_DUP_CONNECT, kdapl_ep_dup_connect { private_data_size, ..connect })?;
    let connect = kdapl_ep_common_connect {
        handle,
        remote_address: context.server_address().into(),
        timeout_ns,
        ..Default::default()
    };
    let late = kdapl_ep_common_connect { timeout_ns: 0, ..connect };
    sent(device, 3, call::EP_COMMON_CONNECT, late)?;
    let long = kdapl_ep_common_connect { private_data_size, ..connect };
    sent(device, 4, call::EP_COMMON_CONNECT, long)
}

fn posts(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let device = end.ia.device();
    let handle = end.ep.handle().0;
    let iov = [kdapl_triplet::default(); KDAPL_IOV_MAX as usize + 1];
    let many = |operation: u32| kdapl_dto {
        operation,
        iov: iov.as_ptr() as u64,
        iov_count: KDAPL_IOV_MAX + 1,
        iov_size: size_of::<kdapl_triplet>() as u32,
        ..Default::default()
    };
    let submit = |dtos: &[kdapl_dto], count: u32| kdapl_ep_submit {
        handle,
        dtos: dtos.as_ptr() as u64,
        count,
        dto_size: size_of::<kdapl_dto>() as u32,
        ..Default::default()
    };
    for (number, operation) in [
        (1, 99),
        (2, KDAPL_DTO_SEND),
        (2, KDAPL_DTO_RECEIVE),
        (2, KDAPL_DTO_RDMA_WRITE),
        (2, KDAPL_DTO_RDMA_READ),
        (2, KDAPL_IB_DTO_RDMA_WRITE_IMMED),
        (3, KDAPL_IB_DTO_FETCH_ADD),
        (4, KDAPL_IB_DTO_CMP_SWAP),
    ] {
        let dto = many(operation);
        sent(device, number, call::EP_POST, kdapl_ep_post { handle, dto, ..Default::default() })?;
        sent(device, number, call::EP_SUBMIT, submit(&[dto], 1))?;
    }
    let unknown = kdapl_dto { operation: KDAPL_DTO_RECEIVE, flags: 0x80, iov_count: 0, ..many(0) };
    sent(device, 5, call::EP_SUBMIT, submit(&[unknown], 1))?;
    sent(device, 2, call::EP_SUBMIT, submit(&[], KDAPL_SUBMIT_MAX + 1))?;
    let mut event = kdapl_event::default();
    let wait = kdapl_ep_submit {
        evd: end.recv.handle().0,
        threshold: 1,
        max_events: 1,
        events: std::ptr::from_mut(&mut event) as u64,
        event_size: size_of::<kdapl_event>() as u32,
        ..submit(&[], 0)
    };
    sent(device, 3, call::EP_SUBMIT, kdapl_ep_submit { threshold: 0, ..wait })?;
    sent(device, 4, call::EP_SUBMIT, kdapl_ep_submit { max_events: 0, ..wait })
}

fn service_point_calls(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let ia = &ends.server.ia;
    let device = ia.device();
    let (evd, dtos) = (ends.listener.evd.handle().0, ends.server.recv.handle().0);
    let psp = kdapl_psp_create { conn_qual: context.port(), evd, ..Default::default() };
    sent(device, 3, call::PSP_CREATE, kdapl_psp_create { evd: dtos, ..psp })?;
    sent(device, 4, call::PSP_CREATE, kdapl_psp_create { flags: 2, ..psp })?;
    sent(device, 4, call::PSP_CREATE, kdapl_psp_create { backlog: 4097, ..psp })?;
    let rsp = kdapl_rsp { conn_qual: context.port(), evd, ..Default::default() };
    sent(device, 2, call::RSP_CREATE, kdapl_rsp { conn_qual: 0, ..rsp })?;
    sent(device, 4, call::RSP_CREATE, kdapl_rsp { evd: dtos, ..rsp })?;
    sent(device, 4, call::CSP_CREATE, kdapl_csp { evd: dtos, ..Default::default() })?;
    ends.call(context, &[])?;
    let mut cr = ends.listener.request(context)?;
    let long =
        kdapl_cr_answer { handle: cr.handle().0, private_data_size: 300, ..Default::default() };
    let ep = ends.server.ep.handle().0;
    sent(device, 3, call::CR_ACCEPT, kdapl_cr_answer { ep, ..long })?;
    sent(device, 2, call::CR_REJECT, long)?;
    invalid(2, cr.handoff(context.port()))?;
    Ok(cr.reject(&[])?)
}
