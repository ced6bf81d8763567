// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The network goes away under connections: nobody says goodbye.

use super::tests;
use crate::context::Context;
use crate::end::{Listener, Pair, Shape};
use crate::expect::{connection, connection_over, same};
use crate::harness::skip;
use crate::hosts::Host;
use anyhow::{bail, ensure, Result};
use libkdapl::{ConnectionEvent, DtoStatus, EpState, Event};
use std::time::{Duration, Instant};

tests! {
    silent_peer, 240, "A peer that falls silent is told as BROKEN, though nobody takes completions";
    silent_while_connecting, 240, "A link that goes down while connecting is told as UNREACHABLE or TIMED_OUT, once";
}

/// Seven retries of half a second each, and some.
pub const GIVE_UP: Duration = Duration::from_secs(30);

/// A link that comes up again when dropped.
pub struct Unplugged<'a>(&'a Host);

impl<'a> Unplugged<'a> {
    pub fn new(host: &'a Host) -> Result<Self> {
        host.command(&format!("ip link set {} down", host.netdev))?;
        Ok(Self(host))
    }
}

impl Drop for Unplugged<'_> {
    fn drop(&mut self) {
        // The next test says so if that fails.
        let _ = self.0.command(&format!("ip link set {} up", self.0.netdev));
    }
}

pub fn two_hosts(context: &Context) -> Result<()> {
    if context.client.device == context.server.device {
        return skip("client and server are on one device, which no link connects".to_string());
    }
    Ok(())
}

/// Both links are up again.
pub fn back(context: &Context) -> Result<()> {
    context.until("the links are up", || Ok(context.client.is_up()? && context.server.is_up()?))
}

pub fn next_within(context: &Context, evd: &libkdapl::Evd, time: Duration) -> Result<Event> {
    let end = Instant::now() + context.scaled(time);
    loop {
        match evd.wait(Some(Duration::from_millis(500)), 1) {
            Ok((event, _)) => return Ok(event),
            Err(error) if error.is_timeout() && Instant::now() < end => {}
            Err(error) if error.is_interrupted() => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn silent_peer(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let pair = Pair::new(context, Shape::default())?;
    pair.server.receive(0, 64, 1)?;
    {
        let _unplugged = Unplugged::new(&context.server)?;
        pair.client.send(0, 64, 2)?;
        // Nobody looks at the send's completion.
        let event = next_within(context, &pair.client.connect, GIVE_UP)?;
        let iwarp = context.client.is_iwarp();
        if iwarp {
            // TCP gives up as it does when a peer says goodbye.
            connection_over(&event)?;
        } else {
            connection(&event, ConnectionEvent::Broken)?;
        }
        same("state", pair.client.ep.status()?.state, EpState::Disconnected)?;
        match pair.client.request.dequeue()?.0 {
            // Over iWARP it is complete once TCP has it.
            Event::Dto(dto) if iwarp => same("status", dto.status, DtoStatus::Success)?,
            Event::Dto(dto) => ensure!(dto.status != DtoStatus::Success, "the send succeeded"),
            other => bail!("{other} instead of the send's completion"),
        }
    }
    back(context)
}

fn silent_while_connecting(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let (client, server) = context.open_both()?;
    let listener = Listener::new(context, &server)?;
    let end = crate::end::End::new(&client, Shape::default())?;
    {
        let _unplugged = Unplugged::new(&context.server)?;
        let timeout = Some(Duration::from_secs(2));
        match end.ep.connect(context.server_address(), listener.port, timeout, &[]) {
            Ok(()) => match next_within(context, &end.connect, GIVE_UP)? {
                Event::Connection {
                    event: ConnectionEvent::Unreachable | ConnectionEvent::TimedOut,
                    ..
                } => same("state", end.ep.status()?.state, EpState::Disconnected)?,
                other => bail!("{other} over a link that is down"),
            },
            // The way to there is known to be gone.
            Err(_) => same("state", end.ep.status()?.state, EpState::Unconnected)?,
        }
        context.quiet(&end.connect)?;
    }
    back(context)
}
