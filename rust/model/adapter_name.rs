// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Names by which a consumer opens an Interface Adapter (IA).
//!
//! ```text
//!   SUBJECT [/PORT] [@PLACE]
//!
//!   rxe0                    an RDMA device: its first port with an address
//!   mlx5_0/2                port 2 of it, as `rdma link` writes it
//!   eth0, eth0.100          a network device: the port that it belongs to, and its addresses only
//!   10.7.0.1, fe80::1%eth0  an address: the port that it belongs to, and this address only
//!   mlx5_0/2@eth0.100       a network device or an address of this device and port
//! ```
//!
//! A shorter name permits more addresses. The adapter's *own* address is the first permitted one in
//! this order: of the port's network device before those above it, such as VLANs; IPv4 before IPv6;
//! link-local last; then the kernel's order.

use core::net::IpAddr;

/// An address through which a port can be reached, without its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalAddress {
    pub(crate) ip: IpAddr,
    /// Number of the network device.
    pub(crate) ifindex: u32,
    /// Bits of the address that name its network.
    pub(crate) prefix: u32,
    /// The network device is above that of the port.
    pub(crate) is_upper: bool,
}

/// Returns whether an address is valid in its network only.
pub(crate) fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.segments()[0] & 0xffc0 == 0xfe80,
    }
}

impl LocalAddress {
    /// Rank of an address as that of an adapter; the lowest is the first choice.
    fn rank(&self) -> (bool, bool, bool) {
        (
            self.is_upper,
            is_link_local(self.ip),
            matches!(self.ip, IpAddr::V6(_)),
        )
    }

    /// Returns the number of leading bits that the address has in common with `other`, up to the
    /// length of its network's prefix; `None` for another family.
    fn common_bits(&self, other: IpAddr) -> Option<u32> {
        let bits = match (self.ip, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                (own.to_bits() ^ other.to_bits()).leading_zeros()
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return None,
        };
        Some(bits.min(self.prefix))
    }
}

/// Returns the index of the adapter's own address among the addresses that its name permits.
pub(crate) fn own_address(addresses: impl Iterator<Item = LocalAddress>) -> Option<usize> {
    let ranked = addresses.enumerate();
    // `min_by_key` returns the first of equals.
    let first = ranked.min_by_key(|(_, address)| address.rank())?;
    Some(first.0)
}

/// Returns the position of the address from which a connection to `remote` leaves.
///
/// It is one in the peer's network, with the longest prefix if there are several. For a peer in
/// none of the networks it is the address that would be the adapter's [own](own_address) among
/// those of the family. A link-local address reaches peers in its own network only: `scope` is the
/// network device that a link-local `remote` names.
pub(crate) fn source_address(
    addresses: impl Iterator<Item = LocalAddress>,
    remote: IpAddr,
    scope: u32,
) -> Option<usize> {
    let mut best = None;
    for (index, address) in addresses.enumerate() {
        let Some(common) = address.common_bits(remote) else {
            continue;
        };
        if is_link_local(remote) && address.ifindex != scope {
            continue;
        }
        if is_link_local(address.ip) != is_link_local(remote) {
            continue;
        }
        let network = if common == address.prefix { common } else { 0 };
        let key = (core::cmp::Reverse(network), address.rank());
        if best.is_none_or(|(least, _)| key < least) {
            best = Some((key, index));
        }
    }
    best.map(|(_, index)| index)
}

/// What the subject of a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubjectKind {
    /// An RDMA device.
    Device,
    /// A network device or an address.
    Place,
}

/// Addresses that an adapter's name permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// All of the port.
    Port,
    /// All of this network device.
    NetDevice(u32),
    /// The adapter's own one only.
    Address,
}

impl Choice {
    /// Returns whether the adapter has an address of a network device. The choice is not one of an
    /// address.
    pub(crate) fn includes(self, ifindex: u32) -> bool {
        match self {
            Self::Port => true,
            Self::NetDevice(chosen) => chosen == ifindex,
            Self::Address => false,
        }
    }
}

/// Effect of a part of a name on the choice of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    NetDevice,
    Address,
}

/// Compares `text` with the name of a network device and with one of its addresses. Returns the
/// kind of match.
pub(crate) fn match_text(text: &[u8], netdev: &[u8], ip: IpAddr) -> Option<Match> {
    if text == netdev {
        return Some(Match::NetDevice);
    }
    let (digits, zone) = match text.iter().position(|&byte| byte == b'%') {
        Some(at) => (text.get(..at)?, Some(text.get(at.checked_add(1)?..)?)),
        None => (text, None),
    };
    let named: IpAddr = core::str::from_utf8(digits).ok()?.parse().ok()?;
    let is_in_zone = match zone {
        Some(zone) => zone == netdev && matches!(ip, IpAddr::V6(_)),
        None => true,
    };
    (named == ip && is_in_zone).then_some(Match::Address)
}

/// A name, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdapterName<'a> {
    /// A device, a network device or an address.
    pub(crate) subject: &'a [u8],
    pub(crate) port: Option<u32>,
    /// A network device or an address.
    pub(crate) location: Option<&'a [u8]>,
}

/// Splits a text at the last `separator`.
fn split(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().rposition(|&byte| byte == separator) {
        Some(at) => (
            text.get(..at).unwrap_or(text),
            text.get(at.wrapping_add(1)..),
        ),
        None => (text, None),
    }
}

/// Parses a decimal number without a sign.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(digits).ok()?.parse().ok()
}

impl<'a> AdapterName<'a> {
    /// Takes a name apart; `None` if it is none.
    pub(crate) fn parse(name: &'a [u8]) -> Option<Self> {
        let (front, location) = split(name, b'@');
        let (subject, port) = split(front, b'/');
        let port = match port {
            Some(digits) => Some(number(digits)?),
            None => None,
        };
        if subject.is_empty() || location.is_some_and(<[u8]>::is_empty) {
            return None;
        }
        Some(Self {
            subject,
            port,
            location,
        })
    }

    /// Returns whether the name permits this port.
    pub(crate) fn allows_port(&self, port: u32) -> bool {
        self.port.is_none_or(|named| named == port)
    }

    /// Returns which addresses the adapter has if it has this one; `None` if the name excludes it.
    pub(crate) fn choice(
        &self,
        subject: SubjectKind,
        netdev: &[u8],
        address: &LocalAddress,
    ) -> Option<Choice> {
        let subject = match subject {
            SubjectKind::Device => None,
            SubjectKind::Place => Some(match_text(self.subject, netdev, address.ip)?),
        };
        let location = match self.location {
            Some(text) => Some(match_text(text, netdev, address.ip)?),
            None => None,
        };
        Some(match (subject, location) {
            (Some(Match::Address), _) | (_, Some(Match::Address)) => Choice::Address,
            (Some(Match::NetDevice), _) | (_, Some(Match::NetDevice)) => {
                Choice::NetDevice(address.ifindex)
            }
            (None, None) => Choice::Port,
        })
    }
}
