// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Service points and connection requests.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    address,
    bindings,
    ep::{
        size,
        Ep, //
    },
    error::{
        to_result,
        Error,
        Result, //
    },
    evd::Evd, //
};
use core::net::SocketAddr;

/// Public Service Point (PSP): listens until it is dropped. Its requests stay.
pub struct Psp {
    handle: Handle,
    _evd: Evd,
}

/// Origin of the requests that a service point takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The network, and other consumers in the kernel that hand requests off.
    Network,
    /// Also processes that hand requests off.
    NetworkAndProcesses,
}

impl Psp {
    pub(crate) fn new(
        adapter: &Adapter,
        conn_qual: u64,
        evd: &Evd,
        origin: Origin,
    ) -> Result<Self> {
        let handoffs = match origin {
            Origin::Network => 0,
            Origin::NetworkAndProcesses => bindings::KDAPL_PSP_HANDOFF_FLAG,
        };
        // SAFETY: `psp` is valid for writes.
        let handle = Handle::made(|psp| unsafe {
            bindings::dat_psp_create(
                adapter.ia.raw(),
                conn_qual,
                evd.handle().raw(),
                bindings::DAT_PSP_CONSUMER_FLAG | handoffs,
                psp,
            )
        })?;
        Ok(Self {
            handle,
            _evd: evd.clone(),
        })
    }
}

impl Psp {
    /// Listens for a free connection qualifier: `dat_psp_create_any`. Returns it, too.
    pub(crate) fn any(adapter: &Adapter, evd: &Evd) -> Result<(Self, u64)> {
        let mut conn_qual = 0;
        // SAFETY: `psp` and `conn_qual` are valid for writes.
        let handle = Handle::made(|psp| unsafe {
            bindings::dat_psp_create_any(
                adapter.ia.raw(),
                &raw mut conn_qual,
                evd.handle().raw(),
                bindings::DAT_PSP_CONSUMER_FLAG,
                psp,
            )
        })?;
        let psp = Self {
            handle,
            _evd: evd.clone(),
        };
        Ok((psp, conn_qual))
    }
}

impl Drop for Psp {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        unsafe { bindings::dat_psp_free(self.handle.raw()) };
    }
}

/// Connection Request (CR). A drop rejects it.
pub struct Cr {
    handle: Handle,
    conn_qual: u64,
    is_answered: bool,
}

impl Cr {
    pub(crate) fn new(handle: Handle, conn_qual: u64) -> Self {
        Self {
            handle,
            conn_qual,
            is_answered: false,
        }
    }

    /// Returns the connection qualifier that the peer connects to.
    pub fn conn_qual(&self) -> u64 {
        self.conn_qual
    }

    /// Copies the private data of the request, and returns how many bytes the peer has sent, which
    /// can be more than `data` has room for.
    pub fn private_data(&self, data: &mut [u8]) -> Result<usize> {
        let mut length = size(data);
        // SAFETY: The data are valid for writes of `length` bytes, and `length` for a write.
        to_result(unsafe {
            bindings::kdapl_cr_private_data(
                self.handle.raw(),
                &raw mut length,
                data.as_mut_ptr().cast(),
            )
        })?;
        Ok(usize::try_from(length).unwrap_or(0))
    }

    /// Returns the address and the port of the peer: `kdapl_cr_address`.
    pub fn remote(&self) -> Result<SocketAddr> {
        let mut remote = bindings::__kernel_sockaddr_storage::default();
        // SAFETY: `remote` is valid for writes.
        let ret = unsafe { bindings::kdapl_cr_address(self.handle.raw(), &raw mut remote) };
        to_result(ret)?;
        address::of_storage(&remote).ok_or(Error::new(bindings::DAT_INVALID_ADDRESS, 0))
    }

    /// Connects an unconnected Endpoint of the same adapter to the peer: `dat_cr_accept`. An error
    /// rejects the request.
    pub fn accept(self, ep: &Ep, data: &[u8]) -> Result {
        self.accept_with(ep, data, 0)
    }

    /// As [`Self::accept`], with a closed ready gate: all events of the connection wait for
    /// [`Ep::ready`].
    pub fn accept_gated(self, ep: &Ep, data: &[u8]) -> Result {
        self.accept_with(ep, data, bindings::KDAPL_READY_GATE_FLAG)
    }

    fn accept_with(mut self, ep: &Ep, data: &[u8], flags: u32) -> Result {
        // SAFETY: The data are valid for reads during the call.
        let ret = unsafe {
            bindings::kdapl_cr_accept(
                self.handle.raw(),
                ep.handle().raw(),
                size(data),
                data.as_ptr().cast(),
                flags,
            )
        };
        self.answered(ret)
    }

    /// Rejects the request: `dat_cr_reject`.
    pub fn reject(mut self, data: &[u8]) -> Result {
        self.answered(self.send_reject(data))
    }

    /// Passes the request on to the service point with this connection qualifier: `dat_cr_handoff`.
    /// An error rejects the request.
    pub fn hand_off(mut self, conn_qual: u64) -> Result {
        // SAFETY: The call has no pointers.
        let ret = unsafe { bindings::dat_cr_handoff(self.handle.raw(), conn_qual) };
        self.answered(ret)
    }

    /// As [`Self::hand_off`], to a service point of a process that this user has started:
    /// `kdapl_cr_handoff_to_user`.
    pub fn hand_off_to_user(mut self, conn_qual: u64, uid: u32) -> Result {
        // SAFETY: The call has no pointers.
        let ret = unsafe { bindings::kdapl_cr_handoff_to_user(self.handle.raw(), conn_qual, uid) };
        self.answered(ret)
    }

    fn answered(&mut self, ret: u32) -> Result {
        self.is_answered = ret == bindings::DAT_SUCCESS;
        to_result(ret)
    }

    fn send_reject(&self, data: &[u8]) -> u32 {
        // SAFETY: The data are valid for reads during the call.
        unsafe { bindings::dat_cr_reject(self.handle.raw(), size(data), data.as_ptr().cast()) }
    }
}

impl Drop for Cr {
    fn drop(&mut self) {
        if !self.is_answered {
            self.send_reject(&[]);
        }
    }
}
