// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Transfers that must fail, and limits.

mod outcome;

use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, done, dto, refused, refused_as, same};
use crate::raw;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::*;
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Privileges, Segment,
    Subtype, Type,
};
use outcome::{completes_as, refused_send, refused_write};
use std::collections::HashMap;

pub use outcome::SHORT;

tests! {
    #[Transport]
    receive_too_small, 30,
        "A message that does not fit fails its receive, flushes the rest and breaks the connection";
    #[Transport]
    no_receive, 60,
        "Over soft-RoCE a message waits for its receive, and over iWARP it breaks the connection";
    #[Transport]
    bad_local_context, 30,
        "A segment with an unknown lmr_context is refused with PROTECTION_VIOLATION";
    #[Transport]
    outside_region, 30,
        "A segment that exceeds its region is refused with PROTECTION_VIOLATION";
    no_local_privilege, 30, "A receive into a region without LOCAL_WRITE is refused with PRIVILEGES_VIOLATION";
    #[Transport]
    no_remote_privilege, 60,
        "RDMA without the region's remote privilege fails with REMOTE_ACCESS and changes nothing";
    #[Transport]
    bad_remote_context, 60,
        "RDMA with an unknown rmr_context or outside the region fails with REMOTE_ACCESS";
    other_pz, 30, "A region of another PZ cannot be used by an endpoint";
    #[Transport]
    freed_region, 60, "RDMA to a freed region fails with REMOTE_ACCESS";
    too_many_segments, 30, "More segments than allowed are refused, up to the largest number";
    remote_too_short, 30, "A remote segment shorter than the local ones is refused";
    bad_post, 30, "An unknown operation, unknown flags and bad addresses of segments are refused";
    full_request_queue, 60,
        "An endpoint accepts max_request_dtos requests and refuses more, and all of them complete";
    shared_evd, 60, "Many connections share one EVD, and each event names its endpoint";
}

fn pair(context: &Context) -> Result<Pair> {
    Pair::new(context, Shape::default())
}

fn receive_too_small(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    pair.server.receive(0, SHORT - 1, 1)?;
    pair.server.receive(0, 64, 2)?;
    pair.client.send(0, SHORT, 3)?;
    let event = context.next(&pair.server.recv)?;
    let Event::Dto(failed) = event else { bail!("expected the receive to fail, got {event}") };
    // Soft-RoCE names its own side.
    let status = match context.server.driver().as_deref() {
        Some("rxe") => DtoStatus::LocalEp,
        _ => DtoStatus::LocalLength,
    };
    same("status", failed.status, status)?;
    same("cookie", failed.cookie, 1)?;
    dto(&context.next(&pair.server.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    completes_as(context, &pair.client, refused_send(context))?;
    pair.ends(context, ConnectionEvent::Broken)
}

fn no_receive(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    pair.client.send(0, SHORT, 1)?;
    if context.client.is_iwarp() {
        // No iWARP transport waits for a receive.
        done(&context.next(&pair.client.request)?, DtoOperation::Send, SHORT as u64, 1)?;
        return pair.ends(context, ConnectionEvent::Broken);
    }
    std::thread::sleep(std::time::Duration::from_millis(100));
    pair.server.receive(0, 64, 2)?;
    done(&context.next(&pair.client.request)?, DtoOperation::Send, SHORT as u64, 1)
        .context("the receive was posted 100 ms late")?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, SHORT as u64, 2)
}

fn bad_local_context(context: &Context) -> Result<()> {
    for change in [0x100_u32, 0x1, 0xffff_ff00] {
        let pair = pair(context)?;
        let mut segment = pair.client.lmr.segment(0, 64);
        segment.context ^= change;
        pair.server.receive(0, 64, 1)?;
        let posted = pair.client.ep.post_send(&[segment], 2, CompletionFlags::default());
        refused(posted, Type::PROTECTION_VIOLATION)?;
    }
    Ok(())
}

fn outside_region(context: &Context) -> Result<()> {
    let changes: [fn(&mut Segment); 4] = [
        |segment| segment.address -= 1,
        |segment| segment.address += 64 << 10,
        |segment| segment.length += 1,
        |segment| segment.address = u64::MAX - 10,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let pair = pair(context)?;
        let mut segment = match number {
            0 => pair.client.lmr.segment(0, 64),
            _ => pair.client.lmr.segment((64 << 10) - 64, 64),
        };
        change(&mut segment);
        pair.server.receive(0, 1000, 1)?;
        let posted = pair.client.ep.post_send(&[segment], 2, CompletionFlags::default());
        refused(posted, Type::PROTECTION_VIOLATION).with_context(|| format!("change {number}"))?;
    }
    Ok(())
}

fn no_local_privilege(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let server = &pair.server;
    let region = server.ia.register(&server.pz, Buffer::new(4096)?, Privileges::LOCAL_READ)?;
    region.buffer().fill(0, 4096, 0x55);
    let posted = server.ep.post_recv(&[region.segment(0, 64)], 1, CompletionFlags::default());
    refused_as(posted, Type::PRIVILEGES_VIOLATION, Subtype::PRIVILEGES_WRITE)?;
    ensure!(
        region.buffer().to_vec(0, 64).iter().all(|byte| *byte == 0x55),
        "the region was written"
    );
    Ok(())
}

fn no_remote_privilege(context: &Context) -> Result<()> {
    let local = Privileges::LOCAL_READ | Privileges::LOCAL_WRITE;
    let cases = [
        (local, DtoOperation::RdmaWrite),
        (local, DtoOperation::RdmaRead),
        (local | Privileges::REMOTE_READ, DtoOperation::RdmaWrite),
        (local | Privileges::REMOTE_WRITE, DtoOperation::RdmaRead),
    ];
    for (privileges, operation) in cases {
        if operation == DtoOperation::RdmaRead && context.server.is_siw() {
            // siw lets the peer read all regions of the PZ: it does not check.
            continue;
        }
        let pair = pair(context)?;
        let server = &pair.server;
        let region = server.ia.register(&server.pz, Buffer::new(4096)?, privileges)?;
        region.buffer().fill(0, 4096, 0x55);
        pair.client.lmr.buffer().fill(0, 64, 0xaa);
        let local = [pair.client.lmr.segment(0, SHORT)];
        let remote = region.remote_segment(0, SHORT);
        let (ep, flags) = (&pair.client.ep, CompletionFlags::default());
        let posted = match operation {
            DtoOperation::RdmaWrite => ep.post_rdma_write(&local, remote, 1, flags),
            _ => ep.post_rdma_read(&local, remote, 1, flags),
        };
        posted?;
        completes_as(context, &pair.client, refused_write(context))?;
        pair.ends(context, ConnectionEvent::Broken)?;
        ensure!(
            region.buffer().to_vec(0, 64).iter().all(|byte| *byte == 0x55),
            "the region was written"
        );
        let got = pair.client.lmr.buffer().to_vec(0, 64);
        ensure!(got.iter().all(|byte| *byte == 0xaa), "the region was read");
    }
    Ok(())
}

fn bad_remote_context(context: &Context) -> Result<()> {
    let changes: [fn(&mut Segment); 4] = [
        |segment| segment.context ^= 0x100,
        |segment| segment.context = !segment.context,
        |segment| segment.address -= 1,
        |segment| segment.address += (64 << 10) - SHORT as u64 + 1,
    ];
    for change in changes {
        let pair = pair(context)?;
        let mut remote = pair.server.lmr.remote_segment(0, SHORT);
        change(&mut remote);
        let segment = [pair.client.lmr.segment(0, SHORT)];
        let flags = CompletionFlags::default();
        pair.client.ep.post_rdma_write(&segment, remote, 1, flags)?;
        completes_as(context, &pair.client, refused_write(context))?;
        pair.ends(context, ConnectionEvent::Broken)?;
    }
    Ok(())
}

fn other_pz(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let ia = &pair.client.ia;
    let region = ia.register(&ia.create_pz()?, Buffer::new(4096)?, Privileges::ALL)?;
    pair.server.receive(0, 64, 1)?;
    let posted = pair.client.ep.post_send(&[region.segment(0, 64)], 2, CompletionFlags::default());
    refused(posted, Type::PROTECTION_VIOLATION)
}

fn freed_region(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let server = &pair.server;
    let region = server.ia.register(&server.pz, Buffer::new(4096)?, Privileges::ALL)?;
    let remote = region.remote_segment(0, SHORT);
    pair.client.write(0, SHORT, remote, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, SHORT as u64, 1)?;
    region.free()?;
    pair.client.write(0, SHORT, remote, 2)?;
    completes_as(context, &pair.client, refused_write(context))?;
    pair.ends(context, ConnectionEvent::Broken)
}

fn post(on: &End, dto: kdapl_dto) -> libkdapl::Result<()> {
    let dto = kdapl_dto { iov_size: size_of::<kdapl_triplet>() as u32, ..dto };
    let mut message = kdapl_ep_post { handle: on.ep.handle().0, dto, ..Default::default() };
    raw::call(on.ia.device(), call::EP_POST, &mut message)
}

fn too_many_segments(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let attr = client.ep.query()?.raw.attr;
    let limit = attr.max_request_iov.max(attr.max_recv_iov).max(KDAPL_IOV_MAX);
    let segments = vec![client.lmr.segment(0, 8); limit as usize + 8];
    let right = kdapl_dto {
        iov: segments.as_ptr() as u64,
        remote: pair.server.lmr.remote_segment(0, 1024),
        ..Default::default()
    };
    for operation in [KDAPL_DTO_SEND, KDAPL_DTO_RECEIVE, KDAPL_DTO_RDMA_READ, KDAPL_DTO_RDMA_WRITE]
    {
        for count in [limit + 1, limit + 8, 1 << 16, 1 << 28, i32::MAX as u32, u32::MAX] {
            let posted = post(client, kdapl_dto { operation, iov_count: count, ..right });
            refused_as(posted, Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
        }
    }
    let status = client.ep.status()?;
    ensure!(status.recv_idle && status.request_idle, "{status:?}");
    Ok(())
}

fn remote_too_short(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, flags) = (&pair.client, CompletionFlags::default());
    let local = [client.lmr.segment(0, 64), client.lmr.segment(100, 64)];
    let mut remote = pair.server.lmr.remote_segment(0, 127);
    refused(client.ep.post_rdma_write(&local, remote, 1, flags), Type::LENGTH_ERROR)?;
    // Over iWARP a read has one segment.
    let one = [client.lmr.segment(0, 128)];
    let into: &[_] = if context.client.is_iwarp() { &one } else { &local };
    refused(client.ep.post_rdma_read(into, remote, 1, flags), Type::LENGTH_ERROR)?;
    // A longer one is allowed, and zero means unspecified.
    for length in [128, 129, 0] {
        remote.length = length;
        client.ep.post_rdma_write(&local, remote, 2, flags)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaWrite, 128, 2)?;
    }
    Ok(())
}

fn bad_post(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let segment = client.lmr.segment(0, 64);
    let right =
        kdapl_dto { iov: std::ptr::from_ref(&segment) as u64, iov_count: 1, ..Default::default() };
    let send = |dto| post(client, dto);
    for operation in [4, 5, 9, 12, 13, 0xff, 0x102, u32::MAX] {
        refused(send(kdapl_dto { operation, ..right }), Type::INVALID_PARAMETER)?;
    }
    for flags in [0x20, 0x8000_0000, u32::MAX] {
        refused(send(kdapl_dto { flags, ..right }), Type::INVALID_PARAMETER)?;
    }
    for iov in [raw::BAD_ADDRESS, 0, u64::MAX - 7, 1 << 63] {
        crate::expect::errno(send(kdapl_dto { iov, ..right }), libc::EFAULT)?;
    }
    ensure!(client.ep.status()?.request_idle, "an operation was posted");
    Ok(())
}

fn full_request_queue(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let length = context.long_message();
    let remote = pair.server.lmr.remote_segment(0, length);
    let segment = [client.lmr.segment(0, length)];
    let promised = client.ep.query()?.raw.attr.max_request_dtos;
    for _ in 0..context.count(20) {
        let mut posted = 0;
        let refusal = loop {
            // A thousand times the limit cannot be outstanding.
            ensure!(posted < 1000 * u64::from(promised), "never full");
            match client.ep.post_rdma_write(&segment, remote, posted, Default::default()) {
                Ok(()) => posted += 1,
                Err(error) => break error,
            }
        };
        refused_as::<()>(Err(refusal), Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
        ensure!(posted >= promised.into(), "{posted} requests, expected {promised}");
        for cookie in 0..posted {
            let event = context.next(&client.request)?;
            done(&event, DtoOperation::RdmaWrite, length as u64, cookie)?;
        }
    }
    Ok(())
}

fn shared_evd(context: &Context) -> Result<()> {
    let count = 8;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let shape = Shape { merged: true, receives: 400, requests: 400, ..Default::default() };
    let (clients, servers) = (End::new(&client_ia, shape)?, End::new(&server_ia, shape)?);
    let mut pairs = Vec::new();
    for _ in 0..count {
        let (client, server) = (clients.another_ep()?, servers.another_ep()?);
        client.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
        listener.request(context)?.accept(&server, &[])?;
        for (end, ep) in [(&clients, &client), (&servers, &server)] {
            let event = context.next(&end.connect)?;
            connection(&event, ConnectionEvent::Established)?;
            let Event::Connection { ep: named, .. } = event else { bail!("{event}") };
            same("endpoint", named, ep.handle())?;
        }
        pairs.push((client, server));
    }
    let each = 8;
    for (number, (client, server)) in pairs.iter().enumerate() {
        for round in 0..each {
            let (offset, cookie) = (number * 64, ((number as u64) << 8) | round);
            let flags = CompletionFlags::default();
            server.post_recv(&[servers.lmr.segment(offset, 64)], cookie, flags)?;
            client.post_send(&[clients.lmr.segment(offset, 64)], cookie, flags)?;
        }
    }
    for (end, pick) in [(&clients, 0), (&servers, 1)] {
        let mut next: HashMap<_, u64> = HashMap::new();
        for _ in 0..count as u64 * each {
            let Event::Dto(dto) = context.next(&end.recv)? else { bail!("expected a completion") };
            same("status", dto.status, DtoStatus::Success)?;
            let (client, server) = &pairs[(dto.cookie >> 8) as usize];
            let ep = if pick == 0 { client } else { server };
            same("endpoint", dto.ep, ep.handle())?;
            let expected = next.entry(dto.ep).or_default();
            same("order on that endpoint", dto.cookie & 0xff, *expected)?;
            *expected += 1;
        }
    }
    Ok(())
}
