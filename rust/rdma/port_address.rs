// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! IP addresses through which a port of a device can be reached.

use super::{
    addr::SockAddr,
    device::{
        Device,
        NAME_LEN, //
    },
};
use crate::{
    model::adapter_name::LocalAddress,
    sys::{
        kvvec,
        net::NetRef, //
    },
};
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Number of addresses to allocate room for at first.
const ROOM: usize = 8;

/// An address of the network device of a port, or of one above it.
#[derive(Clone)]
pub(crate) struct PortAddress {
    /// Address with port 0.
    pub(crate) address: SockAddr,
    /// Name of the network device.
    pub(crate) netdev: [u8; NAME_LEN],
    pub(crate) local: LocalAddress,
}

impl PortAddress {
    fn new(raw: &bindings::kdapl_port_address) -> Option<Self> {
        let address = SockAddr::from_raw(*raw.addr.sa.first_chunk()?).ok()?;
        let mut netdev = [0; NAME_LEN];
        for (to, from) in netdev.iter_mut().zip(&raw.netdev) {
            *to = *from;
        }
        Some(Self {
            address,
            netdev,
            local: LocalAddress {
                ip: address.ip()?,
                ifindex: raw.ifindex,
                prefix: raw.prefix,
                is_upper: raw.is_upper != 0,
            },
        })
    }

    /// Returns the name of the network device, without NULs.
    pub(crate) fn netdev_name(&self) -> &[u8] {
        name(&self.netdev)
    }
}

/// Returns a name without the NULs that follow it.
pub(crate) fn name(bytes: &[u8; NAME_LEN]) -> &[u8] {
    let len = bytes.iter().position(|&byte| byte == 0);
    bytes.get(..len.unwrap_or(NAME_LEN)).unwrap_or(bytes)
}

impl Device {
    /// Returns the addresses of a port in a network namespace, in the kernel's order.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn addresses(&self, port: u32, net: &NetRef) -> Result<KVVec<PortAddress>> {
        let mut room = ROOM;
        let raw = loop {
            let mut raw = kvvec::from_elem(
                bindings::kdapl_port_address::default(),
                room,
                GFP_KERNEL_ACCOUNT,
            )?;
            // SAFETY: The device and the namespace are alive, and there is room for as many
            // addresses.
            let found = unsafe {
                bindings::kdapl_helper_port_addresses(
                    self.as_ptr(),
                    port,
                    net.as_ptr(),
                    raw.as_mut_ptr(),
                    room,
                )
            };
            if found <= room {
                raw.truncate(found);
                break raw;
            }
            // Addresses may be added until the next attempt.
            room = found.saturating_add(ROOM);
        };
        let mut addresses = kvvec::with_capacity(raw.len(), GFP_KERNEL_ACCOUNT)?;
        for address in raw.iter().filter_map(PortAddress::new) {
            kvvec::push(&mut addresses, address, GFP_KERNEL_ACCOUNT)?;
        }
        Ok(addresses)
    }
}
