// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Removal of a network device's address under connections, and its return.

use super::silent_peer::{back, next_within, two_hosts, MAX_RECOVERY_TIME};
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Pair, Shape};
use crate::expect::{connection_over, same};
use crate::harness::skip;
use crate::hosts::Host;
use crate::machine::DeviceGuard;
use crate::threads::Joined;
use crate::traffic::Traffic;
use anyhow::{bail, ensure, Context as _, Result};
use libkdapl::{ConnectionEvent, DtoStatus, EpState, Event, EventKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

tests! {
    under_traffic, 240,
        "Removing and restoring an address under traffic leaves no connection stuck";
    one_send, 240,
        "A send to an address that is removed and restored completes, or the connection is BROKEN";
    while_connecting, 240, "Removing an address during a connect leaves neither side stuck";
}

/// Number of transfers that prove that a connection works again.
const PROOF_TRANSFERS: u64 = 100;
/// One shorter and one longer than the transport's time-out for an answer.
const ABSENCE_TIMES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(1500)];

/// Removes an address, and restores it when dropped.
pub struct RemovedAddress<'a>(&'a Host);

impl<'a> RemovedAddress<'a> {
    pub fn new(host: &'a Host) -> Result<Self> {
        host.remove_address()?;
        Ok(Self(host))
    }
}

impl Drop for RemovedAddress<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.0.add_address();
    }
}

pub fn renew(devices: &DeviceGuard) -> Result<()> {
    devices.delete()?;
    devices.add()
}

/// Removes each host's address for each duration. Soft-RoCE's own QP for connection management may
/// not survive that. Only a new device has a working one, so each case begins with new devices.
fn each_case(context: &Context, case: impl Fn(&Host, Duration) -> Result<()>) -> Result<()> {
    two_hosts(context)?;
    let guard = DeviceGuard::new(context)?;
    let hosts = [("client", &context.client), ("server", &context.server)];
    for (number, (name, host)) in hosts.into_iter().enumerate() {
        // With less effort, one duration for each host.
        let absences = if context.settings.effort < 1.0 {
            &ABSENCE_TIMES[number..=number]
        } else {
            &ABSENCE_TIMES
        };
        for &absence in absences {
            renew(&guard)?;
            case(host, absence)
                .with_context(|| format!("the {name}'s address was gone for {absence:?}"))?;
        }
    }
    renew(&guard)?;
    Pair::new(context, Shape::default()).context("with new devices").map(drop)
}

/// Transfers until the connection works again after `back`, or ends.
fn transfer(context: &Context, traffic: &mut Traffic, back: &AtomicBool) -> Result<()> {
    let end = Instant::now() + 3 * context.scaled(MAX_RECOVERY_TIME);
    while !back.load(Ordering::Relaxed) {
        if traffic.run(context, 1)?.is_some() {
            return Ok(());
        }
    }
    for _ in 0..PROOF_TRANSFERS {
        ensure!(Instant::now() < end, "transfers are too slow");
        if let Some(last) = traffic.run(context, 1)? {
            println!("{last}");
            return Ok(());
        }
    }
    println!("the connection works again");
    Ok(())
}

fn under_traffic(context: &Context) -> Result<()> {
    context.addresses_may_go()?;
    each_case(context, |host, absence| {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        // Soft-RoCE does not survive RDMA reads of several packets, see `Context::loses_reads`.
        let mut client = Traffic::of_packets(&client_ia)?;
        let mut server = Traffic::of_packets(&server_ia)?;
        for traffic in [&client, &server] {
            traffic.post_receives()?;
        }
        client.connect(context, listener.port)?;
        server.accept(context, &listener)?;
        for traffic in [&mut client, &mut server] {
            traffic.established(context)?;
            traffic.begin()?;
        }
        let back = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads = [client, server].map(|mut traffic| {
                let (mine, back) = (context.new_for_thread(), &back);
                scope.spawn(move || {
                    let outcome = transfer(&mine, &mut traffic, back);
                    let end = traffic.end.ep.status();
                    // Keep this side until the other side's transfers end.
                    (outcome.with_context(|| format!("{end:?}")), traffic)
                })
            });
            std::thread::sleep(Duration::from_millis(20));
            let gone = RemovedAddress::new(host)?;
            std::thread::sleep(absence);
            drop(gone);
            back.store(true, Ordering::Relaxed);
            for (side, thread) in ["client", "server"].into_iter().zip(threads) {
                let (outcome, _traffic) = thread.join().or_panicked()?;
                outcome.context(side)?;
            }
            Ok(())
        })
    })
}

fn one_send(context: &Context) -> Result<()> {
    context.addresses_may_go()?;
    each_case(context, |host, absence| {
        let pair = Pair::new(context, Shape::default())?;
        let ends = [&pair.client, &pair.server];
        ends.iter().try_for_each(|end| end.receive(0, 64, 1))?;
        let gone = RemovedAddress::new(host)?;
        ends.iter().try_for_each(|end| end.send(64, 64, 2))?;
        std::thread::sleep(absence);
        drop(gone);
        for end in ends {
            let Event::Dto(dto) = next_within(context, &end.request, MAX_RECOVERY_TIME)? else {
                bail!("expected a completion");
            };
            println!("{}", dto.status);
            if dto.status != DtoStatus::Success {
                connection_over(&next_within(context, &end.connect, MAX_RECOVERY_TIME)?)?;
                same("state", end.ep.status()?.state, EpState::Disconnected)?;
            }
        }
        Ok(())
    })
}

fn while_connecting(context: &Context) -> Result<()> {
    context.addresses_may_go()?;
    if context.link_is_spoilt() {
        return skip("the time-outs of the connection manager add up to minutes");
    }
    each_case(context, |host, absence| {
        let (client_ia, server_ia) = context.open_both()?;
        let listener = Listener::new(context, &server_ia)?;
        let client = End::new(&client_ia, Shape::default())?;
        let server = End::new(&server_ia, Shape::default())?;
        let timeout = Some(absence + Duration::from_secs(1));
        client.ep.connect(context.server_address(), listener.port, timeout, &[])?;
        let mut cr = listener.request(context)?;
        let gone = RemovedAddress::new(host)?;
        let accepted = cr.accept(&server.ep, &[]);
        std::thread::sleep(absence);
        drop(gone);
        let connected = attempt_ends(&next_within(context, &client.connect, MAX_RECOVERY_TIME)?)?;
        println!("the client is connected: {connected}, accepted: {accepted:?}");
        let rightly = if connected { EpState::Connected } else { EpState::Disconnected };
        let mut ends = vec![(&client, rightly)];
        if accepted.is_ok() {
            // The attempt of the accepting side ends when its CM times out.
            let connected =
                attempt_ends(&next_within(context, &server.connect, 3 * MAX_RECOVERY_TIME)?)?;
            println!("the server is connected: {connected}");
            ends.push((
                &server,
                if connected { EpState::Connected } else { EpState::Disconnected },
            ));
        }
        for (end, state) in ends {
            same("state", end.ep.status()?.state, state)?;
        }
        back(context)
    })
}

/// Checks whether the attempt has led to a connection. An event that does not end it is an error.
fn attempt_ends(event: &Event) -> Result<bool> {
    match event.kind() {
        EventKind::Connection(ConnectionEvent::Established) => Ok(true),
        EventKind::Connection(
            ConnectionEvent::TimedOut
            | ConnectionEvent::Unreachable
            | ConnectionEvent::NonPeerRejected
            | ConnectionEvent::AcceptCompletionError,
        ) => Ok(false),
        _ => bail!("{event} while an address was gone"),
    }
}
