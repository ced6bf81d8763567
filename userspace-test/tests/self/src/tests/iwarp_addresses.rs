// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service points with a driver that listens at addresses of IPv4 only, as erdma does.

use super::iwarp::{Device, ADDRESS, DEVICE, NETDEV};
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, refused_as};
use crate::hosts::inside;
use crate::machine::command;
use anyhow::Result;
use libkdapl::{ConnectionEvent, EvdFlags, Subtype, Type};
use std::net::{IpAddr, Ipv6Addr};

tests! {
    ipv4_only, 60, "Service points listen at the other addresses if an iWARP driver refuses those of IPv6";
}

const IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0x77, 0, 0, 0, 0, 0, 1);

fn ipv4_only(context: &Context) -> Result<()> {
    let device = Device::of_client(context)?;
    let add = format!("ip addr add {IPV6}/64 dev {NETDEV} nodad");
    inside(context.client.namespace(), || command(&add))??;
    let ia = device.open()?;
    let requests = ia.create_evd(EvdFlags::CR, 8)?;
    // siw listens there.
    drop(ia.create_csp(Some((IPV6, 0).into()), &requests)?);
    let disguise = Loaded::new("kdapl_disguise", &format!("device={DEVICE}"))?;
    disguise.set("only_ipv4", 1)?;
    let outcome = ia.create_csp(Some((IPV6, 0).into()), &requests).map(drop);
    refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)?;
    let wide = (7 << 32) | context.port();
    for conn_qual in [context.port(), wide] {
        let listener = Listener::on(&ia, conn_qual)?;
        let (client, server) = (End::new(&ia, Shape::default())?, End::new(&ia, Shape::default())?);
        let patience = Some(context.patience());
        client.ep.connect(IpAddr::from(ADDRESS), conn_qual, patience, &[])?;
        listener.request(context)?.accept(&server.ep, &[])?;
        for end in [&client, &server] {
            connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
        }
    }
    Ok(())
}
