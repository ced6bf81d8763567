// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses: `kdapl://IP:PORT`. The kernel has no name service.

use core::{
    fmt::{
        self,
        Write, //
    },
    net::SocketAddr, //
};
use kdat::Address;

/// Bytes of the longest text, with the NUL.
pub(crate) const TEXT: usize = 80;

/// Address of a peer.
#[derive(Clone, Copy)]
pub(crate) struct PeerAddress {
    address: SocketAddr,
    text: [u8; TEXT],
}

/// Writer that stops at the last byte but one.
struct Text([u8; TEXT], usize);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.0.get_mut(self.1..TEXT - 1).unwrap_or(&mut []);
        let room = room.get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.1 += text.len();
        Ok(())
    }
}

impl PeerAddress {
    /// Parses the first address of a list with commas that has our scheme.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut addresses = text.split(',').map(str::trim);
        let address = addresses.find_map(|address| address.strip_prefix("kdapl://"))?;
        let address: SocketAddr = address.trim_end_matches('/').parse().ok()?;
        Self::new(address)
    }

    pub(crate) fn new(address: SocketAddr) -> Option<Self> {
        let mut text = Text([0; TEXT], 0);
        write!(text, "kdapl://{address}").ok()?;
        Some(Self {
            address,
            text: text.0,
        })
    }

    /// Returns the IP address, with the network device of one that is link-local.
    pub(crate) fn ip(&self) -> Address {
        match self.address {
            SocketAddr::V6(address) => Address::link_local(*address.ip(), address.scope_id()),
            SocketAddr::V4(address) => core::net::IpAddr::V4(*address.ip()).into(),
        }
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u64 {
        self.address.port().into()
    }

    /// Returns the address as text, which ends with a NUL.
    pub(crate) fn text(&self) -> &[u8; TEXT] {
        &self.text
    }
}
