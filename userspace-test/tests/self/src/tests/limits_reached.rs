// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Each limit that the attributes report is reached, and one more is refused with its own code.

use super::srq_traffic::Server;
use super::tests;
use super::user_limits::{become_tenant, Parameter};
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, dto, refused, refused_as, same};
use crate::harness::skip;
use crate::peer::Peer;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, DtoOperation, DtoStatus, EpAttr, EpState, Error, EvdFlags, Ia,
    Privileges, Segment, Subtype, Type,
};
use std::fmt::Debug;

tests! {
    receives_of_endpoint, 60, "An endpoint takes max_dto_per_ep receives and refuses one more";
    #[Long]
    requests_of_endpoint, 120, "An endpoint takes max_dto_per_ep requests and refuses one more";
    segments, 60, "A DTO of each kind transfers as many segments as reported, and refuses one more";
    segments_of_srq, 60,
        "A receive of an SRQ takes a message into as many segments as reported, and refuses one more";
    message, 60,
        "A DTO of one byte more than max_message_size is refused, and one of as many is not";
    events, 60,
        "An EVD takes max_evd_qlen events, and refuses one more";
    receives_of_srq, 60, "An SRQ takes max_recv_per_srq receives and refuses one more";
    #[Hosts, Long]
    objects_of_user, 240,
        "A user gets as many objects of each kind as its adapter reports, and no more";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);

/// Calls `make` until it is refused. Returns the number of calls before.
fn until_refused<T: Debug>(
    mut make: impl FnMut(u64) -> Result<T, Error>,
    kind: Type,
    subtype: Subtype,
) -> Result<u32> {
    let mut made = Vec::new();
    loop {
        match make(made.len() as u64) {
            Ok(one) => made.push(one),
            refusal => {
                refused_as(refusal, kind, subtype)?;
                return Ok(made.len() as u32);
            }
        }
    }
}

fn receives_of_endpoint(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let most = ia.query()?.raw.max_dto_per_ep;
    let end = End::new(&ia, Shape { receives: most, ..Default::default() })?;
    let segment = [end.lmr.segment(0, 64)];
    let post = |cookie| end.ep.post_recv(&segment, cookie, NO_FLAGS);
    let count = until_refused(post, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
    same("receives", count, most)
}

fn requests_of_endpoint(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("no iWARP transport waits for a receive, so requests do not stay outstanding");
    }
    let most = context.open()?.query()?.raw.max_dto_per_ep;
    let pair = Pair::new(context, Shape { requests: most, receives: most, ..Default::default() })?;
    let Pair { client, server, .. } = &pair;
    let segment = [client.lmr.segment(0, 8)];
    let post = |cookie| client.ep.post_send(&segment, cookie, NO_FLAGS);
    let count = until_refused(post, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
    same("requests", count, most)?;
    // A spoilt link carries a hundred messages in a second, and soft-RoCE sends all again whenever
    // the peer has no receive. The others end with the connection.
    let few = context.link_is_spoilt() || context.is_brief();
    let messages = u64::from(if few { most.min(1000) } else { most });
    for cookie in 0..messages {
        server.receive(0, 8, cookie)?;
    }
    for cookie in 0..messages {
        done(&context.next(&client.request)?, DtoOperation::Send, 8, cookie)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 8, cookie)?;
    }
    Ok(())
}

/// Connects two endpoints that allow as many segments as the device.
fn with_all_segments(context: &Context) -> Result<Pair> {
    let mut pair = Pair::unconnected(context, Shape::default())?;
    let limits = pair.client.ia.query()?.raw;
    let attr = EpAttr {
        max_recv_iov: limits.max_iov_segments_per_dto,
        max_request_iov: limits.max_iov_segments_per_dto,
        max_rdma_read_iov: limits.max_iov_segments_per_rdma_read,
        max_rdma_write_iov: limits.max_iov_segments_per_rdma_write,
        ..Default::default()
    };
    for end in [&mut pair.client, &mut pair.server] {
        let made = end.ia.create_ep(&end.pz, &end.recv, &end.request, &end.connect, Some(attr))?;
        end.ep = made;
    }
    pair.connect(context)?;
    Ok(pair)
}

/// Returns `count` segments of 8 bytes.
fn pieces(end: &End, count: u32) -> Vec<Segment> {
    (0..count as usize).map(|number| end.lmr.segment(16 * number, 8)).collect()
}

fn segments(context: &Context) -> Result<()> {
    let pair = with_all_segments(context)?;
    let Pair { client, server, .. } = &pair;
    let limits = client.ia.query()?.raw;
    let remote = server.lmr.remote_segment(8192, 4096);
    let too_many = |result| refused_as(result, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2);

    let most = limits.max_iov_segments_per_dto;
    too_many(server.ep.post_recv(&pieces(server, most + 1), 1, NO_FLAGS))?;
    too_many(client.ep.post_send(&pieces(client, most + 1), 2, NO_FLAGS))?;
    let (out, mut expected) = (client.scramble(context), server.scramble(context));
    server.ep.post_recv(&pieces(server, most), 1, NO_FLAGS)?;
    client.ep.post_send(&pieces(client, most), 2, NO_FLAGS)?;
    done(&context.next(&client.request)?, DtoOperation::Send, 8 * u64::from(most), 2)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 8 * u64::from(most), 1)?;
    scatter(&mut expected, &gather(&out, most));
    holds(context, server, &expected)?;

    for (operation, most) in [
        (DtoOperation::RdmaWrite, limits.max_iov_segments_per_rdma_write),
        (DtoOperation::RdmaRead, limits.max_iov_segments_per_rdma_read),
    ] {
        let post =
            |count| client.ep.post(operation, &pieces(client, count), Some(remote), 3, NO_FLAGS);
        too_many(post(most + 1)).with_context(|| operation.to_string())?;
        let (mut here, mut there) = (client.scramble(context), server.scramble(context));
        post(most)?;
        done(&context.next(&client.request)?, operation, 8 * u64::from(most), 3)?;
        let contiguous = &mut there[8192..][..8 * most as usize];
        match operation {
            DtoOperation::RdmaWrite => contiguous.copy_from_slice(&gather(&here, most)),
            _ => scatter(&mut here, contiguous),
        }
        holds(context, server, &there)?;
        holds(context, client, &here)?;
    }
    Ok(())
}

/// Returns the bytes of [`pieces`] of a buffer.
fn gather(buffer: &[u8], count: u32) -> Vec<u8> {
    buffer.chunks(16).take(count as usize).flat_map(|chunk| &chunk[..8]).copied().collect()
}

/// Stores the bytes of [`pieces`] in a buffer.
fn scatter(buffer: &mut [u8], bytes: &[u8]) {
    for (place, piece) in buffer.chunks_mut(16).zip(bytes.chunks(8)) {
        place[..8].copy_from_slice(piece);
    }
}

/// Checks all bytes of a buffer. Over iWARP an RDMA write completes before it arrives.
fn holds(context: &Context, end: &End, expected: &[u8]) -> Result<()> {
    let is_there = || Ok(end.lmr.buffer().to_vec(0, expected.len()) == expected);
    context.until("the bytes have arrived, and no others have changed", is_there)
}

fn segments_of_srq(context: &Context) -> Result<()> {
    let server = Server::new(context, 1, 8)?;
    let most = server.ia.query()?.raw.max_iov_segments_per_srq;
    let server = Server { srq: server.ia.create_srq(&server.pz, 1, most)?, ..server };
    let list = |count| -> Vec<Segment> {
        (0..count as usize).map(|number| server.lmr.segment(16 * number, 8)).collect()
    };
    let longer = server.srq.post_recv(&list(most + 1), 1);
    refused_as(longer, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    let mut expected = server.lmr.buffer().to_vec(0, 4096);
    server.srq.post_recv(&list(most), 1)?;
    let (out, length) = (client.scramble(context), 8 * most as usize);
    client.send(0, length, 2)?;
    done(&context.next(&client.request)?, DtoOperation::Send, length as u64, 2)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, length as u64, 1)?;
    scatter(&mut expected, &out[..length]);
    ensure!(server.lmr.buffer().to_vec(0, 4096) == expected, "wrong bytes");
    Ok(())
}

/// Posts one byte more than a message may have, and as many. The segments share their memory, and
/// nothing is transferred: that messages of many megabytes arrive is a test of `integrity`.
fn message(context: &Context) -> Result<()> {
    /// More memory than that is not used.
    const MEMORY: u64 = 96 << 20;
    let limits = context.open()?.query()?.raw;
    same("max_rdma_size", limits.max_rdma_size, limits.max_message_size)?;
    let count = u64::from(limits.max_iov_segments_per_dto);
    let each = limits.max_message_size / count + 1;
    if each > MEMORY || limits.max_iov_segments_per_rdma_write != limits.max_iov_segments_per_dto {
        return skip(format!("{count} segments of {each} bytes need too much memory"));
    }
    let pair = with_all_segments(context)?;
    let client = &pair.client;
    let region = client.ia.register(&client.pz, Buffer::new(each as usize)?, Privileges::ALL)?;
    let mut list = vec![region.segment(0, each as usize); count as usize];
    list[0].length = (limits.max_message_size + 1 - (count - 1) * each) as u32;
    let unspecified = Segment { length: 0, ..pair.server.lmr.remote_segment(0, 1) };
    for posted in [
        client.ep.post_recv(&list, 1, NO_FLAGS),
        client.ep.post_send(&list, 1, NO_FLAGS),
        client.ep.post_rdma_write(&list, unspecified, 1, NO_FLAGS),
    ] {
        refused(posted, Type::LENGTH_ERROR)?;
    }
    // A receive of as many bytes as a message may have is posted.
    list[0].length -= 1;
    client.ep.post_recv(&list, 1, NO_FLAGS)?;
    let status = client.ep.status()?;
    ensure!(status.request_idle && !status.recv_idle, "{status:?}");
    // After the end of the connection so are requests, and flushed.
    client.ep.disconnect(Close::Abrupt)?;
    context.until("the end", || Ok(client.ep.status()?.state == EpState::Disconnected))?;
    client.ep.post_send(&list, 2, NO_FLAGS)?;
    dto(&context.next(&client.request)?, DtoOperation::Send, DtoStatus::Flushed)?;
    client.ep.post_rdma_write(&list, unspecified, 3, NO_FLAGS)?;
    dto(&context.next(&client.request)?, DtoOperation::RdmaWrite, DtoStatus::Flushed)?;
    Ok(())
}

fn events(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let most = ia.query()?.raw.max_evd_qlen;
    let evd = ia.create_evd(EvdFlags::SOFTWARE, most as i32)?;
    same("length", evd.query()?.qlen as u32, most)?;
    let longer = ia.create_evd(EvdFlags::SOFTWARE, most as i32 + 1);
    refused_as(longer, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    let count =
        until_refused(|pointer| evd.post_se(pointer), Type::QUEUE_FULL, Subtype::NO_SUBTYPE)?;
    same("events", count, most)
}

fn receives_of_srq(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let most = ia.query()?.raw.max_recv_per_srq;
    let end = End::new(&ia, Shape::default())?;
    let srq = ia.create_srq(&end.pz, most, 1)?;
    let segment = [end.lmr.segment(0, 64)];
    let post = |cookie| srq.post_recv(&segment, cookie);
    let count = until_refused(post, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_SRQ)?;
    same("receives", count, most)
}

/// The numbers of a device are too large for a test. An ordinary user may have a part of each.
fn objects_of_user(context: &Context) -> Result<()> {
    for (parameter, value, kind) in [
        ("user_device_share", 0, Kind::All),
        ("user_device_share", 1, Kind::Pz),
        ("user_queue_pairs", 7, Kind::Ep),
    ] {
        let _parameter = Parameter::set(parameter, value)?;
        let mut tenant = Peer::play(context, &format!("Reaches 0 {}", kind as i64))?;
        same("answer of the tenant", tenant.says()?.as_str(), "reached")
            .with_context(|| format!("{parameter}={value}"))?;
        tenant.ends_well()?;
    }
    Ok(())
}

/// Objects that a tenant makes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    All,
    Pz,
    Ep,
}

/// Runs as the tenant: makes objects until each kind is refused.
pub fn tenant(context: &Context, kind: i64) -> Result<()> {
    context.server.settle()?;
    become_tenant()?;
    let ia = Ia::open(&context.server.device, 8)?;
    let limits = ia.query()?.raw;
    let wanted = |one: Kind| kind == one as i64 || kind == Kind::All as i64;
    let count = |what, made: Result<u32>, most: u32| {
        made.and_then(|made| same("number", made, most)).context(what)
    };
    let (full, memory) = (Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY);
    if wanted(Kind::Pz) {
        count("PZs", until_refused(|_| ia.create_pz(), full, memory), limits.max_pzs)?;
    }
    let (pz, flags) = (ia.create_pz()?, EvdFlags::DTO);
    if wanted(Kind::All) {
        let made = until_refused(|_| ia.create_evd(flags, 16), full, memory);
        count("EVDs", made, limits.max_evds)?;
        let register = |_| ia.register(&pz, Buffer::new(4096)?, Privileges::ALL);
        count("LMRs", until_refused(register, full, memory), limits.max_lmrs)?;
        let made = until_refused(|_| ia.create_srq(&pz, 1, 1), full, memory);
        count("SRQs", made, limits.max_srqs)?;
    }
    if wanted(Kind::Ep) {
        let (dtos, connect) = (ia.create_evd(flags, 16)?, ia.create_evd(EvdFlags::CONNECTION, 16)?);
        let attr = EpAttr { max_recv_dtos: 1, max_request_dtos: 1, ..Default::default() };
        let make = |_| ia.create_ep(&pz, &dtos, &dtos, &connect, Some(attr));
        count("EPs", until_refused(make, full, memory), limits.max_eps)?;
    }
    ensure!(limits.max_eps > 0, "no endpoints");
    println!("reached");
    Ok(())
}
