// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hands connection requests over to other processes, including processes that are killed.

use super::psp::Side;
use super::tests;
use crate::context::Context;
use crate::expect::{connection, done, refused, same};
use crate::machine::{become_user, become_user_with, CAP_NET_ADMIN, CAP_SYS_RAWIO};
use crate::peer::{Peer, Step};
use crate::threads::Joined;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{
    CompletionFlags, ConnectionEvent, Cr, DtoOperation, DtoStatus, Ep, Event, EventKind, Psp,
    Subtype, Type,
};
use std::time::Duration;

tests! {
    other_process, 60, "A request handed to another process is accepted or rejected there, and the data come from that process";
    other_user, 60, "A request goes to another user's process only with CAP_NET_ADMIN";
    killed_process, 240, "When a process is killed while requests are handed to it, each peer gets exactly one outcome";
}

/// Private data of a request that the other process accepts.
const DATA_TO_ACCEPT: &[u8] = b"please";
const DATA_TO_REJECT: &[u8] = b"surely not";
/// Bytes of the caller's first message. Over iWARP the accepting side may not send first.
const FIRST_MESSAGE_BYTES: usize = 4;
/// The answer of the other process.
const GREETING: &[u8; 16] = b"from elsewhere..";
/// User id of an ordinary user.
pub const ORDINARY_USER: u32 = 65_534;

/// Runs as the other process: takes requests on `port` for ever, as `user` unless that is negative.
pub fn target(context: &Context, port: u64, user: i64) -> Result<()> {
    context.server.settle()?;
    if let Ok(user) = u32::try_from(user) {
        // Without this capability only root may open an IA of a siw device.
        become_user_with(user, CAP_SYS_RAWIO)?;
    }
    let side = Side::new(libkdapl::Ia::open(&context.server.device, crate::hosts::ASYNC_QLEN)?)?;
    let _psp = side.ia.create_psp(port, &side.requests)?;
    side.end.lmr.buffer().write(0, GREETING);
    println!("{:?}", Step::Opened);
    let mut accepted: Vec<Ep> = Vec::new();
    loop {
        match side.requests.wait(Some(Duration::from_millis(1)), 1) {
            Ok((Event::ConnectionRequest { mut cr, .. }, _)) => {
                if cr.query()?.private_data.starts_with(DATA_TO_ACCEPT) {
                    let ep = side.end.another_ep()?;
                    ep.post_recv(
                        &[side.end.lmr.segment(64, FIRST_MESSAGE_BYTES)],
                        0,
                        Default::default(),
                    )?;
                    // The peer may have ended its attempt.
                    if cr.accept(&ep, &[]).is_ok() {
                        accepted.push(ep);
                    }
                } else {
                    let _ = cr.reject(DATA_TO_REJECT);
                }
            }
            Err(error) if error.is_timeout() => {}
            other => bail!("{other:?}"),
        }
        while let Ok((Event::Connection { event, ep, .. }, _)) = side.end.connect.dequeue() {
            if event != ConnectionEvent::Established {
                accepted.retain(|known| known.handle() != ep);
            }
        }
        // A flushed receive needs no answer.
        while let Ok((Event::Dto(dto), _)) = side.end.recv.dequeue() {
            let ep = accepted.iter().find(|known| known.handle() == dto.ep);
            if let (Some(ep), DtoStatus::Success) = (ep, dto.status) {
                let greeting = [side.end.lmr.segment(0, GREETING.len())];
                ep.post_send(&greeting, 0, CompletionFlags::SUPPRESS)?;
            }
        }
    }
}

/// Starts a process that takes requests on `port`, as `user` unless that is negative.
pub fn start_target(context: &Context, port: u64, user: i64) -> Result<Peer> {
    let mut peer = Peer::play(context, &format!("Target {port} {user}"))?;
    peer.reaches(Step::Opened)?;
    Ok(peer)
}

/// A listener that hands its requests over, and a client that connects to it.
struct HandoffPair {
    client: Side,
    server: Side,
    port: u64,
    _psp: Psp,
}

impl HandoffPair {
    fn new(context: &Context) -> Result<Self> {
        let (client, server, port) =
            (Side::client(context)?, Side::server(context)?, context.port());
        let psp = context.server.inside(|| server.ia.create_psp(port, &server.requests))??;
        Ok(Self { client, server, port, _psp: psp })
    }

    /// Connects a new endpoint, and returns it with its request.
    fn call(&self, context: &Context, data: &[u8]) -> Result<(Ep, Cr)> {
        let ep = self.client.end.another_ep()?;
        let segment = [self.client.end.lmr.segment(0, GREETING.len())];
        ep.post_recv(&segment, 3, Default::default())?;
        self.client.connect(context, &ep, self.port, data)?;
        Ok((ep, self.server.request(context)?.0))
    }

    /// Checks that the other process accepted, and that its greeting arrives.
    fn greeted(&self, context: &Context, ep: &Ep) -> Result<()> {
        let end = &self.client.end;
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        ep.post_send(&[end.lmr.segment(64, FIRST_MESSAGE_BYTES)], 0, CompletionFlags::SUPPRESS)?;
        let event = context.next(&end.recv)?;
        done(&event, DtoOperation::Receive, GREETING.len() as u64, 3)?;
        same("greeting", &end.lmr.buffer().to_vec(0, GREETING.len())[..], &GREETING[..])?;
        end.lmr.buffer().fill(0, GREETING.len(), 0);
        Ok(())
    }
}

fn other_process(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let desk = HandoffPair::new(context)?;
    for port in [context.port(), (1 << 50) + context.port()] {
        let mut peer = start_target(context, port, -1)?;
        let mut eps = Vec::new();
        for _ in 0..context.count(20) {
            let (ep, mut cr) = desk.call(context, DATA_TO_ACCEPT)?;
            cr.handoff(port)?;
            desk.greeted(context, &ep)?;
            // The queue must have room for the ends of these connections.
            eps.truncate(2);
            eps.insert(0, ep);
            let (ep, mut cr) = desk.call(context, b"may I?")?;
            cr.handoff(port)?;
            desk.client.next(context, ConnectionEvent::PeerRejected)?;
            ensure!(ep.private_data()?.starts_with(DATA_TO_REJECT), "{:?}", ep.private_data()?);
            let event = context.next(&desk.client.end.recv)?;
            crate::expect::dto(&event, DtoOperation::Receive, DtoStatus::Flushed)?;
        }
        peer.kill()?;
        for _ in &eps {
            crate::expect::connection_over(&context.next(&desk.client.end.connect)?)?;
        }
        // The target is dead.
        let (_ep, mut cr) = desk.call(context, DATA_TO_ACCEPT)?;
        context.until("the target is gone", || match cr.handoff(port) {
            Err(error) if error.subtype() == Some(Subtype::INVALID_ARG2) => Ok(true),
            Err(error) => Err(error.into()),
            Ok(()) => bail!("a request was handed to a process that was killed"),
        })?;
        cr.reject(b"no")?;
        desk.client.next(context, ConnectionEvent::PeerRejected)?;
        context.next(&desk.client.end.recv)?;
    }
    Ok(())
}

/// Makes the calling thread an ordinary user with CAP_NET_ADMIN as its only capability.
fn become_net_admin(user: u32) -> Result<()> {
    become_user_with(user, CAP_NET_ADMIN)
}

fn other_user(context: &Context) -> Result<()> {
    let desk = HandoffPair::new(context)?;
    let port = context.port();
    let _peer = start_target(context, port, ORDINARY_USER.into())?;
    let hand = |cr: &mut Cr, turn: &(dyn Fn(u32) -> Result<()> + Sync), user| {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| turn(user).map(|()| cr.handoff(port)));
            thread.join().or_panicked()?
        })
    };
    let (ep, mut cr) = desk.call(context, DATA_TO_ACCEPT)?;
    refused(hand(&mut cr, &become_user, 1234)?, Type::PRIVILEGES_VIOLATION)?;
    hand(&mut cr, &become_net_admin, 1234)?.context("with CAP_NET_ADMIN")?;
    desk.greeted(context, &ep)?;
    drop(ep);
    let (ep, mut cr) = desk.call(context, DATA_TO_ACCEPT)?;
    cr.handoff(port).context("handoff as root")?;
    desk.greeted(context, &ep)?;
    drop(ep);
    Ok(())
}

/// Classifies the outcome of a connect: exactly one of three.
fn outcome(event: &Event) -> Result<usize> {
    match event.kind() {
        EventKind::Connection(ConnectionEvent::Established) => Ok(0),
        EventKind::Connection(ConnectionEvent::PeerRejected) => Ok(1),
        EventKind::Connection(ConnectionEvent::NonPeerRejected) => Ok(2),
        other => bail!("{other:?}"),
    }
}

fn killed_process(context: &Context) -> Result<()> {
    const CALLS: usize = 6;
    context.rejects_arrive()?;
    let desk = HandoffPair::new(context)?;
    let end = &desk.client.end;
    // Room for all events of a round: the outcome and the end of each call.
    end.connect.resize(2 * CALLS as i32)?;
    let mut counts = [0; 3];
    for round in 0..context.count(40).max(4) {
        let port = if round % 2 == 0 { context.port() } else { (1 << 51) + context.port() };
        let mut peer = start_target(context, port, -1)?;
        let mut calls = Vec::new();
        for number in 0..CALLS {
            calls.push(
                desk.call(context, if number % 2 == 0 { DATA_TO_ACCEPT } else { b"may I?" })?,
            );
        }
        let delay = Duration::from_micros(context.rng().u64(0..3000));
        let killer = std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                std::thread::sleep(delay);
                peer.kill()
            });
            for (_, cr) in &mut calls {
                // A request that cannot be handed over any more is rejected here.
                match cr.handoff(port) {
                    Ok(()) => {}
                    Err(error) if error.kind() == Some(Type::INVALID_PARAMETER) => {
                        cr.reject(b"no")?;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            killer.join().or_panicked()?
        });
        killer.with_context(|| format!("round {round}"))?;
        for _ in 0..CALLS {
            let event = next_outcome(context, &desk)?;
            counts[outcome(&event).with_context(|| format!("round {round}"))?] += 1;
        }
        for (ep, _) in &calls {
            ep.free()?;
        }
        while end.recv.dequeue().is_ok() || end.connect.dequeue().is_ok() {}
    }
    println!(
        "established {}, rejected {}, rejected by the transport {}",
        counts[0], counts[1], counts[2]
    );
    Ok(())
}

/// Returns the next outcome of a connect. Ends of earlier connections may precede it.
fn next_outcome(context: &Context, desk: &HandoffPair) -> Result<Event> {
    loop {
        let event = context.next(&desk.client.end.connect)?;
        if crate::expect::connection_over(&event).is_err() {
            return Ok(event);
        }
    }
}
