// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Endpoints whose events are not taken: completions stay in the CQ of a full EVD, even if their
//! endpoint is reset or freed.

use super::connect::ends;
use super::device_removal::catastrophic;
use super::ep_races::{ep_on, post};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, dto, empty, refused_as, same};
use crate::harness::skip;
use crate::machine::DeviceGuard;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Ep, EpAttr, EpChange,
    EpState, Error, Evd, EvdFlags, Event, Subtype, Type,
};
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

tests! {
    cq_never_overflows, 120,
        "Endpoints flushed and reset with a full EVD are refused before its CQ overflows";
    old_completions_are_recognised, 120,
        "However often an endpoint is reset, an old flushed receive is never taken for a new one";
    move_to_another_evd, 60,
        "An endpoint moves with its receives to any EVD, unless old completions are left there";
    reset_leaves_room, 60, "Receives flushed by a reset leave room on the EVD for connection events";
    freed_endpoints_release_entries, 60,
        "CQ entries of freed endpoints are released after the events of a full EVD are taken";
    early_messages_find_room, 120, "Messages that arrive before the connection is reported find room on a short EVD";
}

tests! {
    REMOVAL:
    device_removal, 120, "Removing a device under 64 endpoints with full EVDs waits for none of them";
    device_removal_with_one_evd, 60,
        "Removing a device breaks a connection whose events follow those of many receives";
}

/// Minimum number of completions that an EVD of length 1 has room for.
const MIN_CQ_ENTRIES: u64 = 1024;

pub fn no_room(error: &Error) -> bool {
    error.kind() == Some(Type::INSUFFICIENT_RESOURCES)
}

/// Takes all events of an EVD, which must be flushed receives. Returns their cookies.
pub fn flushed(evd: &Evd) -> Result<Vec<u64>> {
    let mut cookies = Vec::new();
    loop {
        match evd.dequeue() {
            Ok((Event::Dto(dto), _)) if dto.status == DtoStatus::Flushed => {
                cookies.push(dto.cookie)
            }
            Ok((other, _)) => bail!("expected a flushed receive, got {other}"),
            Err(error) if error.is_empty() => return Ok(cookies),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Checks that each of these receives is reported at most once, and no other.
fn distinct(cookies: &[u64], posted: u64) -> Result<()> {
    let set: HashSet<_> = cookies.iter().collect();
    ensure!(set.len() == cookies.len(), "a receive was reported twice: {cookies:?}");
    ensure!(
        cookies.iter().all(|cookie| *cookie < posted),
        "a receive that was not posted: {cookies:?}"
    );
    Ok(())
}

pub fn no_overflow(end: &End) -> Result<()> {
    empty(end.ia.async_evd())
}

pub fn flush_and_reset(ep: &Ep) -> Result<(), Error> {
    ep.disconnect(Close::Abrupt)?;
    ep.reset()
}

fn cq_never_overflows(context: &Context) -> Result<()> {
    const RECEIVES: u64 = 400;
    let end = End::new(&context.open()?, Shape::default())?;
    let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
    let ep = ep_on(&end, &recv, RECEIVES as u32)?;
    let mut posted = 0;
    for time in 0..3 {
        let error = 'refused: {
            // More than any CQ of that EVD can hold.
            for _ in 0..20 * MIN_CQ_ENTRIES / RECEIVES {
                // Posts within the endpoint's limits always find room.
                post(&end, &ep, posted..posted + RECEIVES)?;
                posted += RECEIVES;
                if let Err(error) = flush_and_reset(&ep) {
                    break 'refused error;
                }
            }
            bail!("no reset was refused");
        };
        ensure!(no_room(&error), "{error}");
        ensure!(posted >= MIN_CQ_ENTRIES - RECEIVES || time > 0, "refused after {posted} receives");
        same("completion queues", recv.query()?.cqs, 1)?;
        // The ring keeps its events. The other DTOs were given up.
        distinct(&flushed(&recv)?, posted)?;
        no_overflow(&end)?;
        ep.reset().context("after the events were taken")?;
        distinct(&flushed(&recv)?, posted)?;
    }
    Ok(())
}

fn old_completions_are_recognised(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
    let ep = ep_on(&end, &recv, 1)?;
    let (mut posted, mut refusals) = (0, 0);
    let mut seen = Vec::new();
    while refusals < 3 {
        ensure!(posted < 2000, "a reset was never refused");
        post(&end, &ep, posted..posted + 1)?;
        posted += 1;
        ep.disconnect(Close::Abrupt)?;
        // A full EVD does not delay the reset until soft-RoCE has flushed the receive. Only a
        // flushed receive leaves a completion, and a refusal needs a series of them.
        thread::sleep(Duration::from_micros(posted * 10));
        match ep.reset() {
            Ok(()) => {}
            Err(error) if no_room(&error) => {
                refusals += 1;
                seen.extend(flushed(&recv)?);
                ep.reset().context("after the events were taken")?;
                // No completion of an old receive is taken for that of the new one.
                post(&end, &ep, posted..posted + 1)?;
                posted += 1;
                seen.extend(flushed(&recv)?);
                distinct(&seen, posted - 1)?;
                same("receives", ep.status()?.recv_outstanding, 1)?;
                flush_and_reset(&ep)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    no_overflow(&end)
}

fn move_to_another_evd(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let (one, two) = (end.ia.create_evd(EvdFlags::DTO, 1)?, end.ia.create_evd(EvdFlags::DTO, 1)?);
    let most = (MIN_CQ_ENTRIES * 3 / 4) as u32;
    let ep = ep_on(&end, &one, most)?;
    post(&end, &ep, 0..most.into())?;
    // Twice as many would not fit into its CQ.
    let change = |evd| EpChange::new().recv(evd);
    ep.modify(change(&one)).context("to its present EVD")?;
    ep.modify(change(&two)).context("to the other EVD")?;
    let other = ep_on(&end, &one, most)?;
    post(&end, &other, 0..most.into()).context("the first EVD is empty again")?;
    same("completion queues", (one.query()?.cqs, two.query()?.cqs), (1, 1))?;
    ep.modify(change(&one)).context("to an EVD that needs another CQ")?;
    same("completion queues", (one.query()?.cqs, two.query()?.cqs), (2, 1))?;
    ep.modify(change(&two)).context("back again")?;
    // An endpoint with completions of an earlier life cannot leave its EVD.
    flush_and_reset(&other)?;
    let left = other.modify(change(&two));
    refused_as(left, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEVD)?;
    flushed(&one)?;
    other.modify(change(&two)).context("after the events were taken")?;
    Ok(())
}

/// Creates an EVD for all events, and an endpoint with posted receives.
fn merged(end: &End, qlen: i32) -> Result<(Evd, Ep)> {
    let all = end.ia.create_evd(EvdFlags::DTO | EvdFlags::CONNECTION, qlen)?;
    let attr = EpAttr { max_recv_dtos: 64, ..Default::default() };
    let ep = end.ia.create_ep(&end.pz, &all, &all, &all, Some(attr))?;
    post(end, &ep, 0..64)?;
    Ok((all, ep))
}

fn reset_leaves_room(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let listener = Listener::new(context, &server_ia)?;
    let (all, ep) = merged(&client, 8)?;
    flush_and_reset(&ep)?;
    // The flushed receives stay until the consumer takes them.
    let other = client.ia.create_ep(&client.pz, &client.recv, &client.request, &all, None)?;
    other.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    connection(&context.next(&server.connect)?, ConnectionEvent::Established)?;
    context.until("connected", || Ok(other.status()?.state == EpState::Connected))?;
    no_overflow(&client)?;
    let mut receives = 0;
    loop {
        match context.next(&all)? {
            Event::Dto(_) => receives += 1,
            event => return connection(&event, ConnectionEvent::Established),
        }
        ensure!(receives < 64, "an EVD of length 8 reported all receives");
    }
}

fn freed_endpoints_release_entries(context: &Context) -> Result<()> {
    let end = End::new(&context.open()?, Shape::default())?;
    let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
    for round in 0..20 {
        let ep = ep_on(&end, &recv, (MIN_CQ_ENTRIES / 2) as u32)?;
        post(&end, &ep, 0..MIN_CQ_ENTRIES / 2).with_context(|| format!("round {round}"))?;
        ep.disconnect(Close::Abrupt)?;
        ep.free()?;
        if round % 2 == 1 {
            flushed(&recv)?;
        }
    }
    no_overflow(&end)
}

fn device_removal_with_one_evd(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let (client_ia, server_ia) = context.open_both()?;
    let client = End::new(&client_ia, Shape::default())?;
    let server = End::new(&server_ia, Shape::default())?;
    let listener = Listener::new(context, &server_ia)?;
    let (all, ep) = merged(&client, 4)?;
    ep.connect(context.server_address(), listener.port, Some(context.patience()), &[])?;
    listener.request(context)?.accept(&server.ep, &[])?;
    connection(&context.next(&all)?, ConnectionEvent::Established)?;
    guard.delete()?;
    let mut receives = 0;
    while let Event::Dto(dto) = context.next(&all).context("BROKEN is missing")? {
        same("status", dto.status, DtoStatus::Flushed)?;
        receives += 1;
    }
    ensure!((1..64).contains(&receives), "an EVD of length 4 reported {receives} receives");
    drop((all, ep, listener, client, server));
    guard.add()
}

fn device_removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let end = End::new(&context.open()?, Shape::default())?;
    let mut eps = Vec::new();
    for _ in 0..64 {
        let recv = end.ia.create_evd(EvdFlags::DTO, 1)?;
        let ep = ep_on(&end, &recv, 16)?;
        post(&end, &ep, 0..16)?;
        eps.push((ep, recv));
    }
    let start = Instant::now();
    guard.delete()?;
    println!("the device was removed in {:?}", start.elapsed());
    catastrophic(context, &end.ia)?;
    for (ep, recv) in &eps {
        same("receives", ep.status()?.recv_outstanding, 0)?;
        let cookies = flushed(recv)?;
        // As many as the EVD has room for.
        ensure!(!cookies.is_empty(), "no receive was reported");
        distinct(&cookies, 16)?;
    }
    drop((eps, end));
    guard.add()
}

fn early_messages_find_room(context: &Context) -> Result<()> {
    const MESSAGES: u64 = 16;
    let ends = ends(context)?;
    for round in 0..context.count(100).max(10) {
        let recv = ends.client.ia.create_evd(EvdFlags::DTO, 2)?;
        let ep = ep_on(&ends.client, &recv, MESSAGES as u32)?;
        post(&ends.client, &ep, 0..MESSAGES)?;
        let peer = ends.server.another_ep()?;
        let (address, port) = (context.server_address(), ends.listener.port);
        ep.connect(address, port, Some(context.patience()), &[])?;
        ends.listener.request(context)?.accept(&peer, &[])?;
        connection(&context.next(&ends.server.connect)?, ConnectionEvent::Established)?;
        let segment = [ends.server.lmr.segment(0, 64)];
        (0..MESSAGES)
            .try_for_each(|cookie| peer.post_send(&segment, cookie, CompletionFlags::default()))?;
        // Drain at once, in any state of the client.
        for cookie in 0..MESSAGES {
            let event = context.next(&recv).with_context(|| format!("round {round}"))?;
            let flushed = dto(&event, DtoOperation::Receive, DtoStatus::Flushed);
            if context.client.is_iwarp() && flushed.is_ok() {
                // RFC 5044, 7.1.2: the accepting side waits for the other side's first message.
                return skip("siw ended a connection whose accepting side sent first");
            }
            done(&event, DtoOperation::Receive, 64, cookie)?;
            context.next(&ends.server.request)?;
        }
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)?;
        ep.disconnect(Close::Abrupt)?;
        for end in [&ends.client, &ends.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        }
    }
    no_overflow(&ends.client)
}
