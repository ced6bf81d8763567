// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Addresses of a controller and of this host.

use crate::bindings;
use core::net::{
    IpAddr,
    Ipv4Addr,
    Ipv6Addr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    str::CString, //
};

/// Longest text of an address.
const NAME_SIZE: usize = 64;

/// Addresses that the options of a controller name.
pub(crate) struct Addresses {
    to: bindings::__kernel_sockaddr_storage,
    from: Option<bindings::__kernel_sockaddr_storage>,
}

// SAFETY: Addresses are plain data.
unsafe impl Send for Addresses {}
// SAFETY: As above.
unsafe impl Sync for Addresses {}

impl Addresses {
    /// Parses the options `traddr`, `trsvcid` and `host_traddr`.
    ///
    /// # Safety
    ///
    /// `opts` are valid options with `traddr`.
    pub(super) unsafe fn parse(opts: *mut bindings::nvmf_ctrl_options) -> Result<Self> {
        let (mut to, mut from) = (pin_init::zeroed(), pin_init::zeroed());
        // SAFETY: By the safety requirement, and as the addresses are valid for writes.
        to_result(unsafe { bindings::kdapl_nvme_addresses(opts, &raw mut to, &raw mut from) })?;
        let from = (family(&from) != bindings::AF_UNSPEC as u16).then_some(from);
        Ok(Self { to, from })
    }

    /// Returns the address of the controller, as DAT takes it, and its port.
    pub(crate) fn peer(&self) -> Result<(kdat::Address, u16)> {
        let bytes = bytes_of(&self.to);
        let port = u16::from_be_bytes(part(bytes, 2)?);
        let address = match u32::from(family(&self.to)) {
            bindings::AF_INET => IpAddr::V4(Ipv4Addr::from(part::<4>(bytes, 4)?)).into(),
            bindings::AF_INET6 => {
                let address = Ipv6Addr::from(part::<16>(bytes, 8)?);
                kdat::Address::link_local(address, u32::from_ne_bytes(part(bytes, 24)?))
            }
            _ => return Err(Error::from_errno(-(bindings::EAFNOSUPPORT as i32))),
        };
        Ok((address, port))
    }

    /// Returns the name of the adapter: `host_traddr`, or the address of this host from which the
    /// routes lead to the controller.
    pub(crate) fn adapter(&self) -> Result<CString> {
        let mut from = pin_init::zeroed();
        match &self.from {
            Some(address) => from = *address,
            // SAFETY: Both addresses are valid, and `from` for writes.
            None => to_result(unsafe {
                bindings::kdapl_nvme_source(&raw const self.to, &raw mut from)
            })?,
        }
        let mut name = [0_u8; NAME_SIZE];
        // SAFETY: The address is valid, and `name` for writes of its size.
        unsafe {
            let size = NAME_SIZE as u32;
            bindings::kdapl_nvme_address_name(&raw const from, name.as_mut_ptr().cast(), size)
        };
        let name = CStr::from_bytes_until_nul(&name).map_err(|_| EINVAL)?;
        Ok(CString::try_from(name)?)
    }
}

fn bytes_of(
    address: &bindings::__kernel_sockaddr_storage,
) -> &[u8; size_of::<bindings::__kernel_sockaddr_storage>()] {
    // SAFETY: The bytes of an address are initialized: each was zeroed before a write.
    unsafe { &*core::ptr::from_ref(address).cast() }
}

fn part<const N: usize>(bytes: &[u8], offset: usize) -> Result<[u8; N]> {
    let part = bytes.get(offset..).and_then(<[u8]>::first_chunk);
    part.copied().ok_or(EINVAL)
}

fn family(address: &bindings::__kernel_sockaddr_storage) -> u16 {
    let [first, second, ..] = *bytes_of(address);
    u16::from_ne_bytes([first, second])
}
