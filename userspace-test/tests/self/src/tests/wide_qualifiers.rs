// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Tests connection qualifiers above 65535.

use super::connect::reject;
use super::psp::{nobody_listens, Side};
use super::tests;
use crate::context::Context;
use crate::expect::{refused, refused_as, same};
use crate::machine::KernelLog;
use crate::plain::Plain;
use crate::threads::Joined;
use anyhow::{ensure, Result};
use libkdapl::sys::{KDAPL_SHARED_PORT, KDAPL_WIDE_QUAL_OVERHEAD};
use libkdapl::{ConnectionEvent, EpState, Subtype, Type};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

tests! {
    #[Address]
    reach_their_service_points, 40, "Qualifiers above 65535 connect, each to its own service point";
    #[Address, Transport]
    private_data_length, 30, "Private data for a wide qualifier arrive with their exact length; the maximum is less than for a port";
    #[Address]
    unique_for_an_address, 30, "A wide qualifier belongs to one service point of an address at a time";
    #[Address]
    no_listener, 30, "A connect to a wide qualifier without a service point is refused";
    #[Address]
    concurrent_create_and_free, 60, "Many threads create and free service points at the shared port";
    #[Hosts]
    shared_port_is_reserved, 20, "Only kDAPL itself can use the shared port";
    #[Hosts]
    shared_port_needs_privilege, 30, "An rdma_cm program of an ordinary user cannot use the shared port";
    #[Address]
    shared_port_in_use, 40, "A wide qualifier is refused while another program listens at the shared port, and the log reports it";
}

fn reach_their_service_points(context: &Context) -> Result<()> {
    let client = Side::client(context)?;
    let servers = [Side::server(context)?, Side::server(context)?];
    let quals = [65_536, 65_537, 1 << 32, u64::MAX];
    let points = quals.iter().enumerate().map(|(i, qual)| {
        let server = &servers[i % 2];
        Ok(server.ia.create_psp(*qual, &server.requests)?)
    });
    let points = points.collect::<Result<Vec<_>>>()?;
    let mut eps = Vec::new();
    for (i, qual) in quals.into_iter().enumerate() {
        let server = &servers[i % 2];
        let (there, here) = (server.end.another_ep()?, client.end.another_ep()?);
        client.connect(context, &here, qual, b"wide")?;
        let (mut cr, point, asked) = server.request(context)?;
        same("service point", point, points[i].handle())?;
        same("qualifier", asked, qual)?;
        cr.accept(&there, &[])?;
        client.next(context, ConnectionEvent::Established)?;
        server.next(context, ConnectionEvent::Established)?;
        same("remote qualifier", here.query()?.raw.remote_port_qual, qual)?;
        eps.push((there, here));
    }
    Ok(())
}

fn private_data_length(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let limits = client.ia.query()?.raw;
    same("overhead", limits.wide_qual_overhead, KDAPL_WIDE_QUAL_OVERHEAD)?;
    let most = (limits.max_private_data_connect - limits.wide_qual_overhead) as usize;
    let conn_qual = (1 << 40) + context.port();
    let _psp = server.ia.create_psp(conn_qual, &server.requests)?;
    let mut data = vec![0; most + 1];
    context.rng().fill(&mut data);
    for length in [0, 1, 12, most - 1, most] {
        let ep = client.end.another_ep()?;
        client.connect(context, &ep, conn_qual, &data[..length])?;
        let (mut cr, ..) = server.request(context)?;
        same("private data", &cr.query()?.private_data[..], &data[..length])?;
        reject(context, &mut cr, &[1], &server.requests, &client.end.connect)?;
    }
    let patience = Some(context.patience());
    refused_as(
        client.end.ep.connect(context.server_address(), conn_qual, patience, &data),
        Type::INVALID_PARAMETER,
        Subtype::INVALID_ARG5,
    )?;
    same("state", client.state()?, EpState::Unconnected)
}

fn unique_for_an_address(context: &Context) -> Result<()> {
    let (one, other) = (Side::server(context)?, Side::server(context)?);
    let conn_qual = (1 << 41) + context.port();
    let psp = one.ia.create_psp(conn_qual, &one.requests)?;
    for side in [&one, &other] {
        refused(side.ia.create_psp(conn_qual, &side.requests), Type::CONN_QUAL_IN_USE)?;
        refused(side.ia.create_rsp(conn_qual, &side.requests, None), Type::CONN_QUAL_IN_USE)?;
    }
    psp.free()?;
    let psp = other.ia.create_psp(conn_qual, &other.requests)?;
    refused(one.ia.create_psp(conn_qual, &one.requests), Type::CONN_QUAL_IN_USE)?;
    psp.free()?;
    Ok(())
}

fn no_listener(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    // At first the shared port has no listener, then that of another qualifier.
    let conn_qual = (1 << 42) + context.port();
    nobody_listens(context, &client, conn_qual)?;
    let _psp = server.ia.create_psp(conn_qual + 1, &server.requests)?;
    nobody_listens(context, &client, conn_qual)?;
    // The caller of the port itself sends no header.
    nobody_listens(context, &client, KDAPL_SHARED_PORT.into())?;
    context.quiet(&server.requests)
}

fn concurrent_create_and_free(context: &Context) -> Result<()> {
    const THREADS: u64 = 4;
    let rounds = context.count(150);
    let base = (1 << 43) + context.port();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let context = context.new_for_thread();
                scope.spawn(move || -> Result<()> {
                    let side = Side::server(&context)?;
                    for round in 0..rounds {
                        // Some threads use the same qualifier.
                        let qual = base + (round + thread) % 3;
                        match side.ia.create_psp(qual, &side.requests) {
                            Ok(psp) => psp.free()?,
                            taken => refused(taken, Type::CONN_QUAL_IN_USE)?,
                        }
                    }
                    Ok(())
                })
            })
            .collect();
        for thread in threads {
            thread.join().or_panicked()??;
        }
        Ok(())
    })
}

fn shared_port_is_reserved(context: &Context) -> Result<()> {
    let side = Side::server(context)?;
    let port = KDAPL_SHARED_PORT;
    let unavailable = Type::CONN_QUAL_UNAVAILABLE;
    refused(side.ia.create_psp(port.into(), &side.requests), unavailable)?;
    let address = SocketAddr::new(context.server_address(), port as u16);
    refused(side.ia.create_csp(Some(address), &side.requests), unavailable)
}

/// Returns the arguments of `rdmacm-peer` for the shared port.
fn listen_there(context: &Context) -> [String; 5] {
    let (address, port) = (context.server_address().to_string(), KDAPL_SHARED_PORT.to_string());
    ["listen".into(), "--address".into(), address, "--port".into(), port]
}

fn shared_port_needs_privilege(context: &Context) -> Result<()> {
    /// Id of an ordinary user.
    const ORDINARY_USER: u32 = 1_234;
    let mut command = Command::new("rdmacm-peer");
    // Enough time for the refusal, even where system calls take long.
    let seconds = context.scaled(Duration::from_secs(1)).as_secs().to_string();
    command.args(listen_there(context)).args(["--timeout", &seconds]).uid(ORDINARY_USER);
    let output = context.server.inside(|| command.output())??;
    let [told, why] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    println!("{}", why.trim());
    ensure!(!told.contains("listening"), "the user listens at the shared port: {told}");
    ensure!(why.contains("Permission denied"), "the program failed for another reason: {why}");
    Ok(())
}

fn shared_port_in_use(context: &Context) -> Result<()> {
    let side = Side::server(context)?;
    let conn_qual = (1 << 44) + context.port();
    let log = KernelLog::from_now()?;
    let squatter = Plain::listen(context, KDAPL_SHARED_PORT.into(), &[])?;
    refused(side.ia.create_psp(conn_qual, &side.requests), Type::CONN_QUAL_UNAVAILABLE)?;
    let told = log.rest()?;
    let line = format!("another program listens at port {KDAPL_SHARED_PORT}");
    ensure!(told.contains(&line), "the kernel's log has no '{line}': {told}");
    drop(squatter);
    side.ia.create_psp(conn_qual, &side.requests)?.free()?;
    Ok(())
}
