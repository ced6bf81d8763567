// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Concurrent calls that change the state of endpoints.

use super::psp::Side;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, same};
use crate::machine::{no_objects_left, DeviceGuard};
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    Close, CompletionFlags, ConnectionEvent, DtoStatus, Ep, EpAttr, EpChange, EpCreator, EpState,
    Evd, EvdFlags, Event, PspOptions, Type,
};
use std::sync::Barrier;
use std::time::{Duration, Instant};

tests! {
    disconnect_and_reset, 120, "A disconnect and a reset at the same time lose no receive";
    reset_twice, 120, "Two resets at the same time do not affect the next connection";
    reset_and_free, 120, "A reset and a free at the same time leave the EVD intact";
    #[Address]
    rsp_qualifier_is_free_again, 60,
        "A qualifier is free again once its RSP, whose request has arrived, is freed";
    all_calls, 240,
        "With all calls at once on a few endpoints, and handoffs, no endpoint gets stuck";
    all_calls_and_device_removal, 240,
        "With all calls at once on a few endpoints while the device is removed, no object is left";
}

/// Creates an endpoint whose receives report to `recv`.
pub fn ep_on(end: &End, recv: &Evd, receives: u32) -> Result<Ep> {
    let attr = EpAttr { max_recv_dtos: receives, ..Default::default() };
    Ok(end.ia.create_ep(&end.pz, recv, &end.request, &end.connect, Some(attr))?)
}

pub fn post(end: &End, ep: &Ep, cookies: std::ops::Range<u64>) -> Result<()> {
    let segment = [end.lmr.segment(0, 64)];
    for cookie in cookies {
        ep.post_recv(&segment, cookie, CompletionFlags::default())?;
    }
    Ok(())
}

/// Runs both at the same time.
fn at_once<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    let begin = Barrier::new(2);
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            begin.wait();
            one()
        });
        begin.wait();
        let other = other();
        (thread.join().expect("the thread ends"), other)
    })
}

fn disconnect_and_reset(context: &Context) -> Result<()> {
    const RECEIVES: u64 = 4;
    let ia = context.open()?;
    let end = End::new(&ia, Shape { receives: 64, ..Default::default() })?;
    for round in 0..context.count(3000).max(100) {
        post(&end, &end.ep, 0..RECEIVES).with_context(|| format!("round {round}"))?;
        let (one, two) = at_once(|| end.ep.disconnect(Close::Abrupt), || end.ep.reset());
        one?;
        two?;
        // After either order, the receives are flushed now.
        end.ep.disconnect(Close::Abrupt)?;
        for cookie in 0..RECEIVES {
            let event = context.next(&end.recv).with_context(|| {
                format!("receive {cookie} of round {round} is lost: {:?}", end.ep.status())
            })?;
            ensure!(
                matches!(event, Event::Dto(dto) if dto.status == DtoStatus::Flushed),
                "{event}"
            );
        }
        end.ep.reset()?;
    }
    Ok(())
}

fn reset_twice(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let (client, server) =
        (End::new(&client_ia, Shape::default())?, End::new(&server_ia, Shape::default())?);
    let listener = Listener::new(context, &server_ia)?;
    for round in 0..context.count(10).max(5) {
        let recv = client_ia.create_evd(EvdFlags::DTO, 4)?;
        let ep = ep_on(&client, &recv, 16)?;
        let peer = server.another_ep()?;
        post(&client, &ep, 0..16)?;
        ep.disconnect(Close::Abrupt)?;
        // The EVD has room for four receives, so a reset has to wait for the others.
        let (one, two) = at_once(
            || -> Result<()> {
                std::thread::sleep(Duration::from_millis(60));
                let _ = ep.reset();
                Ok(())
            },
            || -> Result<()> {
                ep.reset()?;
                post(&client, &ep, 100..101)?;
                let patience = Some(context.patience());
                ep.connect(context.server_address(), listener.port, patience, &[])?;
                let request = listener.request(context);
                let request = request
                    .with_context(|| format!("{:?}, {:?}", ep.status(), client.connect.dequeue()));
                request?.accept(&peer, &[])?;
                connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
                connection(&context.next(&server.connect)?, ConnectionEvent::Established)
            },
        );
        one?;
        two?;
        let segment = [server.lmr.segment(0, 64)];
        std::thread::sleep(context.scaled(Duration::from_millis(50)));
        peer.post_send(&segment, 7, CompletionFlags::default())?;
        loop {
            let event = context.next(&recv).context("the receive after the reset")?;
            let Event::Dto(dto) = event else { bail!("{event}") };
            if dto.cookie == 100 {
                same("state", ep.status()?.state, EpState::Connected)?;
                same(&format!("receive, round {round}"), dto.status, DtoStatus::Success)?;
                break;
            }
        }
        context.next(&server.request)?;
        ep.free()?;
        connection(&context.next(&server.connect)?, ConnectionEvent::Disconnected)?;
        peer.free()?;
    }
    Ok(())
}

fn reset_and_free(context: &Context) -> Result<()> {
    const RECEIVES: u64 = 16;
    let ia = context.open()?;
    let end = End::new(&ia, Shape::default())?;
    let recv = ia.create_evd(EvdFlags::DTO, RECEIVES as i32)?;
    for round in 0..context.count(1000).max(40) {
        let ep = ep_on(&end, &recv, RECEIVES as u32)?;
        // If a slot were freed while its completion may still arrive, one would be missing now.
        post(&end, &ep, 0..RECEIVES).with_context(|| format!("round {round}"))?;
        ep.disconnect(Close::Abrupt)?;
        let (reset, free) = at_once(|| ep.reset(), || ep.free());
        free?;
        if let Err(error) = reset {
            let gone = [Type::INVALID_HANDLE, Type::INVALID_STATE];
            ensure!(
                error.kind().is_some_and(|kind| gone.contains(&kind)),
                "the reset ended with {error}"
            );
        }
        loop {
            match recv.dequeue() {
                Ok((Event::Dto(dto), _)) => same("status", dto.status, DtoStatus::Flushed)?,
                Ok((other, _)) => bail!("{other}"),
                Err(error) if error.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    context.quiet(ia.async_evd())
}

fn rsp_qualifier_is_free_again(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let qual = context.port();
    for round in 0..context.count(1000).max(40) {
        let rsp = server.ia.create_rsp(qual, &server.requests, None);
        let rsp = rsp.with_context(|| format!("round {round}"))?;
        let ep = client.end.another_ep()?;
        client.connect(context, &ep, qual, &[])?;
        let (mut cr, ..) = server.request(context)?;
        rsp.free()?;
        let end = cr.provided_ep()?.context("the request has no endpoint")?;
        server.configure(&end)?;
        cr.accept(None, &[])?;
        client.next(context, ConnectionEvent::Established)?;
        server.next(context, ConnectionEvent::Established)?;
        ep.disconnect(Close::Abrupt)?;
        client.next(context, ConnectionEvent::Disconnected)?;
        server.next(context, ConnectionEvent::Disconnected)?;
    }
    Ok(())
}

/// Objects that all threads use.
struct SharedObjects {
    sides: Vec<Side>,
    eps: Vec<(usize, Ep)>,
    quals: Vec<u64>,
    other_zones: Vec<libkdapl::Pz>,
}

impl SharedObjects {
    fn new(context: &Context) -> Result<Self> {
        let mut sides = vec![Side::client(context)?, Side::server(context)?];
        sides.push(Side::server(context)?);
        let mut eps = Vec::new();
        for (place, side) in sides.iter().enumerate() {
            for _ in 0..3 {
                eps.push((place, side.end.another_ep()?));
            }
        }
        let zones: Result<Vec<_>, _> = sides.iter().map(|side| side.ia.create_pz()).collect();
        let wide = (1 << 43) + context.port();
        let quals = vec![context.port(), wide, wide + 1, context.port()];
        Ok(Self { sides, eps, quals, other_zones: zones? })
    }

    /// Runs random calls in one thread. Ignores their results.
    fn play(&self, context: &Context, mut rng: fastrand::Rng, end: Instant) {
        let mut points = Vec::new();
        let mut reserved = Vec::new();
        while Instant::now() < end {
            let (place, ep) = &self.eps[rng.usize(0..self.eps.len())];
            let side = &self.sides[*place];
            let qual = self.quals[rng.usize(0..self.quals.len())];
            match rng.u8(0..20) {
                0..4 => {
                    let time = Some(Duration::from_micros(rng.u64(1..60_000)));
                    let _ = ep.connect(context.server_address(), qual, time, &[1; 20]);
                }
                4..6 => drop(ep.disconnect(Close::Abrupt)),
                6 => drop(ep.disconnect(Close::Graceful)),
                7..10 => drop(ep.reset()),
                10 => drop(post(&side.end, ep, 0..4)),
                11 => {
                    let segment = [side.end.lmr.segment(0, 64)];
                    let _ = ep.post_send(&segment, 1, CompletionFlags::default());
                }
                12 => {
                    let zone = if rng.bool() { &side.end.pz } else { &self.other_zones[*place] };
                    let _ = ep.modify(EpChange::new().pz(zone).recv(&side.end.recv));
                }
                13 => {
                    let options = PspOptions {
                        conn_qual: Some(qual),
                        endpoints: if rng.bool() {
                            EpCreator::Provider
                        } else {
                            EpCreator::Consumer
                        },
                        backlog: Some(8),
                    };
                    if let Ok(psp) = side.ia.create_psp_with(&side.requests, &options) {
                        points.push(psp);
                    }
                }
                14 => {
                    let ep = rng.bool().then_some(ep);
                    if let Ok(rsp) = side.ia.create_rsp(qual, &side.requests, ep) {
                        reserved.push(rsp);
                    }
                }
                15 if rng.bool() => drop(points.pop()),
                15 => drop(reserved.pop()),
                16 => {
                    for evd in [&side.end.recv, &side.end.request, &side.end.connect] {
                        while evd.dequeue().is_ok() {}
                    }
                    while side.ia.async_evd().dequeue().is_ok() {}
                }
                17 if rng.u8(0..8) == 0 => {
                    if let Ok(own) = side.end.another_ep() {
                        let _ = own.connect(context.server_address(), qual, None, &[]);
                        let _ = own.free();
                    }
                }
                _ => {
                    let Ok((Event::ConnectionRequest { mut cr, .. }, _)) =
                        side.requests.wait(Some(Duration::from_millis(2)), 1)
                    else {
                        continue;
                    };
                    match rng.u8(0..6) {
                        0 => drop(cr.reject(&[])),
                        1 => drop(cr.into_handle()),
                        2 => drop(cr.handoff(qual)),
                        _ => {
                            if let Ok(Some(provided)) = cr.provided_ep() {
                                let _ = side.configure(&provided);
                                let _ = cr.accept(None, &[]);
                            } else {
                                let _ = cr.accept(ep, &[]);
                            }
                        }
                    }
                }
            }
        }
    }

    fn run(&self, context: &Context, threads: u64, time: Duration) {
        let end = Instant::now() + time;
        let rng = context.rng();
        std::thread::scope(|scope| {
            for number in 0..threads {
                let context = context.new_for_thread();
                let rng = fastrand::Rng::with_seed(rng.get_seed() + number);
                scope.spawn(move || {
                    if context.client.settle().is_ok() {
                        self.play(&context, rng, end);
                    }
                });
            }
        });
    }
}

/// Checks that no endpoint is stuck in a pending state.
fn all_end(context: &Context, stage: &SharedObjects) -> Result<()> {
    for (place, ep) in &stage.eps {
        let side = &stage.sides[*place];
        context.until(&format!("{:?} ends", ep.handle()), || {
            for evd in [&side.end.recv, &side.end.request, &side.end.connect] {
                while evd.dequeue().is_ok() {}
            }
            let _ = ep.disconnect(Close::Abrupt);
            let state = ep.status()?.state;
            Ok(!matches!(state, EpState::DisconnectPending | EpState::ActiveConnectionPending))
        })?;
    }
    Ok(())
}

fn all_calls(context: &Context) -> Result<()> {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(context.count(60).max(6)) {
        let stage = SharedObjects::new(context)?;
        stage.run(context, 6, Duration::from_secs(3));
        all_end(context, &stage)?;
        drop(stage);
        no_objects_left(context.settings.scale)?;
    }
    Ok(())
}

fn all_calls_and_device_removal(context: &Context) -> Result<()> {
    let guard = DeviceGuard::new(context)?;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(context.count(60).max(6)) {
        let stage = SharedObjects::new(context)?;
        let delay = Duration::from_millis(context.rng().u64(200..1500));
        std::thread::scope(|scope| -> Result<()> {
            let (stage, mine) = (&stage, context.new_for_thread());
            scope.spawn(move || stage.run(&mine, 6, Duration::from_secs(2)));
            std::thread::sleep(delay);
            guard.delete()
        })?;
        drop(stage);
        no_objects_left(context.settings.scale)?;
        guard.add()?;
        drop(context.open()?);
    }
    Ok(())
}
