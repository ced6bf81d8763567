// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! All completions of a queue pair are polled before it is destroyed.
//!
//! A driver may discard the completions of a destroyed queue pair, or use the queue pair when it
//! polls one. soft-RoCE does neither. `kdapl_disguise` counts such completions, and discards them.

use super::ep_races::{ep_on, post};
use super::evd_full::{flush_and_reset, flushed, no_room};
use super::kernel::Loaded;
use super::srq_traffic::{send, Server};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{ended, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoStatus, EvdFlags, Event};

tests! {
    freed_with_receives, 120, "An endpoint is freed with receives in its queue, and none completes late";
    freed_with_full_evd, 120, "An endpoint is freed with many completions on a full EVD, and none is polled late";
    closed, 120, "An adapter is closed while its endpoints have receives, and none completes late";
    #[Long]
    queue_pair_is_kept, 120, "A queue pair that its driver uses in late polls is destroyed after the last poll, if its device does not answer";
    reset_with_full_evd, 120, "An endpoint of such a driver is reset as often as the consumer takes the events, and no queue pair is kept";
    shared_receives_come_back, 120, "The receives that a freed endpoint has taken from an SRQ can be posted again";
}

fn disguise(context: &Context) -> Result<Loaded> {
    Loaded::new("kdapl_disguise", &format!("device={}", context.server.device))
}

fn freed_with_receives(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    for _ in 0..context.count(20) {
        let Pair { client, server, .. } = Pair::new(context, Shape::default())?;
        (0..16).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        server.ep.free()?;
        ended(context, &context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
        same("late completions", disguise.parameter("late")?, 0)?;
    }
    disguise.unload()
}

fn freed_with_full_evd(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    let server = Server::new(context, 300, 4)?;
    let ep = server.ep()?;
    let client = server.client(context, &context.open()?, &ep)?;
    server.post(0..300)?;
    for _ in 0..200 {
        send(context, &client)?;
    }
    // The ring has room for four of them.
    same("outstanding", server.srq.query()?.outstanding, 300)?;
    ep.free()?;
    while server.recv.dequeue().is_ok() {}
    same("late completions", disguise.parameter("late")?, 0)?;
    // Those in the ring were taken by nobody.
    same("available", server.srq.query()?.available, 100)?;
    server.post(0..200)?;
    disguise.unload()
}

fn closed(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    let (client_ia, server_ia) = context.open_both()?;
    let listener = Listener::new(context, &server_ia)?;
    let shape = Shape::default();
    let server = End::new(&server_ia, shape)?;
    let mut clients = Vec::new();
    for _ in 0..8 {
        let ep = server.another_ep()?;
        let client = End::new(&client_ia, shape)?;
        let patience = Some(context.patience());
        client.ep.connect(context.server_address(), listener.port, patience, &[])?;
        listener.request(context)?.accept(&ep, &[])?;
        context.next(&client.connect)?;
        context.next(&server.connect)?;
        for cookie in 0..8 {
            let segment = [server.lmr.segment(0, 64)];
            ep.post_recv(&segment, cookie, Default::default())?;
        }
        std::mem::forget(ep);
        clients.push(client);
    }
    server_ia.close(Close::Abrupt)?;
    for client in &clients {
        ended(context, &context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    }
    same("late completions", disguise.parameter("late")?, 0)?;
    drop((clients, client_ia));
    disguise.unload()
}

/// `RDMA_DRIVER_MLX5` and `RDMA_DRIVER_QEDR`.
const MLX5: u32 = 1;
const QEDR: u32 = 11;

fn queue_pair_is_kept(context: &Context) -> Result<()> {
    context.packets_find_disguised()?;
    for (driver, is_kept) in [(QEDR, true), (MLX5, false)] {
        let parameters = format!("device={} driver_id={driver}", context.server.device);
        let disguise = Loaded::new("kdapl_disguise", &parameters)?;
        let Pair { client, server, listener } = Pair::new(context, Shape::default())?;
        (0..16).try_for_each(|cookie| server.receive(0, 64, cookie))?;
        let before = disguise.parameter("destroyed")?;
        disguise.set("hides", 1)?;
        let result = server.ep.free();
        let destroyed = disguise.parameter("destroyed")? - before;
        disguise.set("hides", 0)?;
        result?;
        same("queue pairs that were destroyed at once", destroyed, u64::from(!is_kept))?;
        server.ia.close(Close::Abrupt)?;
        let late = disguise.parameter("late")?;
        ensure!(!is_kept || late == 0, "{late} late completions");
        same("queue pairs that were destroyed", disguise.parameter("destroyed")? - before, 1)?;
        drop((client, server, listener));
        disguise.unload()?;
    }
    Ok(())
}

/// The flushed receives have been polled, though the EVD has no room for their events.
fn reset_with_full_evd(context: &Context) -> Result<()> {
    const RECEIVES: u64 = 4;
    // Several times as many as lives that are told apart.
    const RESETS: u64 = 64;
    let parameters = format!("device={} driver_id={QEDR}", context.client.device);
    let disguise = Loaded::new("kdapl_disguise", &parameters)?;
    let end = End::new(&context.open()?, Shape::default())?;
    let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
    let ep = ep_on(&end, &recv, RECEIVES as u32)?;
    let before = disguise.parameter("destroyed")?;
    for number in 0..RESETS {
        post(&end, &ep, 0..RECEIVES)?;
        match flush_and_reset(&ep) {
            Ok(()) => {}
            Err(error) if no_room(&error) => {
                flushed(&recv)?;
                ep.reset().with_context(|| format!("events were taken, reset {number}"))?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    same("queue pairs that were destroyed", disguise.parameter("destroyed")? - before, RESETS)?;
    same("late completions", disguise.parameter("late")?, 0)?;
    drop((ep, recv, end));
    disguise.unload()
}

fn shared_receives_come_back(context: &Context) -> Result<()> {
    let disguise = disguise(context)?;
    disguise.set("discards", 1)?;
    let server = Server::new(context, 8, 16)?;
    let ia = context.open()?;
    let eps = [server.ep()?, server.ep()?];
    let clients = [server.client(context, &ia, &eps[0])?, server.client(context, &ia, &eps[1])?];
    server.post(0..8)?;
    for number in 0..8 {
        send(context, &clients[number % 2])?;
    }
    let [freed, other] = eps;
    let freed_handle = freed.handle();
    freed.free()?;
    server.post(8..12)?;
    let mut taken = 0;
    while let Ok((Event::Dto(dto), _)) = server.recv.dequeue() {
        // The adapter drains its EVDs twice a second. It may have queued events before the free.
        if dto.ep != freed_handle {
            same(
                "endpoint and status",
                (dto.ep, dto.status),
                (other.handle(), DtoStatus::Success),
            )?;
            taken += 1;
        }
    }
    same("messages of the other endpoint", taken, 4)?;
    server.post(12..16)?;
    same("available", server.srq.query()?.available, 8)?;
    send(context, &clients[1])?;
    server.takes(context, &other, 8)?;
    disguise.unload()
}
