// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Second addresses and VLANs of the hosts, and connections between addresses.

use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, done, same};
use crate::hosts::{address_command, Host, ASYNC_QLEN};
use anyhow::{Context as _, Result};
use libkdapl::{ConnectionEvent, DtoOperation, Ia, PortAddress, PortInfo};
use std::net::IpAddr;

/// Second addresses of a host, removed when dropped.
pub struct Second<'a> {
    host: &'a Host,
    pub addresses: [IpAddr; 2],
    netdev: String,
}

/// Addresses of networks that the hosts do not have.
fn second_of(network: u8, number: u8) -> [IpAddr; 2] {
    let (net, host) = (u16::from(network), u16::from(number));
    [[10, 8, network, number].into(), [0xfd0a, 8, net, 0, 0, 0, 0, host].into()]
}

impl<'a> Second<'a> {
    pub fn new(
        context: &Context,
        host: &'a Host,
        netdev: &str,
        network: u8,
        number: u8,
    ) -> Result<Self> {
        let addresses = second_of(network, number);
        let this = Self { host, addresses, netdev: netdev.into() };
        let count = || -> Result<usize> {
            let listed = list(host)?;
            Ok(listed.iter().filter(|at| addresses.contains(&at.address)).count())
        };
        // The kernel updates the device's table of addresses later: also for the test before, which
        // may have removed the same addresses.
        context.until("the addresses are free", || Ok(count()? == 0))?;
        for address in addresses {
            host.command(&address_command("add", address, netdev))?;
        }
        context.until("the addresses are listed", || Ok(count()? == addresses.len()))?;
        context.until("the addresses can be used", || Ok(!has_tentative(host)?))?;
        Ok(this)
    }

    pub fn change(&self, what: &str) -> Result<()> {
        self.addresses.iter().try_for_each(|address| {
            self.host.command(&address_command(what, *address, &self.netdev))
        })
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.change("del");
    }
}

/// Returns whether a host has an IPv6 address whose detection of duplicates has not ended. No
/// packet leaves from it until then.
fn has_tentative(host: &Host) -> Result<bool> {
    const IFA_F_TENTATIVE: u32 = 0x40;
    let read = || std::fs::read_to_string("/proc/thread-self/net/if_inet6");
    let table = host.inside(read)?.unwrap_or_default();
    let mut flags = table.lines().filter_map(|line| line.split_whitespace().nth(4));
    Ok(flags
        .any(|word| u32::from_str_radix(word, 16).is_ok_and(|word| word & IFA_F_TENTATIVE != 0)))
}

pub fn ports(host: &Host) -> Result<Vec<PortInfo>> {
    let devices = host.inside(libkdapl::devices)??;
    let found = devices.into_iter().find(|device| device.name == host.device);
    Ok(found.context("the device is not listed")?.ports)
}

/// Returns the addresses of a host's device.
pub fn list(host: &Host) -> Result<Vec<PortAddress>> {
    Ok(ports(host)?.into_iter().flat_map(|port| port.addresses).collect())
}

/// Opens an IA of a host by a name.
pub fn open(host: &Host, name: &str) -> Result<Ia> {
    host.inside(|| Ia::open(name, ASYNC_QLEN))?.with_context(|| format!("'{name}'"))
}

/// Both hosts have second addresses. Client and server may be one host.
pub struct Both<'a> {
    pub server: Second<'a>,
    /// `None` if the server's are the client's, too.
    pub client: Option<Second<'a>>,
}

pub fn both(context: &Context) -> Result<Both<'_>> {
    let (client, server) = (&context.client, &context.server);
    let is_one = client.namespace() == server.namespace() && client.netdev == server.netdev;
    let there = Second::new(context, server, &server.netdev, 1, 1)?;
    let here = match is_one {
        true => None,
        false => Some(Second::new(context, client, &client.netdev, 1, 2)?),
    };
    Ok(Both { server: there, client: here })
}

/// Connects to the listener at an address, and sends a message each way. Returns the client's
/// address.
pub fn reach(
    context: &Context,
    client: &Ia,
    listener: &Listener,
    server: &Ia,
    address: IpAddr,
) -> Result<IpAddr> {
    let (here, there) = (End::new(client, Shape::default())?, End::new(server, Shape::default())?);
    here.receive(0, 64, 1)?;
    there.receive(0, 64, 2)?;
    here.ep.connect(address, listener.port, Some(context.patience()), &[])?;
    let request = listener.request(context)?;
    let remote = request.query()?.remote.context("the request has no address")?.ip();
    let mut request = request;
    request.accept(&there.ep, &[])?;
    for end in [&here, &there] {
        connection(&context.next(&end.connect)?, ConnectionEvent::Established)?;
    }
    here.send(0, 64, 3)?;
    there.send(0, 64, 4)?;
    for (end, cookie) in [(&here, 1), (&there, 2)] {
        done(&context.next(&end.recv)?, DtoOperation::Receive, 64, cookie)?;
        context.next(&end.request)?;
    }
    let local = here.ep.query()?.local.context("the client has no address")?.ip();
    same("the address that the server sees", remote, local)?;
    Ok(local)
}

/// Tries to connect to another address than the one at which the service point listens.
pub fn unheard(context: &Context, client: &Ia, port: u64, address: IpAddr) -> Result<()> {
    let end = End::new(client, Shape::default())?;
    end.ep.connect(address, port, Some(context.patience()), &[])?;
    // `rdma_cm` itself rejects a request for a port with a listener at another address. Over iWARP
    // that is left to TCP.
    let expected = match context.server.is_iwarp() {
        true => ConnectionEvent::NonPeerRejected,
        false => ConnectionEvent::PeerRejected,
    };
    connection(&context.next(&end.connect)?, expected)
}

/// A VLAN, removed when dropped.
pub struct Vlan<'a>(&'a Host, pub String);

impl<'a> Vlan<'a> {
    /// Returns `None` if the kernel has no VLANs.
    pub fn new(host: &'a Host) -> Result<Option<Self>> {
        let name = format!("{}.5", host.netdev);
        let add = format!("ip link add link {} name {name} type vlan id 5", host.netdev);
        match host.command(&add) {
            Ok(()) => {}
            Err(error) if format!("{error:#}").contains("Unknown device type") => return Ok(None),
            Err(error) => return Err(error),
        }
        let this = Self(host, name);
        host.command(&format!("ip link set {} up", this.1))?;
        Ok(Some(this))
    }
}

impl Drop for Vlan<'_> {
    fn drop(&mut self) {
        // The next test reports a failure.
        let _ = self.0.command(&format!("ip link del {}", self.1));
    }
}

/// Returns the bits of an address that name its network.
pub fn network(address: IpAddr, prefix: u32) -> u128 {
    let bits = match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    bits >> (128 - prefix)
}
