// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `kdapltest devices`: lists the RDMA devices.

use crate::report;
use anyhow::Result;
use libkdapl::{DeviceInfo, Transport};
use serde_json::json;

pub fn run(as_json: bool) -> Result<()> {
    let devices = libkdapl::devices()?;
    if as_json {
        return report::json(&devices.iter().map(to_json).collect::<Vec<_>>());
    }
    if devices.is_empty() {
        println!(
            "No RDMA device. Make a soft-RoCE one on a network device that has an address, for\n\
             example:  rdma link add rxe0 type rxe netdev eth0"
        );
        return Ok(());
    }
    let head = ["device", "network device", "address", "transport", "port", "GUID", "for"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(devices.iter().map(to_row));
    println!("{}", report::text_table(&rows));
    Ok(())
}

fn transport(device: &DeviceInfo) -> String {
    match device.transport {
        Transport::InfiniBand => "InfiniBand".into(),
        Transport::RoCE => "RoCE".into(),
        Transport::IWarp => "iWARP".into(),
        Transport::Other(number) => format!("unknown ({number})"),
    }
}

fn to_row(device: &DeviceInfo) -> Vec<String> {
    vec![
        device.name.clone(),
        device.netdev.clone(),
        device.address.map_or_else(|| "none".into(), |a| a.to_string()),
        transport(device),
        if device.port_active { "up" } else { "down" }.into(),
        format!("{:016x}", device.node_guid),
        if device.restricted { "CAP_SYS_RAWIO" } else { "all users" }.into(),
    ]
}

fn to_json(device: &DeviceInfo) -> serde_json::Value {
    json!({
        "name": device.name,
        "netdev": device.netdev,
        "address": device.address,
        "transport": transport(device),
        "port_active": device.port_active,
        "restricted": device.restricted,
        "node_guid": format!("{:016x}", device.node_guid),
        "abi_version": device.abi_version,
    })
}
