// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Atomic operations: fetch and add, compare and swap.

use super::extensions::{needed, ATOMICS};
use super::tests;
use super::transfer::only_changed;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, denied_by_peer, done, refused, refused_as, same};
use crate::threads::Joined;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, Dto, DtoOperation, Ep, EpAttr, Error, Evd, Lmr,
    Privileges, Segment, Subtype, Type,
};
use std::sync::Barrier;
use std::time::Duration;

tests! {
    fetch_and_add, 60,
        "A fetch and add returns the old value, adds modulo 2^64, and changes no other memory";
    compare_and_swap, 60, "A compare and swap returns the old value, and swaps if and only if it was equal";
    concurrent_adds, 120,
        "Adds of two connections to one word each return a different old value, and none is lost";
    concurrent_swaps, 120,
        "Of concurrent compare and swaps of two connections, exactly one succeeds for each value";
    in_order, 60, "More atomic operations than RDMA reads may be in flight complete, in order";
    #[Link]
    fenced, 60, "A fenced send transfers the result of the atomic operation before it";
    unaligned, 30, "An atomic operation on an unaligned address is refused, naming the argument";
    wrong_length, 30,
        "An atomic operation with other than 8 local bytes, or fewer remote bytes, is refused";
    no_local_privilege, 30, "An atomic operation whose local memory may not be written is refused";
    no_remote_privilege, 60,
        "An atomic operation without REMOTE_ATOMIC fails with REMOTE_ACCESS and changes nothing";
    bad_remote_memory, 60,
        "An atomic operation with a wrong rmr_context, or out of range, fails with REMOTE_ACCESS";
    region_with_remote_atomic_only, 30, "A region with only REMOTE_ATOMIC allows atomic operations and no RDMA";
}

const NO_FLAGS: CompletionFlags = CompletionFlags(0);
/// Offset of the word that the operations use.
const WORD_OFFSET: usize = 4096;

fn pair(context: &Context) -> Result<Pair> {
    needed(context, ATOMICS)?;
    Pair::new(context, Shape::default())
}

fn word(end: &End, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    end.lmr.buffer().read(offset, &mut bytes);
    u64::from_ne_bytes(bytes)
}

fn set(end: &End, offset: usize, value: u64) {
    end.lmr.buffer().write(offset, &value.to_ne_bytes());
}

fn fetch_and_add(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let remote = pair.server.lmr.remote_segment(WORD_OFFSET, 8);
    // The old value may be stored at any address.
    for (at, before, add) in [
        (0, 0, 1),
        (8, 41, 1),
        (3, 0x0102_0304_0506_0708, 0x1010),
        (4092, u64::MAX, 1),
        (8, 5, u64::MAX),
        (16, 1 << 63, 1 << 63),
        (24, 7, 0),
    ] {
        let (mine, theirs) = (pair.client.scramble(context), pair.server.scramble(context));
        set(&pair.server, WORD_OFFSET, before);
        let local = pair.client.lmr.segment(at, 8);
        pair.client.ep.post_fetch_and_add(add, local, remote, before, NO_FLAGS)?;
        done(&context.next(&pair.client.request)?, DtoOperation::FetchAdd, 8, before)?;
        only_changed(&pair.client, &mine, at, &before.to_ne_bytes())?;
        let after = before.wrapping_add(add);
        only_changed(&pair.server, &theirs, WORD_OFFSET, &after.to_ne_bytes())?;
    }
    Ok(())
}

fn compare_and_swap(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let remote = pair.server.lmr.remote_segment(WORD_OFFSET, 8);
    for (before, compare, swap) in [
        (0, 0, 1),
        (0x0102_0304_0506_0708, 0x0102_0304_0506_0708, u64::MAX),
        (5, 5, 5),
        (5, 4, 9),
        // The values differ in one half only.
        (1 << 32, 0, 9),
        (1, (1 << 32) | 1, 9),
    ] {
        let (mine, theirs) = (pair.client.scramble(context), pair.server.scramble(context));
        set(&pair.server, WORD_OFFSET, before);
        let local = pair.client.lmr.segment(8, 8);
        pair.client.ep.post_cmp_and_swap(compare, swap, local, remote, 1, NO_FLAGS)?;
        done(&context.next(&pair.client.request)?, DtoOperation::CmpSwap, 8, 1)?;
        only_changed(&pair.client, &mine, 8, &before.to_ne_bytes())?;
        let after = if before == compare { swap } else { before };
        only_changed(&pair.server, &theirs, WORD_OFFSET, &after.to_ne_bytes())?;
    }
    Ok(())
}

/// Two clients of one server, each with its own adapter and connection.
struct TwoClients {
    clients: [End; 2],
    server: End,
    _eps: Vec<Ep>,
    _listener: Listener,
}

impl TwoClients {
    fn new(context: &Context) -> Result<Self> {
        needed(context, ATOMICS)?;
        let ia = context.open_server()?;
        let listener = Listener::new(context, &ia)?;
        let server = End::new(&ia, Shape::default())?;
        let client = || End::new(&context.open()?, Shape::default());
        let clients = [client()?, client()?];
        let mut eps = Vec::new();
        for client in &clients {
            let ep = server.another_ep()?;
            meet(context, &listener, &client.ep, (&ep, &server.connect), &client.connect)?;
            eps.push(ep);
        }
        Ok(Self { clients, server, _eps: eps, _listener: listener })
    }

    /// Runs `what` in both at once. Its argument is the server's word.
    fn both<T: Send>(&self, what: impl Fn(&End, Segment) -> Result<T> + Sync) -> Result<[T; 2]> {
        let (remote, begin) = (self.server.lmr.remote_segment(WORD_OFFSET, 8), Barrier::new(2));
        let run = |end: &End| {
            begin.wait();
            what(end, remote)
        };
        let [first, second] = &self.clients;
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(second));
            let mine = run(first);
            let others = other.join().or_panicked()??;
            Ok([mine?, others])
        })
    }
}

/// Connects two endpoints.
fn meet(
    context: &Context,
    listener: &Listener,
    client: &Ep,
    server: (&Ep, &Evd),
    connect: &Evd,
) -> Result<()> {
    client.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(server.0, &[])?;
    for evd in [connect, server.1] {
        connection(&context.next(evd)?, ConnectionEvent::Established)?;
    }
    Ok(())
}

/// Waits for the completion of one atomic operation.
fn completed(end: &End, patience: Duration, operation: DtoOperation, cookie: u64) -> Result<()> {
    done(&end.request.wait(Some(patience), 1)?.0, operation, 8, cookie)
}

fn concurrent_adds(context: &Context) -> Result<()> {
    const IN_FLIGHT: u64 = 8;
    let rivals = TwoClients::new(context)?;
    let (each, patience) = (context.count(2000), context.patience());
    let at = |number: u64| (number % IN_FLIGHT) as usize * 8;
    let old = rivals.both(|end, remote| {
        let (mut posted, mut old) = (0, Vec::new());
        for taken in 0..each {
            while posted < each && posted < taken + IN_FLIGHT {
                let local = end.lmr.segment(at(posted), 8);
                end.ep.post_fetch_and_add(1, local, remote, posted, NO_FLAGS)?;
                posted += 1;
            }
            completed(end, patience, DtoOperation::FetchAdd, taken)?;
            old.push(word(end, at(taken)));
        }
        Ok(old)
    })?;
    ensure!(old.iter().all(|old| old.is_sorted()), "one connection's adds are out of order");
    let mut all = old.concat();
    all.sort_unstable();
    ensure!(all.iter().copied().eq(0..2 * each), "an old value is missing, or was returned twice");
    same("the word", word(&rivals.server, WORD_OFFSET), 2 * each)
}

fn concurrent_swaps(context: &Context) -> Result<()> {
    let rivals = TwoClients::new(context)?;
    let (each, patience) = (context.count(1000), context.patience());
    let won = rivals.both(|end, remote| {
        let (mut expected, mut won) = (0, Vec::new());
        while (won.len() as u64) < each {
            let local = end.lmr.segment(0, 8);
            end.ep.post_cmp_and_swap(expected, expected + 1, local, remote, 1, NO_FLAGS)?;
            completed(end, patience, DtoOperation::CmpSwap, 1)?;
            let old = word(end, 0);
            if old == expected {
                won.push(old);
                expected += 1;
            } else {
                ensure!(old > expected, "{old} was returned after {expected}");
                expected = old;
            }
        }
        Ok(won)
    })?;
    let mut all = won.concat();
    all.sort_unstable();
    ensure!(
        all.iter().copied().eq(0..2 * each),
        "a value was swapped by both connections or by none"
    );
    same("the word", word(&rivals.server, WORD_OFFSET), 2 * each)
}

fn in_order(context: &Context) -> Result<()> {
    needed(context, ATOMICS)?;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let (mut client, server) =
        (End::new(&client_ia, Shape::default())?, End::new(&server_ia, Shape::default())?);
    let attr = EpAttr { max_rdma_read_out: 1, max_request_dtos: 16, ..Default::default() };
    let (request, connect) = (&client.request, &client.connect);
    client.ep = client_ia.create_ep(&client.pz, &client.recv, request, connect, Some(attr))?;
    meet(context, &listener, &client.ep, (&server.ep, &server.connect), &client.connect)?;
    let remote = server.lmr.remote_segment(WORD_OFFSET, 8);
    for round in 0..context.count(50) {
        for number in 0..16 {
            let local = client.lmr.segment(number as usize * 8, 8);
            client.ep.post_fetch_and_add(1, local, remote, number, NO_FLAGS)?;
        }
        for number in 0..16 {
            done(&context.next(&client.request)?, DtoOperation::FetchAdd, 8, number)?;
            same("old value", word(&client, number as usize * 8), round * 16 + number)?;
        }
    }
    Ok(())
}

fn fenced(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let (local, remote) = (client.lmr.segment(0, 8), server.lmr.remote_segment(WORD_OFFSET, 8));
    for round in 0..context.count(100) {
        server.receive(0, 64, 1)?;
        client.ep.post_fetch_and_add(1, local, remote, 2, NO_FLAGS)?;
        client.ep.post_send(&[local], 3, CompletionFlags::BARRIER_FENCE)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, 8, 1)?;
        same("sent value", word(server, 0), round)?;
        done(&context.next(&client.request)?, DtoOperation::FetchAdd, 8, 2)?;
        done(&context.next(&client.request)?, DtoOperation::Send, 8, 3)?;
    }
    Ok(())
}

/// Posts both operations with this memory. Returns the results, and the numbers of the argument for
/// the remote memory.
fn both(end: &End, local: Segment, remote: Segment) -> [(Result<(), Error>, Subtype); 2] {
    [
        (end.ep.post_fetch_and_add(1, local, remote, 1, NO_FLAGS), Subtype::INVALID_ARG5),
        (end.ep.post_cmp_and_swap(1, 2, local, remote, 1, NO_FLAGS), Subtype::INVALID_ARG6),
    ]
}

fn idle(end: &End) -> Result<()> {
    ensure!(end.ep.status()?.request_idle, "an operation was posted");
    Ok(())
}

fn unaligned(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let local = pair.client.lmr.segment(0, 8);
    for offset in 1..8 {
        let remote = pair.server.lmr.remote_segment(WORD_OFFSET + offset, 8);
        for (posted, argument) in both(&pair.client, local, remote) {
            refused_as(posted, Type::INVALID_PARAMETER, argument)
                .with_context(|| format!("offset {offset}"))?;
        }
    }
    idle(&pair.client)
}

fn wrong_length(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, remote) = (&pair.client, pair.server.lmr.remote_segment(WORD_OFFSET, 8));
    for length in [0, 1, 4, 7, 9, 16] {
        for (posted, _) in both(client, client.lmr.segment(0, length), remote) {
            refused(posted, Type::LENGTH_ERROR).with_context(|| format!("{length} bytes"))?;
        }
    }
    for operation in [DtoOperation::FetchAdd, DtoOperation::CmpSwap] {
        let posted = client.ep.post_dto(&Dto::new(operation, &[], Some(remote), 1, NO_FLAGS));
        refused(posted, Type::LENGTH_ERROR)?;
    }
    for length in 1..8 {
        let remote = Segment { length, ..remote };
        for (posted, _) in both(client, client.lmr.segment(0, 8), remote) {
            refused(posted, Type::LENGTH_ERROR)
                .with_context(|| format!("{length} remote bytes"))?;
        }
    }
    idle(client)?;
    // A length of 0 means unspecified. A longer one is valid.
    for length in [0, 8, 9] {
        let remote = Segment { length, ..remote };
        client.ep.post_fetch_and_add(1, client.lmr.segment(0, 8), remote, 1, NO_FLAGS)?;
        done(&context.next(&client.request)?, DtoOperation::FetchAdd, 8, 1)?;
    }
    same("the word", word(&pair.server, WORD_OFFSET), 3)
}

fn no_local_privilege(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, remote) = (&pair.client, pair.server.lmr.remote_segment(WORD_OFFSET, 8));
    let region = client.ia.register(&client.pz, Buffer::new(4096)?, Privileges::LOCAL_READ)?;
    for (posted, _) in both(client, region.segment(0, 8), remote) {
        refused_as(posted, Type::PRIVILEGES_VIOLATION, Subtype::PRIVILEGES_WRITE)?;
    }
    let mut outside = client.lmr.segment((64 << 10) - 8, 8);
    outside.address += 1;
    for (posted, _) in both(client, outside, remote) {
        refused_as(posted, Type::PROTECTION_VIOLATION, Subtype::PROTECTION_WRITE)?;
    }
    idle(client)
}

/// Checks that the peer refuses both operations on a place, and that no memory changes. `place` may
/// return a region to keep alive.
fn fail(context: &Context, place: impl Fn(&End) -> Result<(Segment, Option<Lmr>)>) -> Result<()> {
    for operation in [DtoOperation::FetchAdd, DtoOperation::CmpSwap] {
        let pair = pair(context)?;
        let (remote, kept) = place(&pair.server)?;
        let (mine, theirs) = (pair.client.scramble(context), pair.server.scramble(context));
        let local = [pair.client.lmr.segment(0, 8)];
        pair.client.ep.post_dto(&Dto::new(operation, &local, Some(remote), 1, NO_FLAGS))?;
        let event = context.next(&pair.client.request)?;
        denied_by_peer(context, &event, operation)?;
        pair.ends(context, ConnectionEvent::Broken)?;
        only_changed(&pair.client, &mine, 0, &[])?;
        only_changed(&pair.server, &theirs, 0, &[])?;
        let kept = kept.map_or(vec![], |region| region.buffer().to_vec(0, 8));
        ensure!(kept.iter().all(|byte| *byte == 0), "the region was changed");
    }
    Ok(())
}

fn no_remote_privilege(context: &Context) -> Result<()> {
    fail(context, |server| {
        let region = server.ia.register(&server.pz, Buffer::new(4096)?, Privileges::ALL)?;
        Ok((region.remote_segment(0, 8), Some(region)))
    })
}

fn bad_remote_memory(context: &Context) -> Result<()> {
    fail(context, |server| {
        let mut remote = server.lmr.remote_segment(WORD_OFFSET, 8);
        remote.context ^= 0x100;
        Ok((remote, None))
    })?;
    fail(context, |server| {
        let mut remote = server.lmr.remote_segment(WORD_OFFSET, 8);
        remote.address += 64 << 10;
        Ok((remote, None))
    })
}

fn region_with_remote_atomic_only(context: &Context) -> Result<()> {
    let pair = pair(context)?;
    let (client, server) = (&pair.client, &pair.server);
    let privilege = Privileges::REMOTE_ATOMIC;
    let region = server.ia.register(&server.pz, Buffer::new(4096)?, privilege)?;
    let remote = region.remote_segment(0, 8);
    let local = client.lmr.segment(0, 8);
    client.ep.post_fetch_and_add(5, local, remote, 1, NO_FLAGS)?;
    done(&context.next(&client.request)?, DtoOperation::FetchAdd, 8, 1)?;
    same("the word", region.buffer().to_vec(0, 8), 5_u64.to_ne_bytes().to_vec())?;
    client.write(0, 8, remote, 2)?;
    let event = context.next(&client.request)?;
    denied_by_peer(context, &event, DtoOperation::RdmaWrite)
}
