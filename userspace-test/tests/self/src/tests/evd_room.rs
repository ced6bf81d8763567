// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connections on a short EVD that another thread fills whenever there is room.

use super::connect::{ends, Ends};
use super::ep_races::post;
use super::evd_full::no_overflow;
use super::tests;
use crate::context::Context;
use crate::end::End;
use crate::expect::connection;
use crate::threads::Joined;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, Ep, EpAttr, Evd, EvdFlags, Event, Type};
use std::sync::atomic::{AtomicBool, Ordering};

tests! {
    connection_end_finds_room, 120,
        "The end of a connection finds room on a short EVD that others fill while it is drained";
}

/// Number of receives that are posted for each connection.
const RECEIVES: u32 = 8;

/// Sets the flag when dropped.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Posts software events whenever there is room, until `enough` is set.
fn flood(evd: &Evd, enough: &AtomicBool) -> Result<()> {
    while !enough.load(Ordering::Relaxed) {
        match evd.post_se(0) {
            Ok(()) => {}
            Err(error) if error.kind() == Some(Type::QUEUE_FULL) => std::hint::spin_loop(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Returns the next event that is not a software event. Checks that no event is lost.
fn among(context: &Context, end: &End, evd: &Evd) -> Result<Event> {
    loop {
        match context.next(evd)? {
            // There are always more software events: a lost one would not be noticed.
            Event::Software { .. } => no_overflow(end)?,
            event => return Ok(event),
        }
    }
}

/// Runs one connection to an endpoint whose events all use one EVD. The peer ends it after a
/// message.
fn comes_and_goes(context: &Context, ends: &Ends, ep: &Ep, all: &Evd) -> Result<()> {
    let (client, server) = (&ends.client, &ends.server);
    let (address, port) = (context.server_address(), ends.listener.port);
    client.ep.connect(address, port, Some(context.patience()), &[])?;
    ends.listener.request(context)?.accept(ep, &[])?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Established)?;
    client.send(0, 64, 0)?;
    client.ep.disconnect(Close::Abrupt)?;
    connection(&among(context, server, all)?, ConnectionEvent::Established)?;
    for receive in 0..RECEIVES {
        let event = among(context, server, all)?;
        ensure!(matches!(event, Event::Dto(_)), "{event} in place of receive {receive}");
    }
    connection(&among(context, server, all)?, ConnectionEvent::Disconnected)?;
    connection(&context.next(&client.connect)?, ConnectionEvent::Disconnected)?;
    context.next(&client.request)?;
    Ok(())
}

/// Takes the remaining software events.
fn clear(evd: &Evd) -> Result<()> {
    loop {
        match evd.dequeue() {
            Ok((Event::Software { .. }, _)) => {}
            Ok((event, _)) => bail!("{event} after the end"),
            Err(error) if error.is_empty() => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn connection_end_finds_room(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let server = &ends.server;
    let rounds = if context.link_is_spoilt() { 10 } else { context.count(300).max(60) };
    for qlen in [1, 2, 8] {
        let flags = EvdFlags::DTO | EvdFlags::CONNECTION | EvdFlags::SOFTWARE;
        let all = server.ia.create_evd(flags, qlen)?;
        let attr = EpAttr { max_recv_dtos: RECEIVES, ..Default::default() };
        let ep = server.ia.create_ep(&server.pz, &all, &server.request, &all, Some(attr))?;
        for round in 0..rounds {
            post(server, &ep, 0..RECEIVES.into())?;
            let enough = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let poster = scope.spawn(|| flood(&all, &enough));
                let came = {
                    let _enough = StopOnDrop(&enough);
                    comes_and_goes(context, &ends, &ep, &all)
                };
                poster.join().or_panicked()??;
                came
            })
            .with_context(|| format!("round {round} of length {qlen}"))?;
            clear(&all)?;
            [&ep, &ends.client.ep].into_iter().try_for_each(Ep::reset)?;
        }
    }
    no_overflow(server)
}
