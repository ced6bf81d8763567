// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses of peers.

use crate::bindings;
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr,
    SocketAddr,
    SocketAddrV6, //
};

/// IP address of a peer, as DAT takes it.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct Address([u8; 32]);

const _: () = assert!(size_of::<Address>() >= size_of::<bindings::sockaddr_in6>());

impl Address {
    /// Returns an IPv6 address; a link-local one is of the network device with this index. Others
    /// have the index 0.
    pub fn link_local(address: Ipv6Addr, device: u32) -> Self {
        let mut this = Self::from(IpAddr::V6(address));
        this.put(24, &device.to_ne_bytes());
        this
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        for (to, from) in self.0.iter_mut().skip(offset).zip(bytes) {
            *to = *from;
        }
    }

    /// Returns a pointer for a call, which only reads it.
    pub(crate) fn as_ptr(&self) -> *mut bindings::sockaddr {
        (&raw const self.0).cast_mut().cast()
    }
}

impl From<SocketAddr> for Address {
    /// Also has the port, for Common Service Points. Other calls ignore it.
    fn from(address: SocketAddr) -> Self {
        let mut this = match address {
            SocketAddr::V6(address) => Self::link_local(*address.ip(), address.scope_id()),
            SocketAddr::V4(_) => Self::from(address.ip()),
        };
        this.put(2, &address.port().to_be_bytes());
        this
    }
}

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        let mut this = Self([0; 32]);
        let family = match address {
            IpAddr::V4(address) => {
                this.put(4, &address.octets());
                bindings::AF_INET
            }
            IpAddr::V6(address) => {
                this.put(8, &address.octets());
                bindings::AF_INET6
            }
        };
        this.put(0, &(family as u16).to_ne_bytes());
        this
    }
}

/// Parses an address that a call has written. Returns `None` for one that is not known.
pub(crate) fn of_storage(address: &bindings::__kernel_sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: The struct has 128 bytes, all of which are initialised: its owner has made it of
    // zeros, and calls write all of it.
    parse(unsafe { &*core::ptr::from_ref(address).cast::<[u8; 128]>() })
}

/// Parses a `sockaddr_in` or a `sockaddr_in6`.
fn parse(bytes: &[u8; 128]) -> Option<SocketAddr> {
    let family = u32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?);
    match family {
        bindings::AF_INET => {
            let ip = Ipv4Addr::from(*bytes.get(4..)?.first_chunk::<4>()?);
            Some(SocketAddr::new(ip.into(), port))
        }
        bindings::AF_INET6 => {
            let ip = Ipv6Addr::from(*bytes.get(8..)?.first_chunk::<16>()?);
            let device = u32::from_ne_bytes(*bytes.get(24..)?.first_chunk()?);
            Some(SocketAddrV6::new(ip, port, 0, device).into())
        }
        _ => None,
    }
}
