// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Transfers bytes, and checks that no others change.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, dto, same};
use crate::threads::Joined;
use anyhow::{ensure, Result};
use libkdapl::sys::KDAPL_PEER_TIMEOUT_NONE;
use libkdapl::{CompletionFlags, DtoOperation, DtoStatus, Segment, Subtype};
use std::ops::Range;

tests! {
    #[Address, Link, Transport]
    sends, 60, "Sends of every size arrive unchanged, and no other bytes are written";
    #[Address, Link, Transport]
    writes, 60, "RDMA writes of every size arrive unchanged, and no other bytes are written";
    #[Transport]
    reads, 60, "RDMA reads of every size arrive unchanged, and no other bytes are written";
    #[Link, Transport]
    empty_messages, 20, "Messages of zero bytes arrive, with and without segments";
    #[Transport]
    scattered, 60, "Messages are gathered from many segments and scattered over others";
    #[Link, Transport]
    in_order, 60, "Messages and completions keep their order, with many in flight";
    #[Transport]
    both_directions, 60, "Both sides send, write and read at once";
    #[Transport]
    suppressed, 30, "A suppressed completion has no event, and the next one does";
    #[Transport]
    suppressed_only, 30, "A program that suppresses all completions always finds a place in its queue";
    #[Link, Transport]
    fenced, 30, "A fenced send starts after the preceding RDMA read";
    #[Long, Transport]
    largest, 60, "The largest RDMA operations that the memory allows arrive unchanged";
}

const SIZES: [usize; 9] = [1, 7, 64, 1000, 4095, 4096, 4097, 20_000, 30_000];

/// Returns the lengths to transfer. Over a spoilt link they are short, see
/// [`Context::long_message`].
pub(super) fn sizes(context: &Context) -> impl Iterator<Item = usize> {
    let most = if context.link_is_spoilt() { 4097 } else { usize::MAX };
    SIZES.into_iter().filter(move |size| *size <= most)
}

/// Returns the length of RDMA reads for a test that prefers `usual` bytes.
pub(super) fn longest_read(context: &Context, usual: usize) -> usize {
    if context.loses_reads() {
        usual.min(1000)
    } else {
        usual
    }
}

fn pair(context: &Context) -> Result<Pair> {
    Pair::new(context, Shape::default())
}

/// Checks that the buffer has `inside` at `at`, and is otherwise the same as `around`.
pub(super) fn only_changed(end: &End, around: &[u8], at: usize, inside: &[u8]) -> Result<()> {
    let mut expected = around.to_vec();
    expected[at..at + inside.len()].copy_from_slice(inside);
    let got = end.lmr.buffer().to_vec(0, expected.len());
    let wrong = got.iter().zip(&expected).position(|(got, expected)| got != expected);
    ensure!(wrong.is_none(), "byte {wrong:?} is wrong; {} bytes at {at}", inside.len());
    Ok(())
}

fn sends(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for (number, length) in sizes(context).enumerate() {
        let cookie = 0xffff_0000_0000_0000 | number as u64;
        let (out, around) = (pair.client.scramble(context), pair.server.scramble(context));
        pair.server.receive(1000 + number, length, cookie)?;
        pair.client.send(number, length, !cookie)?;
        let length64 = length as u64;
        done(&context.next(&pair.server.recv)?, DtoOperation::Receive, length64, cookie)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, length64, !cookie)?;
        only_changed(&pair.server, &around, 1000 + number, &out[number..number + length])?;
    }
    Ok(())
}

fn writes(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for (number, length) in sizes(context).enumerate() {
        let cookie = number as u64;
        let (out, around) = (pair.client.scramble(context), pair.server.scramble(context));
        let remote = pair.server.lmr.remote_segment(2000 + number, length);
        pair.client.write(number, length, remote, cookie)?;
        let event = context.next(&pair.client.request)?;
        done(&event, DtoOperation::RdmaWrite, length as u64, cookie)?;
        only_changed(&pair.server, &around, 2000 + number, &out[number..number + length])?;
    }
    Ok(())
}

fn reads(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let longest = longest_read(context, usize::MAX);
    for (number, length) in sizes(context).filter(|size| *size <= longest).enumerate() {
        let cookie = number as u64;
        let (around, source) = (pair.client.scramble(context), pair.server.scramble(context));
        let remote = pair.server.lmr.remote_segment(3000 + number, length);
        pair.client.read(number, length, remote, cookie)?;
        let event = context.next(&pair.client.request)?;
        done(&event, DtoOperation::RdmaRead, length as u64, cookie)?;
        let from = 3000 + number;
        only_changed(&pair.client, &around, number, &source[from..from + length])?;
    }
    Ok(())
}

fn empty_messages(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let around = pair.server.scramble(context);
    let none: [&[Segment]; 2] = [&[], &[pair.client.lmr.segment(0, 0)]];
    for segments in none {
        pair.server.receive(0, 64, 1)?;
        pair.client.ep.post_send(segments, 2, CompletionFlags::default())?;
        done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 0, 1)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 0, 2)?;
    }
    pair.server.ep.post_recv(&[], 3, CompletionFlags::default())?;
    pair.client.ep.post_send(&[], 4, CompletionFlags::default())?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 0, 3)?;
    done(&context.next(&pair.client.request)?, DtoOperation::Send, 0, 4)?;
    only_changed(&pair.server, &around, 0, &[])
}

/// Returns random disjoint pieces of a part of the buffer with `total` bytes in all.
pub(super) fn pieces_in(
    context: &Context,
    part: Range<usize>,
    count: usize,
    total: usize,
) -> Vec<(usize, usize)> {
    let room = part.len() / count;
    let mut left = total;
    (0..count)
        .map(|index| {
            let rest = count - index - 1;
            let least = left.saturating_sub(rest * room);
            let length = if rest == 0 { left } else { context.rng().usize(least..=left.min(room)) };
            left -= length;
            let slack = room - length;
            (part.start + index * room + context.rng().usize(0..=slack), length)
        })
        .collect()
}

/// Does the same in the whole buffer.
fn pieces(context: &Context, end: &End, count: usize, total: usize) -> Vec<(usize, usize)> {
    pieces_in(context, 0..end.lmr.buffer().len(), count, total)
}

pub(super) fn segments(end: &End, pieces: &[(usize, usize)]) -> Vec<Segment> {
    pieces.iter().map(|(offset, length)| end.lmr.segment(*offset, *length)).collect()
}

pub(super) fn collect(bytes: &[u8], pieces: &[(usize, usize)]) -> Vec<u8> {
    pieces.iter().flat_map(|(offset, length)| &bytes[*offset..offset + length]).copied().collect()
}

fn scattered(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let attr = pair.client.ep.query()?.raw.attr;
    let (most_out, most_in) = (attr.max_request_iov as usize, attr.max_recv_iov as usize);
    let most_read = attr.max_rdma_read_iov.max(1) as usize;
    let most_write = attr.max_rdma_write_iov.max(1) as usize;
    for _ in 0..context.count(100) {
        let total = context.rng().usize(1..longest_read(context, 30_000));
        let out = context.rng().usize(1..=most_out.min(8));
        let (from, to) = (
            pieces(context, &pair.client, out, total),
            pieces(context, &pair.server, most_in.min(8), total),
        );
        let (sent, _) = (pair.client.scramble(context), pair.server.scramble(context));
        let flags = CompletionFlags::default();
        pair.server.ep.post_recv(&segments(&pair.server, &to), 1, flags)?;
        pair.client.ep.post_send(&segments(&pair.client, &from), 2, flags)?;
        done(&context.next(&pair.server.recv)?, DtoOperation::Receive, total as u64, 1)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, total as u64, 2)?;
        let memory = |end: &End| end.lmr.buffer().to_vec(0, end.lmr.buffer().len());
        ensure!(
            collect(&memory(&pair.server), &to) == collect(&sent, &from),
            "the message differs"
        );

        let from = pieces(context, &pair.client, most_write.min(6), total);
        let remote = pair.server.lmr.remote_segment(77, total);
        pair.client.ep.post_rdma_write(&segments(&pair.client, &from), remote, 3, flags)?;
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, total as u64, 3)?;
        ensure!(
            memory(&pair.server)[77..77 + total] == collect(&sent, &from),
            "the written bytes differ"
        );

        let to = pieces(context, &pair.client, most_read.min(6), total);
        let source = pair.server.scramble(context);
        pair.client.ep.post_rdma_read(&segments(&pair.client, &to), remote, 4, flags)?;
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaRead, total as u64, 4)?;
        ensure!(
            collect(&memory(&pair.client), &to) == source[77..77 + total],
            "the bytes read differ"
        );
    }
    Ok(())
}

fn in_order(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let count = context.count(3000);
    let slot = |number: u64| (number % 16) as usize * 64;
    (0..16).try_for_each(|number| pair.server.receive(slot(number), 64, number))?;
    let (mut posted, mut received, mut sent) = (0, 0, 0);
    while received < count || sent < count {
        while posted < count && posted < received + 16 && posted < sent + 16 {
            pair.client.lmr.buffer().write(slot(posted), &posted.to_le_bytes());
            pair.client.send(slot(posted), 64, posted)?;
            posted += 1;
        }
        if received < posted {
            done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 64, received)?;
            let number = pair.server.lmr.buffer().to_vec(slot(received), 8);
            same("message", number, received.to_le_bytes().to_vec())?;
            pair.server.receive(slot(received), 64, received + 16)?;
            received += 1;
        }
        if sent < posted {
            done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, sent)?;
            sent += 1;
        }
    }
    Ok(())
}

fn both_directions(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    // One side may be a round ahead, so two receives are posted.
    (0..4)
        .try_for_each(|number| if number % 2 == 0 { client } else { server }.receive(0, 1000, 1))?;
    let (rounds, patience) = (context.count(300), context.patience());
    let read = longest_read(context, 9000);
    let siw = context.client.is_siw();
    let run = |end: &End, other: &End| -> Result<()> {
        let (source, target) =
            (other.lmr.remote_segment(40_000, 9000), other.lmr.remote_segment(50_000, 9000));
        for _ in 0..rounds {
            end.write(1000, 9000, target, 2)?;
            end.read(20_000, read, source, 3)?;
            end.send(10_000, 1000, 4)?;
            let mut order =
                vec![DtoOperation::RdmaWrite, DtoOperation::RdmaRead, DtoOperation::Send];
            while !order.is_empty() {
                let event = end.request.wait(Some(patience), 1)?.0;
                // siw completes a send although the preceding read is still in progress.
                let send = dto(&event, DtoOperation::Send, DtoStatus::Success).is_ok();
                if siw && send {
                    order.retain(|operation| *operation != DtoOperation::Send);
                } else {
                    dto(&event, order.remove(0), DtoStatus::Success)?;
                }
            }
            dto(&end.recv.wait(Some(patience), 1)?.0, DtoOperation::Receive, DtoStatus::Success)?;
            end.receive(0, 1000, 1)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(server, client));
        run(client, server)?;
        other.join().or_panicked()?
    })
}

fn suppressed(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for round in 0..20 {
        (0..4).try_for_each(|number| pair.server.receive(0, 64, number))?;
        let segment = [pair.client.lmr.segment(0, 64)];
        for number in 0..3 {
            pair.client.ep.post_send(&segment, number, CompletionFlags::SUPPRESS)?;
        }
        pair.client.ep.post_send(&segment, 100 + round, CompletionFlags::default())?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 64, 100 + round)?;
        for number in 0..4 {
            done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 64, number)?;
        }
    }
    context.quiet(&pair.client.request)?;
    ensure!(pair.client.ep.status()?.request_idle, "{:?}", pair.client.ep.status()?);
    Ok(())
}

/// Repeats a post until the queue has a free place. Counts the refusals.
fn post_when_free(
    context: &Context,
    refusals: &mut u64,
    post: impl Fn() -> std::result::Result<(), libkdapl::Error>,
) -> Result<()> {
    context.until("a free place in the queue", || match post() {
        Ok(()) => Ok(true),
        Err(error) if error.subtype() == Some(Subtype::RESOURCE_TEP) => {
            *refusals += 1;
            Ok(false)
        }
        Err(error) => Err(error.into()),
    })
}

fn suppressed_only(context: &Context) -> Result<()> {
    const ROUNDS: u64 = 20;
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let segment = [client.lmr.segment(0, 64)];
    let writes = client.ep.query()?.raw.attr.max_request_dtos - 1;
    let remote = server.lmr.remote_segment(0, 64);
    let suppress = CompletionFlags::SUPPRESS;
    let mut refusals = 0;
    for round in 0..ROUNDS {
        client.receive(1000, 8, round)?;
        server.receive(0, 64, round)?;
        for _ in 0..writes {
            post_when_free(context, &mut refusals, || {
                client.ep.post_rdma_write(&segment, remote, 1, suppress)
            })?;
        }
        post_when_free(context, &mut refusals, || client.ep.post_send(&segment, 1, suppress))?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 64, round)?;
        server.send(0, 8, round)?;
        done(&context.next(&client.recv)?, DtoOperation::Receive, 8, round)?;
        done(&context.next(&server.request)?, DtoOperation::Send, 8, round)?;
    }
    // The peer's answer may precede the completions by a moment. A post is repeated every 2 ms, and
    // the EVDs of connections are drained once a second.
    ensure!(refusals < 50 * ROUNDS, "{refusals} posts were refused");
    context.quiet(&client.request)
}

fn fenced(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    for _ in 0..context.count(100) {
        let source = pair.server.scramble(context);
        pair.client.scramble(context);
        pair.server.receive(30_000, 4096, 1)?;
        let remote = pair.server.lmr.remote_segment(0, 4096);
        pair.client.read(0, 4096, remote, 2)?;
        // The send takes the bytes that the read writes.
        let segment = [pair.client.lmr.segment(0, 4096)];
        pair.client.ep.post_send(&segment, 3, CompletionFlags::BARRIER_FENCE)?;
        done(&context.next(&pair.client.request)?, DtoOperation::RdmaRead, 4096, 2)?;
        done(&context.next(&pair.client.request)?, DtoOperation::Send, 4096, 3)?;
        done(&context.next(&pair.server.recv)?, DtoOperation::Receive, 4096, 1)?;
        let got = pair.server.lmr.buffer().to_vec(30_000, 4096);
        ensure!(got == source[..4096], "the send overtook the read");
    }
    Ok(())
}

fn largest(context: &Context) -> Result<()> {
    let limits = context.open()?.query()?.raw;
    // A lost or late packet is sent again with all that follow it, and costs a retry.
    let (most, peer_timeout_ms) =
        if context.link_is_spoilt() { (64 << 10, KDAPL_PEER_TIMEOUT_NONE) } else { (2 << 20, 0) };
    let length = limits.max_rdma_size.min(limits.max_message_size).min(most) as usize;
    let shape = Shape { memory: 2 * length, peer_timeout_ms, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    let (out, around) = (pair.client.scramble(context), pair.server.scramble(context));
    let remote = pair.server.lmr.remote_segment(0, length);
    pair.client.write(0, length, remote, 1)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaWrite, length as u64, 1)?;
    only_changed(&pair.server, &around, 0, &out[..length])?;
    context.reads_arrive()?;
    pair.client.read(length, length, remote, 2)?;
    done(&context.next(&pair.client.request)?, DtoOperation::RdmaRead, length as u64, 2)?;
    only_changed(&pair.client, &out, length, &out[..length])?;
    pair.server.receive(length, length, 3)?;
    pair.client.send(0, length, 4)?;
    done(&context.next(&pair.server.recv)?, DtoOperation::Receive, length as u64, 3)?;
    done(&context.next(&pair.client.request)?, DtoOperation::Send, length as u64, 4)?;
    only_changed(&pair.server, &[&out[..length], &out[..length]].concat(), 0, &[])
}
