// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! DTOs that a process posts without a call for each: "Mapped posts" in `docs/ioctl/dto.md`.

pub mod hostile;
pub mod order;

use super::tests;
use super::user_limits::Parameter;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{self, connection_over, done, dto, empty, refused_as, same};
use crate::harness::skip;
use crate::raw::call;
use anyhow::{ensure, Result};
use libkdapl::raw::{call as calls, MappedPosts};
use libkdapl::sys::*;
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Segment, Subtype, Type,
};
use std::ops::Range;

tests! {
    #[Transport]
    wait_for_a_call, 30, "A mapped DTO is posted by the next call on the file, before that call";
    #[Transport]
    timer, 30, "A mapped DTO is posted by a timer if the process makes no call";
    #[Transport]
    renewed, 30, "After a wait with several mapped DTOs two more waits bring promises, and no third one";
    #[Link, Transport]
    streamed, 120, "A process with many messages in flight maps most of them, and all arrive in order";
    #[Transport]
    receives, 60, "A receive is posted by its call, however many follow: messages find it without another call";
    room, 30, "An Endpoint takes as many mapped requests as its attributes say, and refuses one more";
    #[Transport]
    learned, 30, "A DTO is mapped only if the kernel has accepted one like it: others are refused by the call";
    #[Transport]
    refused, 60, "A mapped DTO that a call would refuse completes with an error, and breaks the connection before later ones are sent";
    #[Transport]
    flushed, 30, "Mapped DTOs of a disconnected Endpoint are flushed, each with its event";
    #[Transport]
    ends, 30, "Mapped DTOs of an Endpoint that is freed, and of a process that exits, are dropped";
}

/// Time after which the kernel posts mapped DTOs, so long that a call always comes first.
const NEVER_US: u64 = 10_000_000;

/// Lets mapped DTOs wait for a call.
fn without_timer() -> Result<Parameter> {
    Parameter::set("mapped_post_delay_us", NEVER_US)
}

/// Asks for a promise for the Endpoint, which the next wait brings.
fn request_promise(end: &End) -> Result<()> {
    let hdr = kdapl_hdr { flags: KDAPL_FLAG_PROMISE, ..Default::default() };
    let handle = end.ep.handle().0;
    let mut message = kdapl_ep_submit { hdr, handle, ..Default::default() };
    Ok(call(end.ia.device(), calls::EP_SUBMIT, &mut message)?)
}

/// The mapped posts of one end.
struct Posts<'a> {
    end: &'a End,
    mapped: MappedPosts,
}

impl<'a> Posts<'a> {
    /// Maps the posts of an end.
    fn new(end: &'a End) -> Result<Self> {
        Ok(Self { end, mapped: MappedPosts::new(end.ia.device(), end.ep.handle().0)? })
    }

    /// Gets a promise: transfers a message of the end to `peer`, and waits for its completion.
    fn promised(&self, context: &Context, peer: &End) -> Result<u32> {
        peer.receive(0, 8, 0)?;
        self.end.send(0, 8, 0)?;
        done(&context.next(&peer.recv)?, DtoOperation::Receive, 8, 0)?;
        request_promise(self.end)?;
        done(&context.next(&self.end.request)?, DtoOperation::Send, 8, 0)?;
        self.mapped.promise().ok_or_else(|| anyhow::anyhow!("the wait brought no promise"))
    }

    /// Maps a DTO under a promise that holds.
    fn push(&mut self, dto: kdapl_mapped_dto, promise: u32) -> Result<()> {
        ensure!(self.mapped.push(&dto, promise), "the promise was withdrawn");
        Ok(())
    }
}

/// Returns a send of some bytes from the start of the end's memory.
fn send(end: &End, length: usize, cookie: u64) -> kdapl_mapped_dto {
    kdapl_mapped_dto {
        operation: KDAPL_DTO_SEND,
        cookie,
        local: end.lmr.segment(0, length),
        ..Default::default()
    }
}

fn wait_for_a_call(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let mut posts = Posts::new(client)?;
    let promise = posts.promised(context, server)?;
    (0..4).try_for_each(|cookie| server.receive(0, 64, cookie))?;
    for cookie in 0..3 {
        posts.push(send(client, 8 + cookie as usize, cookie), promise)?;
    }
    empty(&server.recv)?;
    // The call sees the mapped DTOs as posted.
    same("requests", client.ep.status()?.request_outstanding, 3)?;
    same("promise after a call that has posted DTOs", posts.mapped.promise(), None)?;
    client.send(0, 32, 3)?;
    for (cookie, length) in [(0, 8), (1, 9), (2, 10), (3, 32)] {
        done(&context.next(&server.recv)?, DtoOperation::Receive, length, cookie)?;
        done(&context.next(&client.request)?, DtoOperation::Send, length, cookie)?;
    }
    Ok(())
}

fn timer(context: &Context) -> Result<()> {
    /// Long enough for a busy machine to map a DTO first.
    const DELAY_US: u64 = 3_000_000;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let mut posts = Posts::new(client)?;
    let _parameter = Parameter::set("mapped_post_delay_us", DELAY_US)?;
    let promise = posts.promised(context, server)?;
    server.receive(0, 64, 1)?;
    posts.push(send(client, 8, 1), promise)?;
    // The server has a file of its own. The client makes no call.
    done(&context.next(&server.recv)?, DtoOperation::Receive, 8, 1)?;
    same("promise after the timer", posts.mapped.promise(), None)?;
    done(&context.next(&client.request)?, DtoOperation::Send, 8, 1)
}

fn renewed(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let mut posts = Posts::new(client)?;
    posts.promised(context, server)?;
    for (mapped, renews) in [(1, true), (4, true), (1, true), (1, false)] {
        println!("{mapped} mapped");
        let promise = posts.mapped.promise().ok_or_else(|| anyhow::anyhow!("no promise"))?;
        for cookie in 0..mapped {
            server.receive(0, 64, cookie)?;
            posts.push(send(client, 8, cookie), promise)?;
        }
        complete_all(context, client, DtoOperation::Send, 0..mapped, |_| 8)?;
        complete_all(context, server, DtoOperation::Receive, 0..mapped, |_| 8)?;
        same("promise after it", posts.mapped.promise().is_some(), renews)?;
    }
    Ok(())
}

/// Waits until all of `cookies` have completed, and takes their events. The last call that takes
/// events finds all slots free.
fn complete_all(
    context: &Context,
    end: &End,
    operation: DtoOperation,
    cookies: Range<u64>,
    length: impl Fn(u64) -> u64,
) -> Result<()> {
    let count = (cookies.end - cookies.start) as i32;
    let evd = if operation == DtoOperation::Receive { &end.recv } else { &end.request };
    let (first, _) = evd.wait(Some(context.patience()), count)?;
    done(&first, operation, length(cookies.start), cookies.start)?;
    for cookie in cookies.skip(1) {
        done(&context.next(evd)?, operation, length(cookie), cookie)?;
    }
    Ok(())
}

fn streamed(context: &Context) -> Result<()> {
    const DEPTH: u64 = 32;
    let _parameter = without_timer()?;
    let shape = Shape { receives: DEPTH as u32, requests: DEPTH as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    // The first messages that teach a length are the longest ones.
    let length = |cookie: u64| 57 - cookie.saturating_sub(8) % 50;
    let rounds = context.count(50).max(3);
    for round in 0..rounds {
        let cookies = round * DEPTH..(round + 1) * DEPTH;
        for cookie in cookies.clone() {
            let at = 64 * (cookie % DEPTH) as usize;
            server.receive(at, 64, cookie)?;
            client.lmr.buffer().write(at, &cookie.to_ne_bytes());
            client.send(at, length(cookie) as usize, cookie)?;
        }
        complete_all(context, client, DtoOperation::Send, cookies.clone(), length)?;
        for cookie in cookies {
            let event = context.next(&server.recv)?;
            done(&event, DtoOperation::Receive, length(cookie), cookie)?;
            let mut bytes = [0; 8];
            server.lmr.buffer().read(64 * (cookie % DEPTH) as usize, &mut bytes);
            same("message", u64::from_ne_bytes(bytes), cookie)?;
        }
    }
    same("mapped: all but the first round", client.ep.mapped_posts(), (rounds - 1) * DEPTH)
}

fn receives(context: &Context) -> Result<()> {
    const DEPTH: u64 = 16;
    let _parameter = without_timer()?;
    let shape = Shape { receives: DEPTH as u32, requests: DEPTH as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    for round in 0..3 {
        println!("round {round}");
        (0..DEPTH).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        // The server makes no call until all messages have arrived.
        (0..DEPTH).try_for_each(|cookie| client.send(0, 8, cookie))?;
        complete_all(context, client, DtoOperation::Send, 0..DEPTH, |_| 8)?;
        complete_all(context, server, DtoOperation::Receive, 0..DEPTH, |_| 8)?;
    }
    same("mapped by the server", server.ep.mapped_posts(), 0)
}

fn room(context: &Context) -> Result<()> {
    const REQUESTS: u64 = 24;
    if context.client.is_iwarp() {
        return skip("over iWARP no message waits for a receive");
    }
    let _parameter = without_timer()?;
    let shape =
        Shape { requests: REQUESTS as u32, receives: REQUESTS as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    for round in 0..3 {
        // They wait for receives, and keep their slots meanwhile.
        (0..REQUESTS).try_for_each(|cookie| client.send(0, 8, cookie))?;
        same("mapped so far", client.ep.mapped_posts(), round * REQUESTS)?;
        let local = [client.lmr.segment(0, 8)];
        let one_more = client.ep.post_send(&local, REQUESTS, CompletionFlags::default());
        refused_as(one_more, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
        (0..REQUESTS).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        complete_all(context, client, DtoOperation::Send, 0..REQUESTS, |_| 8)?;
        complete_all(context, server, DtoOperation::Receive, 0..REQUESTS, |_| 8)?;
    }
    Ok(())
}

fn learned(context: &Context) -> Result<()> {
    const DEPTH: u64 = 16;
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let to = server.lmr.remote_segment(0, 64);
    let write =
        |local: Segment| client.ep.post_rdma_write(&[local], to, 1, CompletionFlags::default());
    for cookie in 0..DEPTH {
        client.write(0, 8, to, cookie)?;
    }
    complete_all(context, client, DtoOperation::RdmaWrite, 0..DEPTH, |_| 8)?;
    write(client.lmr.segment(8, 8))?;
    same("mapped: other addresses of the region", client.ep.mapped_posts(), 1)?;
    let end = client.lmr.buffer().len();
    let beyond = Segment { length: 8, ..client.lmr.segment(end - 4, 4) };
    refused_as(write(beyond), Type::PROTECTION_VIOLATION, Subtype::PROTECTION_READ)?;
    let foreign = Segment { context: !beyond.context, ..client.lmr.segment(0, 8) };
    refused_as(write(foreign), Type::PROTECTION_VIOLATION, Subtype::PROTECTION_READ)?;
    expect::refused(write(client.lmr.segment(0, 65)), Type::LENGTH_ERROR)?;
    done(&context.next(&client.request)?, DtoOperation::RdmaWrite, 8, 1)?;
    // A region that is freed.
    let segment = client.lmr.segment(0, 8);
    client.lmr.free()?;
    refused_as(write(segment), Type::PROTECTION_VIOLATION, Subtype::PROTECTION_READ)?;
    same("mapped", client.ep.mapped_posts(), 1)
}

fn refused(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let short = |end: &End| kdapl_mapped_dto {
        operation: KDAPL_DTO_RDMA_WRITE,
        remote: Segment { length: 4, ..Default::default() },
        ..send(end, 8, 7)
    };
    let unknown = |end: &End| kdapl_mapped_dto { operation: 99, ..send(end, 8, 7) };
    let with_flags = |end: &End| kdapl_mapped_dto { flags: 1 << 30, ..send(end, 8, 7) };
    let beyond = |end: &End| send(end, end.lmr.buffer().len() + 1, 7);
    let no_region = |end: &End| {
        let local =
            Segment { context: !end.lmr.registration().lmr_context, ..end.lmr.segment(0, 8) };
        kdapl_mapped_dto { local, ..send(end, 8, 7) }
    };
    type Make<'a> = &'a dyn Fn(&End) -> kdapl_mapped_dto;
    let cases: [(&str, Make<'_>, DtoOperation, DtoStatus); 5] = [
        ("too short remote segment", &short, DtoOperation::RdmaWrite, DtoStatus::LocalLength),
        ("unknown operation", &unknown, DtoOperation::Send, DtoStatus::LocalEp),
        ("unknown flags", &with_flags, DtoOperation::Send, DtoStatus::LocalEp),
        ("beyond the region", &beyond, DtoOperation::Send, DtoStatus::LocalProtection),
        ("unknown context", &no_region, DtoOperation::Send, DtoStatus::LocalProtection),
    ];
    for (what, make, operation, status) in cases {
        println!("{what}");
        let pair = Pair::new(context, Shape::default())?;
        let Pair { client, server, .. } = &pair;
        let mut posts = Posts::new(client)?;
        let promise = posts.promised(context, server)?;
        server.receive(0, 64, 1)?;
        posts.push(make(client), promise)?;
        posts.push(send(client, 8, 8), promise)?;
        same("cookie", dto(&context.next(&client.request)?, operation, status)?.cookie, 7)?;
        let later = dto(&context.next(&client.request)?, DtoOperation::Send, DtoStatus::Flushed)?;
        same("cookie of the DTO after it", later.cookie, 8)?;
        // It has not reached the peer.
        dto(&context.next(&server.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
        pair.ends(context, ConnectionEvent::Broken)?;
    }
    Ok(())
}

fn flushed(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    let Pair { client, server, .. } = &Pair::new(context, Shape::default())?;
    let mut posts = Posts::new(client)?;
    let promise = posts.promised(context, server)?;
    server.ep.disconnect(Close::Abrupt)?;
    // The server's own file. The client makes no call.
    context.next(&server.connect)?;
    for cookie in 0..8 {
        posts.push(send(client, 8, cookie), promise)?;
    }
    for cookie in 0..8 {
        let event = context.next(&client.request)?;
        let found = dto(&event, DtoOperation::Send, DtoStatus::Flushed)?;
        same("cookie", found.cookie, cookie)?;
    }
    connection_over(&context.next(&client.connect)?)
}

fn ends(context: &Context) -> Result<()> {
    let _parameter = without_timer()?;
    for how in ["free", "close", "drop"] {
        println!("{how}");
        let Pair { client, server, .. } = Pair::new(context, Shape::default())?;
        let mut posts = Posts::new(&client)?;
        let promise = posts.promised(context, &server)?;
        for cookie in 0..8 {
            posts.push(send(&client, 8, cookie), promise)?;
        }
        match how {
            "free" => {
                client.ep.free()?;
                // The mapping stays, and nothing reads it.
                ensure!(!posts.mapped.push(&send(&client, 8, 9), promise), "the promise holds");
            }
            "close" => client.ia.close(Close::Abrupt)?,
            _ => drop(posts),
        }
        drop(client);
        connection_over(&context.next(&server.connect)?)?;
    }
    Ok(())
}
