// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Posts DTOs on an endpoint in each state.

use super::connect::reject;
use super::extensions::each;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, dto, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, EpState, Error,
    Event, Privileges, Segment, Subtype, Type,
};

tests! {
    unconnected, 20, "An unconnected endpoint accepts receives and refuses requests with UNCONNECTED";
    #[Address]
    connecting, 30, "A connecting endpoint accepts receives and refuses requests with ACTCONNPENDING";
    accepting, 60, "An accepting endpoint accepts receives and refuses requests with COMPLPENDING, or is connected";
    #[Hosts]
    rejected, 30, "A rejected endpoint flushes all posts, receives after those that were posted before";
    #[Hosts]
    disconnected, 30, "A disconnected endpoint flushes all posts in order, on both sides";
    marker, 60, "A receive that is posted as a marker before a reset completes after all others";
    flushed_into_full_evd, 30, "A post on a disconnected endpoint is refused if its EVD is full, and works once there is room";
    reserved_context, 20, "The context that names all memory for a kernel consumer names none for a process";
    recent_memory, 30, "Memory that posts have used is refused beyond its end, against its privileges and after its end";
    freed, 20, "A freed endpoint refuses all posts with INVALID_HANDLE";
}

/// Posts one request of each kind, and checks that all are refused with this error.
fn requests_refused(end: &End, kind: Type, subtype: Subtype) -> Result<()> {
    let (segment, flags) = ([end.lmr.segment(0, 64)], CompletionFlags::default());
    let remote: Segment = end.lmr.remote_segment(0, 64);
    let ep = &end.ep;
    refused_as(ep.post_send(&segment, 1, flags), kind, subtype).context("send")?;
    refused_as(ep.post_rdma_write(&segment, remote, 1, flags), kind, subtype).context("write")?;
    refused_as(ep.post_rdma_read(&segment, remote, 1, flags), kind, subtype).context("read")?;
    for (operation, posted) in each(end, remote)? {
        refused_as(posted, kind, subtype).context(operation)?;
    }
    Ok(())
}

fn flushed(event: &Event, operation: DtoOperation, cookie: u64) -> Result<()> {
    let dto = dto(event, operation, DtoStatus::Flushed)?;
    same("cookie", dto.cookie, cookie)?;
    same("length", dto.length, 0)
}

/// Posts one request of each kind, and checks that all are flushed in order.
fn requests_flushed(context: &Context, end: &End) -> Result<()> {
    let (segment, flags) = ([end.lmr.segment(0, 64)], CompletionFlags::default());
    let remote: Segment = end.lmr.remote_segment(0, 64);
    end.ep.post_send(&segment, 1, flags)?;
    end.ep.post_rdma_write(&segment, remote, 2, flags)?;
    end.ep.post_rdma_read(&segment, remote, 3, flags)?;
    // A failure is reported in spite of the flag.
    end.ep.post_send(&segment, 4, CompletionFlags::SUPPRESS)?;
    let mut posted = vec![
        (DtoOperation::Send, 1),
        (DtoOperation::RdmaWrite, 2),
        (DtoOperation::RdmaRead, 3),
        (DtoOperation::Send, 4),
    ];
    for (operation, outcome) in each(end, remote)? {
        outcome?;
        posted.push((operation, 77));
    }
    for (operation, cookie) in posted {
        flushed(&context.next(&end.request)?, operation, cookie)?;
    }
    Ok(())
}

fn reserved_context(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let end = &pair.client;
    let flags = CompletionFlags::default();
    // `RESERVED_CONTEXT` of `rust/dat/pz/reserved.rs`, with an address of the kernel.
    let all = [Segment { address: 0xffff_8880_0000_0000, context: 1, length: 64 }];
    let kind = Type::PROTECTION_VIOLATION;
    refused_as(end.ep.post_send(&all, 1, flags), kind, Subtype::PROTECTION_READ).context("send")?;
    refused_as(end.ep.post_recv(&all, 1, flags), kind, Subtype::PROTECTION_WRITE).context("receive")
}

fn receive_refused(end: &End, kind: Type, subtype: Subtype) -> Result<()> {
    let (segment, flags) = ([end.lmr.segment(0, 64)], CompletionFlags::default());
    refused_as(end.ep.post_recv(&segment, 1, flags), kind, subtype).context("receive")
}

fn unconnected(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    end.receive(0, 64, 1)?;
    requests_refused(&end, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_UNCONNECTED)
}

fn connecting(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let end = End::new(&context.open()?, Shape::default())?;
    end.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    let mut cr = listener.request(context)?;
    same("state", end.ep.status()?.state, EpState::ActiveConnectionPending)?;
    end.receive(0, 64, 1)?;
    requests_refused(&end, Type::INVALID_STATE, Subtype::INVALID_STATE_EP_ACTCONNPENDING)?;
    reject(context, &mut cr, b"no", &listener.evd, &end.connect)
}

fn accepting(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let (client, server) =
        (End::new(&context.open()?, Shape::default())?, End::new(&server, Shape::default())?);
    client.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    let mut cr = listener.request(context)?;
    cr.accept(&server.ep, &[])?;
    // The confirmation may arrive before the test gets here.
    if server.ep.status()?.state == EpState::CompletionPending {
        let segment = [server.lmr.segment(0, 64)];
        if let Err(error) = server.ep.post_send(&segment, 1, CompletionFlags::default()) {
            let subtype = Subtype::INVALID_STATE_EP_COMPLPENDING;
            refused_as::<()>(Err(error), Type::INVALID_STATE, subtype)?;
        }
    }
    server.receive(0, 64, 2)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)
}

fn rejected(context: &Context) -> Result<()> {
    let server = context.open_server()?;
    let listener = Listener::new(context, &server)?;
    let end = End::new(&context.open()?, Shape::default())?;
    end.ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    end.receive(0, 64, 1)?;
    end.receive(0, 64, 2)?;
    reject(context, &mut listener.request(context)?, b"no", &listener.evd, &end.connect)?;
    for cookie in 3..6 {
        end.receive(0, 64, cookie)?;
    }
    for cookie in 1..6 {
        flushed(&context.next(&end.recv)?, DtoOperation::Receive, cookie)?;
    }
    requests_flushed(context, &end)
}

fn disconnected(context: &Context) -> Result<()> {
    for how in [Close::Abrupt, Close::Graceful] {
        let pair = Pair::new(context, Shape::default())?;
        pair.client.ep.disconnect(how)?;
        for end in [&pair.client, &pair.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            same("state", end.ep.status()?.state, EpState::Disconnected)?;
            for cookie in 0..3 {
                end.receive(0, 64, cookie)?;
            }
            for cookie in 0..3 {
                flushed(&context.next(&end.recv)?, DtoOperation::Receive, cookie)?;
            }
            requests_flushed(context, end)?;
            ensure!(end.ep.status()?.recv_idle && end.ep.status()?.request_idle, "not idle");
        }
    }
    Ok(())
}

fn marker(context: &Context) -> Result<()> {
    const MARKER: u64 = 99;
    let pair = Pair::new(context, Shape::default())?;
    let end = &pair.client;
    for round in 0..2 {
        (0..5).try_for_each(|cookie| end.receive(0, 64, cookie))?;
        if round == 0 {
            end.ep.disconnect(Close::Abrupt)?;
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        }
        end.receive(0, 64, MARKER)?;
        if round == 1 {
            // The Endpoint is unconnected now. Its receives wait, and a disconnect flushes them.
            end.ep.disconnect(Close::Abrupt)?;
        }
        for cookie in (0..5).chain([MARKER]) {
            flushed(&context.next(&end.recv)?, DtoOperation::Receive, cookie)?;
        }
        end.ep.reset()?;
        context.quiet(&end.recv)?;
    }
    Ok(())
}

fn flushed_into_full_evd(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let end = &pair.client;
    end.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    let room = end.recv.query()?.qlen as u64;
    (0..room).try_for_each(|cookie| end.receive(0, 64, cookie))?;
    let (kind, subtype) = (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEVD);
    receive_refused(end, kind, subtype)?;
    flushed(&context.next(&end.recv)?, DtoOperation::Receive, 0)?;
    end.receive(0, 64, room)?;
    for cookie in 1..=room {
        flushed(&context.next(&end.recv)?, DtoOperation::Receive, cookie)?;
    }
    context.quiet(&end.recv)
}

fn freed(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    pair.client.ep.free()?;
    let subtype = Subtype::INVALID_HANDLE_EP;
    receive_refused(&pair.client, Type::INVALID_HANDLE, subtype)?;
    requests_refused(&pair.client, Type::INVALID_HANDLE, subtype)?;
    connection(&context.next(&pair.server.connect)?, ConnectionEvent::Disconnected)
}

/// Writes four times from one region, so that the Endpoint keeps a copy of it, and then beyond it,
/// against its privileges and after its end.
fn recent_memory(context: &Context) -> Result<()> {
    const LENGTH: usize = 4096;
    let pair = Pair::new(context, Shape::default())?;
    let (client, to) = (&pair.client, pair.server.lmr.remote_segment(0, LENGTH));
    let flags = CompletionFlags::default();
    let refused = |posted, kind, subtype| refused_as::<()>(posted, kind, subtype);
    for round in 0..3 {
        let buffer = Buffer::new(LENGTH)?;
        let lmr = client.ia.register(&client.pz, buffer, Privileges::LOCAL_READ)?;
        let all = lmr.segment(0, LENGTH);
        let write = |segment, cookie| client.ep.post_rdma_write(&[segment], to, cookie, flags);
        for cookie in 0..4 {
            write(all, cookie)?;
            done(&context.next(&client.request)?, DtoOperation::RdmaWrite, LENGTH as u64, cookie)?;
        }
        let beyond = Segment { address: all.address + 1, ..all };
        let before = Segment { address: all.address - 1, length: 1, ..all };
        for outside in [beyond, before] {
            refused(write(outside, 9), Type::PROTECTION_VIOLATION, Subtype::PROTECTION_READ)?;
        }
        for operation in [client.ep.post_recv(&[all], 9, flags), read(client, all, to)] {
            refused(operation, Type::PRIVILEGES_VIOLATION, Subtype::PRIVILEGES_WRITE)?;
        }
        write(all, round)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaWrite, LENGTH as u64, round)?;
        lmr.free()?;
        refused(write(all, 9), Type::PROTECTION_VIOLATION, Subtype::PROTECTION_READ)?;
    }
    context.quiet(&client.request)
}

fn read(end: &End, into: Segment, from: Segment) -> Result<(), Error> {
    end.ep.post_rdma_read(&[into], from, 9, CompletionFlags::default())
}
