// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Hosts of client and server: one host, or two with a network namespace each.
//!
//! ```text
//!   found   client and server on the first device that is up
//!   one     client and server on a device of our own, on a dummy network device
//!   two     [ kdapl-b: client, device on kdaplB ] ---veth--- [ kdapl-a: server, device on kdaplA ]
//!           [ kdapl-c: a process, on kdaplC ] ---veth--- the kernel's consumers, on kdaplK
//! ```
//!
//! Consumers in the kernel are in the namespace of the start only, so tests of them between two
//! hosts make the last pair ([`KernelLink`]).
//!
//! The threads of a test live on the client's host. Actions on the server's host run
//! [inside](Host::inside) it. The module uses the network namespace of the thread that opens an IA.

mod kernel_link;
mod namespace;

pub use self::kernel_link::KernelLink;
pub use self::namespace::inside;

use crate::machine::command;
use anyhow::{bail, Context as _, Result};
use clap::{Args, ValueEnum};
use libkdapl::{DeviceInfo, Ia, Transport};
use std::convert::Infallible;
use std::fs;
use std::net::IpAddr;

/// Length of the asynchronous EVD.
pub const ASYNC_QLEN: i32 = 8;
/// MTU with room for soft-RoCE's longest packet: 4096 bytes and its headers.
const MTU: u32 = 4200;
/// Queue length of netem: practically unlimited. Soft-RoCE takes a packet that the queue refuses
/// for an error. Such an error of the device's management QP ends all connecting.
const UNLIMITED_QUEUE: &str = "limit 100000";

/// Number of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Count {
    /// Uses the first device that is up for both sides
    #[default]
    Found,
    /// Makes a device on a dummy network device, for both sides
    One,
    /// Makes a device for each side, in network namespaces that a veth pair connects
    Two,
}

/// Driver of the devices that are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// Soft-RoCE
    #[default]
    Rxe,
    /// Software iWARP
    Siw,
}

/// Options for the hosts.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Layout {
    /// Hosts of client and server
    #[arg(long, value_enum, default_value_t, value_name = "COUNT")]
    pub hosts: Count,
    /// Driver of the devices that are made
    #[arg(long, value_enum, default_value_t)]
    pub driver: Driver,
    /// Gives the devices that are made IPv6 addresses only
    #[arg(long)]
    pub ipv6: bool,
    /// Spoils all packets between two hosts, as `tc qdisc add ... netem SPEC` does; raises the
    /// scale of time limits to ten at least
    #[arg(long, value_name = "SPEC", value_parser = for_ever)]
    pub netem: Option<&'static str>,
}

fn for_ever(text: &str) -> Result<&'static str, Infallible> {
    Ok(String::from(text).leak())
}

fn option(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}

impl Layout {
    /// Returns the options as arguments for another process.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments =
            vec!["--hosts".into(), option(self.hosts), "--driver".into(), option(self.driver)];
        if self.ipv6 {
            arguments.push("--ipv6".into());
        }
        if let Some(netem) = self.netem {
            arguments.extend(["--netem".into(), netem.into()]);
        }
        arguments
    }

    /// Makes the hosts. Dropping the result removes them.
    pub fn make(self) -> Result<RunningHosts> {
        if self.hosts == Count::Found {
            let plain = self.driver == Driver::Rxe && !self.ipv6;
            anyhow::ensure!(plain, "--driver and --ipv6 require --hosts one or two");
        }
        // From here on, a failure removes all that was made.
        let made = RunningHosts(self);
        self.clear();
        match self.hosts {
            Count::Found => {}
            Count::One => {
                command("ip link add kdaplA type dummy")?;
                self.server().make(self)?;
            }
            Count::Two => self.link([&self.server(), &self.client()])?,
        }
        Ok(made)
    }

    /// Removes the hosts, also those of a run that was killed.
    fn clear(self) {
        if self.hosts == Count::Found {
            return;
        }
        self.server().clear();
        self.client().clear();
    }

    /// Makes two hosts, whose network devices are linked.
    fn link(self, hosts: [&Plan; 2]) -> Result<()> {
        for name in hosts.iter().filter_map(|host| host.namespace) {
            command(&format!("ip netns add {name}"))?;
            inside(Some(name), || command("ip link set lo up"))??;
        }
        let [one, other] = hosts;
        let (here, there) = (one.netdev, other.netdev);
        one.command(&format!("ip link add {here} type veth peer name {there}"))?;
        let place = other.namespace.unwrap_or("1");
        one.command(&format!("ip link set {there} netns {place}"))?;
        for host in hosts {
            let (netdev, netem) = (host.netdev, self.netem.unwrap_or_default());
            host.command(&format!(
                "tc qdisc add dev {netdev} root netem {UNLIMITED_QUEUE} {netem}"
            ))?;
            host.make(self)?;
        }
        Ok(())
    }

    fn server(self) -> Plan {
        let namespace = (self.hosts == Count::Two).then_some("kdapl-a");
        Plan { namespace, device: "kdapl_a", netdev: "kdaplA", number: 1 }
    }

    fn client(self) -> Plan {
        if self.hosts == Count::One {
            return self.server();
        }
        let namespace = Some("kdapl-b");
        Plan { namespace, device: "kdapl_b", netdev: "kdaplB", number: 2 }
    }

    /// Returns client and server.
    pub fn hosts(self) -> Result<(Host, Host)> {
        if self.hosts == Count::Found {
            let host = Host::first()?;
            return Ok((host.clone(), host));
        }
        Ok((self.client().host(self)?, self.server().host(self)?))
    }
}

/// The hosts of a run, until dropped.
pub struct RunningHosts(Layout);

impl Drop for RunningHosts {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// Names of a host that is made.
struct Plan {
    namespace: Option<&'static str>,
    device: &'static str,
    netdev: &'static str,
    number: u8,
}

impl Plan {
    fn command(&self, line: &str) -> Result<()> {
        inside(self.namespace, || command(line))?
    }

    /// Gives the network device an address, and makes the RDMA device.
    fn make(&self, layout: Layout) -> Result<()> {
        let Self { device, netdev, number, .. } = self;
        self.command(&format!("ip link set {netdev} mtu {MTU}"))?;
        if layout.ipv6 {
            // IPv6 addresses would vanish when the device goes down.
            let keep = format!("/proc/sys/net/ipv6/conf/{netdev}/keep_addr_on_down");
            inside(self.namespace, || fs::write(keep, "1"))??;
        }
        let address = if layout.ipv6 {
            IpAddr::from([0xfd0a, 7, 1, 0, 0, 0, 0, u16::from(*number)])
        } else {
            IpAddr::from([10, 7, 1, *number])
        };
        self.command(&address_command("add", address, netdev))?;
        self.command(&format!("ip link set {netdev} up"))?;
        if layout.driver == Driver::Siw {
            // siw waits for TCP, in a connect and after a send. Shorten that from minutes.
            for (retries, few) in [("tcp_syn_retries", "1"), ("tcp_retries2", "4")] {
                let retries = format!("/proc/sys/net/ipv4/{retries}");
                inside(self.namespace, || fs::write(retries, few))??;
            }
        }
        let driver = option(layout.driver);
        self.command(&format!("rdma link add {device} type {driver} netdev {netdev}"))
    }

    /// Removes the host.
    fn clear(&self) {
        // Most of it may not exist. Ignore the errors.
        let _ = self.command(&format!("rdma link del {}", self.device));
        let _ = self.command(&format!("ip link del {}", self.netdev));
        if let Some(name) = self.namespace {
            let _ = command(&format!("ip netns del {name}"));
        }
    }

    fn host(&self, layout: Layout) -> Result<Host> {
        let listed = inside(self.namespace, libkdapl::devices)??;
        let found = listed.into_iter().find(|found| found.name == self.device);
        let found = found.with_context(|| format!("there is no device {}", self.device))?;
        Host::new(self.namespace, Some(layout.driver), &found)
    }
}

/// Host of one side of a connection.
#[derive(Clone, Debug)]
pub struct Host {
    pub device: String,
    pub netdev: String,
    pub address: IpAddr,
    namespace: Option<&'static str>,
    driver: Option<Driver>,
    transport: Transport,
}

impl Host {
    fn first() -> Result<Self> {
        let devices = libkdapl::devices()?;
        let Some(found) = devices.iter().find(|d| d.port_active && d.address.is_some()) else {
            bail!("no RDMA device with an address is up: {devices:?}");
        };
        let driver = found.name.starts_with("rxe").then_some(Driver::Rxe);
        Self::new(None, driver, found)
    }

    fn new(
        namespace: Option<&'static str>,
        driver: Option<Driver>,
        found: &DeviceInfo,
    ) -> Result<Self> {
        let address = found.address.with_context(|| format!("{} has no address", found.name))?;
        let (device, netdev) = (found.name.clone(), found.netdev.clone());
        let transport = found.transport;
        Ok(Self { device, netdev, address, namespace, driver, transport })
    }

    pub fn open(&self) -> Result<Ia> {
        Ok(self.inside(|| Ia::open(&self.device, ASYNC_QLEN))??)
    }

    /// Returns the name of its network namespace; `None` for that of the process's start.
    pub fn namespace(&self) -> Option<&'static str> {
        self.namespace
    }

    /// Runs `work` in the host's network namespace.
    pub fn inside<T>(&self, work: impl FnOnce() -> T) -> Result<T> {
        inside(self.namespace, work)
    }

    /// Moves this thread, and its future children, to the host's network namespace for good.
    pub fn settle(&self) -> Result<()> {
        namespace::settle(self.namespace)
    }

    /// Removes the address of its network device.
    pub fn remove_address(&self) -> Result<()> {
        self.command(&address_command("del", self.address, &self.netdev))
    }

    /// Restores the address.
    pub fn add_address(&self) -> Result<()> {
        self.command(&address_command("add", self.address, &self.netdev))
    }

    /// Changes the netem of the host's packets. Only for two hosts, which have a netem: replacing
    /// the qdisc would make the network refuse packets for a moment.
    pub fn spoil(&self, netem: &str) -> Result<()> {
        let netdev = &self.netdev;
        self.command(&format!("tc qdisc change dev {netdev} root netem {UNLIMITED_QUEUE} {netem}"))
    }

    /// Runs a command in the host's namespace. It must succeed.
    pub fn command(&self, line: &str) -> Result<()> {
        self.inside(|| command(line))?
    }

    /// Returns the driver, if the device may be deleted and restored by a command.
    pub fn driver(&self) -> Option<String> {
        self.driver.map(option)
    }

    /// Checks for iWARP. There, a request completes when TCP has it, and the peer's refusal follows
    /// as the end of the connection.
    pub fn is_iwarp(&self) -> bool {
        self.transport == Transport::IWarp
    }

    pub fn is_siw(&self) -> bool {
        self.driver == Some(Driver::Siw)
    }

    /// Checks whether the device exists, is up, and has its address.
    pub fn is_up(&self) -> Result<bool> {
        let listed = self.inside(libkdapl::devices)??;
        let up = |d: &DeviceInfo| d.port_active && d.address == Some(self.address);
        Ok(listed.iter().any(|found| found.name == self.device && up(found)))
    }

    /// Returns an unused address of its network.
    pub fn nobody(&self) -> IpAddr {
        self.nobody_at(0)
    }

    /// Returns one of 16 unused addresses of its network.
    pub fn nobody_at(&self, number: u8) -> IpAddr {
        match self.address {
            IpAddr::V4(address) => {
                let [a, b, c, _] = address.octets();
                [a, b, c, 77 + number].into()
            }
            IpAddr::V6(address) => {
                let mut segments = address.segments();
                segments[7] = 0x77 + u16::from(number);
                segments.into()
            }
        }
    }
}

/// Returns the command that adds or deletes an address of a host.
pub fn address_command(what: &str, address: IpAddr, netdev: &str) -> String {
    let suffix = match address {
        IpAddr::V4(_) => "/24",
        // Use the address at once: it is unique.
        IpAddr::V6(_) if what == "add" => "/64 nodad",
        IpAddr::V6(_) => "/64",
    };
    format!("ip addr {what} {address}{suffix} dev {netdev}")
}
