// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The data path allocates no memory.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{CompletionFlags, Dto, DtoOperation, Evd, EvdFlags, Event, Segment, Wait};
use observe::count::{Stacks, ALLOCATIONS};
use std::time::Duration;

tests! {
    no_allocation, 600, "A million DTOs and events need no allocation of the module";
    receives_before_a_connection, 60, "A thousand receives that are posted before the connection need few allocations";
}

/// Number of DTOs in all.
const OPERATIONS: u64 = 1_000_000;
/// Length of a list.
const LIST: u64 = 32;
/// Lists of messages in a round, and lists of RDMA writes. A round also has `LIST` single messages
/// and as many RDMA reads, which cost more.
const MESSAGE_LISTS: u64 = 200;
const WRITE_LISTS: u64 = 20;
/// DTOs in a round. A message is a send and a receive.
const ROUND: u64 = LIST * (2 * MESSAGE_LISTS + WRITE_LISTS + 2 + 1);
const BYTES: usize = 64;

/// Returns the number of allocations with the module's code on the stack, and the stacks.
fn allocations(what: impl FnOnce() -> Result<()>) -> Result<(u64, Vec<String>)> {
    let stacks = Stacks::of(ALLOCATIONS)?;
    what()?;
    Ok((stacks.with("kdapl")?, stacks.stacks_with("kdapl")?))
}

/// Returns the DTOs of a list.
fn list(operation: DtoOperation, local: &[Segment], remote: Option<Segment>) -> Vec<Dto<'_>> {
    let dto = |cookie| Dto::new(operation, local, remote, cookie, CompletionFlags::default());
    (0..LIST).map(dto).collect()
}

/// Takes the events of a list. A wait for all of them has returned the first one.
fn take(evd: &Evd, first: Event, operation: DtoOperation) -> Result<()> {
    let (rest, _) = evd.dequeue_many(LIST as usize)?;
    same("events after the first", rest.len() as u64, LIST - 1)?;
    for (cookie, event) in [first].iter().chain(&rest).enumerate() {
        done(event, operation, BYTES as u64, cookie as u64)?;
    }
    Ok(())
}

/// Posts lists of sends or RDMA writes, each in one call that also waits for their completions.
/// Lists of sends find lists of receives.
fn post_lists(context: &Context, pair: &Pair, operation: DtoOperation, lists: u64) -> Result<()> {
    let (client, server) = (&pair.client, &pair.server);
    let (local, place) = ([client.lmr.segment(0, BYTES)], [server.lmr.segment(0, BYTES)]);
    let is_send = operation == DtoOperation::Send;
    let remote = (!is_send).then(|| server.lmr.remote_segment(0, BYTES));
    let requests = list(operation, &local, remote);
    let receives = list(DtoOperation::Receive, &place, None);
    let timeout = Some(context.scaled(Duration::from_secs(10)));
    for _ in 0..lists {
        if is_send {
            same("receives", server.ep.submit(&receives, None).posted, receives.len())?;
        }
        let wait = Wait { evd: &client.request, timeout, threshold: LIST as i32 };
        let submitted = client.ep.submit(&requests, Some(wait));
        same("posted DTOs", submitted.posted, requests.len())?;
        let (first, _) = submitted.event?.context("no event")?;
        take(&client.request, first, operation)?;
        if is_send {
            let (first, _) = server.recv.wait(timeout, LIST as i32)?;
            take(&server.recv, first, DtoOperation::Receive)?;
        }
    }
    Ok(())
}

/// Sends messages, and reads, with a wait for each event.
fn messages_and_reads(context: &Context, pair: &Pair) -> Result<()> {
    let (client, server) = (&pair.client, &pair.server);
    let remote = server.lmr.remote_segment(0, BYTES);
    for cookie in 0..LIST {
        server.receive(0, BYTES, cookie)?;
        client.send(0, BYTES, cookie)?;
        done(&context.next(&server.recv)?, DtoOperation::Receive, BYTES as u64, cookie)?;
        done(&context.next(&client.request)?, DtoOperation::Send, BYTES as u64, cookie)?;
        client.read(0, BYTES, remote, cookie)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaRead, BYTES as u64, cookie)?;
    }
    Ok(())
}

fn receives_before_a_connection(context: &Context) -> Result<()> {
    const RECEIVES: u32 = 1024;
    /// Two arrays, of receives and of segments, which double. A long one takes several allocations.
    const MOST: u64 = 4 * 11;
    let shape = Shape { receives: RECEIVES, ..Default::default() };
    let end = End::new(&context.open()?, shape)?;
    let (found, _) =
        allocations(|| (0..RECEIVES.into()).try_for_each(|cookie| end.receive(0, BYTES, cookie)))?;
    same("outstanding", end.ep.status()?.recv_outstanding, RECEIVES)?;
    println!("{found} allocations for {RECEIVES} receives");
    ensure!((1..=MOST).contains(&found), "{found} allocations");
    Ok(())
}

fn no_allocation(context: &Context) -> Result<()> {
    let shape = Shape { receives: 64, requests: 64, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    let (control, _) = allocations(|| {
        pair.client.ia.create_evd(EvdFlags::DTO, 64)?;
        Ok(())
    })?;
    ensure!(control > 0, "creating an EVD made no allocation: the counter does not work");
    // The library maps the events of an EVD once.
    post_lists(context, &pair, DtoOperation::Send, 1)?;
    let (found, stacks) = allocations(|| {
        for _ in 0..OPERATIONS.div_ceil(ROUND) {
            post_lists(context, &pair, DtoOperation::Send, MESSAGE_LISTS)?;
            post_lists(context, &pair, DtoOperation::RdmaWrite, WRITE_LISTS)?;
            messages_and_reads(context, &pair)?;
        }
        Ok(())
    })?;
    ensure!(found == 0, "{found} allocations: {stacks:#?}");
    Ok(())
}
