// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Repeated connections of one endpoint, and answers at the moment of the time-out.

use super::connect::{ends, reject, Ends};
use super::tests;
use crate::context::Context;
use crate::end::End;
use crate::expect::{connection, connection_over, done, refused, same};
use crate::threads::Joined;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, EpState, Event, EventKind, Subtype, Type};
use std::time::{Duration, Instant};

tests! {
    #[Address, Transport]
    reset_and_connect, 240,
        "Two endpoints connect, transfer, disconnect and are reset, a hundred times";
    unconnected_reset_changes_nothing, 20,
        "A reset of an unconnected endpoint changes nothing and keeps its receives";
    clears_peer_address, 30, "A reset clears the peer's address and loses no completions";
    #[Hosts]
    reject_races_time_out, 240,
        "A reject at the moment of the time-out gives one event: PEER_REJECTED or TIMED_OUT";
    #[Hosts]
    accept_races_time_out, 240,
        "An accept at the moment of the time-out gives one event on each side, and both agree";
    disconnect_races_accept, 240,
        "A disconnect during an accept of the connect ends the connection once on each side";
    accept_then_disconnect, 240,
        "A disconnect directly after an accept is an orderly end for the peer, never BROKEN";
}

const US: Duration = Duration::from_micros(1);

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn reset_and_connect(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let sides = [&ends.client, &ends.server];
    for round in 0..context.count(100) {
        let marker = round as u8 + 1;
        sides.iter().try_for_each(|end| end.receive(100, 64, round))?;
        ends.call(context, &[marker])?;
        ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
        for end in sides {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
        for (from, to) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            from.lmr.buffer().fill(0, 64, marker);
            from.send(0, 64, round)?;
            done(&context.next(&from.request)?, DtoOperation::Send, 64, round)?;
            done(&context.next(&to.recv)?, DtoOperation::Receive, 64, round)?;
            same("data", to.lmr.buffer().to_vec(100, 64), vec![marker; 64])?;
        }
        let first = sides[round as usize % 2];
        let how = if round % 4 < 2 { Close::Graceful } else { Close::Abrupt };
        first.ep.disconnect(how)?;
        for end in sides {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        }
        for end in sides {
            end.ep.reset().with_context(|| format!("round {round}"))?;
            same("state", end.ep.query()?.state, EpState::Unconnected)?;
        }
    }
    Ok(())
}

fn unconnected_reset_changes_nothing(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    (0..3).try_for_each(|cookie| ends.server.receive(0, 64, cookie))?;
    let before = ends.server.ep.query()?.raw.qp_num;
    ends.server.ep.reset()?;
    same("QP number", ends.server.ep.query()?.raw.qp_num, before)?;
    same("receives", ends.server.ep.status()?.recv_outstanding, 3)?;
    ends.call(context, &[])?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)?;
    for cookie in 0..3 {
        ends.client.send(0, 64, cookie)?;
        done(&context.next(&ends.server.recv)?, DtoOperation::Receive, 64, cookie)?;
    }
    Ok(())
}

fn clears_peer_address(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    (0..5).try_for_each(|cookie| ends.client.receive(0, 64, cookie))?;
    ends.call(context, &[])?;
    let mut cr = ends.listener.request(context)?;
    reject(context, &mut cr, b"no", &ends.listener.evd, &ends.client.connect)?;
    ends.client.ep.reset()?;
    let query = ends.client.ep.query()?;
    same("state", query.state, EpState::Unconnected)?;
    same("remote address", query.remote, None)?;
    same("ports", (query.raw.local_port_qual, query.raw.remote_port_qual), (0, 0))?;
    // The posted receives complete, whether reported before the reset or after.
    for cookie in 0..5 {
        let Event::Dto(dto) = context.next(&ends.client.recv)? else { bail!("no completion") };
        same("cookie", dto.cookie, cookie)?;
    }
    context.until("nothing is outstanding", || Ok(ends.client.ep.status()?.recv_idle))
}

/// Returns the event that ended the client's attempt.
fn outcome(context: &Context, end: &End) -> Result<ConnectionEvent> {
    match context.next(&end.connect)? {
        Event::Connection { event, ep, .. } => {
            same("endpoint", ep, end.ep.handle())?;
            Ok(event)
        }
        other => bail!("expected a connection event, got {other}"),
    }
}

/// Checks that both sides have no more events, and resets them.
fn begin_anew(ends: &Ends) -> Result<()> {
    for end in [&ends.client, &ends.server] {
        refused(end.connect.dequeue(), Type::QUEUE_EMPTY).context("unexpected event")?;
        end.ep.reset()?;
    }
    while ends.listener.evd.dequeue().is_ok() {}
    Ok(())
}

fn reject_races_time_out(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let ends = ends(context)?;
    let usual = usual_time(context, &ends)?;
    let mut counts = [0; 2];
    for round in 0..context.count(300) {
        let time = usual.mul_f64(context.rng().f64() * 2.0).max(US);
        let (address, port) = (context.server_address(), ends.listener.port);
        ends.client.ep.connect(address, port, Some(time), &[])?;
        spin(usual.mul_f64(context.rng().f64()));
        if let Ok((Event::ConnectionRequest { mut cr, .. }, _)) =
            ends.listener.evd.wait(Some(usual * 3), 1)
        {
            cr.reject(b"no")?;
        }
        match outcome(context, &ends.client)? {
            ConnectionEvent::PeerRejected => counts[0] += 1,
            ConnectionEvent::TimedOut => counts[1] += 1,
            other => bail!("round {round}: {other}"),
        }
        same("state", ends.client.ep.query()?.state, EpState::Disconnected)?;
        begin_anew(&ends).with_context(|| format!("round {round}"))?;
    }
    context.quiet(&ends.client.connect)?;
    println!("rejected {}, timed out {}", counts[0], counts[1]);
    Ok(())
}

/// Measures the time from a connect to the answer of a server that answers at once.
fn usual_time(context: &Context, ends: &Ends) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..9 {
        let start = Instant::now();
        ends.call(context, &[])?;
        ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
        connection(&context.next(&ends.client.connect)?, ConnectionEvent::Established)?;
        times.push(start.elapsed());
        connection(&context.next(&ends.server.connect)?, ConnectionEvent::Established)?;
        ends.client.ep.disconnect(Close::Abrupt)?;
        for end in [&ends.client, &ends.server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
        }
        [&ends.client, &ends.server].into_iter().try_for_each(|end| end.ep.reset())?;
    }
    times.sort_unstable();
    Ok(times[4])
}

/// Checks the event of the server's accept. The client is `connected`, or has timed out.
fn server_agrees(context: &Context, ends: &Ends, connected: bool) -> Result<()> {
    let event = outcome(context, &ends.server)?;
    match (connected, event) {
        (true, ConnectionEvent::Established) => {
            ends.client.ep.disconnect(Close::Abrupt)?;
            for end in [&ends.client, &ends.server] {
                connection(&context.next(&end.connect)?, ConnectionEvent::Disconnected)?;
            }
            Ok(())
        }
        (false, ConnectionEvent::AcceptCompletionError) => Ok(()),
        // Over iWARP, the accepting side is connected at once, and disconnected without a peer.
        (false, ConnectionEvent::Established) if context.server.is_iwarp() => {
            connection_over(&context.next(&ends.server.connect)?)
        }
        _ => bail!("the client is connected: {connected}; the server got {event}"),
    }
}

fn accept_races_time_out(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let usual = usual_time(context, &ends)?;
    let mut counts = [0; 2];
    for round in 0..context.count(300) {
        let time = usual.mul_f64(0.5 + context.rng().f64() * 2.0).max(US);
        let (address, port) = (context.server_address(), ends.listener.port);
        ends.client.ep.connect(address, port, Some(time), &[])?;
        spin(usual.mul_f64(context.rng().f64()));
        let request = ends.listener.evd.wait(Some(usual * 3), 1);
        let accepted = match request {
            Ok((Event::ConnectionRequest { mut cr, .. }, _)) => {
                match cr.accept(&ends.server.ep, &[]) {
                    Ok(()) => true,
                    // The request vanished with its client.
                    Err(error) if error.subtype() == Some(Subtype::INVALID_HANDLE_CR) => false,
                    Err(error) => return Err(error.into()),
                }
            }
            _ => false,
        };
        let event = outcome(context, &ends.client)?;
        let connected = event == ConnectionEvent::Established;
        ensure!(connected || event == ConnectionEvent::TimedOut, "round {round}: {event}");
        ensure!(accepted || !connected, "round {round}: connected without an accept");
        if accepted {
            server_agrees(context, &ends, connected).with_context(|| format!("round {round}"))?;
        }
        counts[usize::from(connected)] += 1;
        begin_anew(&ends).with_context(|| format!("round {round}"))?;
    }
    for end in [&ends.client, &ends.server] {
        context.quiet(&end.connect)?;
    }
    println!("timed out {}, connected {}", counts[0], counts[1]);
    Ok(())
}

fn disconnect_races_accept(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let usual = usual_time(context, &ends)?;
    for round in 0..context.count(200) {
        ends.call(context, &[])?;
        let mut cr = ends.listener.request(context)?;
        let delay = usual.mul_f64(context.rng().f64() * 0.5);
        let accepted = std::thread::scope(|scope| {
            let accept = scope.spawn(|| cr.accept(&ends.server.ep, &[]));
            spin(delay);
            ends.client.ep.disconnect(Close::Abrupt)?;
            let accepted = accept.join().or_panicked()?;
            Ok::<_, anyhow::Error>(accepted.is_ok())
        })?;
        ends_once(context, &ends.client).with_context(|| format!("round {round}: client"))?;
        if accepted {
            ends_once(context, &ends.server).with_context(|| format!("round {round}: server"))?;
        }
        begin_anew(&ends).with_context(|| format!("round {round}"))?;
    }
    Ok(())
}

fn accept_then_disconnect(context: &Context) -> Result<()> {
    // A disconnect before the client's confirmation is a reject.
    context.rejects_arrive()?;
    let ends = ends(context)?;
    let usual = usual_time(context, &ends)?;
    let mut counts = [0; 2];
    for round in 0..context.count(300) {
        ends.call(context, &[])?;
        ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
        if context.rng().bool() {
            spin(usual.mul_f64(context.rng().f64() * 0.5));
        }
        ends.server.ep.disconnect(Close::Abrupt)?;
        // The client was never connected, or was connected and disconnected.
        match outcome(context, &ends.client)? {
            ConnectionEvent::NonPeerRejected => counts[0] += 1,
            ConnectionEvent::Established => {
                counts[1] += 1;
                connection(&context.next(&ends.client.connect)?, ConnectionEvent::Disconnected)
                    .with_context(|| format!("round {round}"))?;
            }
            other => bail!("round {round}: {other}"),
        }
        ends_once(context, &ends.server).with_context(|| format!("round {round}: server"))?;
        begin_anew(&ends).with_context(|| format!("round {round}"))?;
    }
    println!("never connected {}, disconnected {}", counts[0], counts[1]);
    Ok(())
}

/// Checks for DISCONNECTED, alone or after ESTABLISHED, or for a failed accept.
fn ends_once(context: &Context, end: &End) -> Result<()> {
    let mut event = context.next(&end.connect)?.kind();
    if event == EventKind::Connection(ConnectionEvent::Established) {
        event = context.next(&end.connect)?.kind();
    }
    let over = [ConnectionEvent::Disconnected, ConnectionEvent::AcceptCompletionError];
    ensure!(over.map(EventKind::Connection).contains(&event), "{event:?}");
    same("state", end.ep.query()?.state, EpState::Disconnected)
}
