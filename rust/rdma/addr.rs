// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Socket addresses of IPv4 and IPv6.
//!
//! C header: [`include/uapi/linux/in6.h`](srctree/include/uapi/linux/in6.h)

use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Bytes of a socket address that are used: a `struct sockaddr_in6` and padding.
pub(crate) const RAW_LEN: usize = 32;

/// Bytes of padding at the end of a `struct sockaddr_in`.
const SIN_ZERO_LEN: usize = 8;

const AF_INET: u16 = bindings::AF_INET as u16;
const AF_INET6: u16 = bindings::AF_INET6 as u16;

/// A `struct sockaddr_in` or `struct sockaddr_in6` in native layout, padded with zeros. Without an
/// address the family is 0.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, align(8))]
pub(crate) struct SockAddr {
    bytes: [u8; RAW_LEN],
}

impl SockAddr {
    /// Converts the raw bytes of a consumer's address.
    ///
    /// # Errors
    ///
    /// `EAFNOSUPPORT` if the family is neither IPv4 nor IPv6.
    pub(crate) fn from_raw(bytes: [u8; RAW_LEN]) -> Result<Self> {
        let mut addr = Self { bytes };
        // Clear the bytes after the address, so that equal addresses compare as equal.
        let len = match addr.family() {
            AF_INET => size_of::<bindings::sockaddr_in>() - SIN_ZERO_LEN,
            AF_INET6 => size_of::<bindings::sockaddr_in6>(),
            _ => return Err(Error::from_errno(-(bindings::EAFNOSUPPORT as i32))),
        };
        for byte in addr.bytes.iter_mut().skip(len) {
            *byte = 0;
        }
        Ok(addr)
    }

    /// Copies an address from kernel memory.
    ///
    /// # Safety
    ///
    /// `storage` points to an initialised `struct sockaddr_storage`.
    pub(super) unsafe fn from_storage(storage: *const bindings::__kernel_sockaddr_storage) -> Self {
        let mut addr = Self::default();
        // SAFETY: The caller guarantees that a `struct sockaddr_storage` is readable, which is
        // longer than `RAW_LEN`. The destination is a local variable of `RAW_LEN` bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(storage.cast::<u8>(), addr.bytes.as_mut_ptr(), RAW_LEN)
        };
        addr
    }

    /// Returns the raw bytes, for a consumer.
    pub(crate) fn to_raw(self) -> [u8; RAW_LEN] {
        self.bytes
    }

    /// Returns `AF_INET`, `AF_INET6`, or 0 without an address.
    pub(crate) fn family(&self) -> u16 {
        let [low, high, ..] = self.bytes;
        u16::from_ne_bytes([low, high])
    }

    /// Returns the port. It has the same offset in both families.
    pub(crate) fn port(&self) -> u16 {
        let [_, _, high, low, ..] = self.bytes;
        u16::from_be_bytes([high, low])
    }

    /// Returns the IP address; `None` without an address.
    pub(crate) fn ip(&self) -> Option<IpAddr> {
        match self.family() {
            AF_INET => {
                let octets: [u8; 4] = *self.bytes.get(4..)?.first_chunk()?;
                Some(Ipv4Addr::from(octets).into())
            }
            AF_INET6 => {
                let octets: [u8; 16] = *self.bytes.get(8..)?.first_chunk()?;
                Some(Ipv6Addr::from(octets).into())
            }
            _ => None,
        }
    }

    /// Checks whether a host can have the address: it is neither unspecified nor one of several
    /// hosts. That of all hosts of a subnet is not recognised.
    pub(crate) fn is_of_one_host(&self) -> bool {
        self.ip().is_some_and(|ip| match ip.to_canonical() {
            IpAddr::V4(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast()),
            IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast()),
        })
    }

    /// Checks whether only the host itself can reach the address.
    pub(crate) fn is_loopback(&self) -> bool {
        self.ip().is_some_and(|ip| ip.to_canonical().is_loopback())
    }

    /// Returns the network device that an IPv6 address names, or 0.
    pub(crate) fn scope(&self) -> u32 {
        match (self.family(), self.bytes.get(24..)) {
            (AF_INET6, Some(rest)) => rest.first_chunk().copied().map_or(0, u32::from_ne_bytes),
            _ => 0,
        }
    }

    /// Returns the same address with another port.
    pub(crate) fn with_port(mut self, port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        let [family0, family1, _, _, rest @ ..] = self.bytes;
        self.bytes[..4].copy_from_slice(&[family0, family1, high, low]);
        self.bytes[4..].copy_from_slice(&rest);
        self
    }

    /// Returns the address as a `struct sockaddr_storage`.
    pub(crate) fn to_storage(self) -> bindings::__kernel_sockaddr_storage {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: The storage is longer than `RAW_LEN`, and any bytes are a valid storage.
        unsafe {
            core::ptr::copy_nonoverlapping(
                self.bytes.as_ptr(),
                (&raw mut storage).cast::<u8>(),
                RAW_LEN,
            )
        };
        storage
    }
}

#[kunit_tests(kdapl_rdma_addr)]
mod tests {
    use super::*;

    /// Returns bytes of an address of a family, with a mark in each of the others.
    fn marked(family: u16) -> [u8; RAW_LEN] {
        let mut bytes = [7; RAW_LEN];
        bytes[..2].copy_from_slice(&family.to_ne_bytes());
        bytes
    }

    #[test]
    fn other_families_are_refused() {
        for family in [0, bindings::AF_IB as u16, u16::MAX] {
            let error = SockAddr::from_raw(marked(family)).err();
            assert_eq!(
                error,
                Some(Error::from_errno(-(bindings::EAFNOSUPPORT as i32)))
            );
        }
    }

    #[test]
    fn bytes_after_the_address_are_cleared() -> Result {
        for (family, len) in [(AF_INET, 8), (AF_INET6, 28)] {
            let raw = SockAddr::from_raw(marked(family))?.to_raw();
            assert!(raw[..len] == marked(family)[..len]);
            assert!(raw[len..].iter().all(|&byte| byte == 0));
        }
        Ok(())
    }

    #[test]
    fn another_port_leaves_the_rest() -> Result {
        for family in [AF_INET, AF_INET6] {
            let addr = SockAddr::from_raw(marked(family))?;
            assert_eq!(addr.port(), 0x0707);
            let other = addr.with_port(0x1234);
            assert_eq!(other.port(), 0x1234);
            assert!(other != addr);
            assert!(other.with_port(0x0707) == addr);
        }
        Ok(())
    }

    #[test]
    fn ip_and_scope_are_where_the_family_has_them() -> Result {
        let v4 = SockAddr::from_raw(marked(AF_INET))?;
        assert!(v4.ip() == Some(IpAddr::from([7; 4])) && v4.scope() == 0);
        let v6 = SockAddr::from_raw(marked(AF_INET6))?;
        assert!(v6.ip() == Some(IpAddr::from([7; 16])) && v6.scope() == 0x0707_0707);
        assert!(SockAddr::default().ip().is_none());
        Ok(())
    }

    #[test]
    fn the_storage_has_the_address() -> Result {
        let addr = SockAddr::from_raw(marked(AF_INET6))?;
        let storage = addr.to_storage();
        // SAFETY: The storage is a local variable.
        assert!(unsafe { SockAddr::from_storage(&storage) } == addr);
        Ok(())
    }
}
