// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects without a free local port, and routes for tests.

use super::connect::ends;
use super::ep_connect::accepted;
use super::tests;
use crate::context::Context;
use crate::expect::{connection, refused_as, same};
use crate::hosts::Host;
use anyhow::Result;
use libkdapl::{ConnectionEvent, Ep, EpState, Subtype, Type};
use std::fs;
use std::net::IpAddr;

tests! {
    #![Address, Transport]
    no_free_port, 60, "A connect without a free local port is INSUFFICIENT_RESOURCES (TEP), and works once there is one";
}

/// A route to a documentation address, removed when dropped.
pub struct Route<'a> {
    host: &'a Host,
    to: String,
}

impl<'a> Route<'a> {
    pub fn new(host: &'a Host, kind: &str, address: IpAddr) -> Result<Self> {
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
