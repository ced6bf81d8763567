// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Socket addresses of IPv4 and IPv6.
//!
//! C header: [`include/uapi/linux/in6.h`](srctree/include/uapi/linux/in6.h)

use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Bytes of the part of a socket address that is ever used: a `struct sockaddr_in6` and padding.
pub(crate) const RAW_LEN: usize = 32;

/// Bytes that fill a `struct sockaddr_in` up.
const SIN_ZERO_LEN: usize = 8;

const AF_INET: u16 = bindings::AF_INET as u16;
const AF_INET6: u16 = bindings::AF_INET6 as u16;

/// A `struct sockaddr_in` or `struct sockaddr_in6` in native layout, zero-filled; family 0 if there
/// is no address.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C, align(8))]
pub(crate) struct SockAddr {
    bytes: [u8; RAW_LEN],
}

impl SockAddr {
    /// Takes raw bytes as they came from a consumer.
    ///
    /// # Errors
    ///
    /// `EAFNOSUPPORT` if the family is neither IPv4 nor IPv6.
    pub(crate) fn from_raw(bytes: [u8; RAW_LEN]) -> Result<Self> {
        let mut addr = Self { bytes };
        // What lies behind is no part of the address, and must not make two of one.
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

    /// Copies the address out of kernel memory.
    ///
    /// # Safety
    ///
    /// `storage` points to an initialised `struct sockaddr_storage`.
    pub(super) unsafe fn from_storage(storage: *const bindings::__kernel_sockaddr_storage) -> Self {
        let mut addr = Self::default();
        // SAFETY: The caller vouches for at least `sizeof(struct sockaddr_storage)` bytes, of which
        // there are more than `RAW_LEN`; the destination is ours.
        unsafe {
            core::ptr::copy_nonoverlapping(storage.cast::<u8>(), addr.bytes.as_mut_ptr(), RAW_LEN)
        };
        addr
    }

    /// The bytes, as they go to a consumer.
    pub(crate) fn to_raw(self) -> [u8; RAW_LEN] {
        self.bytes
    }

    /// `AF_INET`, `AF_INET6`, or 0 if there is no address.
    pub(crate) fn family(&self) -> u16 {
        let [low, high, ..] = self.bytes;
        u16::from_ne_bytes([low, high])
    }

    /// Whether there is an address at all.
    pub(crate) fn is_some(&self) -> bool {
        self.family() != 0
    }

    /// The port, which lies at the same place in both families.
    pub(crate) fn port(&self) -> u16 {
        let [_, _, high, low, ..] = self.bytes;
        u16::from_be_bytes([high, low])
    }

    /// The same address with another port.
    pub(crate) fn with_port(mut self, port: u16) -> Self {
        let [high, low] = port.to_be_bytes();
        let [family0, family1, _, _, rest @ ..] = self.bytes;
        self.bytes[..4].copy_from_slice(&[family0, family1, high, low]);
        self.bytes[4..].copy_from_slice(&rest);
        self
    }

    /// A `struct sockaddr_storage` with this address, for calls that take one.
    pub(crate) fn to_storage(self) -> bindings::__kernel_sockaddr_storage {
        let mut storage = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: The storage is larger than `RAW_LEN`, and any bytes are a valid one.
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
