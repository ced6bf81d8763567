// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests RDMA writes with immediate data.

use super::completion_flags::flagged::FlaggedPair;
use super::extensions::needed;
use super::signalled::{sleeper, sleeps_on, woken};
use super::tests;
use super::transfer::{only_changed, sizes};
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{denied_by_peer, done, dto, empty, refused, same};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Buffer, Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Extensions,
    Lmr, Privileges, Segment, Type,
};

tests! {
    arrives_after_write, 60, "Immediate data arrive when their RDMA write of any size is complete, and nothing else is written";
    #[Link]
    in_order, 60, "RDMA writes with immediate data and messages keep their order, with many in flight";
    both_directions, 60, "Both sides write with immediate data at once, each to the memory that the other announced";
    zero_bytes, 30, "Immediate data arrive without a byte written, at a receive without memory, with any remote address";
    no_receive, 60, "An RDMA write whose immediate data find no receive waits for one";
    solicited, 60, "Immediate data wake a waiter for solicited messages if they are sent solicited, and not otherwise";
    refused_by_peer, 60, "An RDMA write with immediate data that the peer's memory denies fails, and so does the receive";
    longer_than_remote_segment, 30, "An RDMA write with immediate data longer than the remote segment is refused";
    flushed, 30, "A receive that took no immediate data is flushed as a receive";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);

fn pair(context: &Context) -> Result<Pair> {
    needed(context, Extensions::IMMED_DATA)?;
    Pair::new(context, Shape::default())
}

/// Checks that a receive took an RDMA write of `length` bytes with `immed_data`.
fn arrived(event: &Event, length: u64, cookie: u64, immed_data: u32) -> Result<()> {
    done(event, DtoOperation::RecvImmed, length, cookie)?;
    let Event::Dto(dto) = event else { bail!("{event}") };
    same("immediate data", dto.immed_data, Some(immed_data))
}

fn arrives_after_write(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let edges = [0, 1, 0x0102_0304, 0x8000_0000, u32::MAX];
    for (number, length) in sizes(context).enumerate() {
        let (cookie, length64) = (0xffff_0000_0000_0000 | number as u64, length as u64);
        let random = context.rng().u32(..);
        let immed_data = edges.get(number).copied().unwrap_or(random);
        let (out, around) = (pair.client.scramble(context), pair.server.scramble(context));
        pair.server.receive(60_000, 64, cookie)?;
        let (local, to) = ([pair.client.lmr.segment(number, length)], 2000 + number);
        let remote = pair.server.lmr.remote_segment(to, length);
        pair.client.ep.post_rdma_write_immed(&local, remote, immed_data, !cookie, NO_FLAGS)?;
        arrived(&context.next(&pair.server.recv)?, length64, cookie, immed_data)?;
        only_changed(&pair.server, &around, to, &out[number..number + length])?;
        let event = context.next(&pair.client.request)?;
        done(&event, DtoOperation::RdmaWriteImmed, length64, !cookie)?;
        let Event::Dto(dto) = event else { bail!("{event}") };
        same("immediate data of the write itself", dto.immed_data, None)?;
    }
    Ok(())
}

/// Offset of the memory that RDMA writes go to.
const WRITE_OFFSET: usize = 32_768;

fn in_order(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let count = context.count(3000);
    let slot = |number: u64| (number % 16) as usize * 64;
    (0..16).try_for_each(|number| server.receive(slot(number), 64, number))?;
    let (mut posted, mut received, mut sent) = (0_u64, 0, 0);
    while received < count || sent < count {
        while posted < count && posted < received + 16 && posted < sent + 16 {
            let at = slot(posted);
            client.lmr.buffer().write(at, &posted.to_le_bytes());
            if posted % 2 == 0 {
                let local = [client.lmr.segment(at, 64)];
                let remote = server.lmr.remote_segment(WRITE_OFFSET + at, 64);
                let data = posted as u32;
                client.ep.post_rdma_write_immed(&local, remote, data, posted, NO_FLAGS)?;
            } else {
                client.send(at, 64, posted)?;
            }
            posted += 1;
        }
        if received < posted {
            let event = context.next(&server.recv)?;
            let mut at = slot(received);
            if received % 2 == 0 {
                arrived(&event, 64, received, received as u32)?;
                at += WRITE_OFFSET;
            } else {
                done(&event, DtoOperation::Receive, 64, received)?;
            }
            let number = server.lmr.buffer().to_vec(at, 8);
            same("bytes", number, received.to_le_bytes().to_vec())?;
            server.receive(slot(received), 64, received + 16)?;
            received += 1;
        }
        if sent < posted {
            let even = sent % 2 == 0;
            let operation = if even { DtoOperation::RdmaWriteImmed } else { DtoOperation::Send };
            done(&context.next(&client.request)?, operation, 64, sent)?;
            sent += 1;
        }
    }
    Ok(())
}

fn both_directions(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let ends = [(&pair.client, &pair.server), (&pair.server, &pair.client)];
    for round in 0..context.count(200) {
        let data = |side: usize| 2 * round as u32 + side as u32;
        for (end, _) in ends {
            end.receive(0, 64, round)?;
        }
        for (side, (end, other)) in ends.into_iter().enumerate() {
            let remote = other.lmr.remote_segment(WRITE_OFFSET, 5000);
            let local = [end.lmr.segment(0, 5000)];
            end.ep.post_rdma_write_immed(&local, remote, data(side), round, NO_FLAGS)?;
        }
        for (side, (end, _)) in ends.into_iter().enumerate() {
            arrived(&context.next(&end.recv)?, 5000, round, data(1 - side))?;
            done(&context.next(&end.request)?, DtoOperation::RdmaWriteImmed, 5000, round)?;
        }
    }
    Ok(())
}

fn zero_bytes(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let around = pair.server.scramble(context);
    let nowhere = Segment { address: 0xdead_0000, length: 0, context: 0x1234_5678 };
    for remote in [Segment::default(), nowhere, pair.server.lmr.remote_segment(0, 64)] {
        pair.server.ep.post_recv(&[], 1, NO_FLAGS)?;
        pair.client.ep.post_rdma_write_immed(&[], remote, 7, 2, NO_FLAGS)?;
        arrived(&context.next(&pair.server.recv)?, 0, 1, 7)?;
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaWriteImmed, 0, 2)?;
    }
    only_changed(&pair.server, &around, 0, &[])
}

fn write(end: &End, remote: Segment) -> Result<()> {
    let local = [end.lmr.segment(0, 64)];
    Ok(end.ep.post_rdma_write_immed(&local, remote, 0xabcd, 1, NO_FLAGS)?)
}

fn no_receive(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    write(&pair.client, pair.server.lmr.remote_segment(0, 64))?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    empty(&pair.server.recv)?;
    pair.server.receive(0, 64, 2)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWriteImmed, 64, 1)
        .context("the receive was posted 100 ms late")?;
    arrived(&context.next(&pair.server.recv)?, 64, 2, 0xabcd)
}

fn solicited(context: &Context) -> Result<()> {
    needed(context, Extensions::IMMED_DATA)?;
    let solicited = CompletionFlags::SOLICITED_WAIT;
    let pair = FlaggedPair::new(context, solicited, NO_FLAGS)?;
    let (client, server) = (&pair.client, &pair.server);
    let local = [server.end.lmr.segment(0, 64)];
    let remote = client.end.lmr.remote_segment(0, 64);
    let write = |cookie: u64, flags| -> Result<()> {
        server.ep.post_rdma_write_immed(&local, remote, cookie as u32, cookie, flags)?;
        let event = context.next(&server.request)?;
        done(&event, DtoOperation::RdmaWriteImmed, 64, cookie)
    };
    for first in (0..context.count(20).max(5)).map(|round| round * 3) {
        (first..first + 3).try_for_each(|cookie| client.receive(cookie, NO_FLAGS))?;
        let worker = sleeper(context, &client.recv)?;
        write(first, NO_FLAGS)?;
        write(first + 1, NO_FLAGS)?;
        sleeps_on(context, &worker)?;
        write(first + 2, solicited)?;
        let (event, more) = woken(context, worker)?;
        arrived(&event, 64, first, first as u32)?;
        same("further events", more, 2)?;
        for cookie in first + 1..first + 3 {
            arrived(&context.next(&client.recv)?, 64, cookie, cookie as u32)?;
        }
    }
    Ok(())
}

fn refused_by_peer(context: &Context) -> Result<()> {
    needed(context, Extensions::IMMED_DATA)?;
    // Returns a remote segment, and the region that must outlive the write.
    type Remote = fn(&End) -> Result<(Segment, Option<Lmr>)>;
    let remotes: [Remote; 3] = [
        |server| {
            let local = Privileges::LOCAL_READ | Privileges::LOCAL_WRITE;
            let region = server.ia.register(&server.pz, Buffer::new(4096)?, local)?;
            Ok((region.remote_segment(0, 64), Some(region)))
        },
        |server| {
            let mut remote = server.lmr.remote_segment(0, 64);
            remote.context ^= 0x100;
            Ok((remote, None))
        },
        |server| {
            let mut remote = server.lmr.remote_segment((64 << 10) - 64, 64);
            remote.address += 1;
            Ok((remote, None))
        },
    ];
    for (number, choose) in remotes.into_iter().enumerate() {
        let pair = Pair::new(context, Shape::default())?;
        let around = pair.server.scramble(context);
        pair.server.receive(0, 64, 2)?;
        let (remote, kept) = choose(&pair.server)?;
        write(&pair.client, remote)?;
        let event = context.next(&pair.client.request)?;
        denied_by_peer(context, &event, DtoOperation::RdmaWriteImmed)?;
        match context.next(&pair.server.recv)? {
            Event::Dto(dto) if dto.status != DtoStatus::Success && dto.cookie == 2 => {
                same("operation", dto.operation, DtoOperation::Receive)?;
                same("immediate data", dto.immed_data, None)?;
            }
            other => bail!("remote {number}: expected a failed receive, got {other}"),
        }
        pair.ends(context, ConnectionEvent::Broken)?;
        only_changed(&pair.server, &around, 0, &[])?;
        let kept = kept.map_or(vec![], |region| region.buffer().to_vec(0, 64));
        ensure!(kept.iter().all(|byte| *byte == 0), "the region was written");
    }
    Ok(())
}

fn longer_than_remote_segment(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let mut remote = pair.server.lmr.remote_segment(0, 63);
    let local = [pair.client.lmr.segment(0, 64)];
    let posted = pair.client.ep.post_rdma_write_immed(&local, remote, 1, 1, NO_FLAGS);
    refused(posted, Type::LENGTH_ERROR)?;
    ensure!(pair.client.ep.status()?.request_idle, "the write was posted");
    for length in [64, 65, 0] {
        remote.length = length;
        pair.server.receive(64, 64, 2)?;
        pair.client.ep.post_rdma_write_immed(&local, remote, 3, 1, NO_FLAGS)?;
        arrived(&context.next(&pair.server.recv)?, 64, 2, 3)?;
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaWriteImmed, 64, 1)?;
    }
    Ok(())
}

fn flushed(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    (0..2).try_for_each(|cookie| pair.server.receive(0, 64, cookie))?;
    write(&pair.client, pair.server.lmr.remote_segment(0, 64))?;
    arrived(&context.next(&pair.server.recv)?, 64, 0, 0xabcd)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWriteImmed, 64, 1)?;
    pair.client.ep.disconnect(Close::Graceful)?;
    let event = dto(&context.next(&pair.server.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    same("cookie", event.cookie, 1)?;
    same("immediate data", event.immed_data, None)?;
    pair.ends(context, ConnectionEvent::Disconnected)
}
