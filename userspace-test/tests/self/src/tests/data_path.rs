// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The data path allocates no memory.

use super::tests;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, same};
use anyhow::{ensure, Result};
use libkdapl::{CompletionFlags, Dto, DtoOperation, EvdFlags, Wait};
use observe::count::{Stacks, ALLOCATIONS};
use std::time::Duration;

tests! {
    no_allocation, 600, "A million DTOs and events need no allocation of the module";
    receives_before_a_connection, 60, "A thousand receives that are posted before the connection need few allocations";
}

/// Number of operations in all.
const OPERATIONS: u64 = 1_000_000;
/// Length of a list.
const LIST: u64 = 32;
/// Lists in a round. A round also has `LIST` messages and as many RDMA reads.
const LISTS: u64 = 30;
const BYTES: usize = 64;

/// Returns the number of allocations with the module's code on the stack.
fn allocations(what: impl FnOnce() -> Result<()>) -> Result<u64> {
    let stacks = Stacks::of(ALLOCATIONS)?;
    what()?;
    stacks.with("kdapl")
}

/// Posts lists of RDMA writes, each in one call that also waits for their completions.
fn write_lists(context: &Context, pair: &Pair) -> Result<()> {
    let (client, flags) = (&pair.client, CompletionFlags::default());
    let local = [client.lmr.segment(0, BYTES)];
    let remote = Some(pair.server.lmr.remote_segment(0, BYTES));
    let dtos: Vec<_> = (0..LIST)
        .map(|cookie| Dto::new(DtoOperation::RdmaWrite, &local, remote, cookie, flags))
        .collect();
    let patience = Some(context.scaled(Duration::from_secs(10)));
    for _ in 0..LISTS {
        let wait = Wait { evd: &client.request, timeout: patience, threshold: LIST as i32 };
        let submitted = client.ep.submit(&dtos, Some(wait));
        same("posted DTOs", submitted.posted, dtos.len())?;
        let first = submitted.event?.map(|(event, _)| event);
        let (rest, _) = client.request.dequeue_many(LIST as usize)?;
        same("events", first.iter().chain(&rest).count(), dtos.len())?;
        for (cookie, event) in first.iter().chain(&rest).enumerate() {
            done(event, DtoOperation::RdmaWrite, BYTES as u64, cookie as u64)?;
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
    let found =
        allocations(|| (0..RECEIVES.into()).try_for_each(|cookie| end.receive(0, BYTES, cookie)))?;
    same("outstanding", end.ep.status()?.recv_outstanding, RECEIVES)?;
    println!("{found} allocations for {RECEIVES} receives");
    ensure!((1..=MOST).contains(&found), "{found} allocations");
    Ok(())
}

/// Returns a million, or a twentieth of it in the suites of `make check`.
fn operations(context: &Context) -> u64 {
    match context.settings.effort < 1.0 {
        true => OPERATIONS / 20,
        false => OPERATIONS,
    }
}

fn no_allocation(context: &Context) -> Result<()> {
    let shape = Shape { receives: 64, requests: 64, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    let control = allocations(|| {
        pair.client.ia.create_evd(EvdFlags::DTO, 64)?;
        Ok(())
    })?;
    ensure!(control > 0, "creating an EVD made no allocation: the counter does not work");
    // A message is a send and a receive.
    let round = LISTS * LIST + 3 * LIST;
    let found = allocations(|| {
        for _ in 0..operations(context).div_ceil(round) {
            write_lists(context, &pair)?;
            messages_and_reads(context, &pair)?;
        }
        Ok(())
    })?;
    same("allocations", found, 0)
}
