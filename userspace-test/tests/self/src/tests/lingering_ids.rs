// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ids that wait for the peer's answer to a disconnect (`rust/rdma/cm/lingering_ids.rs`). Each
//! repeats its request, so the peer learns of the end of the connection although the first request
//! was lost. If a user has more than the limit, the oldest go, and their peers learn nothing.

use super::many_connections::{connect_all, SmallEps};
use super::silent_peer::{two_hosts, PacketsDropped};
use super::tests;
use crate::context::Context;
use crate::end::Listener;
use crate::expect::{connection, same};
use crate::harness::skip;
use crate::machine::{become_user_with, CAP_SYS_RAWIO};
use anyhow::{Context as _, Result};
use libkdapl::{Close, ConnectionEvent, EpState, Ia};
use std::time::{Duration, Instant};

tests! {
    #[Hosts]
    oldest_of_user_go, 300, "Beyond 1,024 unanswered disconnects of a user its oldest are given up, and no other user's";
}

/// The limit of a user, and how many more it has here.
const LIMIT: usize = 1_024;
const MORE: usize = 40;
/// Connections of the other user, which ends them first.
const OTHERS: usize = 4;
const OTHER_USER: u32 = 4_711;
/// Ids wait so long for an answer, in seconds. The test needs a part of it.
const WAIT: u64 = 30;

/// Opens the client's adapter as another user.
fn open_as_other(context: &Context) -> Result<Ia> {
    let host = &context.client;
    let open = || {
        host.settle()?;
        become_user_with(OTHER_USER, CAP_SYS_RAWIO)?;
        host.open()
    };
    std::thread::scope(|scope| scope.spawn(open).join().ok().context("the thread has panicked")?)
}

/// Connects endpoints of an adapter to as many of the server's.
fn connected(context: &Context, client: &Ia, server: &Ia, count: usize) -> Result<[SmallEps; 2]> {
    let ends = [SmallEps::new(client, count)?, SmallEps::new(server, count)?];
    let listener = Listener::new(context, server)?;
    connect_all(context, &listener, &ends[0], &ends[1])?;
    Ok(ends)
}

/// Returns the numbers of the endpoints that are connected.
fn still_connected(eps: &SmallEps) -> Result<Vec<usize>> {
    let mut numbers = Vec::new();
    for (number, ep) in eps.eps.iter().enumerate() {
        if ep.status()?.state == EpState::Connected {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

/// Disconnects all endpoints, and frees them, in their order.
fn free(eps: &SmallEps) -> Result<()> {
    for ep in &eps.eps {
        ep.disconnect(Close::Abrupt)?;
        ep.free()?;
    }
    Ok(())
}

fn oldest_of_user_go(context: &Context) -> Result<()> {
    two_hosts(context)?;
    if context.client.is_iwarp() {
        return skip("over iWARP TCP repeats a disconnect");
    }
    if context.link_is_spoilt() {
        return skip("a spoilt link delays so many disconnects too long");
    }
    let (client_ia, server_ia) = context.open_both()?;
    let other_ia = open_as_other(context)?;
    let [others, peers_of_others] = connected(context, &other_ia, &server_ia, OTHERS)?;
    let [clients, peers] = connected(context, &client_ia, &server_ia, LIMIT + MORE)?;
    let start = Instant::now();
    {
        let _silence = PacketsDropped::new(context)?;
        free(&others)?;
        free(&clients)?;
    }
    if start.elapsed() > Duration::from_secs(WAIT / 2) {
        return skip("this machine frees the endpoints too slowly: their ids expire");
    }
    peers_of_others.all(context, ConnectionEvent::Disconnected)?;
    for _ in 0..LIMIT {
        connection(&context.next(peers.connections())?, ConnectionEvent::Disconnected)?;
    }
    let oldest: Vec<_> = (0..MORE).collect();
    same("peers that have learnt nothing", still_connected(&peers)?, oldest)
}
