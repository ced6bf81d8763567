// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The RDMA device of a command: opening it, its address, and its removal.

use crate::cli::DeviceArgs;
use anyhow::{anyhow, bail, Context, Error, Result};
use libkdapl::{AsyncEvent, DeviceInfo, Event, Ia, Type};
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Queue length of the asynchronous EVD.
const ASYNC_QLEN: i32 = 8;
/// Maximum time between the events of the connections of a removed device and that of the device.
const REMOVAL: Duration = Duration::from_millis(200);

/// Error of a machine without an RDMA device.
#[derive(Debug)]
pub struct NoDevice;

impl fmt::Display for NoDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this machine has no RDMA device; 'rdma link add rxe0 type rxe netdev eth0' makes a \
             soft-RoCE one on a network device that has an address, here eth0",
        )
    }
}

impl std::error::Error for NoDevice {}

/// Opens the device in `args`, or the first whose port is up. Returns it with its name.
pub fn open(args: &DeviceArgs) -> Result<(Ia, String)> {
    let name = match &args.device {
        Some(name) => name.clone(),
        None => first_usable()?,
    };
    match Ia::open(&name, ASYNC_QLEN) {
        Ok(ia) => Ok((ia, name)),
        Err(error) if error.kind() == Some(Type::PROVIDER_NOT_FOUND) => Err(not_found(&name)?),
        Err(error) => Err(error).with_context(|| state(&name)),
    }
}

fn first_usable() -> Result<String> {
    let devices = libkdapl::devices()?;
    let usable = devices.iter().find(|d| d.port_active && d.address.is_some());
    let device = usable.or(devices.first()).ok_or(NoDevice)?;
    Ok(device.name.clone())
}

/// Returns the error of an unknown name, with the devices that are present.
fn not_found(name: &str) -> Result<Error> {
    let devices = libkdapl::devices()?;
    if devices.is_empty() {
        return Ok(Error::new(NoDevice).context(format!("'{name}' not found")));
    }
    let present: Vec<_> = devices.iter().map(described).collect();
    Ok(anyhow!(
        "'{name}' not found; devices present: {}; 'rdma link add NAME type rxe netdev DEVICE' \
         makes a soft-RoCE one",
        present.join(", ")
    ))
}

fn described(device: &DeviceInfo) -> String {
    let address = device.address.map_or_else(|| "no address".into(), |address| address.to_string());
    let state = if device.port_active { "up" } else { "down" };
    format!("{} ({address}, {state})", device.name)
}

/// Returns the name of a device with its state, and what brings it into use.
pub fn state(name: &str) -> String {
    let devices = libkdapl::devices().unwrap_or_default();
    let Some(device) = devices.iter().find(|device| device.name == name) else {
        return format!("device '{name}'");
    };
    let netdev = &device.netdev;
    let remedy = match (device.address, device.port_active) {
        (None, _) => format!("; 'ip addr add ADDRESS/PREFIX dev {netdev}' gives it an address"),
        (_, false) => format!("; 'ip link set {netdev} up' may bring it up"),
        _ => String::new(),
    };
    format!("device {}{remedy}", described(device))
}

/// Returns the address of the IA.
pub fn own_address(ia: &Ia, device: &str) -> Result<IpAddr> {
    let query = ia.query()?;
    let Some(address) = query.address else {
        bail!(
            "device '{device}' has no IP address: give {} one (ip addr add ... dev {}), or name \
             the address of the server",
            query.netdev_name,
            query.netdev_name
        );
    };
    Ok(address.ip())
}

/// Like [`removed`], after an event that a removal may have caused. The event of the device follows
/// those of its connections.
pub fn removed_soon(ia: &Ia) -> Option<Error> {
    let deadline = Instant::now() + REMOVAL;
    loop {
        match removed(ia) {
            None if Instant::now() < deadline => std::thread::sleep(REMOVAL / 10),
            outcome => return outcome,
        }
    }
}

/// Returns an error that names the device, if it was removed.
pub fn removed(ia: &Ia) -> Option<Error> {
    /// The event of the removal was taken. A command has one device, and several threads.
    static REMOVED: AtomicBool = AtomicBool::new(false);
    if let Ok((Event::Async { event: AsyncEvent::IaCatastrophic, .. }, _)) =
        ia.async_evd().dequeue()
    {
        REMOVED.store(true, Ordering::Relaxed);
    }
    // The event follows when all connections of the device have ended, after the device is gone.
    if !REMOVED.load(Ordering::Relaxed) && !is_gone(ia) {
        return None;
    }
    let name = ia.query().map_or_else(|_| "of this command".into(), |query| query.adapter_name);
    Some(anyhow!(
        "the device '{name}' of this machine was removed ('rdma link delete', or unplugged); \
         'kdapltest devices' lists those present"
    ))
}

/// Checks whether no device has the name of the IA any more.
fn is_gone(ia: &Ia) -> bool {
    let again = ia.query().and_then(|query| Ia::open(&query.adapter_name, 1));
    again.is_err_and(|error| error.kind() == Some(Type::PROVIDER_NOT_FOUND))
}
