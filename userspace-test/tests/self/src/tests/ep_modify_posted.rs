// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Modifying an endpoint with posted receives, and in states that forbid it.

use super::connect::ends;
use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection, done, dto, refused, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, ConnectionEvent, DtoOperation, DtoStatus, EpChange, EpState, Evd, EvdFlags,
    Privileges, Subtype, Type,
};

tests! {
    receives_move_to_new_evd, 20,
        "Posted receives survive new EVDs and sizes, and complete on the new EVD in order";
    receives_and_new_pz, 20,
        "A new PZ keeps posted receives whose memory belongs to it, and is refused otherwise";
    receives_and_shorter_evd, 30,
        "A modify to a shorter EVD keeps all posted receives, and gives the EVD another CQ";
    refused_unless_unconnected, 60,
        "Any modify is refused while connecting, connected and disconnected, naming the state";
    directly_after_reset, 60,
        "A modify directly after a reset works if the EVD has room for the flushed receives";
    reset_with_short_evd, 30,
        "A reset reports flushed receives as far as the EVD has room, each with its own cookie";
}

/// Sends `count` messages of 100 bytes, which begin with their number. The receives are as long,
/// adjacent, and have cookies from 0. Checks the completions on `recv` and the data.
fn delivered(context: &Context, from: &End, to: &End, recv: &Evd, count: u64) -> Result<()> {
    for number in 0..count {
        from.lmr.buffer().fill(0, 100, number as u8 + 1);
        from.send(0, 100, number)?;
        done(&context.next(&from.request)?, DtoOperation::Send, 100, number)?;
        done(&context.next(recv)?, DtoOperation::Receive, 100, number)?;
        let got = to.lmr.buffer().to_vec(number as usize * 100, 100);
        same("data", got, vec![number as u8 + 1; 100])?;
    }
    Ok(())
}

fn receives_move_to_new_evd(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let server = &ends.server;
    let post = |numbers: std::ops::Range<u64>| {
        numbers.into_iter().try_for_each(|n| server.receive(n as usize * 100, 100, n))
    };
    post(0..3)?;
    let (recv, request) =
        (server.ia.create_evd(EvdFlags::DTO, 64)?, server.ia.create_evd(EvdFlags::DTO, 64)?);
    server.ep.modify(EpChange::new().recv(&recv))?;
    same("receives", server.ep.status()?.recv_outstanding, 3)?;
    server.recv.free()?;
    post(3..5)?;
    server.ep.modify(EpChange::new().request(&request).max_recv_dtos(40).max_recv_iov(2))?;
    server.request.free()?;
    post(5..30)?;
    same("receives", server.ep.status()?.recv_outstanding, 30)?;
    ends.call(context, &[])?;
    ends.listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&ends.client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    delivered(context, &ends.client, server, &recv, 30)
}

fn receives_and_new_pz(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let server = &ends.server;
    let zone = server.ia.create_pz()?;
    let there = server.ia.register(&zone, Buffer::new(4096)?, Privileges::ALL)?;
    // A receive without memory may belong to any PZ.
    server.ep.post_recv(&[], 7, Default::default())?;
    let number = server.ep.query()?.raw.qp_num;
    server.ep.modify(EpChange::new().pz(&zone))?;
    ensure!(server.ep.query()?.raw.qp_num != number, "the queue pair belongs to the old PZ");
    let old = [server.lmr.segment(0, 100)];
    let outcome = server.ep.post_recv(&old, 8, Default::default());
    refused(outcome, Type::PROTECTION_VIOLATION)?;
    server.ep.post_recv(&[there.segment(50, 100)], 8, Default::default())?;
    // The posted receive does not belong to the old PZ, so the modify is refused.
    let outcome = server.ep.modify(EpChange::new().pz(&server.pz).max_recv_dtos(99));
    refused(outcome, Type::PROTECTION_VIOLATION)?;
    let query = server.ep.query()?.raw;
    same("PZ", query.pz, zone.handle().0)?;
    same("max_recv_dtos", query.attr.max_recv_dtos, Shape::default().receives)?;
    same("receives", server.ep.status()?.recv_outstanding, 2)?;
    ends.call(context, &[])?;
    ends.listener.request(context)?.accept(&server.ep, &[])?;
    for end in [&ends.client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    ends.client.ep.post_send(&[], 1, Default::default())?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 0, 7)?;
    let sent = ends.client.scramble(context);
    ends.client.send(0, 100, 2)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 100, 8)?;
    same("data", there.buffer().to_vec(50, 100), sent[..100].to_vec())
}

fn receives_and_shorter_evd(context: &Context) -> Result<()> {
    const POSTED: u32 = 1100;
    let shape = Shape { receives: POSTED, ..Default::default() };
    let end = End::new(&context.open()?, shape)?;
    (0..POSTED.into()).try_for_each(|cookie| end.receive(0, 64, cookie))?;
    // A first CQ has room for 1024 completions, so the EVD needs another one.
    let short = end.ia.create_evd(EvdFlags::DTO, 4)?;
    same("completion queues", short.query()?.cqs, 1)?;
    end.ep.modify(EpChange::new().recv(&short))?;
    same("completion queues", short.query()?.cqs, 2)?;
    same("receive EVD", end.ep.query()?.raw.recv_evd, short.handle().0)?;
    let long = end.ia.create_evd(EvdFlags::DTO, POSTED as i32)?;
    end.ep.modify(EpChange::new().recv(&long))?;
    short.free()?;
    end.recv.free()?;
    end.ep.disconnect(Close::Abrupt)?;
    for cookie in 0..POSTED.into() {
        let event = context.next(&long)?;
        same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, cookie)?;
    }
    Ok(())
}

/// Returns all possible changes, to existing PZ and EVDs.
fn every_change(end: &End) -> Vec<EpChange<'_>> {
    let new = EpChange::new;
    vec![
        new().pz(&end.pz),
        new().recv(&end.recv),
        new().request(&end.request),
        new().connect(&end.connect),
        new().service_type(0),
        new().max_message_size(0),
        new().max_rdma_size(0),
        new().qos(0),
        new().recv_completion_flags(0),
        new().request_completion_flags(0),
        new().max_recv_dtos(9),
        new().max_request_dtos(9),
        new().max_recv_iov(2),
        new().max_request_iov(2),
        new().max_rdma_read_in(2),
        new().max_rdma_read_out(2),
        // Over iWARP, more than one is beyond the limits.
        new().max_rdma_read_iov(1),
        new().max_rdma_write_iov(2),
        new(),
    ]
}

fn refused_unless_unconnected(context: &Context) -> Result<()> {
    let all_refused = |end: &End, subtype| -> Result<()> {
        for change in every_change(end) {
            refused_as(end.ep.modify(change), Type::INVALID_STATE, subtype)
                .with_context(|| format!("{change:?}"))?;
        }
        Ok(())
    };
    let ends = ends(context)?;
    ends.call(context, &[])?;
    all_refused(&ends.client, Subtype::INVALID_STATE_EP_ACTCONNPENDING)?;
    let pair = Pair::new(context, Shape::default())?;
    all_refused(&pair.client, Subtype::INVALID_STATE_EP_CONNECTED)?;
    all_refused(&pair.server, Subtype::INVALID_STATE_EP_CONNECTED)?;
    pair.client.ep.disconnect(Close::Abrupt)?;
    for end in [&pair.client, &pair.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        all_refused(end, Subtype::INVALID_STATE_EP_DISCONNECTED)?;
    }
    for end in [&pair.client, &pair.server] {
        end.ep.reset()?;
        for change in every_change(end) {
            end.ep.modify(change).with_context(|| format!("{change:?}"))?;
        }
        same("state", end.ep.query()?.state, EpState::Unconnected)?;
    }
    Ok(())
}

fn directly_after_reset(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    for round in 0..context.count(50) {
        (0..3).try_for_each(|cookie| end.receive(0, 64, cookie))?;
        end.ep.disconnect(Close::Abrupt)?;
        end.ep.reset()?;
        end.ep.modify(EpChange::new().max_recv_dtos(5)).with_context(|| format!("{round}"))?;
        for cookie in 0..3 {
            let event = context.next(&end.recv)?;
            same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, cookie)?;
        }
    }
    Ok(())
}

fn reset_with_short_evd(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let (short, longer) =
        (end.ia.create_evd(EvdFlags::DTO, 1)?, end.ia.create_evd(EvdFlags::DTO, 16)?);
    end.ep.modify(EpChange::new().recv(&short))?;
    (0..4).try_for_each(|cookie| end.receive(0, 64, cookie))?;
    // There is no listener: the attempt fails, and the receives are flushed after that.
    let patience = Some(context.patience());
    end.ep.connect(context.server_address(), context.port(), patience, &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::NonPeerRejected)?;
    end.ep.reset()?;
    same("receives", end.ep.status()?.recv_outstanding, 0)?;
    // The new receive uses the slot of an old one whose completion was not taken.
    end.receive(0, 64, 9)?;
    let mut cookie = 0;
    while let Ok((event, _)) = short.dequeue() {
        same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, cookie)?;
        cookie += 1;
    }
    ensure!((1..=4).contains(&cookie), "{cookie} of 4 were reported");
    context.until("the old queue pair is destroyed", || {
        match end.ep.modify(EpChange::new().recv(&longer)) {
            // The ID of the failed attempt keeps it a moment longer than the reset.
            Err(error) if context.client.is_iwarp() => {
                same("subtype", error.subtype(), Some(Subtype::RESOURCE_TEVD))?;
                Ok(false)
            }
            outcome => Ok(outcome.map(|_| true)?),
        }
    })?;
    short.free()?;
    end.ep.disconnect(Close::Abrupt)?;
    let event = context.next(&longer)?;
    same("cookie", dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?.cookie, 9)
}
