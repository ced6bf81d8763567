// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A thousand connections that share the receives of one queue.

use super::many_connections::{connect_all, thousand, SmallEps};
use super::tests;
use crate::context::Context;
use crate::end::Listener;
use crate::expect::same;
use anyhow::{bail, Context as _, Result};
use libkdapl::{Close, CompletionFlags, ConnectionEvent, DtoOperation, DtoStatus, Event};
use std::collections::HashMap;

tests! {
    thousand_connections, 900, "A thousand connected endpoints take their receives from one SRQ";
}

/// Receives of the queue.
const RECEIVES: u32 = 64;

/// Bytes of a message.
const MESSAGE: usize = 16;

/// Lets all clients send twice, at most as many at a time as there are receives.
fn exchange(context: &Context, clients: &SmallEps, servers: &SmallEps) -> Result<()> {
    let count = clients.eps.len();
    let numbers: HashMap<_, _> =
        servers.eps.iter().enumerate().map(|(number, ep)| (ep.handle(), number)).collect();
    let send = |number: usize| -> Result<()> {
        let place = MESSAGE * number;
        clients.lmr.buffer().write(place, &[(number as u64).to_le_bytes(); 2].concat());
        let segment = clients.lmr.segment(place, MESSAGE);
        Ok(clients.eps[number].post_send(&[segment], 0, CompletionFlags::default())?)
    };
    let mut received = vec![0; count];
    let mut to_send = (0..2 * count).map(|sent| sent % count);
    to_send.by_ref().take(RECEIVES as usize).try_for_each(send)?;
    for _ in 0..2 * count {
        let Event::Dto(dto) = context.next(&servers.dtos)? else { bail!("no receive") };
        same("status", (dto.operation, dto.status), (DtoOperation::Receive, DtoStatus::Success))?;
        let number = *numbers.get(&dto.ep).context("the endpoint is unknown")?;
        let text = servers.lmr.buffer().to_vec(MESSAGE * dto.cookie as usize, 8);
        same("message", text, (number as u64).to_le_bytes().to_vec())?;
        received[number] += 1;
        post(servers, dto.cookie)?;
        context.next(&clients.dtos)?;
        to_send.next().map_or(Ok(()), send)?;
    }
    same("messages of each endpoint", received, vec![2; count])
}

fn post(servers: &SmallEps, cookie: u64) -> Result<()> {
    let srq = servers.srq.as_ref().context("no SRQ")?;
    Ok(srq.post_recv(&[servers.lmr.segment(MESSAGE * cookie as usize, MESSAGE)], cookie)?)
}

fn thousand_connections(context: &Context) -> Result<()> {
    let (client_ia, server_ia) = context.open_both()?;
    let count = thousand(context, &client_ia)?;
    let clients = SmallEps::new(&client_ia, count)?;
    let servers = SmallEps::sharing(&server_ia, count, RECEIVES)?;
    let listener = Listener::new(context, &server_ia)?;
    (0..u64::from(RECEIVES)).try_for_each(|cookie| post(&servers, cookie))?;
    connect_all(context, &listener, &clients, &servers)?;
    exchange(context, &clients, &servers)?;
    clients.eps.iter().try_for_each(|ep| ep.disconnect(Close::Abrupt))?;
    clients.all(context, ConnectionEvent::Disconnected)?;
    servers.all(context, ConnectionEvent::Disconnected)?;
    let query = servers.srq.as_ref().context("no SRQ")?.query()?;
    same("receives that are left", (query.available, query.outstanding), (RECEIVES, RECEIVES))?;
    println!("{count} connections on one SRQ");
    Ok(())
}
