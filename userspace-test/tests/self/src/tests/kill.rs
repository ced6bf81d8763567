// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Kills a process: the peer gets an event, and no object remains.

use super::tests;
use crate::context::Context;
use crate::end::Listener;
use crate::machine;
use crate::peer::{Part, Peer, Step, STEPS};
use crate::repeat::unheard;
use crate::threads::Joined;
use crate::traffic::Traffic;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, Event};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

tests! {
    #[Transport]
    two_processes, 60, "Two processes transfer, one disconnects, the other gets the event";
    #[Transport]
    client_at_each_step, 240, "A client killed at each step of a transfer leaves nothing behind, and the server gets an event";
    #[Transport]
    server_at_each_step, 240, "A server killed at each step of a transfer leaves nothing behind, and the client gets an event";
    client_at_random, 900, "A client killed at a random moment, again and again, leaves nothing behind";
    server_at_random, 900, "A server killed at a random moment, again and again, leaves nothing behind";
}

/// Checks for an event that may end an attempt, whether or not the connection was established.
fn attempt_over(event: ConnectionEvent) -> Result<()> {
    match event {
        ConnectionEvent::NonPeerRejected
        | ConnectionEvent::PeerRejected
        | ConnectionEvent::TimedOut
        | ConnectionEvent::Unreachable
        | ConnectionEvent::AcceptCompletionError
        | ConnectionEvent::Disconnected
        | ConnectionEvent::Broken => Ok(()),
        other => bail!("the other process is dead, but the event is {other}"),
    }
}

fn connection_over(event: ConnectionEvent) -> Result<()> {
    let over = matches!(event, ConnectionEvent::Disconnected | ConnectionEvent::Broken);
    ensure!(over, "the other process is dead, but the event is {event}");
    Ok(())
}

fn two_processes(context: &Context) -> Result<()> {
    let ia = context.open_server()?;
    let listener = Listener::new(context, &ia)?;
    let mut traffic = Traffic::new(context, &ia)?;
    traffic.post_receives()?;
    let stop = Some(Step::Disconnecting);
    let mut peer = Peer::start(context, Part::Client, listener.port, stop)?;
    traffic.accept(context, &listener)?;
    traffic.established(context)?;
    traffic.begin()?;
    let last = traffic.run_out(context)?;
    ensure!(context.ends_of_traffic().contains(&last), "the last event is {last}");
    peer.reaches(Step::Disconnecting)
}

/// Waits until only this process has objects: `eps` endpoints, until `traffic` is dropped.
fn gone(context: &Context, eps: u64) -> Result<()> {
    context.until("the dead process's objects are gone", || {
        Ok(machine::count_of("ep")? == eps && machine::count_of("ia")? == eps.min(1))
    })
}

/// Serves a client, which dies when `die` returns.
fn client_dies(
    context: &Context,
    stop: Option<Step>,
    die: impl FnOnce(&mut Peer) -> Result<()> + Send,
) -> Result<()> {
    let ia = context.open_server()?;
    let listener = Listener::new(context, &ia)?;
    let mut traffic = Traffic::new(context, &ia)?;
    traffic.post_receives()?;
    let mut peer = Peer::start(context, Part::Client, listener.port, stop)?;
    let accepts = stop.is_none_or(|step| step > Step::Connecting);
    let dead = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let killer = scope.spawn(move || -> Result<()> {
            let died = die(&mut peer).and_then(|()| peer.kill());
            dead.store(true, Ordering::Relaxed);
            died
        });
        let outcome =
            if accepts { serve(context, &mut traffic, &listener, stop, dead) } else { Ok(()) };
        both(killer.join().or_panicked()?, outcome)
    })?;
    gone(context, 1)
}

fn serve(
    context: &Context,
    traffic: &mut Traffic,
    listener: &Listener,
    stop: Option<Step>,
    dead: &AtomicBool,
) -> Result<()> {
    if stop.is_some() {
        traffic.accept(context, listener)?;
        return finish(context, traffic, stop);
    }
    // The client may be dead before it connects, or before its request is answered.
    let slice = Some(Duration::from_millis(20));
    loop {
        let died = dead.load(Ordering::Relaxed);
        match listener.evd.wait(slice, 1) {
            Ok((Event::ConnectionRequest { mut cr, .. }, _)) => {
                return match traffic.accept_request(&mut cr) {
                    Ok(()) => finish(context, traffic, stop),
                    Err(_) => Ok(()),
                };
            }
            Ok((other, _)) => bail!("expected a request, got {other}"),
            Err(error) if error.is_timeout() && died => return Ok(()),
            Err(error) if error.is_timeout() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Runs the traffic from the accept to the end.
fn finish(context: &Context, traffic: &mut Traffic, stop: Option<Step>) -> Result<()> {
    let first = traffic.first_event(context)?;
    if first != ConnectionEvent::Established {
        // The confirmation may have been lost, and the process dies before it repeats it.
        let unconfirmed =
            context.link_is_spoilt() && first == ConnectionEvent::AcceptCompletionError;
        // Over iWARP the accepting side proceeds at once, and may be dead before its answer is
        // read.
        let unread = context.client.is_iwarp() && first == ConnectionEvent::NonPeerRejected;
        let early = stop.is_none_or(|step| step <= Step::Connecting);
        if !(early || unconfirmed || unread) {
            unheard!("expected a connection, got {first}");
        }
        return attempt_over(first);
    }
    traffic.begin()?;
    connection_over(traffic.run_out(context)?)
}

/// Connects to a server, which dies when `die` returns.
fn server_dies(
    context: &Context,
    stop: Option<Step>,
    die: impl FnOnce(&mut Peer) -> Result<()> + Send,
) -> Result<()> {
    let ia = context.open()?;
    let mut traffic = Traffic::new(context, &ia)?;
    traffic.post_receives()?;
    let port = context.port();
    let mut peer = Peer::start(context, Part::Server, port, stop)?;
    peer.reaches(Step::Opened)?;
    traffic.connect(context, port)?;
    std::thread::scope(|scope| {
        let killer = scope.spawn(move || die(&mut peer).and_then(|()| peer.kill()));
        let outcome = finish(context, &mut traffic, stop);
        both(killer.join().or_panicked()?, outcome)
    })?;
    gone(context, 1)
}

/// Combines the failures of the other process and of this one.
fn both(there: Result<()>, here: Result<()>) -> Result<()> {
    match (there, here) {
        (Err(there), Err(here)) => Err(there.context(format!("and here: {here:#}"))),
        (there, here) => there.and(here),
    }
}

fn client_at_each_step(context: &Context) -> Result<()> {
    for step in STEPS {
        client_dies(context, Some(step), |peer| peer.reaches(step))
            .with_context(|| format!("killed at {step:?}"))?;
    }
    Ok(())
}

fn server_at_each_step(context: &Context) -> Result<()> {
    for step in STEPS {
        // `server_dies` has waited for the first step already.
        let die = |peer: &mut Peer| if step == Step::Opened { Ok(()) } else { peer.reaches(step) };
        server_dies(context, Some(step), die).with_context(|| format!("killed at {step:?}"))?;
    }
    Ok(())
}

/// Returns a random duration, and sleeps for it: half of the time from the start, half of the time
/// during the traffic.
fn a_while(context: &Context) -> (Duration, impl FnOnce(&mut Peer) -> Result<()> + Send) {
    let transferring = context.rng().bool();
    let most =
        if transferring { 10_000 } else { context.scaled(Duration::from_millis(60)).as_micros() };
    let time = Duration::from_micros(context.rng().u64(0..most as u64));
    let die = move |peer: &mut Peer| {
        if transferring {
            peer.reaches(Step::Transferring)?;
        }
        std::thread::sleep(time);
        Ok(())
    };
    (time, die)
}

fn times(context: &Context) -> u64 {
    let effort = context.settings.effort;
    let times = if effort < 1.0 { context.count(1000) } else { (200.0 * effort) as u64 };
    println!("killed {times} times");
    times
}

fn client_at_random(context: &Context) -> Result<()> {
    let times = times(context);
    for round in 0..times {
        let (time, die) = a_while(context);
        client_dies(context, None, die)
            .with_context(|| format!("round {round}, killed after {time:?}"))?;
    }
    Ok(())
}

fn server_at_random(context: &Context) -> Result<()> {
    let times = times(context);
    for round in 0..times {
        let (time, die) = a_while(context);
        server_dies(context, None, die)
            .with_context(|| format!("round {round}, killed after {time:?}"))?;
    }
    Ok(())
}
