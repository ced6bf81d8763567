// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Conversion between `std::net` addresses and the kernel's `struct kdapl_sockaddr`, which holds a
//! `struct sockaddr_in` or `sockaddr_in6` in native layout.

use crate::sys::kdapl_sockaddr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

const AF_INET: u16 = libc::AF_INET as u16;
const AF_INET6: u16 = libc::AF_INET6 as u16;

impl From<SocketAddr> for kdapl_sockaddr {
    fn from(address: SocketAddr) -> Self {
        let mut sa = [0; 128];
        sa[2..4].copy_from_slice(&address.port().to_be_bytes());
        match address {
            SocketAddr::V4(v4) => {
                sa[0..2].copy_from_slice(&AF_INET.to_ne_bytes());
                sa[4..8].copy_from_slice(&v4.ip().octets());
            }
            SocketAddr::V6(v6) => {
                sa[0..2].copy_from_slice(&AF_INET6.to_ne_bytes());
                sa[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                sa[8..24].copy_from_slice(&v6.ip().octets());
                sa[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
            }
        }
        Self { sa }
    }
}

impl From<IpAddr> for kdapl_sockaddr {
    fn from(address: IpAddr) -> Self {
        SocketAddr::new(address, 0).into()
    }
}

/// Decodes an address; `None` for family 0 and for an unknown family.
pub(crate) fn decode(raw: &kdapl_sockaddr) -> Option<SocketAddr> {
    let sa = &raw.sa;
    let port = u16::from_be_bytes([sa[2], sa[3]]);
    match u16::from_ne_bytes([sa[0], sa[1]]) {
        AF_INET => Some((Ipv4Addr::new(sa[4], sa[5], sa[6], sa[7]), port).into()),
        AF_INET6 => {
            let mut octets = [0; 16];
            octets.copy_from_slice(&sa[8..24]);
            let flow = u32::from_be_bytes([sa[4], sa[5], sa[6], sa[7]]);
            let scope = u32::from_ne_bytes([sa[24], sa[25], sa[26], sa[27]]);
            Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_way_there_and_back() {
        for text in ["10.7.0.1:7174", "[fe80::1%3]:9", "[2001:db8::7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(decode(&address.into()), Some(address));
        }
        assert_eq!(decode(&kdapl_sockaddr::default()), None);
    }
}
