// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The timer of a connect whose attempt is over. It may still be started, with the time of that
//! attempt, and must not start itself again.

use super::connect::{ends, Ends};
use super::tests;
use crate::context::Context;
use crate::expect::{connection, same};
use crate::trace::Recording;
use anyhow::{ensure, Context as _, Result};
use libkdapl::{Close, ConnectionEvent, EpState};
use std::time::{Duration, Instant};

tests! {
    after_abandon, 60, "The timer of an abandoned connect runs once";
    after_reset, 60, "The timer of a connect before a reset runs once";
    in_next_attempt, 60, "The timer of an abandoned connect does not wake the next one again and again";
    after_established, 60, "The timer of a connect that was established runs once";
    after_time_out, 60, "The timer of a connect that has timed out runs once";
    beside_abandon, 120, "Timers that run beside the end of their attempts do not run again and again";
}

/// Time-out of the attempt whose timer is left, and of later ones.
const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(100);

/// Most work items of the module in a second. An adapter drains its EVDs several times; a timer
/// that starts itself again after two ticks makes fifty or more.
const FEW: u64 = 15;

/// Connects with the short time-out, without an answer.
fn connecting(context: &Context) -> Result<Ends> {
    let ends = ends(context)?;
    connect(context, &ends, SHORT)?;
    Ok(ends)
}

fn connect(context: &Context, ends: &Ends, time: Duration) -> Result<()> {
    let to = context.server_address();
    ends.client.ep.connect(to, ends.listener.port, Some(time), &[])?;
    same("state", ends.client.ep.status()?.state, EpState::ActiveConnectionPending)
}

fn abandon(context: &Context, ends: &Ends) -> Result<()> {
    ends.client.ep.disconnect(Close::Abrupt)?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::Disconnected)
}

/// Counts the module's work items until the time-out is long over, and checks the state.
fn is_quiet(context: &Context, ends: &Ends, time: Duration, state: EpState) -> Result<()> {
    makes_few_work_items(ends, time, state)?;
    context.quiet(&ends.client.connect).context("events")
}

fn makes_few_work_items(ends: &Ends, time: Duration, state: EpState) -> Result<()> {
    let (recording, start) = (Recording::of_work()?, Instant::now());
    std::thread::sleep(time + Duration::from_secs(1));
    let (work, most) = (recording.work_of("kdapl")?, FEW * (start.elapsed().as_secs() + 1));
    same("state", ends.client.ep.status()?.state, state)?;
    ensure!(work.len() as u64 <= most, "{} work items, {most} allowed: {work:?}", work.len());
    Ok(())
}

fn after_abandon(context: &Context) -> Result<()> {
    let ends = connecting(context)?;
    abandon(context, &ends)?;
    is_quiet(context, &ends, SHORT, EpState::Disconnected)
}

fn after_reset(context: &Context) -> Result<()> {
    let ends = connecting(context)?;
    abandon(context, &ends)?;
    ends.client.ep.reset()?;
    is_quiet(context, &ends, SHORT, EpState::Unconnected)
}

fn in_next_attempt(context: &Context) -> Result<()> {
    let ends = connecting(context)?;
    abandon(context, &ends)?;
    ends.client.ep.reset()?;
    connect(context, &ends, LONG)?;
    is_quiet(context, &ends, SHORT, EpState::ActiveConnectionPending)
}

fn after_established(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    // So long that the answer comes in time.
    let time = context.scaled(SHORT);
    connect(context, &ends, time)?;
    ends.listener.request(context)?.accept(&ends.server.ep, &[])?;
    for end in [&ends.client, &ends.server] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    is_quiet(context, &ends, time, EpState::Connected)
}

fn after_time_out(context: &Context) -> Result<()> {
    let ends = connecting(context)?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::TimedOut)?;
    is_quiet(context, &ends, SHORT, EpState::Disconnected)
}

/// Abandons attempts at about the time at which their timers run. Every second one is followed by
/// another attempt.
fn beside_abandon(context: &Context) -> Result<()> {
    const ATTEMPTS: u32 = 32;
    let time = Duration::from_millis(20);
    let ends = ends(context)?;
    let mut eps = Vec::new();
    for attempt in 0..ATTEMPTS {
        let ep = ends.client.another_ep()?;
        let connect =
            |time| ep.connect(context.server_address(), ends.listener.port, Some(time), &[]);
        connect(time)?;
        // The timer counts in ticks, and is late by up to two.
        std::thread::sleep(time + Duration::from_millis(1) * attempt - Duration::from_millis(2));
        // It may have timed out.
        let _ = ep.disconnect(Close::Abrupt);
        context.next(&ends.client.connect)?;
        if attempt % 2 == 1 {
            ep.reset()?;
            connect(LONG)?;
        }
        eps.push(ep);
    }
    let state = ends.client.ep.status()?.state;
    // siw itself gives up a peer that has not answered for ten seconds.
    if context.client.is_siw() {
        return makes_few_work_items(&ends, time, state);
    }
    is_quiet(context, &ends, time, state)
}
