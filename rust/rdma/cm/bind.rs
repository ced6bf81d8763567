// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Local and remote address of a CM ID.

use super::{
    errno::{
        is,
        is_one_of, //
    },
    id::CmId,
};
use crate::rdma::addr::SockAddr;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Time limit for resolving an address, in milliseconds.
const ADDRESS_TIMEOUT_MS: usize = 4_000;

/// Encoded delay of a receiver-not-ready answer: 0.64 ms. (0 would mean 655 ms.)
pub(super) const MIN_RNR_TIMER: u8 = 12;

/// Reason why an ID cannot be bound to a local address, or cannot listen there.
pub(crate) enum BindError {
    /// Another listener uses the port, or no port is free.
    PortTaken,
    /// The caller may not use the port.
    NotAllowed,
    /// The device does not have this address, or its driver cannot listen at one of this family.
    NoSuchAddress,
    /// Another error.
    Other(Error),
}

/// Reason why an ID cannot resolve the address of a peer.
pub(crate) enum ResolveError {
    /// The ID cannot be bound to the local address.
    Bind(BindError),
    /// No route leads to the peer.
    NoRoute,
    /// Another error.
    Other(Error),
}

/// Returns whether the routing tables have no way to an address. A route may also say that the
/// address is unreachable, prohibited or discarded.
fn is_no_route(error: Error) -> bool {
    is_one_of(
        error,
        &[
            bindings::ENETUNREACH,
            bindings::EHOSTUNREACH,
            bindings::ENETDOWN,
            bindings::ENODEV,
            bindings::EACCES,
            bindings::EINVAL,
        ],
    )
}

impl CmId {
    /// Binds the ID to a local address, and thereby to a device and its port `ib_port`. Port 0 of
    /// the address selects a free one.
    pub(super) fn bind(&self, local: SockAddr, ib_port: u32) -> Result<(), BindError> {
        self.try_bind(local, ib_port).map_err(|error| {
            if error == EACCES {
                BindError::NotAllowed
            } else if error == ENOMEM {
                BindError::Other(error)
            } else if !self.has_netdev() {
                BindError::NoSuchAddress
            } else if is_one_of(error, &[bindings::EADDRINUSE, bindings::EADDRNOTAVAIL]) {
                BindError::PortTaken
            } else if error == ENODEV {
                // The address belongs to another device or port.
                BindError::NoSuchAddress
            } else {
                BindError::Other(error)
            }
        })
    }

    /// Returns whether a network device has the local address. A successful lookup of the address
    /// stores the index of the network device; a later failure is due to the port.
    fn has_netdev(&self) -> bool {
        // SAFETY: The ID is alive.
        unsafe { (*self.raw()).route.addr.dev_addr.bound_dev_if != 0 }
    }

    /// As [`CmId::bind`].
    ///
    /// # Errors
    ///
    /// `ENODEV` if `rdma_cm` selects another device than this ID's (two can share a network
    /// device), or another port of it; any error of `rdma_cm`.
    fn try_bind(&self, local: SockAddr, ib_port: u32) -> Result {
        let mut storage = local.to_storage();
        // SAFETY: The ID and the address are valid.
        let ret = unsafe { bindings::rdma_bind_addr(self.raw(), (&raw mut storage).cast()) };
        kernel::error::to_result(ret)?;
        // SAFETY: The ID is alive. Its device and port do not change once it is bound.
        let (device, port) = unsafe { ((*self.raw()).device, (*self.raw()).port_num) };
        if device != self.device().as_ptr() || port != ib_port {
            return Err(ENODEV);
        }
        Ok(())
    }

    /// Starts to resolve the peer's address, from a free port of the local address, which is one of
    /// the device's port `ib_port`. Both addresses are of one family.
    pub(crate) fn resolve_addr(
        &self,
        local: SockAddr,
        ib_port: u32,
        remote: SockAddr,
    ) -> Result<(), ResolveError> {
        let bound = self.bind(local.with_port(0), ib_port);
        bound.map_err(ResolveError::Bind)?;
        let remote = remote.to_storage();
        // SAFETY: The ID and the address are valid, and the call copies the address. The ID is
        // bound, so no source address is needed.
        let ret = unsafe {
            bindings::rdma_set_min_rnr_timer(self.raw(), MIN_RNR_TIMER);
            bindings::rdma_resolve_addr(
                self.raw(),
                core::ptr::null_mut(),
                (&raw const remote).cast(),
                ADDRESS_TIMEOUT_MS,
            )
        };
        kernel::error::to_result(ret).map_err(|error| {
            if is(error, bindings::ENOBUFS) {
                ResolveError::Other(ENOMEM)
            } else if is_no_route(error) {
                ResolveError::NoRoute
            } else {
                ResolveError::Other(error)
            }
        })
    }
}
