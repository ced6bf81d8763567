// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A peer that sends a message before this side has confirmed the connection.
//!
//! A queue pair receives before it can send. `kdapl_disguise` holds it between these two states.

use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, done, dto, empty, same};
use crate::harness::skip;
use crate::plain::Plain;
use anyhow::{Context as _, Result};
use libkdapl::{Close, ConnectionEvent, Dto, DtoOperation, DtoStatus, EpState};
use std::time::Duration;

tests! {
    list_follows_established, 120, "A list of requests that answers a message before the confirmation is posted once the queue pair can send";
    follows_established, 120, "A message that comes before the confirmation is reported after ESTABLISHED, and can be answered at once";
    disconnected, 120, "A connection that a message has established before its confirmation can be ended at once";
}

/// Bytes of the peer's message.
const LENGTH: usize = 64;

/// An endpoint whose queue pair is held, with the peer's message in its memory.
struct EarlyMessage {
    end: End,
    peer: Plain,
    disguise: Loaded,
}

impl EarlyMessage {
    fn new(context: &Context) -> Result<Self> {
        if context.client.is_iwarp() {
            return skip("over iWARP the driver connects queue pairs: see iwarp_early_receives");
        }
        let disguise = Loaded::new("kdapl_disguise", &format!("device={}", context.client.device))?;
        disguise.set("hold_in_rtr", 1)?;
        let shape = Shape { merged: true, ..Shape::default() };
        let end = End::new(&context.open()?, shape)?;
        (1..=2).try_for_each(|cookie| end.receive(0, LENGTH, cookie))?;
        let port = context.port();
        let mut peer = Plain::listen(context, port, &["--early"])?;
        end.ep.connect(context.server_address(), port, None, &[])?;
        peer.says("request")?;
        context.until("the queue pair is held", || Ok(disguise.parameter("in_rtr")? == 1))?;
        Ok(Self { end, peer, disguise })
    }

    /// Takes ESTABLISHED, and then the message.
    fn established(&self, context: &Context) -> Result<()> {
        connection(&context.next(&self.end.recv)?, ConnectionEvent::Established)?;
        done(&context.next(&self.end.recv)?, DtoOperation::Receive, LENGTH as u64, 1)?;
        same("state", self.end.ep.status()?.state, EpState::Connected)?;
        same("queue pairs that are held", self.disguise.parameter("in_rtr")?, 1)
    }

    /// Makes a call that waits for the queue pair, and releases that.
    fn release_during(&self, call: impl FnOnce(&End) -> Result<()> + Send) -> Result<()> {
        std::thread::scope(|scope| {
            let call = scope.spawn(|| call(&self.end));
            std::thread::sleep(Duration::from_millis(50));
            empty(&self.end.recv)?;
            same("posts to the held queue pair", self.disguise.parameter("early_posts")?, 0)?;
            self.disguise.set("hold_in_rtr", 0)?;
            call.join().ok().context("the thread of the call has panicked")?
        })
    }
}

fn follows_established(context: &Context) -> Result<()> {
    let mut early = EarlyMessage::new(context)?;
    early.established(context)?;
    early.release_during(|end| end.send(0, LENGTH, 3))?;
    done(&context.next(&early.end.recv)?, DtoOperation::Send, LENGTH as u64, 3)?;
    early.peer.says("established")?;
    early.end.ep.disconnect(Close::Graceful)?;
    early.peer.says("disconnected")?;
    early.peer.succeeds()?;
    early.disguise.unload()
}

fn list_follows_established(context: &Context) -> Result<()> {
    let early = EarlyMessage::new(context)?;
    early.established(context)?;
    early.release_during(|end| {
        let segments = [end.lmr.segment(0, LENGTH)];
        let sends = [3, 4].map(|cookie| Dto::send(&segments, cookie, Default::default()));
        same("posted", end.ep.submit(&sends, None).posted, 2)
    })?;
    for cookie in [3, 4] {
        done(&context.next(&early.end.recv)?, DtoOperation::Send, LENGTH as u64, cookie)?;
    }
    early.disguise.unload()
}

fn disconnected(context: &Context) -> Result<()> {
    let mut early = EarlyMessage::new(context)?;
    early.established(context)?;
    early.release_during(|end| Ok(end.ep.disconnect(Close::Abrupt)?))?;
    dto(&context.next(&early.end.recv)?, DtoOperation::Receive, DtoStatus::Flushed)?;
    connection(&context.next(&early.end.recv)?, ConnectionEvent::Disconnected)?;
    early.peer.kill()?;
    early.disguise.unload()
}
