// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Mapped posts among other requests, threads and processes, and when a device is removed.

use super::super::drivers::disguised;
use super::super::lists::{calls_during, CHAIN};
use super::{complete_all, request_promise, send, tests, without_timer, Posts};
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{connection_over, done, dto, empty, same};
use crate::fork::{end_of, fork};
use crate::harness::skip;
use crate::machine::DeviceGuard;
use anyhow::{ensure, Result};
use libkdapl::{
    Buffer, CompletionFlags, Dto, DtoOperation, DtoStatus, Event, Privileges, RmrBinding,
};

tests! {
    #[Transport]
    bind, 30, "A bind follows the DTOs that were mapped before it, and precedes later ones";
    #[Transport]
    threads, 120, "Two threads post on one Endpoint, one by lists: the messages of each arrive in order";
    #[Transport]
    suppressed, 60, "Mapped DTOs with suppressed events are reported by none, and free their slots";
    #[Transport]
    calls_of_the_driver, 60, "Eight mapped DTOs are posted in one call of the driver";
    #[Transport]
    zero_based, 60, "A DTO of a zero-based region is posted by its call";
    #[Transport]
    forked, 30, "A child that has inherited mapped posts ends: its DTO is posted by the parent's call";
}

tests! {
    REMOVAL:
    removed, 60, "A device is removed while DTOs are mapped: they are flushed";
}

fn bind(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let rmr = client.ia.create_rmr(&client.pz)?;
    let mut posts = Posts::new(client)?;
    let promise = posts.promised(context, server)?;
    (0..6).try_for_each(|cookie| server.receive(0, 64, cookie))?;
    for cookie in 0..3 {
        posts.push(send(client, 8, cookie), promise)?;
    }
    let privileges = Privileges::REMOTE_READ;
    let part = RmrBinding { lmr: &client.lmr, segment: client.lmr.segment(0, 64), privileges };
    rmr.bind(&client.ep, &part, 3, CompletionFlags::default())?;
    same("promise after the bind", posts.mapped.promise(), None)?;
    // Without a promise the next request posts it.
    let _ = posts.mapped.push(&send(client, 8, 4), promise);
    request_promise(client)?;
    for cookie in 0..5 {
        match context.next(&client.request)? {
            Event::RmrBind { cookie: 3, status: DtoStatus::Success, .. } if cookie == 3 => {}
            event => done(&event, DtoOperation::Send, 8, cookie)?,
        }
    }
    Ok(())
}

/// Number of messages of each thread in a round.
const EACH: u64 = 12;

/// Cookie of the first message of the thread that posts lists.
const LISTS: u64 = 1 << 32;

/// Posts the messages of a round, with a call for each.
fn post_lists(client: &End, round: u64) -> Result<()> {
    let segment = [client.lmr.segment(0, 16)];
    for number in round * EACH..(round + 1) * EACH {
        let dto = Dto::send(&segment, LISTS | number, CompletionFlags::default());
        client.ep.submit(&[dto], None).event?;
    }
    Ok(())
}

fn threads(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let shape = Shape { receives: 32, requests: 32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    let rounds = context.count(50).max(3);
    for round in 0..rounds {
        (0..2 * EACH).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        // Under the promise that the last round has brought.
        client.send(0, 8, round * EACH)?;
        std::thread::scope(|scope| -> Result<()> {
            let lists = scope.spawn(|| post_lists(client, round));
            let mapped = (round * EACH + 1..(round + 1) * EACH)
                .try_for_each(|cookie| client.send(0, 8, cookie));
            lists.join().expect("it does not panic")?;
            mapped
        })?;
        // Requests complete in the order of their posts, as they arrive.
        let mut next = [round * EACH, LISTS | (round * EACH)];
        for _ in 0..2 * EACH {
            let event = context.next(&client.request)?;
            let cookie = dto(&event, DtoOperation::Send, DtoStatus::Success)?.cookie;
            let next = &mut next[usize::from(cookie >= LISTS)];
            same("cookie", cookie, *next)?;
            *next += 1;
        }
        for cookie in 0..2 * EACH {
            let event = context.next(&server.recv)?;
            let found = dto(&event, DtoOperation::Receive, DtoStatus::Success)?;
            same("receive", found.cookie, cookie)?;
        }
    }
    let mapped = client.ep.mapped_posts();
    ensure!(mapped + 1 >= rounds, "{mapped} DTOs were mapped in {rounds} rounds");
    Ok(())
}

fn suppressed(context: &Context) -> Result<()> {
    const DEPTH: u64 = 16;
    let _parameter = without_timer()?;
    let shape = Shape { requests: DEPTH as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    let to = server.lmr.remote_segment(0, 64);
    let local = [client.lmr.segment(0, 8)];
    let rounds = context.count(20).max(3);
    for round in 0..rounds {
        for cookie in 1..=DEPTH {
            let is_last = cookie == DEPTH;
            let flags =
                if is_last { CompletionFlags::default() } else { CompletionFlags::SUPPRESS };
            client.ep.post_rdma_write(&local, to, cookie, flags)?;
        }
        same("mapped", client.ep.mapped_posts(), round * DEPTH)?;
        done(&context.next(&client.request)?, DtoOperation::RdmaWrite, 8, DEPTH)?;
        empty(&client.request)?;
    }
    Ok(())
}

fn calls_of_the_driver(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let disguise = disguised(context, -1)?;
    let pair = Pair::new(context, Shape { receives: 32, requests: 32, ..Default::default() })?;
    let Pair { client, server, .. } = &pair;
    let mut posts = Posts::new(client)?;
    for count in [1, CHAIN, CHAIN + 1, 3 * CHAIN] {
        let cookies = 0..count as u64;
        let promise = posts.promised(context, server)?;
        cookies.clone().try_for_each(|cookie| server.receive(0, 64, cookie))?;
        cookies.clone().try_for_each(|cookie| posts.push(send(client, 8, cookie), promise))?;
        // Any call posts them.
        let calls = calls_during(&disguise, || Ok(client.ep.status().map(|_| ())?))?;
        same("calls of the driver", calls, (count.div_ceil(CHAIN) as u64, 0))?;
        complete_all(context, client, DtoOperation::Send, cookies.clone(), |_| 8)?;
        complete_all(context, server, DtoOperation::Receive, cookies, |_| 8)?;
    }
    drop(posts);
    drop(pair);
    disguise.unload()
}

fn zero_based(context: &Context) -> Result<()> {
    const DEPTH: u64 = 16;
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    if client.ia.query()?.raw.zb_supported == 0 {
        return skip("the driver has no zero-based LMRs");
    }
    let buffer = Buffer::new(4096)?;
    let lmr = client.ia.register_zero_based(&client.pz, buffer, Privileges::ALL)?;
    let to = server.lmr.remote_segment(0, 64);
    for _ in 0..3 {
        for cookie in 0..DEPTH {
            let flags = CompletionFlags::default();
            client.ep.post_rdma_write(&[lmr.segment(0, 8)], to, cookie, flags)?;
        }
        complete_all(context, client, DtoOperation::RdmaWrite, 0..DEPTH, |_| 8)?;
    }
    same("mapped", client.ep.mapped_posts(), 0)
}

fn forked(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let mut posts = Posts::new(client)?;
    let promise = posts.promised(context, server)?;
    server.receive(0, 64, 1)?;
    let child = fork(|| {
        // Says that there is no promise for a child.
        let _ = posts.mapped.push(&send(client, 8, 1), promise);
        same("promise for the child", posts.mapped.promise(), None)
    })?;
    same("status of the child", end_of(child)?, 0)?;
    same("promise", posts.mapped.promise(), Some(promise))?;
    done(&context.next(&client.request)?, DtoOperation::Send, 8, 1)?;
    done(&context.next(&server.recv)?, DtoOperation::Receive, 8, 1)
}

fn removed(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let guard = DeviceGuard::new(context)?;
    let pair = Pair::new(context, Shape::default())?;
    let Pair { client, server, .. } = &pair;
    let mut posts = Posts::new(client)?;
    let promise = posts.promised(context, server)?;
    for cookie in 0..4 {
        posts.push(send(client, 8, cookie), promise)?;
    }
    guard.delete()?;
    for cookie in 4..8 {
        posts.push(send(client, 8, cookie), promise)?;
    }
    for cookie in 0..8 {
        let event = context.next(&client.request)?;
        let found = dto(&event, DtoOperation::Send, DtoStatus::Flushed)?;
        same("cookie", found.cookie, cookie)?;
    }
    connection_over(&context.next(&server.connect)?)?;
    drop(posts);
    drop(pair);
    guard.add()
}
