// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Remote Memory Regions: what peers may access, and when.

mod contexts;
mod frees;
mod ranges;
pub mod scene;

use self::contexts::{context_ends, context_ends_for_all, contexts_differ, used_behind_bind};
use self::frees::{
    closed_while_bound, freed_at_once, freed_behind_slow_request, freed_beside_bind,
    freed_with_full_evd, freed_with_stalled_bind,
};
use self::ranges::{flags, ranges};
use self::scene::{bound, part, Scene, BOTH};
use super::tests;
use crate::context::Context;
use crate::end::Pair;
use crate::expect::{connection, done, refused, refused_as, same};
use crate::fork::{end_of, fork};
use anyhow::{bail, ensure, Result};
use libkdapl::{
    Buffer, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, EpState, Event, Privileges,
    RmrBinding, Segment, Subtype, Type,
};
use std::time::Duration;

tests! {
    #[Transport]
    bind, 60, "A peer reads and writes a part of an LMR through the context of a bound RMR";
    #[Transport]
    protection, 240, "A peer can access a bound RMR as its privileges say, not one byte beyond";
    #[Transport]
    ranges, 60, "A peer writes and reads the bytes that an RMR is bound to, one or all or any of an LMR, and no others";
    #[Transport]
    flags, 60, "A suppressed bind has no event unless it fails, and a fenced one follows the RDMA read before it";
    #[Transport]
    context_ends, 120, "After an unbind, another bind, a free or a close the old context is invalid";
    #[Transport]
    context_ends_for_all, 120, "An old context is refused to peers of the same PZ, of another one and of another adapter, and no byte moves";
    #[Transport]
    contexts_differ, 60, "Each of many binds has another context than all that are live, over soft-RoCE than all before";
    #[Transport]
    used_behind_bind, 60, "A message behind a bind, which has not completed, tells the peer a context that it may use at once";
    #[Transport]
    remote_invalidate, 60, "A peer's send invalidates an RMR, and the event of the receive has its context";
    #[Transport]
    order, 60, "Binds complete in the order of the requests, each with its cookie";
    without_slot, 60, "A bind finds room in a queue that is full of suppressed requests";
    query, 30, "A query returns the segment that an RMR is bound to";
    refused_bind, 60, "A bind that is not allowed is refused with its own code";
    in_use, 30, "An LMR and a PZ with an RMR cannot be freed before the RMR";
    #[Transport]
    disconnected, 60, "A bind on a disconnected endpoint is flushed, and grants nothing";
    #[Transport]
    unbound_after_end, 60, "An unbind on a disconnected endpoint is flushed, and ends the bind";
    #[Transport]
    freed_at_once, 60, "An RMR that is freed while its bind is in the queue grants nothing";
    #[Transport]
    freed_beside_bind, 60, "A bind beside a free of its RMR completes or is refused, and leaves no use of the LMR";
    #[Transport]
    freed_with_stalled_bind, 60, "Freeing an RMR whose bind a peer stalls makes its context invalid at once, and breaks the connection if necessary";
    freed_behind_slow_request, 60, "An RMR whose bind a peer delays is freed, and the connection stays";
    #[Transport]
    freed_with_full_evd, 60, "An RMR is freed while the completion of its bind waits for a full EVD";
    closed_while_bound, 60, "An adapter with bound RMRs, and with binds in the queue, can be closed";
    #[Transport]
    of_another_process, 60, "A process that has inherited an LMR cannot open its own memory in its place";
    largest, 60, "An RMR of the largest size can be bound, and a longer one is refused";
}

fn bind(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let segment = scene.bind(context, BOTH)?;
    scene.access(context, false, segment, true)?;
    scene.access(context, true, segment, true)
}

fn protection(context: &Context) -> Result<()> {
    let (read, write) = (Privileges::REMOTE_READ, Privileges::REMOTE_WRITE);
    for (privileges, may_read, may_write) in
        [(read, true, false), (write, false, true), (Privileges(0), false, false)]
    {
        for (is_write, allowed) in [(false, may_read), (true, may_write)] {
            let scene = Scene::new(context)?;
            let segment = scene.bind(context, privileges)?;
            scene.access(context, is_write, segment, allowed)?;
        }
    }
    let outside: [fn(&mut Segment); 4] = [
        |segment| segment.address -= 1,
        |segment| segment.address += 1,
        |segment| segment.length += 1,
        |segment| segment.context ^= 0x100,
    ];
    for change in outside {
        for is_write in [false, true] {
            let scene = Scene::new(context)?;
            let mut segment = scene.bind(context, BOTH)?;
            change(&mut segment);
            scene.access(context, is_write, segment, false)?;
        }
    }
    Ok(())
}

fn remote_invalidate(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    let segment = scene.bind(context, BOTH)?;
    scene.access(context, true, segment, true)?;
    server.receive(0, 64, 3)?;
    let message = [client.lmr.segment(0, 64)];
    let flags = CompletionFlags::default();
    client.ep.post_send_with_invalidate(&message, segment.context, 4, flags)?;
    done(&context.next(&client.request)?, DtoOperation::Send, 64, 4)?;
    match context.next(&server.recv)? {
        Event::Dto(dto) => {
            same("operation", dto.operation, DtoOperation::ReceiveWithInvalidate)?;
            same("context", dto.rmr_context, segment.context)?;
            same("length", dto.length, 64)?;
        }
        other => bail!("expected a receive, got {other}"),
    }
    let again = scene.bind(context, BOTH)?;
    scene.access(context, true, again, true)?;
    scene.access(context, true, segment, false)
}

fn order(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (client, server) = (&scene.pair.client, &scene.pair.server);
    for cookie in 0..3 {
        client.receive(0, 64, cookie)?;
    }
    let flags = CompletionFlags::default();
    let part = part(&scene.lmr, 0, 100, BOTH);
    for round in 0..context.count(50) {
        let first = 5 * round;
        scene.rmr.bind(&server.ep, &part, first, flags)?;
        server.send(0, 64, first + 1)?;
        scene.rmr.bind(&server.ep, &part, first + 2, flags)?;
        server.send(0, 64, first + 3)?;
        scene.rmr.unbind(&server.ep, first + 4, flags)?;
        for cookie in first..first + 5 {
            if cookie % 5 != 1 && cookie % 5 != 3 {
                bound(context, server, &scene.rmr, cookie)?;
            } else {
                done(&context.next(&server.request)?, DtoOperation::Send, 64, cookie)?;
                context.next(&client.recv)?;
                client.receive(0, 64, 0)?;
            }
        }
    }
    Ok(())
}

fn without_slot(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (server, client) = (&scene.pair.server, &scene.pair.client);
    let local = server.lmr.segment(0, 8);
    let requests = u64::from(server.ep.query()?.raw.attr.max_request_dtos);
    for _ in 0..context.count(50) {
        let mark = context.rng().u64(1..).to_le_bytes();
        server.lmr.buffer().write(0, &mark);
        for cookie in 1..=requests {
            // The last one has a place of its own.
            let place = client.lmr.remote_segment(if cookie == requests { 0 } else { 64 }, 8);
            server.ep.post_rdma_write(&[local], place, cookie, CompletionFlags::SUPPRESS)?;
        }
        context.until("the last write arrives", || Ok(client.lmr.buffer().to_vec(0, 8) == mark))?;
        // The acknowledgement of the last one follows.
        std::thread::sleep(Duration::from_millis(20));
        scene.bind(context, BOTH)?;
    }
    Ok(())
}

fn query(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let unbound = scene.rmr.query()?;
    same("PZ", unbound.pz, scene.pair.server.pz.handle().0)?;
    same("LMR and context", (unbound.lmr, unbound.rmr_context), (0, 0))?;
    let segment = scene.bind(context, Privileges::REMOTE_READ)?;
    let query = scene.rmr.query()?;
    same("LMR", query.lmr, scene.lmr.handle().0)?;
    same("context", query.rmr_context, segment.context)?;
    same("address", query.segment.address, segment.address)?;
    same("length", query.segment.length, 1000)?;
    same("privileges", query.privileges, Privileges::REMOTE_READ.0)?;
    scene.rmr.unbind(&scene.pair.server.ep, 8, CompletionFlags::default())?;
    bound(context, &scene.pair.server, &scene.rmr, 8)?;
    same("LMR after the unbind", scene.rmr.query()?.lmr, 0)
}

fn refused_bind(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    let flags = CompletionFlags::default();
    let part = part(&scene.lmr, 0, 100, BOTH);
    let unconnected = server.another_ep()?;
    let state = Subtype::INVALID_STATE_EP_UNCONNECTED;
    refused_as(scene.rmr.bind(&unconnected, &part, 1, flags), Type::INVALID_STATE, state)?;
    refused_as(scene.rmr.unbind(&unconnected, 1, flags), Type::INVALID_STATE, state)?;
    for privileges in [Privileges::LOCAL_READ, Privileges(1 << 20)] {
        let part = RmrBinding { privileges, ..part };
        let argument = Subtype::INVALID_ARG4;
        refused_as(scene.rmr.bind(&server.ep, &part, 1, flags), Type::INVALID_PARAMETER, argument)?;
    }
    let solicited = CompletionFlags::SOLICITED_WAIT;
    let argument = Subtype::INVALID_ARG8;
    refused_as(scene.rmr.bind(&server.ep, &part, 1, solicited), Type::INVALID_PARAMETER, argument)?;
    let start = part.segment.address;
    for (offset, length) in [(16 << 10, 1), (16_000, 385), (0, (16 << 10) + 1)] {
        let segment = Segment { address: start + offset, length, ..part.segment };
        let part = RmrBinding { segment, ..part };
        refused(scene.rmr.bind(&server.ep, &part, 1, flags), Type::PROTECTION_VIOLATION)?;
    }
    other_zone(&scene)?;
    missing_right(&scene)?;
    ensure!(server.ep.status()?.request_idle, "a bind was posted");
    same("LMR", scene.rmr.query()?.lmr, 0)
}

/// Checks that a bind needs an RMR, an LMR and an endpoint of one zone.
fn other_zone(scene: &Scene) -> Result<()> {
    let server = &scene.pair.server;
    let flags = CompletionFlags::default();
    let zone = server.ia.create_pz()?;
    let (elsewhere, region) = (
        server.ia.create_rmr(&zone)?,
        server.ia.register(&zone, Buffer::new(4096)?, Privileges::ALL)?,
    );
    let inside = part(&scene.lmr, 0, 100, BOTH);
    let outside = part(&region, 0, 100, BOTH);
    for (rmr, part) in [(&elsewhere, &inside), (&elsewhere, &outside), (&scene.rmr, &outside)] {
        refused(rmr.bind(&server.ep, part, 1, flags), Type::PROTECTION_VIOLATION)?;
    }
    refused(elsewhere.unbind(&server.ep, 1, flags), Type::PROTECTION_VIOLATION)
}

/// Checks that peers get no privilege that the LMR lacks for its own side.
fn missing_right(scene: &Scene) -> Result<()> {
    let server = &scene.pair.server;
    for (local, privileges, subtype) in [
        (Privileges::LOCAL_READ, Privileges::REMOTE_WRITE, Subtype::PRIVILEGES_RDMA_WRITE),
        (Privileges::LOCAL_WRITE, Privileges::REMOTE_READ, Subtype::PRIVILEGES_RDMA_READ),
    ] {
        let lmr = server.ia.register(&server.pz, Buffer::new(4096)?, local)?;
        let part = part(&lmr, 0, 100, privileges);
        let bind = scene.rmr.bind(&server.ep, &part, 1, CompletionFlags::default());
        refused_as(bind, Type::PRIVILEGES_VIOLATION, subtype)?;
    }
    Ok(())
}

fn in_use(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let zone = scene.pair.server.ia.create_pz()?;
    let rmr = scene.pair.server.ia.create_rmr(&zone)?;
    refused_as(zone.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_PZ_IN_USE)?;
    rmr.free()?;
    zone.free()?;
    scene.bind(context, BOTH)?;
    refused_as(scene.lmr.free(), Type::INVALID_STATE, Subtype::INVALID_STATE_LMR_IN_USE)?;
    scene.rmr.free()?;
    Ok(scene.lmr.free()?)
}

fn disconnected(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    server.ep.disconnect(libkdapl::Close::Abrupt)?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
    same("state", server.ep.query()?.state, EpState::Disconnected)?;
    let part = part(&scene.lmr, 0, 100, BOTH);
    let bound = scene.rmr.bind(&server.ep, &part, 5, CompletionFlags::default())?;
    same("context", bound.context, 0)?;
    match context.next(&server.request)? {
        Event::RmrBind { cookie: 5, status: DtoStatus::Flushed, .. } => {}
        other => bail!("expected a flushed bind, got {other}"),
    }
    same("LMR", scene.rmr.query()?.lmr, 0)
}

/// The unbind is flushed at once. The bind was made on another endpoint, whose connection stays.
fn unbound_after_end(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let segment = scene.bind(context, BOTH)?;
    let Pair { client, server, listener } = &scene.pair;
    let (caller, ended) = (client.another_ep()?, server.another_ep()?);
    caller.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&ended, &[])?;
    for end in [client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    ended.disconnect(libkdapl::Close::Abrupt)?;
    for end in [client, server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
    }
    scene.rmr.unbind(&ended, 9, CompletionFlags::default())?;
    match context.next(&server.request)? {
        Event::RmrBind { cookie: 9, status: DtoStatus::Flushed, .. } => {}
        other => bail!("expected a flushed unbind, got {other}"),
    }
    same("LMR", scene.rmr.query()?.lmr, 0)?;
    scene.access(context, true, segment, false)
}

fn largest(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let server = &scene.pair.server;
    // Both soft-RoCE (512) and siw (256) bind fewer pages than this region has.
    let lmr = server.ia.register(&server.pz, Buffer::new(4 << 20)?, Privileges::ALL)?;
    let pages = if context.server.is_iwarp() { 256 } else { 512 };
    let flags = CompletionFlags::default();
    let part = part(&lmr, 4096, pages * 4096, BOTH);
    scene.rmr.bind(&server.ep, &part, 1, flags)?;
    bound(context, server, &scene.rmr, 1)?;
    let longer = self::part(&lmr, 4096, pages * 4096 + 1, BOTH);
    refused(scene.rmr.bind(&server.ep, &longer, 2, flags), Type::LENGTH_ERROR)?;
    same("LMR", scene.rmr.query()?.lmr, lmr.handle().0)
}

/// A child has a copy of the memory at the same addresses, and the handles of its parent.
fn of_another_process(context: &Context) -> Result<()> {
    let scene = Scene::new(context)?;
    let (server, flags) = (&scene.pair.server, CompletionFlags::default());
    let bind = || {
        scene.lmr.buffer().fill(0, 16 << 10, 0x33);
        scene.rmr.bind(&server.ep, &part(&scene.lmr, 0, 16, BOTH), 5, flags)
    };
    let child = fork(|| refused(bind(), Type::INVALID_ADDRESS))?;
    same("status of the child", end_of(child)?, 0)?;
    let segment = scene.bind(context, BOTH)?;
    scene.access(context, false, segment, true)?;
    // The memory of the parent is pinned now, and the child may open a part of it.
    let child = fork(|| bind().map(drop).map_err(Into::into))?;
    same("status of the child", end_of(child)?, 0)?;
    bound(context, server, &scene.rmr, 5)?;
    let again = scene.bind(context, BOTH)?;
    scene.access(context, false, again, true)
}
