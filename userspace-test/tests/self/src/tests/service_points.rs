// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests service points that are freed, and qualifiers that are similar.

use super::connect::reject;
use super::kernel::Loaded;
use super::psp::{nobody_listens, Side};
use super::tests;
use super::user_limits::Parameter;
use crate::context::Context;
use crate::expect::{done, same};
use crate::harness::skip;
use anyhow::{Context as _, Result};
use libkdapl::{Close, ConnectionEvent, DtoOperation, Ep};

tests! {
    #![Address]
    connections_outlive_service_point, 60, "Connections outlive their service point of each kind, which accepts no further connect";
    #[Long]
    qualifiers_do_not_collide, 120, "Qualifiers that are equal in their low 16 or 32 bits, or in their high bits, are different service points";
    freed_during_search, 60, "A service point is freed while rdma_cm, having found its listener, has yet to lock it";
    freed_qualifier_is_available, 60, "A freed qualifier is available to a service point of each kind, at once";
}

/// Sends a message from the client's `here` to the server's `there`.
fn carries(context: &Context, client: &Side, here: &Ep, server: &Side, there: &Ep) -> Result<()> {
    let flags = Default::default();
    there.post_recv(&[server.end.lmr.segment(0, 64)], 1, flags)?;
    here.post_send(&[client.end.lmr.segment(0, 64)], 2, flags)?;
    done(&context.next(&server.end.recv)?, DtoOperation::Receive, 64, 1)?;
    done(&context.next(&client.end.request)?, DtoOperation::Send, 64, 2)
}

/// Connects an endpoint of each side through the service point at `qual`.
fn connected(context: &Context, client: &Side, server: &Side, qual: u64) -> Result<(Ep, Ep)> {
    let (here, there) = (client.end.another_ep()?, server.end.another_ep()?);
    client.connect(context, &here, qual, b"hello")?;
    let (mut cr, _, asked) = server.request(context)?;
    same("qualifier", asked, qual)?;
    cr.accept(&there, &[])?;
    client.next(context, ConnectionEvent::Established)?;
    server.next(context, ConnectionEvent::Established)?;
    Ok((here, there))
}

fn connections_outlive_service_point(context: &Context) -> Result<()> {
    let (client, server) = (Side::client(context)?, Side::server(context)?);
    let inside = |qual| context.server.inside(|| server.ia.create_psp(qual, &server.requests));
    for qual in [context.port(), (1 << 52) + context.port()] {
        let psp = inside(qual)??;
        let pairs = [
            connected(context, &client, &server, qual)?,
            connected(context, &client, &server, qual)?,
        ];
        psp.free()?;
        for (here, there) in &pairs {
            carries(context, &client, here, &server, there)?;
        }
        nobody_listens(context, &client, qual)?;
        for (here, there) in &pairs {
            carries(context, &client, here, &server, there)?;
            here.disconnect(Close::Graceful)?;
            client.next(context, ConnectionEvent::Disconnected)?;
            server.next(context, ConnectionEvent::Disconnected)?;
        }
    }
    Ok(())
}

fn qualifiers_do_not_collide(context: &Context) -> Result<()> {
    let (client, server) = (Side::client(context)?, Side::server(context)?);
    let port = context.port();
    let high = u64::from(context.rng().u32(1..)) << 32;
    let quals = [
        port,
        (1 << 16) | port,
        (2 << 16) | port,
        high | port,
        (high | port) ^ (1 << 63),
        high | (1 << 16) | port,
        high | 0xffff_ffff,
        0xffff_ffff,
        u64::MAX,
        high,
    ];
    let points = quals.iter().map(|qual| {
        Ok(context.server.inside(|| server.ia.create_psp(*qual, &server.requests))??)
    });
    let points = points.collect::<Result<Vec<_>>>()?;
    let mut order: Vec<_> = (0..quals.len()).cycle().take(3 * quals.len()).collect();
    context.rng().shuffle(&mut order);
    for index in order {
        let ep = client.end.another_ep()?;
        let data = [b"I want ", &quals[index].to_le_bytes()[..]].concat();
        client.connect(context, &ep, quals[index], &data)?;
        let (mut cr, point, asked) = server.request(context)?;
        same("service point", point, points[index].handle())?;
        same("qualifier", asked, quals[index])?;
        same("private data", &cr.query()?.private_data[..data.len()], &data[..])?;
        reject(context, &mut cr, b"thanks", &server.requests, &client.end.connect)?;
    }
    // One of the service points is freed, the others stay.
    for (index, psp) in points.iter().enumerate() {
        psp.free()?;
        nobody_listens(context, &client, quals[index])?;
        if let Some(next) = quals.get(index + 1) {
            let (here, there) = connected(context, &client, &server, *next)
                .with_context(|| format!("{next:#x}"))?;
            here.free()?;
            server.next(context, ConnectionEvent::Disconnected)?;
            there.free()?;
        }
    }
    Ok(())
}

fn freed_during_search(context: &Context) -> Result<()> {
    if context.client.is_iwarp() {
        return skip("iWARP knows the listener of a request without a search");
    }
    // The search takes longer than a worker may that others wait for.
    let _limit = Parameter::set_of("workqueue", "cpu_intensive_thresh_us", 10_000_000)?;
    let slow = Loaded::new("kdapl_slow_search", "delay_ms=200")?;
    let searches = || slow.parameter("searches");
    let (client, server) = (Side::client(context)?, Side::server(context)?);
    for qual in [context.port(), context.port(), (1 << 54) + context.port()] {
        let psp = context.server.inside(|| server.ia.create_psp(qual, &server.requests))??;
        let (before, ep) = (searches()?, client.end.another_ep()?);
        client.connect(context, &ep, qual, &[])?;
        context.until("the listener is found", || Ok(searches()? > before))?;
        psp.free()?;
        client.next(context, ConnectionEvent::NonPeerRejected)?;
    }
    slow.unload()
}

fn freed_qualifier_is_available(context: &Context) -> Result<()> {
    let (client, server) = (Side::client(context)?, Side::server(context)?);
    for qual in [context.port(), (1 << 53) + context.port()] {
        for _ in 0..context.count(20) {
            context.server.inside(|| -> Result<()> {
                server.ia.create_psp(qual, &server.requests)?.free()?;
                server.ia.create_rsp(qual, &server.requests, None)?.free()?;
                server.ia.create_rsp(qual, &server.requests, Some(&server.end.ep))?.free()?;
                if let Ok(port) = u16::try_from(qual) {
                    let address = (context.server_address(), port).into();
                    server.ia.create_csp(Some(address), &server.requests)?.free()?;
                }
                Ok(())
            })??;
        }
        nobody_listens(context, &client, qual)?;
    }
    Ok(())
}
