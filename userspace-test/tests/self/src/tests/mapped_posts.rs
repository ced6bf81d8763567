// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! DTOs that a process posts without a call for each: "Mapped posts" in `docs/ioctl/dto.md`.

use super::tests;
use super::user_limits::Parameter;
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{self, connection_over, done, dto, empty, refused_as, same};
use crate::raw::{call, map, posts_offset_of, protect, Mapped};
use anyhow::{ensure, Result};
use libkdapl::raw::{call as calls, MappedPosts};
use libkdapl::sys::*;
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Segment, Subtype, Type,
};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

tests! {
    #[Transport]
    wait_for_a_call, 30, "A mapped DTO is posted by the next call on the file, before that call";
    #[Transport]
    timer, 30, "A mapped DTO is posted by a timer if the process makes no call";
    #[Link, Transport]
    streamed, 120, "A process with many messages in flight maps most of them, and all arrive in order";
    #[Transport]
    room, 30, "An Endpoint takes as many mapped requests as its attributes say, and refuses one more";
    #[Transport]
    learned, 30, "A DTO is mapped only if the kernel has accepted one like it: others are refused by the call";
    #[Transport]
    refused, 60, "A mapped DTO that a call would refuse completes with an error, and breaks the connection before later ones are sent";
    #[Transport]
    flushed, 30, "Mapped DTOs of a disconnected Endpoint are flushed, each with its event";
    #[Transport]
    ends, 30, "Mapped DTOs of an Endpoint that is freed, and of a process that exits, are dropped";
    rights, 20, "A process cannot write promises, map other lengths, or map an Endpoint that is gone";
    #[Transport]
    scribbled, 60, "A process that scribbles over its mapped DTOs harms only its own connection";
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
    let (first, _) = end.request.wait(Some(context.patience()), count)?;
    done(&first, operation, length(cookies.start), cookies.start)?;
    for cookie in cookies.skip(1) {
        done(&context.next(&end.request)?, operation, length(cookie), cookie)?;
    }
    Ok(())
}

fn streamed(context: &Context) -> Result<()> {
    const DEPTH: u64 = 32;
    let _parameter = without_timer()?;
    let shape = Shape { receives: DEPTH as u32, requests: DEPTH as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    // The first messages are the longest ones.
    let length = |cookie: u64| 57 - cookie % 50;
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

fn room(context: &Context) -> Result<()> {
    const REQUESTS: u64 = 24;
    let _parameter = without_timer()?;
    let shape = Shape { requests: REQUESTS as u32, ..Default::default() };
    let Pair { client, server, .. } = &Pair::new(context, shape)?;
    let to = server.lmr.remote_segment(0, 64);
    for round in 0..3 {
        for cookie in 0..REQUESTS {
            client.write(0, 8, to, cookie)?;
        }
        same("mapped so far", client.ep.mapped_posts(), round * REQUESTS)?;
        // The completions are in the queue, and their slots busy, until a call takes them.
        let local = [client.lmr.segment(0, 8)];
        let one_more = client.ep.post_rdma_write(&local, to, 0, CompletionFlags::default());
        refused_as(one_more, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
        complete_all(context, client, DtoOperation::RdmaWrite, 0..REQUESTS, |_| 8)?;
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

fn rights(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let (device, handle) = (end.ia.device(), end.ep.handle().0);
    let page = 4096;
    let promise = posts_offset_of(handle, KDAPL_MAP_PROMISE);
    let posts = posts_offset_of(handle, KDAPL_MAP_POSTS);
    let stale = posts_offset_of(handle ^ (1 << 20), KDAPL_MAP_POSTS);
    let evd = posts_offset_of(end.recv.handle().0 ^ (1 << 21), KDAPL_MAP_POSTS);
    let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    let execute = libc::PROT_READ | libc::PROT_EXEC;
    let (shared, private) = (libc::MAP_SHARED, libc::MAP_PRIVATE);
    for (what, offset, length, protection, flags, errno) in [
        ("promise to write", promise, page, write, shared, libc::EACCES),
        ("promise to execute", promise, page, execute, shared, libc::EACCES),
        ("posts to execute", posts, 2 * page, execute, shared, libc::EACCES),
        ("promise, private", promise, page, read, private, libc::EINVAL),
        ("posts, private", posts, 2 * page, write, private, libc::EINVAL),
        ("too much promise", promise, 2 * page, read, shared, libc::EINVAL),
        ("too few posts", posts, page, write, shared, libc::EINVAL),
        ("too many posts", posts, 3 * page, write, shared, libc::EINVAL),
        ("a stale Endpoint", stale, 2 * page, write, shared, libc::ENXIO),
        ("no Endpoint", evd, 2 * page, write, shared, libc::ENXIO),
    ] {
        let error = map(device, offset, length, protection, flags).err();
        same(what, error.and_then(|error| error.raw_os_error()), Some(errno))?;
    }
    let mapped: Mapped = map(device, promise, page, read, shared)?;
    let error = protect(&mapped, write).err();
    same("mprotect", error.and_then(|error| error.raw_os_error()), Some(libc::EACCES))
}

fn scribbled(context: &Context) -> Result<()> {
    let (hostile, victim) =
        (Pair::new(context, Shape::default())?, Pair::new(context, Shape::default())?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let (stop, client) = (&stop, &hostile.client);
        let mut rng = context.rng();
        let mut mapped = MappedPosts::new(client.ia.device(), client.ep.handle().0)?;
        scope.spawn(move || {
            while !stop.load(Ordering::Acquire) {
                let words = std::array::from_fn(|_| rng.u64(..));
                let random = kdapl_mapped_dto {
                    operation: rng.u32(0..8),
                    flags: if rng.bool() { 0 } else { rng.u32(..) },
                    local: client.lmr.segment(0, rng.usize(0..100)),
                    reserved: words,
                    ..Default::default()
                };
                let promise = mapped.promise().unwrap_or(1);
                let _ = mapped.push(&random, promise);
                if rng.u32(0..8) == 0 {
                    mapped.set_tail(rng.u32(..));
                }
            }
        });
        scope.spawn(move || {
            while !stop.load(Ordering::Acquire) {
                // Any outcome is right, but each call ends.
                let _ = request_promise(client);
                let _ = client.request.dequeue();
                let _ = client.ep.status();
            }
        });
        let outcome = (0..context.count(500)).try_for_each(|cookie| {
            victim.server.receive(0, 64, cookie)?;
            victim.client.send(0, 64, cookie)?;
            done(&context.next(&victim.server.recv)?, DtoOperation::Receive, 64, cookie)?;
            done(&context.next(&victim.client.request)?, DtoOperation::Send, 64, cookie)
        });
        stop.store(true, Ordering::Release);
        outcome
    })?;
    Ok(hostile.client.ep.free()?)
}
