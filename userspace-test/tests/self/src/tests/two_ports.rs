// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A device with two ports. The module `kdapl_two_ports` adds it, with the objects of another
//! device: over RoCE its ports have names and addresses, over iWARP they also connect.

use super::addresses::scene::{open, reach};
use super::device_removal::{catastrophic, device_gone};
use super::iwarp;
use super::kernel::Loaded;
use super::tests;
use crate::context::Context;
use crate::end::{End, Listener, Shape};
use crate::expect::{connection, connection_over, done, empty, refused_as, same};
use crate::harness::skip;
use crate::hosts::{address_command, Host, ASYNC_QLEN};
use anyhow::{ensure, Context as _, Result};
use libkdapl::{
    ConnectionEvent, DtoOperation, Ia, PortAddress, PortInfo, Subtype, Transport, Type,
};
use std::net::IpAddr;

tests! {
    names_over_roce, 60, "Each port of a RoCE device has its own addresses, and the name of an IA says which port it has";
    names_over_iwarp, 60, "Each port of an iWARP device has its own addresses, and the name of an IA says which port it has";
    connections, 60, "Service points and connects of an IA use the addresses of its port";
    port_goes_down, 60, "A port that goes down is listed as down, and the other port's connections are not affected";
    removal, 60, "Removing a device with two ports reports IA_CATASTROPHIC to the IAs of both";
}

const DEVICE: &str = "kdapl_two";
const NETDEVS: [&str; 2] = ["kdaplP1", "kdaplP2"];

/// Returns the addresses that a port has at first: IPv4 and IPv6.
fn of_port(port: u8) -> [IpAddr; 2] {
    [[10, 9, 10 + port, 1].into(), [0xfd0a, 9, u16::from(port), 0, 0, 0, 0, 1].into()]
}

/// Network devices of the ports, removed when dropped.
struct Netdevs<'a>(&'a Host);

impl<'a> Netdevs<'a> {
    fn new(host: &'a Host) -> Result<Self> {
        let this = Self(host);
        this.clear();
        host.command("ip link set lo up")?;
        for (port, netdev) in (1..).zip(NETDEVS) {
            host.command(&format!("ip link add {netdev} type dummy"))?;
            for address in of_port(port) {
                host.command(&address_command("add", address, netdev))?;
            }
            host.command(&format!("ip link set {netdev} up"))?;
        }
        Ok(this)
    }

    fn clear(&self) {
        for netdev in NETDEVS {
            // It may not exist.
            let _ = self.0.command(&format!("ip link del {netdev}"));
        }
    }
}

impl Drop for Netdevs<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// The device with two ports. The fields are dropped in their order.
struct TwoPorts<'a> {
    module: Loaded,
    netdevs: Netdevs<'a>,
    _maker: Option<iwarp::Device>,
}

impl<'a> TwoPorts<'a> {
    fn over_iwarp(context: &'a Context) -> Result<Self> {
        let maker = iwarp::Device::of_client(context)?;
        Self::new(context, iwarp::DEVICE, Some(maker))
    }

    fn over_roce(context: &'a Context) -> Result<Self> {
        if context.client.is_iwarp() {
            return skip("there is no RoCE device");
        }
        Self::new(context, &context.client.device, None)
    }

    fn new(context: &'a Context, by: &str, maker: Option<iwarp::Device>) -> Result<Self> {
        let netdevs = Netdevs::new(&context.client)?;
        let parameters = format!("device={by} name={DEVICE} netdevs={}", NETDEVS.join(","));
        let module = netdevs.0.inside(|| Loaded::new("kdapl_two_ports", &parameters))??;
        let this = Self { module, netdevs, _maker: maker };
        context.until("all addresses are listed", || {
            let ports = this.ports()?;
            Ok(ports.iter().all(|port| of_port(port.number as u8).iter().all(|at| has(port, *at))))
        })?;
        Ok(this)
    }

    fn ports(&self) -> Result<Vec<PortInfo>> {
        let devices = self.netdevs.0.inside(libkdapl::devices)??;
        let found = devices.into_iter().find(|device| device.name == DEVICE);
        Ok(found.context("the device is not listed")?.ports)
    }

    fn open(&self, name: &str) -> Result<Ia> {
        open(self.netdevs.0, name)
    }

    fn open_port(&self, port: u8) -> Result<Ia> {
        self.open(&format!("{DEVICE}/{port}"))
    }

    fn command(&self, line: &str) -> Result<()> {
        self.netdevs.0.command(line)
    }

    /// Checks that the name opens this port at this address.
    fn opens(&self, name: &str, port: u8, address: IpAddr) -> Result<()> {
        let query = self.open(name)?.query()?;
        same(name, query.address.map(|at| at.ip()), Some(address))?;
        same(name, query.port, port.into())?;
        same(name, &*query.adapter_name, DEVICE)?;
        same(name, &*query.netdev_name, NETDEVS[usize::from(port) - 1])
    }

    fn is_refused(&self, name: &str, kind: Type, subtype: Subtype) -> Result<()> {
        let outcome = self.netdevs.0.inside(|| Ia::open(name, ASYNC_QLEN))?;
        refused_as(outcome, kind, subtype).with_context(|| format!("'{name}'"))
    }

    fn is_unknown(&self, name: &str) -> Result<()> {
        self.is_refused(name, Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED)
    }

    fn has_no_such_address(&self, name: &str) -> Result<()> {
        self.is_refused(name, Type::INVALID_ADDRESS, Subtype::INVALID_ADDRESS_UNSUPPORTED)
    }
}

fn has(port: &PortInfo, address: IpAddr) -> bool {
    port.addresses.iter().any(|at| at.address == address)
}

/// Returns the addresses of a port without the link-local one that each network device has.
fn own(port: &PortInfo) -> Vec<PortAddress> {
    let is_own = |at: &&PortAddress| !at.to_string().contains('%');
    port.addresses.iter().filter(is_own).cloned().collect()
}

fn names_over_roce(context: &Context) -> Result<()> {
    let two = TwoPorts::over_roce(context)?;
    ports_and_names(context, &two, Transport::RoCE)
}

fn names_over_iwarp(context: &Context) -> Result<()> {
    let two = TwoPorts::over_iwarp(context)?;
    ports_and_names(context, &two, Transport::IWarp)
}

fn ports_and_names(context: &Context, two: &TwoPorts<'_>, transport: Transport) -> Result<()> {
    ports_are_listed(two, transport)?;
    for port in [1, 2] {
        let netdev = NETDEVS[usize::from(port) - 1];
        let [v4, v6] = of_port(port);
        for name in [format!("{DEVICE}/{port}"), netdev.into(), format!("{netdev}/{port}")] {
            two.opens(&name, port, v4)?;
        }
        two.opens(&format!("{DEVICE}@{netdev}"), port, v4)?;
        for address in [v4, v6] {
            two.opens(&address.to_string(), port, address)?;
            two.opens(&format!("{address}/{port}"), port, address)?;
            two.opens(&format!("{DEVICE}@{address}"), port, address)?;
            two.opens(&format!("{DEVICE}/{port}@{address}"), port, address)?;
        }
        let other = 3 - port;
        two.is_unknown(&format!("{netdev}/{other}"))?;
        two.is_unknown(&format!("{v4}/{other}"))?;
        two.has_no_such_address(&format!("{DEVICE}/{other}@{netdev}"))?;
        two.has_no_such_address(&format!("{DEVICE}/{other}@{v6}"))?;
    }
    two.is_unknown(&format!("{DEVICE}/0"))?;
    two.is_unknown(&format!("{DEVICE}/3"))?;
    first_port_with_an_address(context, two)
}

fn ports_are_listed(two: &TwoPorts<'_>, transport: Transport) -> Result<()> {
    let ports = two.ports()?;
    same("ports", ports.iter().map(|port| port.number).collect(), vec![1, 2])?;
    for (port, netdev) in ports.iter().zip(NETDEVS) {
        let expected: Vec<_> = (of_port(port.number as u8).into_iter().zip([24, 64]))
            .map(|(address, prefix)| PortAddress { address, prefix, netdev: netdev.into() })
            .collect();
        same("addresses", own(port), expected)?;
        ensure!(port.addresses.iter().all(|at| at.netdev == netdev), "{port:?}");
        same("network device", &*port.netdev, netdev)?;
        same("transport", port.transport, transport)?;
        ensure!(port.active, "{port:?}");
    }
    Ok(())
}

/// The name of a device means its first port that has an address.
fn first_port_with_an_address(context: &Context, two: &TwoPorts<'_>) -> Result<()> {
    two.opens(DEVICE, 1, of_port(1)[0])?;
    two.command(&format!("ip addr flush dev {}", NETDEVS[0]))?;
    context.until("port 1 has no address", || Ok(two.ports()?[0].addresses.is_empty()))?;
    same("addresses of port 2", own(&two.ports()?[1]).len(), 2)?;
    two.opens(DEVICE, 2, of_port(2)[0])?;
    two.has_no_such_address(&format!("{DEVICE}/1"))?;
    two.has_no_such_address(NETDEVS[0])
}

/// Tries to connect to an address at which the service point does not listen. The answer is TCP's.
fn unheard(context: &Context, client: &Ia, conn_qual: u64, address: IpAddr) -> Result<()> {
    let end = End::new(client, Shape::default())?;
    end.ep.connect(address, conn_qual, Some(context.patience()), &[])?;
    connection(&context.next(&end.connect)?, ConnectionEvent::NonPeerRejected)
}

fn connections(context: &Context) -> Result<()> {
    let two = TwoPorts::over_iwarp(context)?;
    let ias = [two.open_port(1)?, two.open_port(2)?];
    for (port, ia) in (1..).zip(&ias) {
        let listener = Listener::new(context, ia)?;
        for address in of_port(port) {
            let from = reach(context, ia, &listener, ia, address)?;
            ensure!(of_port(port).contains(&from), "a connect over port {port} leaves from {from}");
        }
        for address in of_port(3 - port) {
            unheard(context, &ias[usize::from(2 - port)], listener.port, address)?;
        }
    }
    // Both ports have the same qualifier.
    let first = Listener::new(context, &ias[0])?;
    let second = Listener::on(&ias[1], first.port)?;
    for ((port, ia), listener) in (1..).zip(&ias).zip([&first, &second]) {
        for address in of_port(port) {
            reach(context, ia, listener, ia, address)?;
        }
    }
    Ok(())
}

/// Connects two endpoints over a port.
fn connected(context: &Context, ia: &Ia, port: u8) -> Result<[End; 2]> {
    let listener = Listener::new(context, ia)?;
    let [client, server] = [End::new(ia, Shape::default())?, End::new(ia, Shape::default())?];
    client.ep.connect(of_port(port)[0], listener.port, Some(context.patience()), &[])?;
    iwarp::accepted(context, &listener, &client, &server)?;
    Ok([client, server])
}

/// Sends a message each way.
fn exchange(context: &Context, ends: &[End; 2]) -> Result<()> {
    for (from, to) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
        to.receive(0, 64, 1)?;
        from.send(0, 64, 2)?;
        done(&context.next(&from.request)?, DtoOperation::Send, 64, 2)?;
        done(&context.next(&to.recv)?, DtoOperation::Receive, 64, 1)?;
    }
    Ok(())
}

fn port_goes_down(context: &Context) -> Result<()> {
    let two = TwoPorts::over_iwarp(context)?;
    let ias = [two.open_port(1)?, two.open_port(2)?];
    let both = [connected(context, &ias[0], 1)?, connected(context, &ias[1], 2)?];
    both.iter().try_for_each(|ends| exchange(context, ends))?;
    let is_active = |expected: [bool; 2]| {
        let active = || Ok(two.ports()?.iter().map(|port| port.active).eq(expected));
        context.until(&format!("the ports are active: {expected:?}"), active)
    };
    for (port, other) in [(1, 0), (0, 1)] {
        two.command(&format!("ip link set {} down", NETDEVS[port]))?;
        let mut expected = [true; 2];
        expected[port] = false;
        is_active(expected)?;
        exchange(context, &both[other])?;
        exchange(context, &connected(context, &ias[other], other as u8 + 1)?)?;
        two.command(&format!("ip link set {} up", NETDEVS[port]))?;
        is_active([true; 2])?;
        // Nobody has sent anything over the port, so its connection does not know.
        exchange(context, &both[port])?;
        exchange(context, &connected(context, &ias[port], port as u8 + 1)?)?;
    }
    for ends in &both {
        ends.iter().try_for_each(|end| empty(&end.connect))?;
    }
    ias.iter().try_for_each(|ia| empty(ia.async_evd()))
}

fn removal(context: &Context) -> Result<()> {
    let two = TwoPorts::over_iwarp(context)?;
    let ias = [two.open_port(1)?, two.open_port(2)?];
    let both = [connected(context, &ias[0], 1)?, connected(context, &ias[1], 2)?];
    let TwoPorts { module, netdevs, _maker } = two;
    module.unload()?;
    for (ia, ends) in ias.iter().zip(&both) {
        catastrophic(context, ia)?;
        device_gone(ia.create_pz())?;
        // One end goes before the other, which may see that as the peer's disconnect.
        for end in ends {
            connection_over(&context.next(&end.connect)?)?;
        }
    }
    drop(netdevs);
    Ok(())
}
