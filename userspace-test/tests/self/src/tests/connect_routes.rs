// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects that this host refuses by its routing table, its addresses or its ports.

use super::address_loss::RemovedAddress;
use super::connect::ends;
use super::ep_connect::accepted;
use super::tests;
use crate::context::Context;
use crate::end::{End, Shape};
use crate::expect::{connection, refused_as, same};
use crate::harness::skip;
use crate::hosts::Host;
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, Ep, EpState, Subtype, Type};
use std::fs;
use std::net::{IpAddr, Ipv6Addr};

tests! {
    #![Address, Transport]
    no_route, 30, "A connect to an address without a route, or with one that forbids it, is INVALID_ADDRESS (unreachable)";
    no_local_address, 60, "A connect is INVALID_ADDRESS (unreachable) while the IA's address is gone";
    no_free_port, 60, "A connect without a free local port is INSUFFICIENT_RESOURCES (TEP), and works once there is one";
}

/// A route to a documentation address, removed when dropped.
struct Route<'a> {
    host: &'a Host,
    to: String,
}

impl<'a> Route<'a> {
    fn new(host: &'a Host, kind: &str, address: IpAddr) -> Result<Self> {
        let (family, bits) = if address.is_ipv4() { (4, 32) } else { (6, 128) };
        let to = format!("-{family} route replace {kind} {address}/{bits}");
        host.command(&format!("ip {to}"))?;
        Ok(Self { host, to })
    }
}

impl Drop for Route<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.host.command(&format!("ip {}", self.to.replace("replace", "del")));
    }
}

fn unreachable(context: &Context, ep: &Ep, address: IpAddr) -> Result<()> {
    let outcome = ep.connect(address, context.port(), Some(context.patience()), &[]);
    refused_as(outcome, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNREACHABLE)?;
    same("state", ep.query()?.state, EpState::Unconnected)
}

fn no_route(context: &Context) -> Result<()> {
    if context.server_address().is_ipv4() {
        return skip("over IPv4 the kernel takes an address without a route to be on the link");
    }
    let end = End::new(&context.open()?, Shape::default())?;
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 5).into();
    unreachable(context, &end.ep, address)?;
    // The error numbers are EHOSTUNREACH, EACCES and EINVAL.
    for kind in ["unreachable", "prohibit", "blackhole"] {
        let _route = Route::new(&context.client, kind, address)?;
        unreachable(context, &end.ep, address).context(kind)?;
    }
    Ok(())
}

fn no_local_address(context: &Context) -> Result<()> {
    let ends = ends(context)?;
    let _gone = RemovedAddress::new(&context.client)?;
    unreachable(context, &ends.client.ep, context.client.nobody())
}

const PORTS: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Range of local ports of a host, restored when dropped.
pub struct Ports<'a> {
    host: &'a Host,
    before: String,
}

impl<'a> Ports<'a> {
    pub fn of(host: &'a Host, range: &str) -> Result<Self> {
        let before = host.inside(|| fs::read_to_string(PORTS))??;
        host.inside(|| fs::write(PORTS, range))??;
        Ok(Self { host, before })
    }
}

impl Drop for Ports<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.host.inside(|| fs::write(PORTS, &self.before));
    }
}

fn no_free_port(context: &Context) -> Result<()> {
    context.rejects_arrive()?;
    let ends = ends(context)?;
    let (address, port) = (context.server_address(), ends.listener.port);
    let second = ends.client.another_ep()?;
    // `rdma_cm` does not choose the same port twice in succession.
    let ports = Ports::of(&context.client, "30000 30000")?;
    let connect = |ep: &Ep| ep.connect(address, port, Some(context.patience()), &[]);
    connect(&second)?;
    let mut request = ends.listener.request(context)?;
    let outcome = connect(&ends.client.ep);
    refused_as(outcome, Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_TEP)?;
    same("state", ends.client.ep.query()?.state, EpState::Unconnected)?;
    drop(ports);
    request.reject(b"no")?;
    connection(&context.next(&ends.client.connect)?, ConnectionEvent::PeerRejected)?;
    connect(&ends.client.ep)?;
    accepted(context, &ends)
}
