// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Processes that misuse mapped posts.

use super::{request_promise, tests};
use crate::context::Context;
use crate::end::{End, Pair, Shape};
use crate::expect::{done, same};
use crate::raw::{map, offset_of, posts_offset_of, protect, Mapped};
use anyhow::Result;
use fastrand::Rng;
use libkdapl::raw::MappedPosts;
use libkdapl::sys::*;
use libkdapl::{Close, DtoOperation};
use std::sync::atomic::{AtomicBool, Ordering};

tests! {
    rights, 20, "A process cannot write promises, map other lengths, or map an Endpoint that is gone";
    #[Transport]
    scribbled, 120, "A process that scribbles over every shared word under load harms only its own connections";
}

/// Size of a page in bytes.
const PAGE: usize = 4096;

fn rights(context: &Context) -> Result<()> {
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let (device, handle) = (end.ia.device(), end.ep.handle().0);
    let page = PAGE;
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

/// Returns a DTO that the kernel might post.
fn random_dto(rng: &mut Rng, client: &End) -> kdapl_mapped_dto {
    kdapl_mapped_dto {
        operation: rng.u32(0..8),
        flags: if rng.bool() { 0 } else { rng.u32(..) },
        local: client.lmr.segment(0, rng.usize(0..100)),
        reserved: std::array::from_fn(|_| rng.u64(..)),
        ..Default::default()
    }
}

/// Maps random DTOs, and writes random tails.
fn map_random(rng: &mut Rng, client: &End, mapped: &mut MappedPosts) {
    let promise = mapped.promise().unwrap_or(1);
    let _ = mapped.push(&random_dto(rng, client), promise);
    if rng.u32(0..8) == 0 {
        mapped.set_tail(rng.u32(..));
    }
}

/// Maps all words that the process may write: those of mapped posts, and of both EVDs' events.
fn writable(end: &End) -> Result<Vec<Mapped>> {
    let write = libc::PROT_READ | libc::PROT_WRITE;
    let device = end.ia.device();
    let index = |handle| offset_of(handle, KDAPL_MAP_INDEX);
    let areas = [
        (posts_offset_of(end.ep.handle().0, KDAPL_MAP_POSTS), 2 * PAGE),
        (index(end.request.handle().0), PAGE),
        (index(end.recv.handle().0), PAGE),
    ];
    let map = |(offset, length)| Ok(map(device, offset, length, write, libc::MAP_SHARED)?);
    areas.into_iter().map(map).collect()
}

/// Scribbles over the words of one connection until `stop`.
fn scribble(mut rng: Rng, mut other: Rng, client: &End, stop: &AtomicBool) -> Result<()> {
    let running = || !stop.load(Ordering::Acquire);
    let mut mapped = MappedPosts::new(client.ia.device(), client.ep.handle().0)?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while running() {
                map_random(&mut rng, client, &mut mapped);
            }
        });
        let words = scope.spawn(move || -> Result<()> {
            let areas = writable(client)?;
            while running() {
                let word = if other.bool() { other.u64(0..200) } else { other.u64(..) };
                other.choice(&areas).expect("it has some").write(other.usize(..), word);
            }
            Ok(())
        });
        while running() {
            // Any outcome is right, but each call ends.
            let _ = request_promise(client);
            let _ = client.send(0, 8, 1);
            let _ = client.request.dequeue();
            let _ = client.ep.status();
        }
        words.join().expect("it ends")
    })
}

fn scribbled(context: &Context) -> Result<()> {
    let victim = Pair::new(context, Shape::default())?;
    for _ in 0..context.count(20).max(2) {
        let hostile = Pair::new(context, Shape::default())?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let (client, stop) = (&hostile.client, &stop);
            let (rng, other) = (context.rng(), context.rng());
            let scribbler = scope.spawn(move || scribble(rng, other, client, stop));
            let outcome = (0..50).try_for_each(|cookie| {
                victim.server.receive(0, 64, cookie)?;
                victim.client.send(0, 64, cookie)?;
                done(&context.next(&victim.server.recv)?, DtoOperation::Receive, 64, cookie)?;
                done(&context.next(&victim.client.request)?, DtoOperation::Send, 64, cookie)
            });
            stop.store(true, Ordering::Release);
            outcome.and(scribbler.join().expect("it ends"))
        })?;
        hostile.client.ep.free()?;
        hostile.client.ia.close(Close::Abrupt)?;
    }
    Ok(())
}
