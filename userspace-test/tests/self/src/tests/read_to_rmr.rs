// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! RDMA reads into memory that RMRs are bound to.

use super::rmr::scene::{bound, part, Scene, BOTH};
use super::tests;
use crate::context::Context;
use crate::expect::{connection, done, refused, refused_as};
use anyhow::{bail, ensure, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event, Privileges, Segment,
    Subtype, Type,
};

const NO_FLAGS: CompletionFlags = CompletionFlags(0);

tests! {
    #[Transport]
    reads, 60, "An RDMA read stores the peer's bytes in the memory that an RMR is bound to";
    #[Transport]
    follows_bind, 60, "A read that follows its bind in the queue needs no completion of the bind";
    #[Transport]
    bounds, 60, "A read is refused one byte outside either end of the part";
    contexts, 60, "A read is refused without a context that an RMR of its PZ is bound with";
    #[Transport]
    privileges, 60, "A read is refused into an RMR that is bound without the right to write";
    disconnected, 60, "A read into an RMR on a disconnected endpoint is flushed";
}

/// Fills the client's memory, and returns it for the server to read.
fn source(scene: &Scene, byte: u8, length: usize) -> Segment {
    let client = &scene.pair.client;
    client.lmr.buffer().fill(0, 4096, byte);
    client.lmr.remote_segment(0, length)
}

/// Returns a part of `segment`.
fn slice(segment: Segment, offset: u64, length: u32) -> Segment {
    Segment { address: segment.address + offset, length, ..segment }
}

fn reads(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let segment = scene.bind(context, BOTH)?;
    for (round, (offset, length)) in [(0, 1000), (0, 1), (999, 1), (400, 500)].iter().enumerate() {
        let buffer = scene.lmr.buffer();
        buffer.fill(0, 16 << 10, 0x55);
        let byte = 0x90 + round as u8;
        let remote = source(&scene, byte, *length as usize);
        let local = slice(segment, *offset, *length);
        server.ep.post_rdma_read_to_rmr(local, remote, 5, NO_FLAGS)?;
        done(&context.next(&server.request)?, DtoOperation::RdmaRead, u64::from(*length), 5)?;
        let start = (local.address - buffer.address(0)) as usize;
        let end = start + *length as usize;
        let memory = buffer.to_vec(0, 16 << 10);
        for (place, found) in memory.iter().enumerate() {
            let expected = if (start..end).contains(&place) { byte } else { 0x55 };
            ensure!(*found == expected, "byte {place} is {found:#x} instead of {expected:#x}");
        }
    }
    Ok(())
}

fn follows_bind(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    for round in 0..context.count(30) {
        let byte = round as u8 | 1;
        let part = part(&scene.lmr, 0, 64, BOTH);
        let local = scene.rmr.bind(&server.ep, &part, 1, NO_FLAGS)?;
        let remote = source(&scene, byte, 64);
        server.ep.post_rdma_read_to_rmr(local, remote, 2, NO_FLAGS)?;
        bound(context, server, &scene.rmr, 1)?;
        done(&context.next(&server.request)?, DtoOperation::RdmaRead, 64, 2)?;
        ensure!(scene.lmr.buffer().to_vec(0, 64) == [byte; 64], "round {round}: other bytes");
    }
    Ok(())
}

/// Checks that a read into `local` is PROTECTION_VIOLATION.
fn violates(scene: &Scene, local: Segment) -> Result<()> {
    let remote = source(scene, 1, 64);
    let result = scene.pair.server.ep.post_rdma_read_to_rmr(local, remote, 1, NO_FLAGS);
    refused_as(result, Type::PROTECTION_VIOLATION, Subtype::PROTECTION_WRITE)
}

fn bounds(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let segment = scene.bind(context, BOTH)?;
    violates(&scene, Segment { address: segment.address - 1, length: 2, ..segment })?;
    violates(&scene, slice(segment, 999, 2))?;
    violates(&scene, slice(segment, 1000, 1))?;
    violates(&scene, Segment { address: u64::MAX, length: 2, ..segment })?;
    // The connection is as before.
    scene.access(context, true, segment, true)
}

fn contexts(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    // The context of an LMR, also of one that peers can access.
    violates(&scene, scene.lmr.segment(0, 64))?;
    violates(&scene, server.lmr.remote_segment(0, 64))?;
    let old = scene.bind(context, BOTH)?;
    violates(&scene, Segment { context: old.context ^ 0x100, length: 64, ..old })?;
    let new = scene.bind(context, BOTH)?;
    violates(&scene, slice(old, 0, 64))?;
    scene.rmr.unbind(&server.ep, 8, NO_FLAGS)?;
    bound(context, server, &scene.rmr, 8)?;
    violates(&scene, slice(new, 0, 64))?;
    let last = scene.bind(context, BOTH)?;
    // An Endpoint of another Protection Zone.
    let client = &scene.pair.client;
    let result = client.ep.post_rdma_read_to_rmr(slice(last, 0, 64), last, 1, NO_FLAGS);
    refused_as(result, Type::PROTECTION_VIOLATION, Subtype::PROTECTION_WRITE)?;
    scene.rmr.free()?;
    violates(&scene, slice(last, 0, 64))
}

fn privileges(context: &Context) -> Result<()> {
    for privileges in [Privileges::REMOTE_READ, Privileges(0)] {
        let scene = Scene::new(context)?;
        let server = &scene.pair.server;
        let local = scene.bind(context, privileges)?;
        let remote = source(&scene, 1, 1000);
        let result = server.ep.post_rdma_read_to_rmr(local, remote, 1, NO_FLAGS);
        refused_as(result, Type::PRIVILEGES_VIOLATION, Subtype::PRIVILEGES_WRITE)?;
        ensure!(scene.lmr.buffer().to_vec(3601, 1000) == [0x55; 1000], "bytes were stored");
    }
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let local = scene.bind(context, Privileges::REMOTE_WRITE)?;
    server.ep.post_rdma_read_to_rmr(local, source(&scene, 2, 1000), 1, NO_FLAGS)?;
    done(&context.next(&server.request)?, DtoOperation::RdmaRead, 1000, 1)?;
    let short = scene.pair.client.lmr.remote_segment(0, 999);
    let result = server.ep.post_rdma_read_to_rmr(local, short, 1, NO_FLAGS);
    refused(result, Type::LENGTH_ERROR)
}

fn disconnected(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let local = scene.bind(context, BOTH)?;
    let remote = source(&scene, 1, 1000);
    server.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    server.ep.post_rdma_read_to_rmr(local, remote, 5, NO_FLAGS)?;
    match context.next(&server.request)? {
        Event::Dto(dto)
            if (dto.cookie, dto.operation, dto.status)
                == (5, DtoOperation::RdmaRead, DtoStatus::Flushed) =>
        {
            Ok(())
        }
        other => bail!("expected a flushed read, got {other}"),
    }
}
