// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest devices`: lists the RDMA devices.

use crate::device::NoDevice;
use anyhow::Result;
use libkdapl::{DeviceInfo, PortAddress, PortInfo, Transport};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use toolkit::{output, report};

pub fn run(as_json: bool) -> Result<()> {
    let devices = libkdapl::devices()?;
    if as_json {
        output::json(&devices.iter().map(Device::from).collect::<Vec<_>>())?;
    }
    if devices.is_empty() {
        return Err(NoDevice.into());
    }
    if as_json {
        return Ok(());
    }
    let head = ["device", "port", "address", "network device", "transport", "GUID", "for"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(devices.iter().flat_map(to_rows));
    output::say(report::text_table(&rows))
}

fn name_of(transport: Transport) -> String {
    match transport {
        Transport::InfiniBand => "InfiniBand".into(),
        Transport::RoCE => "RoCE".into(),
        Transport::IWarp => "iWARP".into(),
        Transport::Other(number) => format!("unknown ({number})"),
    }
}

/// Makes a row for each address. The columns of device and port are filled in the first of each.
fn to_rows(device: &DeviceInfo) -> Vec<Vec<String>> {
    let mut rows: Vec<_> = device.ports.iter().flat_map(port_rows).collect();
    if rows.is_empty() {
        rows.push(vec![String::new(); 5]);
    }
    for (number, row) in rows.iter_mut().enumerate() {
        let (name, guid, users) = match number {
            0 => (
                device.name.clone(),
                format!("{:016x}", device.node_guid),
                if device.restricted { "CAP_SYS_RAWIO" } else { "all users" },
            ),
            _ => (String::new(), String::new(), ""),
        };
        row[0] = name;
        row.extend([guid, users.into()]);
    }
    rows
}

/// Makes the columns from device to transport, without the device.
fn port_rows(port: &PortInfo) -> Vec<Vec<String>> {
    let state = if port.active { "up" } else { "down" };
    let head = [format!("{} {state}", port.number), name_of(port.transport)];
    let mut places: Vec<_> =
        port.addresses.iter().map(|at| (at.to_string(), at.netdev.clone())).collect();
    if places.is_empty() {
        places.push(("none".into(), port.netdev.clone()));
    }
    let row = |(number, (address, netdev))| {
        let [port, transport] = if number == 0 { head.clone() } else { Default::default() };
        vec![String::new(), port, address, netdev, transport]
    };
    places.into_iter().enumerate().map(row).collect()
}

/// A device with `--json`.
#[derive(JsonSchema, Serialize)]
pub struct Device {
    name: String,
    /// Network device of an IA of that name.
    netdev: String,
    /// Address of an IA of that name.
    address: Option<IpAddr>,
    transport: String,
    /// The port of that IA is up.
    port_active: bool,
    ports: Vec<Port>,
    /// Only processes with `CAP_SYS_RAWIO` may open the device.
    restricted: bool,
    /// Hexadecimal, in host byte order.
    node_guid: String,
    abi_version: u32,
}

#[derive(JsonSchema, Serialize)]
struct Port {
    port: u32,
    transport: String,
    active: bool,
    max_message_size: u32,
    netdev: String,
    addresses: Vec<Address>,
}

#[derive(JsonSchema, Serialize)]
struct Address {
    address: IpAddr,
    prefix: u32,
    netdev: String,
    /// The address as `--device` takes it.
    name: String,
}

impl From<&DeviceInfo> for Device {
    fn from(device: &DeviceInfo) -> Self {
        Self {
            name: device.name.clone(),
            netdev: device.netdev.clone(),
            address: device.address,
            transport: name_of(device.transport),
            port_active: device.port_active,
            ports: device.ports.iter().map(Port::from).collect(),
            restricted: device.restricted,
            node_guid: format!("{:016x}", device.node_guid),
            abi_version: device.abi_version,
        }
    }
}

impl From<&PortInfo> for Port {
    fn from(port: &PortInfo) -> Self {
        let address = |at: &PortAddress| Address {
            address: at.address,
            prefix: at.prefix,
            netdev: at.netdev.clone(),
            name: at.to_string(),
        };
        Self {
            port: port.number,
            transport: name_of(port.transport),
            active: port.active,
            max_message_size: port.max_message_size,
            netdev: port.netdev.clone(),
            addresses: port.addresses.iter().map(address).collect(),
        }
    }
}
