// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Resolves the name of an Interface Adapter to a port and its addresses: see
//! [`model::adapter_name`](crate::model::adapter_name).

use crate::{
    dat::{
        base::IaPort,
        prelude::*, //
    },
    model::adapter_name::{
        own_address,
        AdapterName,
        SubjectKind, //
    },
    rdma::{
        client,
        device::Device,
        port_address::{
            name as without_nuls,
            PortAddress, //
        },
    },
    sys::net::NetRef, //
};

const UNKNOWN: DatError = DatError::new(Kind::ProviderNotFound, Subtype::NameNotRegistered);

const NO_ADDRESS: DatError =
    DatError::new(Kind::InvalidAddress, Subtype::InvalidAddressUnsupported);

/// Returns the `index`-th device of a network namespace.
fn visible(index: u32, net: &NetRef) -> Option<Arc<Device>> {
    client::find(index, |device| device.is_visible(net))
}

/// Returns the devices of a network namespace.
fn devices(net: &NetRef) -> impl Iterator<Item = Arc<Device>> + '_ {
    (0..).map_while(|index| visible(index, net))
}

/// Returns a port for the IA, if the name allows one of its addresses.
fn at_port(
    device: &Arc<Device>,
    port: u32,
    name: &AdapterName<'_>,
    subject: SubjectKind,
    net: &NetRef,
) -> DatResult<Option<IaPort>> {
    let mut addresses = device.addresses(port, net)?;
    let choice =
        |address: &PortAddress| name.choice(subject, address.netdev_name(), &address.local);
    addresses.retain(|address| choice(address).is_some());
    let own = own_address(addresses.iter().map(|address| address.local));
    let own = own.and_then(|own| addresses.get(own));
    Ok(own.and_then(|own| {
        Some(IaPort {
            device: device.clone(),
            port,
            choice: choice(own)?,
            own: own.clone(),
        })
    }))
}

/// Returns the first port of a device that the name allows.
fn at_device(
    device: &Arc<Device>,
    name: &AdapterName<'_>,
    subject: SubjectKind,
    net: &NetRef,
) -> DatResult<Option<IaPort>> {
    for port in device.ports().filter(|&port| name.allows_port(port)) {
        if let Some(found) = at_port(device, port, name, subject, net)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Resolves a name in a network namespace.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// - PROVIDER_NOT_FOUND if there is no such device, port, network device or address.
/// - INVALID_ADDRESS if there is, but the port has no address, or not this one.
/// - INSUFFICIENT_RESOURCES (memory).
pub(super) fn resolve(name: &[u8], net: &NetRef) -> DatResult<IaPort> {
    let name = AdapterName::parse(name).ok_or(UNKNOWN)?;
    let named = devices(net).find(|device| without_nuls(&device.name()) == name.subject);
    if let Some(device) = named {
        if !device.ports().any(|port| name.allows_port(port)) {
            return Err(UNKNOWN);
        }
        return at_device(&device, &name, SubjectKind::Device, net)?.ok_or(NO_ADDRESS);
    }
    let mut refusal = UNKNOWN;
    for device in devices(net) {
        if let Some(found) = at_device(&device, &name, SubjectKind::Place, net)? {
            return Ok(found);
        }
        let mut ports = device.ports().filter(|&port| name.allows_port(port));
        let has_netdev = |port| {
            let netdev = device.netdev(port, net);
            netdev.is_some_and(|netdev| without_nuls(&netdev) == name.subject)
        };
        if ports.any(has_netdev) {
            refusal = NO_ADDRESS;
        }
    }
    Err(refusal)
}

/// Returns the port and the own address of an adapter that is opened by the name of this device;
/// `None` if no port has an address.
///
/// Context: process; sleeps.
///
/// # Errors
///
/// INSUFFICIENT_RESOURCES (memory).
pub(crate) fn first_address(
    device: &Arc<Device>,
    net: &NetRef,
) -> DatResult<Option<(u32, PortAddress)>> {
    let any = AdapterName {
        subject: &[],
        port: None,
        location: None,
    };
    let found = at_device(device, &any, SubjectKind::Device, net)?;
    Ok(found.map(|found| (found.port, found.own)))
}
