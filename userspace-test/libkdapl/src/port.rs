// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ports of RDMA devices, and their addresses.

use crate::address;
use crate::error::{Error, Result};
use crate::ia::{text, Transport};
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::Type;
use std::fmt;
use std::net::IpAddr;

/// A port of an RDMA device.
#[derive(Clone, Debug)]
pub struct PortInfo {
    /// Number of the port. [`Ia::open`](crate::Ia::open) takes it after a slash: `mlx5_0/2`.
    pub number: u32,
    /// Transport.
    pub transport: Transport,
    /// The port is up.
    pub active: bool,
    /// Maximum size of a message in bytes.
    pub max_message_size: u32,
    /// Name of the port's network device, if it has one here.
    pub netdev: String,
    /// Addresses at which the port can be reached, in the kernel's order.
    pub addresses: Vec<PortAddress>,
}

/// An address of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortAddress {
    /// IP address.
    pub address: IpAddr,
    /// Number of bits that name the address's network.
    pub prefix: u32,
    /// Name of the network device that has the address, for example of a VLAN.
    pub netdev: String,
}

impl fmt::Display for PortAddress {
    /// Writes the address as [`Ia::open`](crate::Ia::open) takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V6(address) if address.is_unicast_link_local() => {
                write!(f, "{address}%{}", self.netdev)
            }
            address => write!(f, "{address}"),
        }
    }
}

/// Queries a port and one of its addresses.
fn query(device: &Device, index: u32, port: u32, address_index: u32) -> Result<kdapl_port> {
    let mut message = kdapl_port { device: index, port, address_index, ..Default::default() };
    raw::call(device, call::PORT_GET, &mut message)?;
    Ok(message)
}

fn port(device: &Device, index: u32, number: u32) -> Result<PortInfo> {
    let mut addresses = Vec::new();
    loop {
        let answer = query(device, index, number, addresses.len() as u32)?;
        if let Some(found) = address::decode(&answer.address) {
            let netdev = text(&answer.netdev);
            addresses.push(PortAddress { address: found.ip(), prefix: answer.prefix, netdev });
            continue;
        }
        return Ok(PortInfo {
            number,
            transport: answer.transport.into(),
            active: answer.port_active != 0,
            max_message_size: answer.max_message_size,
            netdev: text(&answer.netdev),
            addresses,
        });
    }
}

/// Returns the ports of the device with this index. Returns none if the module does not know the
/// call.
pub(crate) fn ports(device: &Device, index: u32) -> Result<Vec<PortInfo>> {
    let mut found = Vec::new();
    // Ports count from 1. Only an InfiniBand switch has a port 0, and no other.
    for number in 0.. {
        match port(device, index, number) {
            Ok(port) => found.push(port),
            Err(error) if is_unknown(&error) && number == 0 => {}
            Err(error) if is_unknown(&error) => break,
            Err(error) if error.errno() == Some(libc::ENOTTY) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn is_unknown(error: &Error) -> bool {
    error.kind() == Some(Type::PROVIDER_NOT_FOUND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_opened() {
        for (address, netdev, expected) in [
            ("10.7.0.1", "eth0", "10.7.0.1"),
            ("fd00::1", "eth0.5", "fd00::1"),
            ("fe80::1", "eth0.5", "fe80::1%eth0.5"),
        ] {
            let address = address.parse().unwrap();
            let written = PortAddress { address, prefix: 24, netdev: netdev.into() };
            assert_eq!(written.to_string(), expected);
        }
    }
}
