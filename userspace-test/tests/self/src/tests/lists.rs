// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Lists of DTOs that are posted in one call.

use super::drivers::disguised;
use super::kernel::Loaded;
use super::tests;
use super::user_limits::Parameter;
use crate::context::Context;
use crate::end::{Pair, Shape};
use crate::expect::{done, dto, same};
use anyhow::{bail, ensure, Result};
use libkdapl::{CompletionFlags, Dto, DtoOperation, DtoStatus, Segment, Submitted, Subtype};

tests! {
    #[Address, Link, Transport]
    in_order, 120, "The DTOs of lists of every length and kind complete in their order";
    #[Transport]
    receives_and_requests, 120, "Lists of receives and requests complete in their order, each direction for itself";
    #[Transport]
    refused_receives, 60, "A list of receives ends at the one that is refused, wherever it is, and at the end of the queue";
    #[Transport]
    refused_anywhere, 60, "A list ends at the DTO that is refused, wherever it is";
    #[Transport]
    longer_than_the_queue, 30, "A list is posted as far as the queue has places";
    #[Transport]
    calls_of_the_driver, 60, "Eight DTOs of a list are posted in one call of the driver, in each direction, and single ones in one call each";
    #[Transport]
    after_the_end, 30, "A list is flushed in its order after the end of the connection";
}

/// Bytes of a DTO.
const BYTES: usize = 24;

fn pair(context: &Context) -> Result<Pair> {
    let shape = Shape { receives: 64, requests: 64, ..Default::default() };
    Pair::new(context, shape)
}

/// Returns `BYTES` bytes of the client at the place of a number, in so many pieces.
fn pieces(pair: &Pair, number: usize, count: usize) -> Vec<Segment> {
    let start = number * BYTES;
    let cut = |piece: usize| start + piece * BYTES / count;
    (0..count)
        .map(|piece| pair.client.lmr.segment(cut(piece), cut(piece + 1) - cut(piece)))
        .collect()
}

/// Where the message or the RDMA write of a number goes.
fn target(number: usize) -> usize {
    8192 + number * BYTES
}

/// Operation of each DTO of a list, and its number of segments: sometimes more than a chain takes.
fn plan(context: &Context) -> Vec<(DtoOperation, usize)> {
    let operations = [DtoOperation::Send, DtoOperation::RdmaWrite, DtoOperation::RdmaRead];
    let mut rng = context.rng();
    let length = rng.usize(1..=40);
    // Software iWARP completes a send or a write before the reads that precede it.
    let known = if context.loses_reads() || context.server.is_iwarp() { 2 } else { 3 };
    let one = |_| (operations[rng.usize(0..known)], [1, 1, 1, 2, 3, 4][rng.usize(0..6)]);
    (0..length).map(one).collect()
}

fn in_order(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    for round in 0..context.count(100).max(20) {
        let (mut mine, theirs) = (client.scramble(context), server.scramble(context));
        let (plan, mut expected) = (plan(context), theirs.clone());
        let segments: Vec<_> =
            plan.iter().enumerate().map(|(n, (_, count))| pieces(&pair, n, *count)).collect();
        let mut dtos = Vec::new();
        for (number, (operation, _)) in plan.iter().enumerate() {
            let here = number * BYTES..(number + 1) * BYTES;
            let there = target(number)..target(number) + BYTES;
            match operation {
                DtoOperation::Send => server.receive(there.start, BYTES, number as u64)?,
                DtoOperation::RdmaRead => {
                    mine[here.clone()].copy_from_slice(&theirs[there.clone()])
                }
                _ => {}
            }
            if *operation != DtoOperation::RdmaRead {
                expected[there.clone()].copy_from_slice(&mine[here]);
            }
            let remote = server.lmr.remote_segment(there.start, BYTES);
            let (cookie, flags) = (number as u64, CompletionFlags::default());
            dtos.push(Dto::new(*operation, &segments[number], Some(remote), cookie, flags));
        }
        let Submitted { posted, event } = client.ep.submit(&dtos, None);
        ensure!(event?.is_none() && posted == dtos.len(), "round {round}: {posted} posted");
        for (number, (operation, _)) in plan.iter().enumerate() {
            done(&context.next(&client.request)?, *operation, BYTES as u64, number as u64)?;
        }
        for (number, _) in plan.iter().enumerate().filter(|(_, dto)| dto.0 == DtoOperation::Send) {
            let event = context.next(&server.recv)?;
            done(&event, DtoOperation::Receive, BYTES as u64, number as u64)?;
        }
        same(
            "the server's memory",
            server.lmr.buffer().to_vec(0, expected.len()) == expected,
            true,
        )?;
        same("the client's memory", client.lmr.buffer().to_vec(0, mine.len()) == mine, true)?;
    }
    Ok(())
}

fn receives_and_requests(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    // Over iWARP the side that accepts waits for a message before it writes.
    server.receive(0, BYTES, 0)?;
    client.send(0, BYTES, 0)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, BYTES as u64, 0)?;
    done(&context.next(&client.request)?, DtoOperation::Send, BYTES as u64, 0)?;
    for round in 0..context.count(50).max(10) {
        let (mine, theirs) = (client.scramble(context), server.scramble(context));
        let mut rng = context.rng();
        let length = rng.usize(1..=40);
        let mostly_receives = rng.bool();
        // A receive, or an RDMA write, and its number of segments.
        let plan: Vec<(bool, usize)> = (0..length)
            .map(|_| (rng.usize(0..4) == 0 || mostly_receives, [1, 1, 1, 2, 3, 4][rng.usize(0..6)]))
            .collect();
        let place = |number: usize| {
            let (is_receive, _) = plan[number];
            if is_receive {
                target(number)
            } else {
                number * BYTES
            }
        };
        let segments: Vec<_> = plan
            .iter()
            .enumerate()
            .map(|(number, (_, count))| {
                let cut = |piece: usize| place(number) + piece * BYTES / count;
                (0..*count)
                    .map(|piece| server.lmr.segment(cut(piece), cut(piece + 1) - cut(piece)))
                    .collect::<Vec<_>>()
            })
            .collect();
        let dto = |(number, (is_receive, _)): (usize, &(bool, usize))| {
            let (cookie, flags) = (number as u64, CompletionFlags::default());
            let remote = Some(client.lmr.remote_segment(target(number), BYTES));
            match is_receive {
                true => Dto::new(DtoOperation::Receive, &segments[number], None, cookie, flags),
                false => {
                    Dto::new(DtoOperation::RdmaWrite, &segments[number], remote, cookie, flags)
                }
            }
        };
        let dtos: Vec<_> = plan.iter().enumerate().map(dto).collect();
        let Submitted { posted, event } = server.ep.submit(&dtos, None);
        ensure!(event?.is_none() && posted == dtos.len(), "round {round}: {posted} posted");
        let numbers = |receives: bool| {
            let of_kind = plan.iter().enumerate().filter(move |(_, dto)| dto.0 == receives);
            of_kind.map(|(number, _)| number)
        };
        for number in numbers(false) {
            let event = context.next(&server.request)?;
            done(&event, DtoOperation::RdmaWrite, BYTES as u64, number as u64)?;
        }
        for number in numbers(true) {
            client.send(number * BYTES, BYTES, number as u64)?;
            let event = context.next(&server.recv)?;
            done(&event, DtoOperation::Receive, BYTES as u64, number as u64)?;
            done(&context.next(&client.request)?, DtoOperation::Send, BYTES as u64, number as u64)?;
            let got = server.lmr.buffer().to_vec(target(number), BYTES);
            same("message", got == mine[number * BYTES..][..BYTES], true)?;
        }
        for number in numbers(false) {
            let written = || client.lmr.buffer().to_vec(target(number), BYTES);
            let expected = &theirs[number * BYTES..][..BYTES];
            context.until("the write arrives", || Ok(written() == expected))?;
        }
    }
    Ok(())
}

fn refused_receives(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let flags = CompletionFlags::default();
    let good = [server.lmr.segment(0, BYTES)];
    let outside = [Segment { length: 1 << 30, ..good[0] }];
    let places = server.ep.query()?.raw.attr.max_recv_dtos as u64;
    for place in (0..20).chain([places]) {
        // A queue that is full refuses the receive after the last place.
        let is_full = place == places;
        let dto = |number: u64| {
            let local = if number == place && !is_full { &outside } else { &good };
            Dto::new(DtoOperation::Receive, local, None, number, flags)
        };
        let dtos: Vec<_> = (0..place + 4).map(dto).collect();
        let Submitted { posted, event } = server.ep.submit(&dtos, None);
        same("posted", posted as u64, place)?;
        let Err(error) = event else { bail!("the receive at {place} was not refused") };
        if is_full {
            same("subtype", error.subtype(), Some(Subtype::RESOURCE_TEP))?;
        } else {
            same("type", error.kind(), Some(libkdapl::Type::PROTECTION_VIOLATION))?;
        }
        for number in 0..place {
            client.send(0, BYTES, number)?;
            let event = context.next(&server.recv)?;
            done(&event, DtoOperation::Receive, BYTES as u64, number)?;
            done(&context.next(&client.request)?, DtoOperation::Send, BYTES as u64, number)?;
        }
        same("outstanding", server.ep.status()?.recv_outstanding, 0)?;
    }
    Ok(())
}

fn refused_anywhere(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    let remote = Some(pair.server.lmr.remote_segment(0, BYTES));
    let flags = CompletionFlags::default();
    let good = [client.lmr.segment(0, BYTES)];
    let outside = [Segment { length: 1 << 30, ..good[0] }];
    for place in 0..20 {
        let dto = |number: u64| {
            let local = if number == place { &outside } else { &good };
            Dto::new(DtoOperation::RdmaWrite, local, remote, number, flags)
        };
        let dtos: Vec<_> = (0..24).map(dto).collect();
        let Submitted { posted, event } = client.ep.submit(&dtos, None);
        same("posted", posted as u64, place)?;
        match event {
            Err(error) => same("type", error.kind(), Some(libkdapl::Type::PROTECTION_VIOLATION))?,
            Ok(_) => bail!("the DTO at {place} was not refused"),
        }
        for number in 0..place {
            let event = context.next(&client.request)?;
            done(&event, DtoOperation::RdmaWrite, BYTES as u64, number)?;
        }
        same("outstanding", client.ep.status()?.request_outstanding, 0)?;
    }
    Ok(())
}

fn longer_than_the_queue(context: &Context) -> Result<()> {
    let pair = Pair::new(context, Shape::default())?;
    let client = &pair.client;
    let remote = Some(pair.server.lmr.remote_segment(0, BYTES));
    let places = client.ep.query()?.raw.attr.max_request_dtos as usize;
    let good = [client.lmr.segment(0, BYTES)];
    let dto = |n| Dto::new(DtoOperation::RdmaWrite, &good, remote, n, CompletionFlags::default());
    let dtos: Vec<_> = (0..8 * places as u64).map(dto).collect();
    for _ in 0..context.count(20).max(3) {
        let Submitted { posted, event } = client.ep.submit(&dtos, None);
        same("posted", posted, places)?;
        same(
            "subtype",
            event.err().and_then(|error| error.subtype()),
            Some(Subtype::RESOURCE_TEP),
        )?;
        for number in 0..places as u64 {
            let event = context.next(&client.request)?;
            done(&event, DtoOperation::RdmaWrite, BYTES as u64, number)?;
        }
    }
    Ok(())
}

/// Largest number of DTOs that are posted in one call of the driver: `MAX_CHAIN` of the module.
pub(super) const CHAIN: usize = 8;

/// Returns the calls of the driver by which `action` has posted requests, and receives.
pub(super) fn calls_during(
    disguise: &Loaded,
    action: impl FnOnce() -> Result<()>,
) -> Result<(u64, u64)> {
    let counts =
        || anyhow::Ok((disguise.parameter("send_posts")?, disguise.parameter("recv_posts")?));
    let before = counts()?;
    action()?;
    let after = counts()?;
    Ok((after.0 - before.0, after.1 - before.1))
}

fn calls_of_the_driver(context: &Context) -> Result<()> {
    // Mapped sends would wait for the next call.
    let _posts_by_calls = Parameter::set("mapped_post_delay_us", 0)?;
    let disguise = disguised(context, -1)?;
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let local = [client.lmr.segment(0, BYTES)];
    let dtos = |operation, count: usize| -> Vec<_> {
        let flags = CompletionFlags::default();
        (0..count as u64).map(|n| Dto::new(operation, &local, None, n, flags)).collect()
    };
    let submit = |operation, count: usize| {
        let Submitted { posted, event } = client.ep.submit(&dtos(operation, count), None);
        event?;
        same("posted", posted, count)
    };
    for count in [1, CHAIN - 1, CHAIN, CHAIN + 1, 2 * CHAIN, 2 * CHAIN + 1, 4 * CHAIN] {
        let calls = count.div_ceil(CHAIN) as u64;
        (0..count).try_for_each(|n| server.receive(0, BYTES, n as u64))?;
        let sends = calls_during(&disguise, || submit(DtoOperation::Send, count))?;
        same("calls for the sends of a list", sends, (calls, 0))?;
        let receives = calls_during(&disguise, || submit(DtoOperation::Receive, count))?;
        same("calls for the receives of a list", receives, (0, calls))?;
        let single = calls_during(&disguise, || {
            (0..count).try_for_each(|n| server.send(0, BYTES, n as u64))
        })?;
        // The other host has another device.
        let counted = if context.hosts().len() > 1 { 0 } else { count as u64 };
        same("calls for single sends", single, (counted, 0))?;
        for (end, kind) in [
            (&client.request, DtoOperation::Send),
            (&server.recv, DtoOperation::Receive),
            (&server.request, DtoOperation::Send),
            (&client.recv, DtoOperation::Receive),
        ] {
            for number in 0..count {
                done(&context.next(end)?, kind, BYTES as u64, number as u64)?;
            }
        }
    }
    drop(pair);
    disguise.unload()
}

fn after_the_end(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let client = &pair.client;
    client.ep.disconnect(libkdapl::Close::Abrupt)?;
    context.next(&client.connect)?;
    let good = [client.lmr.segment(0, BYTES)];
    let dtos: Vec<_> = (0..20).map(|n| Dto::send(&good, n, CompletionFlags::default())).collect();
    let Submitted { posted, event } = client.ep.submit(&dtos, None);
    ensure!(event?.is_none() && posted == dtos.len(), "{posted} posted");
    for number in 0..20 {
        let event = context.next(&client.request)?;
        let flushed = dto(&event, DtoOperation::Send, DtoStatus::Flushed)?;
        same("cookie", flushed.cookie, number)?;
    }
    Ok(())
}
