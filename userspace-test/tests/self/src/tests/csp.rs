// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Common Service Points (CSP).

use super::psp::Side;
use super::tests;
use crate::context::Context;
use crate::expect::{refused, refused_as, same};
use anyhow::{ensure, Context as _, Result};
use libkdapl::sys::kdapl_csp;
use libkdapl::{ConnectionEvent, Subtype, Type};
use std::net::{IpAddr, SocketAddr};

tests! {
    #![Address]
    accepts_requests, 40, "A CSP accepts requests at its address and port";
    bad_addresses, 20, "A CSP requires an address of its device and a stream protocol";
}

fn accepts_requests(context: &Context) -> Result<()> {
    let (server, client) = (Side::server(context)?, Side::client(context)?);
    let own = server.ia.create_csp(None, &server.requests)?;
    let address = own.address().context("no address")?;
    same("address", address.ip(), context.server_address())?;
    ensure!(address.port() != 0, "no port was chosen");
    same("address in the query", own.query()?.address, Some(address))?;
    let fixed = SocketAddr::new(context.server_address(), context.port() as u16);
    let other = server.ia.create_csp(Some(fixed), &server.requests)?;
    same("address", other.address(), Some(fixed))?;
    let third = Side::server(context)?;
    refused(third.ia.create_csp(Some(fixed), &third.requests), Type::PORT_IN_USE)?;
    let mut eps = Vec::new();
    for (csp, address) in [(&own, address), (&other, fixed)] {
        let (there, here) = (server.end.another_ep()?, client.end.another_ep()?);
        here.common_connect(address, Some(context.patience()), b"common")?;
        let (mut cr, point, _) = server.request(context)?;
        same("service point", point, csp.handle())?;
        same("private data", &cr.query()?.private_data[..6], &b"common"[..])?;
        cr.accept(&there, &[])?;
        client.next(context, ConnectionEvent::Established)?;
        server.next(context, ConnectionEvent::Established)?;
        eps.push((there, here));
    }
    own.free()?;
    refused_as(own.query(), Type::INVALID_HANDLE, Subtype::INVALID_HANDLE_CSP)
}

fn bad_addresses(context: &Context) -> Result<()> {
    let side = Side::server(context)?;
    let (family, foreign) = match context.server_address() {
        IpAddr::V4(_) => (libc::AF_INET, ["192.0.2.1:9", "0.0.0.0:0", "192.0.2.1:0"]),
        IpAddr::V6(_) => (libc::AF_INET6, ["[2001:db8::1]:9", "[::]:0", "[2001:db8::1]:0"]),
    };
    for foreign in foreign {
        let foreign = foreign.parse().context("an address")?;
        refused(side.ia.create_csp(Some(foreign), &side.requests), Type::INVALID_ADDRESS)?;
    }
    refused_as(
        side.ia.create_csp(None, &side.end.recv),
        Type::INVALID_PARAMETER,
        Subtype::INVALID_ARG4,
    )?;
    let other = libc::AF_INET + libc::AF_INET6 - family;
    for (domain, r#type, protocol) in [
        (libc::AF_UNIX, 0, 0),
        (0, libc::SOCK_DGRAM, 0),
        (0, libc::SOCK_STREAM, libc::IPPROTO_TCP),
        (other, libc::SOCK_STREAM, 0),
    ] {
        let mut message = kdapl_csp {
            evd: side.requests.handle().0,
            domain: domain as u32,
            type_: r#type as u32,
            protocol: protocol as u32,
            ..Default::default()
        };
        let call = libkdapl::raw::call::CSP_CREATE;
        let answer = crate::raw::call(side.ia.device(), call, &mut message);
        refused(answer, Type::COMM_NOT_SUPPORTED)?;
    }
    Ok(())
}
