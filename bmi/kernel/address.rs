// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses: `kdapl://IP:PORT`, or `kdapl://IP+IP:PORT` of a peer with several devices. The kernel
//! has no name service.

use crate::engine::MAX_RAILS;
use core::{
    fmt::{
        self,
        Write, //
    },
    net::SocketAddr, //
};
use kdat::Address;

/// Bytes of the longest text of an address, with the NUL.
pub(crate) const TEXT: usize = 256;

/// Bytes of the longest text of a host.
const HOST: usize = 64;

/// Writer to an array, which refuses text beyond its last byte but one.
struct Text<const BYTES: usize>([u8; BYTES], usize);

impl<const BYTES: usize> Text<BYTES> {
    const EMPTY: Self = Self([0; BYTES], 0);

    fn as_str(&self) -> Option<&str> {
        core::str::from_utf8(self.0.get(..self.1)?).ok()
    }
}

impl<const BYTES: usize> Write for Text<BYTES> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.0.get_mut(self.1..BYTES - 1).unwrap_or(&mut []);
        let room = room.get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.1 += text.len();
        Ok(())
    }
}

/// Addresses of a peer, which have one port.
#[derive(Clone, Copy)]
pub(crate) struct Hosts {
    hosts: [SocketAddr; MAX_RAILS],
    /// The number of them, at least one.
    count: usize,
}

impl From<SocketAddr> for Hosts {
    fn from(host: SocketAddr) -> Self {
        Self {
            hosts: [host; MAX_RAILS],
            count: 1,
        }
    }
}

impl Hosts {
    /// Parses the first address of a list with commas that has our scheme.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut addresses = text.split(',').map(str::trim);
        let address = addresses.find_map(|address| address.strip_prefix("kdapl://"))?;
        let (hosts, port) = address.trim_end_matches('/').rsplit_once(':')?;
        let mut parsed: Option<Self> = None;
        for host in hosts.split('+') {
            let host = with_port(host, port)?;
            match &mut parsed {
                Some(hosts) => hosts.push(host)?,
                None => parsed = Some(host.into()),
            }
        }
        parsed
    }

    /// Appends a host. Returns `None` if there are too many.
    fn push(&mut self, host: SocketAddr) -> Option<()> {
        *self.hosts.get_mut(self.count)? = host;
        self.count += 1;
        Some(())
    }

    /// Returns all of them.
    pub(crate) fn all(&self) -> &[SocketAddr] {
        self.hosts.get(..self.count).unwrap_or(&[])
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u64 {
        self.all().first().map_or(0, SocketAddr::port).into()
    }

    /// Returns the address as text, which ends with a NUL.
    pub(crate) fn text(&self) -> Option<[u8; TEXT]> {
        let mut text = Text::EMPTY;
        text.write_str("kdapl://").ok()?;
        for (index, host) in self.all().iter().enumerate() {
            let mut one = Text::<HOST>::EMPTY;
            write!(one, "{host}").ok()?;
            let (ip, _) = one.as_str()?.rsplit_once(':')?;
            let separator = if index > 0 { "+" } else { "" };
            write!(text, "{separator}{ip}").ok()?;
        }
        write!(text, ":{}", self.port()).ok()?;
        Some(text.0)
    }
}

/// Parses a host and a port.
fn with_port(host: &str, port: &str) -> Option<SocketAddr> {
    let mut text = Text::<HOST>::EMPTY;
    write!(text, "{host}:{port}").ok()?;
    text.as_str()?.parse().ok()
}

/// Returns the IP address of a host, with the network device of one that is link-local.
pub(crate) fn ip_of(host: SocketAddr) -> Address {
    match host {
        SocketAddr::V6(address) => Address::link_local(*address.ip(), address.scope_id()),
        SocketAddr::V4(address) => core::net::IpAddr::V4(*address.ip()).into(),
    }
}
