// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hands connection requests over to other service points.

use super::psp::{nobody_listens, Side};
use super::tests;
use crate::context::Context;
use crate::expect::{connection, refused, refused_as, same};
use crate::hosts::ASYNC_QLEN;
use crate::machine::{become_user_with, CAP_SYS_RAWIO};
use crate::raw;
use crate::threads::Joined;
use anyhow::{ensure, Context as _, Result};
use libkdapl::raw::call;
use libkdapl::sys::{kdapl_cr_answer, kdapl_cr_handoff, KDAPL_SHARED_PORT};
use libkdapl::{ConnectionEvent, EpCreator, EpState, Event, Ia, PspOptions, Subtype, Type};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Barrier;
use std::time::{Duration, Instant};

tests! {
    #[Address, Transport]
    accepted_after_handoff, 60, "A handed-over request arrives with its private data and is accepted; the peer notices nothing";
    failed_handoff_keeps_request, 40, "A request that cannot be handed over stays, and can be accepted";
    #[Address]
    same_user_only, 30, "A request may be handed over to service points of the same user only, or with CAP_NET_ADMIN";
    concurrent_answers, 60, "When threads accept, reject and hand over one request at once, exactly one succeeds";
    repeated_handoffs, 90, "Requests are handed from owner to owner while peers give up and owners close";
}

fn accepted_after_handoff(context: &Context) -> Result<()> {
    let (first, second) = (Side::server(context)?, Side::server(context)?);
    let client = Side::client(context)?;
    let wide = (1 << 45) + context.port();
    let mut eps = Vec::new();
    // Between all kinds of qualifiers, to another open file and to the same one.
    for (from, to) in [
        (context.port(), context.port()),
        (context.port(), wide),
        (wide + 1, context.port()),
        (wide + 2, wide + 3),
    ] {
        for target in [&second, &first] {
            let here = first.ia.create_psp(from, &first.requests)?;
            let there = target.ia.create_psp(to, &target.requests)?;
            let (ep, end) = (client.end.another_ep()?, target.end.another_ep()?);
            client.connect(context, &ep, from, b"handed over")?;
            let (mut cr, ..) = first.request(context)?;
            let old = cr.query()?;
            cr.handoff(to)?;
            refused_as(cr.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CR)?;
            here.free()?;
            let (mut cr, point, conn_qual) = target.request(context)?;
            same("service point", point, there.handle())?;
            same("qualifier", conn_qual, to)?;
            let new = cr.query()?;
            same("private data", new.private_data, old.private_data)?;
            same("peer", (new.remote, new.remote_port_qual), (old.remote, old.remote_port_qual))?;
            cr.accept(&end, b"yes")?;
            client.next(context, ConnectionEvent::Established)?;
            same("answer", &ep.private_data()?[..3], b"yes")?;
            target.next(context, ConnectionEvent::Established)?;
            eps.push((ep, end));
        }
    }
    Ok(())
}

fn failed_handoff_keeps_request(context: &Context) -> Result<()> {
    let (server, target) = (Side::server(context)?, Side::server(context)?);
    let client = Side::client(context)?;
    let from = context.port();
    let _psp = server.ia.create_psp(from, &server.requests)?;
    client.connect(context, &client.end.ep, from, &[])?;
    let (mut cr, ..) = server.request(context)?;
    for nobody in [0, context.port(), u64::MAX, KDAPL_SHARED_PORT.into()] {
        refused_as(cr.handoff(nobody), Type::INVALID_PARAMETER, Subtype::INVALID_ARG2)?;
    }
    // The backlog of one entry holds another request.
    let full = context.port();
    let options =
        PspOptions { conn_qual: Some(full), backlog: Some(1), endpoints: EpCreator::Provider };
    let _full = target.ia.create_psp_with(&target.requests, &options)?;
    let waiting = client.end.another_ep()?;
    client.connect(context, &waiting, full, &[])?;
    let (waiting_cr, ..) = target.request(context)?;
    refused(cr.handoff(full), Type::INSUFFICIENT_RESOURCES)?;
    // The EVD is full.
    let evd = target.ia.create_evd(libkdapl::EvdFlags::CR | libkdapl::EvdFlags::SOFTWARE, 2)?;
    let crowded = context.port();
    let _crowded = target.ia.create_psp(crowded, &evd)?;
    while evd.post_se(0).is_ok() {}
    refused(cr.handoff(crowded), Type::INSUFFICIENT_RESOURCES)?;
    // The reserved endpoint has its request already.
    let rsp = context.port();
    let _rsp = target.ia.create_rsp(rsp, &target.requests, Some(&target.end.ep))?;
    let early = client.end.another_ep()?;
    client.connect(context, &early, rsp, &[])?;
    let (early_cr, ..) = target.request(context)?;
    refused(cr.handoff(rsp), Type::INVALID_PARAMETER)?;
    cr.accept(&server.end.ep, &[])?;
    server.next(context, ConnectionEvent::Established)?;
    client.next(context, ConnectionEvent::Established)?;
    refused_as(cr.handoff(full), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CR)?;
    drop((waiting_cr, early_cr));
    Ok(())
}

/// Runs `action` in a thread of another user without capabilities, on the server's host.
pub fn as_user<T: Send>(
    context: &Context,
    user: u32,
    action: impl FnOnce(&Context) -> Result<T> + Send,
) -> Result<T> {
    let context = context.new_for_thread();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // An ordinary user may not enter the network namespace later.
            context.server.settle()?;
            // Without this capability only root may open an IA of a siw device.
            become_user_with(user, CAP_SYS_RAWIO)?;
            action(&context)
        });
        thread.join().or_panicked()?
    })
}

fn same_user_only(context: &Context) -> Result<()> {
    // Skips if handed-over requests do not work here.
    drop(Side::server(context)?);
    let open = |context: &Context| Side::new(Ia::open(&context.server.device, ASYNC_QLEN)?);
    let client = Side::client(context)?;
    let (mine, theirs) = (context.port(), context.port());
    let other = as_user(context, 4321, open)?;
    let ours = as_user(context, 1234, open)?;
    let also_ours = as_user(context, 1234, open)?;
    let _theirs = other.ia.create_psp(theirs, &other.requests)?;
    let from = context.port();
    let _from = ours.ia.create_psp(from, &ours.requests)?;
    let _mine = also_ours.ia.create_psp(mine, &also_ours.requests)?;
    let eps = [client.end.another_ep()?, client.end.another_ep()?];
    client.connect(context, &eps[0], from, &[])?;
    let (mut cr, ..) = ours.request(context)?;
    as_user(context, 1234, |_| {
        refused(cr.handoff(theirs), Type::PRIVILEGES_VIOLATION)?;
        Ok(cr.handoff(mine)?)
    })?;
    also_ours.request(context)?.0.accept(&also_ours.end.ep, &[])?;
    client.next(context, ConnectionEvent::Established)?;
    // The test runs as root.
    client.connect(context, &eps[1], from, &[])?;
    let (mut cr, ..) = ours.request(context)?;
    cr.handoff(theirs)?;
    other.request(context)?.0.accept(&other.end.ep, &[])?;
    client.next(context, ConnectionEvent::Established)
}

fn concurrent_answers(context: &Context) -> Result<()> {
    // The reject may be the call that succeeds.
    context.rejects_arrive()?;
    let (server, target) = (Side::server(context)?, Side::server(context)?);
    let client = Side::client(context)?;
    let (from, to) = (context.port(), (1 << 47) + context.port());
    let _psp = server.ia.create_psp(from, &server.requests)?;
    let _target = target.ia.create_psp(to, &target.requests)?;
    let mut answers = [0_u64; 3];
    for _ in 0..context.count(100).max(12) {
        let (ep, end) = (client.end.another_ep()?, server.end.another_ep()?);
        client.connect(context, &ep, from, &[])?;
        let handle = server.request(context)?.0.into_handle().0;
        let answer = kdapl_cr_answer { handle, ..Default::default() };
        let handoff = kdapl_cr_handoff { handle, conn_qual: to, ..Default::default() };
        let accept = kdapl_cr_answer { ep: end.handle().0, ..answer };
        let device = server.ia.device();
        let calls: [&(dyn Fn() -> libkdapl::Result<()> + Sync); 3] = [
            &|| raw::call(device, call::CR_ACCEPT, &mut accept.clone()),
            &|| raw::call(device, call::CR_REJECT, &mut answer.clone()),
            &|| raw::call(device, call::CR_HANDOFF, &mut handoff.clone()),
        ];
        let begin = Barrier::new(calls.len());
        let results: Vec<_> = std::thread::scope(|scope| {
            let threads = calls.map(|call| {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    call()
                })
            });
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let mut winner = None;
        for (who, result) in results.into_iter().enumerate() {
            match result.or_panicked()? {
                Ok(()) => ensure!(winner.replace(who).is_none(), "two calls succeeded"),
                lost => refused(lost, Type::INVALID_HANDLE)?,
            }
        }
        let winner = winner.context("no call succeeded")?;
        answers[winner] += 1;
        if winner == 0 {
            client.next(context, ConnectionEvent::Established)?;
            server.next(context, ConnectionEvent::Established)?;
            end.free()?;
            client.next(context, ConnectionEvent::Disconnected)?;
            continue;
        }
        same("endpoint of the accept", end.status()?.state, EpState::Unconnected)?;
        if winner == 2 {
            target.request(context)?.0.reject(&[])?;
        }
        // Over iWARP a reject without private data is not known to be the consumer's.
        let rejected = match context.client.is_iwarp() {
            true => ConnectionEvent::NonPeerRejected,
            false => ConnectionEvent::PeerRejected,
        };
        connection(&context.next(&client.end.connect)?, rejected)?;
    }
    eprintln!("# accepted {}, rejected {}, handed over {}", answers[0], answers[1], answers[2]);
    Ok(())
}

/// Serves requests of one qualifier: hands most of them to another owner, and closes its IA now and
/// then.
fn owner(context: &Context, quals: &[u64], me: usize, stop: &AtomicBool) -> Result<u64> {
    let mut handed = 0;
    let mut rng = context.rng();
    while !stop.load(Ordering::Relaxed) {
        let side = Side::server(context)?;
        let options = PspOptions {
            conn_qual: quals.get(me).copied(),
            endpoints: if rng.bool() { EpCreator::Provider } else { EpCreator::Consumer },
            backlog: Some(8),
        };
        let Ok(psp) = side.ia.create_psp_with(&side.requests, &options) else {
            continue;
        };
        let end = Instant::now() + context.scaled(Duration::from_millis(rng.u64(5..60)));
        while Instant::now() < end {
            let Ok((event, _)) = side.requests.wait(Some(Duration::from_millis(5)), 1) else {
                continue;
            };
            let Event::ConnectionRequest { mut cr, .. } = event else {
                continue;
            };
            let next = quals.get(rng.usize(0..quals.len())).copied().context("a qualifier")?;
            match rng.u8(0..8) {
                0 => cr.reject(&[])?,
                1 => drop(cr.accept(&side.end.another_ep()?, &[])),
                // The close rejects this one.
                2 => drop(cr.into_handle()),
                _ => {
                    if cr.handoff(next).is_ok() {
                        handed += 1;
                    }
                }
            }
        }
        if rng.bool() {
            psp.free()?;
        }
    }
    Ok(handed)
}

fn repeated_handoffs(context: &Context) -> Result<()> {
    const OWNERS: usize = 3;
    let wide = (1 << 46) + context.port();
    let quals = [context.port(), wide, wide + 1];
    let stop = AtomicBool::new(false);
    let handed = AtomicU64::new(0);
    std::thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for me in 0..OWNERS {
            let (context, quals, stop, handed) = (context.new_for_thread(), &quals, &stop, &handed);
            threads.push(scope.spawn(move || -> Result<()> {
                handed.fetch_add(owner(&context, quals, me, stop)?, Ordering::Relaxed);
                Ok(())
            }));
        }
        let run = || -> Result<()> {
            let client = Side::client(context)?;
            let mut rng = context.rng();
            for _ in 0..context.count(400).max(60) {
                let ep = client.end.another_ep()?;
                let qual = quals.get(rng.usize(0..OWNERS)).copied().context("a qualifier")?;
                let patience = context.scaled(Duration::from_millis(rng.u64(1..40)));
                ep.connect(context.server_address(), qual, Some(patience), b"round")?;
                if rng.u8(0..3) == 0 {
                    // Frees the endpoint while it connects.
                    continue;
                }
                let event = context.next(&client.end.connect)?;
                ensure!(ep.status()?.state != EpState::Unconnected, "{event}");
                drop(ep);
                while client.end.connect.dequeue().is_ok() {}
            }
            Ok(())
        };
        let outcome = run();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().or_panicked()??;
        }
        outcome
    })?;
    ensure!(handed.load(Ordering::Relaxed) > 0, "no request was handed over");
    let client = Side::client(context)?;
    for qual in quals {
        nobody_listens(context, &client, qual)?;
    }
    Ok(())
}
