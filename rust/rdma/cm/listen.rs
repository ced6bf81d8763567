// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ids that listen.

use super::id::{
    addresses,
    is,
    CmId, //
};
use crate::{
    rdma::{
        addr::SockAddr,
        device::Transport, //
    },
    sys::{
        net::NetRef,
        thread::{
            run_and_wait,
            Party, //
        },
    },
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// Why an id cannot listen at an address.
pub(crate) enum BindError {
    /// Somebody else listens there, or no port is free.
    PortTaken,
    /// The caller may not use the port.
    NotAllowed,
    /// The device has no such address.
    NoSuchAddress,
    /// Something else.
    Other(Error),
}

/// An id that somebody keeps alive.
struct Raw(NonNull<bindings::rdma_cm_id>);

// SAFETY: `rdma_cm` allows the use of an id from any thread.
unsafe impl Send for Raw {}

impl Raw {
    /// # Safety
    ///
    /// The id is alive.
    unsafe fn listen(&self, backlog: i32) -> Result {
        // SAFETY: The caller vouches for it.
        kernel::error::to_result(unsafe { bindings::rdma_listen(self.0.as_ptr(), backlog) })
    }
}

impl CmId {
    /// Binds to a local address to listen there; port 0 is any free one. Returns the address.
    pub(crate) fn bind_listener(&self, local: SockAddr) -> Result<SockAddr, BindError> {
        match self.bind(local) {
            Ok(()) => {}
            Err(error) if error == EACCES => return Err(BindError::NotAllowed),
            Err(error) if error == ENOMEM => return Err(BindError::Other(error)),
            // The lookup of the address leaves the network device behind; what failed after it is
            // the port.
            // SAFETY: The id is alive.
            Err(_) if unsafe { (*self.own.raw.as_ptr()).route.addr.dev_addr.bound_dev_if } == 0 => {
                return Err(BindError::NoSuchAddress)
            }
            Err(error) if is(error, bindings::EADDRINUSE) || is(error, bindings::EADDRNOTAVAIL) => {
                return Err(BindError::PortTaken)
            }
            // Another device's.
            Err(error) if error == ENODEV => return Err(BindError::NoSuchAddress),
            Err(error) => return Err(BindError::Other(error)),
        }
        // SAFETY: The id is alive; once it is bound its address does not change.
        let (local, _) = unsafe { addresses(self.own.raw) };
        Ok(local)
    }

    /// Listens where it is bound. Requests may arrive before this returns.
    pub(crate) fn listen(&self, backlog: u32) -> Result<(), BindError> {
        let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
        let raw = Raw(self.own.raw);
        // Over iWARP the driver makes a socket in the caller's namespace, which need not be that of the id.
        let elsewhere = match self.device.transport() {
            Transport::Iwarp => self.net_elsewhere().map_err(BindError::Other)?,
            Transport::Ib | Transport::Roce => None,
        };
        let result = match elsewhere {
            // SAFETY: The id is alive, and stays so until the call is over, which this waits for.
            Some(net) => run_and_wait(c"kdapl_listen", Party::current_in(net), move || unsafe {
                raw.listen(backlog)
            })
            .and_then(|result| result),
            // SAFETY: The id is alive.
            None => unsafe { raw.listen(backlog) },
        };
        // iWARP listens at a TCP port, which sockets use too.
        result.map_err(|error| {
            if is(error, bindings::EADDRINUSE) {
                BindError::PortTaken
            } else if is(error, bindings::EADDRNOTAVAIL) {
                BindError::NoSuchAddress
            } else {
                BindError::Other(error)
            }
        })
    }

    /// The network namespace of the id, unless the caller is there.
    fn net_elsewhere(&self) -> Result<Option<NetRef>> {
        // SAFETY: The id is alive; the namespace does not change.
        let net = unsafe { (*self.own.raw.as_ptr()).route.addr.dev_addr.net };
        // SAFETY: The id holds a reference to it.
        let own = unsafe { NetRef::from_raw(net.cast()) }?;
        Ok((own.id() != NetRef::current()?.id()).then_some(own))
    }
}
