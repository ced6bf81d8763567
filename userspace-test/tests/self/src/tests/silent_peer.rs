// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Loses the network of connections: no disconnect arrives.

use super::address_loss::renew;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection, connection_over, dto, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::machine::DeviceGuard;
use anyhow::{bail, ensure, Result};
use libkdapl::{ConnectionEvent, DtoOperation, DtoStatus, EpState, Evd, Event};
use std::time::{Duration, Instant};

tests! {
    #[Defaults]
    default_timeout, 240, "By default a connection outlives a silence of both hosts, and no message is lost";
    #[Hosts]
    short_timeout, 240, "With a peer time-out of two seconds a silent peer is BROKEN after two seconds, and not much later";
    #[Hosts]
    broken_without_dequeue, 240, "A silent peer is reported as BROKEN, even if no completion is dequeued";
    link_down_while_connecting, 240, "A link that goes down during a connect is reported as TIMED_OUT, once";
}

/// Longest time until the connection to a silent peer ends, or until a peer answers again.
pub const MAX_RECOVERY_TIME: Duration = Duration::from_secs(60);

/// Peer time-out of the tests that measure it.
const IMPATIENT_MS: u32 = 2_000;

/// Takes a link down, and up again when dropped.
pub struct LinkDown<'a>(&'a Host);

impl<'a> LinkDown<'a> {
    pub fn new(host: &'a Host) -> Result<Self> {
        host.command(&format!("ip link set {} down", host.netdev))?;
        Ok(Self(host))
    }
}

impl Drop for LinkDown<'_> {
    fn drop(&mut self) {
        // If that fails, the next test reports it.
        let _ = self.0.command(&format!("ip link set {} up", self.0.netdev));
    }
}

pub fn two_hosts(context: &Context) -> Result<()> {
    if context.client.device == context.server.device {
        return skip("client and server use one device, so there is no link".to_string());
    }
    Ok(())
}

/// Waits until both links are up again.
pub fn back(context: &Context) -> Result<()> {
    context.until("the links are up", || Ok(context.client.is_up()? && context.server.is_up()?))
}

/// Waits until both links are up again after one was down, and renews software devices.
///
/// Soft-RoCE's own QP for connection management fails for good if it has to send a packet without a
/// route. The disconnects of earlier tests are repeated for some time.
fn renewed_after_loss(context: &Context) -> Result<()> {
    back(context)?;
    if context.hosts().iter().all(|host| host.driver().is_some()) {
        renew(&DeviceGuard::new(context)?)?;
    }
    Ok(())
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

/// Drops all packets between the hosts. Unlike with a link that is down, no send fails.
pub struct PacketsDropped<'a>(&'a Context);

impl<'a> PacketsDropped<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        // If the second host fails, the drop restores the first.
        let silence = Self(context);
        context.hosts().into_iter().try_for_each(|host| host.spoil("loss 100%"))?;
        Ok(silence)
    }
}

impl Drop for PacketsDropped<'_> {
    fn drop(&mut self) {
        let usual = self.0.settings.layout.netem.unwrap_or_default();
        for host in self.0.hosts() {
            // If that fails, the next test reports it.
            let _ = host.spoil(usual);
        }
    }
}

/// Messages of each side during the silence.
const MESSAGES: u64 = 8;

/// Returns the content of a message.
fn message(number: u64) -> [u8; 64] {
    [number as u8 + 1; 64]
}

/// Sends a message from an address of its own.
fn send_message(end: &End, number: u64) -> Result<()> {
    let offset = 4096 + 64 * number as usize;
    end.lmr.buffer().write(offset, &message(number));
    end.send(offset, 64, number)
}

/// Checks that the next completion of an EVD is a success with this cookie.
fn succeeded(context: &Context, evd: &Evd, number: u64) -> Result<()> {
    match next_within(context, evd, MAX_RECOVERY_TIME)? {
        Event::Dto(dto) => {
            same("status", dto.status, DtoStatus::Success)?;
            same("cookie", dto.cookie, number)
        }
        other => bail!("expected a completion, got {other}"),
    }
}

fn default_timeout(context: &Context) -> Result<()> {
    two_hosts(context)?;
    if context.client.is_siw() {
        return skip("TCP gives up after seconds here, see `hosts.rs`".to_string());
    }
    let silence = Duration::from_secs(if context.settings.effort < 1.0 { 8 } else { 20 });
    let pair = Pair::new(context, Shape::default())?;
    let ends = [&pair.client, &pair.server];
    for end in ends {
        (0..MESSAGES).try_for_each(|number| end.receive(64 * number as usize, 64, number))?;
        // Half of the messages are sent before the silence, half in it.
        (0..MESSAGES / 2).try_for_each(|number| send_message(end, number))?;
    }
    {
        let _silence = PacketsDropped::new(context)?;
        for end in ends {
            (MESSAGES / 2..MESSAGES).try_for_each(|number| send_message(end, number))?;
        }
        std::thread::sleep(silence);
        for end in ends {
            same("state", end.ep.status()?.state, EpState::Connected)?;
        }
    }
    for end in ends {
        for number in 0..MESSAGES {
            succeeded(context, &end.request, number)?;
            succeeded(context, &end.recv, number)?;
            let mut arrived = [0; 64];
            end.lmr.buffer().read(64 * number as usize, &mut arrived);
            same("message", arrived, message(number))?;
        }
    }
    for end in ends {
        context.quiet(&end.connect)?;
    }
    Ok(())
}

fn short_timeout(context: &Context) -> Result<()> {
    two_hosts(context)?;
    if context.client.is_iwarp() {
        return skip("over iWARP TCP decides when a peer is dead".to_string());
    }
    let shape = Shape { peer_timeout_ms: IMPATIENT_MS, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    pair.server.receive(0, 64, 1)?;
    let _silence = PacketsDropped::new(context)?;
    let start = Instant::now();
    pair.client.send(0, 64, 2)?;
    let event = next_within(context, &pair.client.connect, MAX_RECOVERY_TIME)?;
    let time = start.elapsed();
    connection(&event, ConnectionEvent::Broken)?;
    let patience = Duration::from_millis(IMPATIENT_MS.into());
    println!("the peer was given up after {time:?}");
    let event = pair.client.request.dequeue()?.0;
    dto(&event, DtoOperation::Send, DtoStatus::Transport)?;
    ensure!(time >= patience, "the peer was given up after {time:?}");
    // Twice the time-out, and a margin for a busy machine. The default would be half a minute.
    ensure!(
        time < 2 * patience + Duration::from_secs(10),
        "the peer was given up only after {time:?}"
    );
    Ok(())
}

fn broken_without_dequeue(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let shape = Shape { peer_timeout_ms: IMPATIENT_MS, ..Default::default() };
    let pair = Pair::new(context, shape)?;
    pair.server.receive(0, 64, 1)?;
    {
        let _unplugged = LinkDown::new(&context.server)?;
        pair.client.send(0, 64, 2)?;
        // The completion of the send is not dequeued.
        let event = next_within(context, &pair.client.connect, MAX_RECOVERY_TIME)?;
        let iwarp = context.client.is_iwarp();
        if iwarp {
            // TCP reports this end like a disconnect.
            connection_over(&event)?;
        } else {
            connection(&event, ConnectionEvent::Broken)?;
        }
        same("state", pair.client.ep.status()?.state, EpState::Disconnected)?;
        match pair.client.request.dequeue()?.0 {
            // Over iWARP a send is complete once TCP has it.
            Event::Dto(dto) if iwarp => same("status", dto.status, DtoStatus::Success)?,
            // Without a link soft-RoCE cannot build the packet again. It fails the queue pair, and
            // flushes the request (`rxe_requester`, `flush_send_queue`).
            Event::Dto(dto) if context.client.driver().as_deref() == Some("rxe") => {
                same("status", dto.status, DtoStatus::Flushed)?
            }
            Event::Dto(dto) => same("status", dto.status, DtoStatus::Transport)?,
            other => bail!("expected the completion of the send, got {other}"),
        }
    }
    renewed_after_loss(context)
}

fn link_down_while_connecting(context: &Context) -> Result<()> {
    two_hosts(context)?;
    let (client, server) = context.open_both()?;
    let listener = Listener::new(context, &server)?;
    let end = End::new(&client, Shape::default())?;
    {
        let _unplugged = LinkDown::new(&context.server)?;
        // The kernel looks for the peer's hardware address for three seconds.
        let timeout = Some(Duration::from_secs(2));
        end.ep.connect(context.server_address(), listener.port, timeout, &[])?;
        let event = next_within(context, &end.connect, MAX_RECOVERY_TIME)?;
        connection(&event, ConnectionEvent::TimedOut)?;
        same("state", end.ep.status()?.state, EpState::Disconnected)?;
        context.quiet(&end.connect)?;
    }
    renewed_after_loss(context)
}
