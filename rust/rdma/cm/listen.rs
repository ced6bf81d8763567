// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! CM IDs that listen.

use super::{
    bind::BindError,
    errno::{
        is,
        is_one_of, //
    },
    id::{
        addresses,
        CmId, //
    },
};
use crate::{
    model::footprint::IWARP_BACKLOG,
    rdma::addr::SockAddr,
    sys::{
        net::NetRef,
        thread::{
            run_and_wait,
            Identity, //
        },
    },
};
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::prelude::*;

/// A CM ID that the caller keeps alive.
struct Raw(NonNull<bindings::rdma_cm_id>);

// SAFETY: `rdma_cm` allows the use of an ID from any thread.
unsafe impl Send for Raw {}

impl Raw {
    /// Listens for requests.
    ///
    /// # Safety
    ///
    /// The ID is alive.
    unsafe fn listen(&self, backlog: i32) -> Result {
        // SAFETY: The caller guarantees that the ID is alive.
        kernel::error::to_result(unsafe { bindings::rdma_listen(self.0.as_ptr(), backlog) })
    }
}

impl CmId {
    /// Binds the ID to a local address of the device's port `ib_port` for listening, and returns
    /// the address. Port 0 of the address selects a free one.
    pub(crate) fn bind_listener(
        &self,
        local: SockAddr,
        ib_port: u32,
    ) -> Result<SockAddr, BindError> {
        self.bind(local, ib_port)?;
        // SAFETY: The ID is alive. Its address does not change once it is bound.
        let (local, _) = unsafe { addresses(self.own.raw) };
        Ok(local)
    }

    /// Listens at the address to which the ID is bound. Requests may arrive before this returns.
    ///
    /// `backlog` matters over iWARP only, where it is at most [`IWARP_BACKLOG`]: the kernel
    /// allocates memory for all of it.
    pub(crate) fn listen(&self, backlog: u32) -> Result<(), BindError> {
        let backlog = i32::try_from(backlog.min(IWARP_BACKLOG)).unwrap_or(i32::MAX);
        let raw = Raw(self.own.raw);
        self.own.context.begin_listening();
        // Over iWARP the driver creates a socket in the caller's network namespace, which may
        // differ from that of the ID.
        let elsewhere = match self.device.is_iwarp() {
            true => self.net_elsewhere().map_err(BindError::Other)?,
            false => None,
        };
        let result = match elsewhere {
            // SAFETY: The ID is alive. It stays so until the call is over, because `run_and_wait`
            // waits for that.
            Some(net) => run_and_wait(c"kdapl_listen", Identity::current_in(net), move || unsafe {
                raw.listen(backlog)
            })
            .and_then(|result| result),
            // SAFETY: The ID is alive.
            None => unsafe { raw.listen(backlog) },
        };
        // iWARP listens at a TCP port, which a socket may use already.
        result.map_err(|error| {
            if is(error, bindings::EADDRINUSE) {
                BindError::PortTaken
            } else if is_one_of(error, &[bindings::EADDRNOTAVAIL, bindings::EAFNOSUPPORT]) {
                BindError::NoSuchAddress
            } else {
                BindError::Other(error)
            }
        })
    }

    /// Returns the network namespace of the ID, unless the caller is in that namespace.
    fn net_elsewhere(&self) -> Result<Option<NetRef>> {
        // SAFETY: The ID is alive, and its namespace does not change.
        let net = unsafe { (*self.own.raw.as_ptr()).route.addr.dev_addr.net };
        // SAFETY: The ID holds a reference to the namespace.
        let own = unsafe { NetRef::from_raw(net.cast()) }?;
        Ok((own.id() != NetRef::current()?.id()).then_some(own))
    }
}
