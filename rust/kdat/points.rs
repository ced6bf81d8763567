// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reserved and Common Service Points.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    address::{
        self,
        Address, //
    },
    bindings,
    ep::Ep,
    error::{
        to_result,
        Error,
        Result, //
    },
    evd::Evd, //
};
use core::net::SocketAddr;
use kernel::prelude::*;

/// Reserved Service Point (RSP): listens for one request, for one Endpoint. Its drop ends the
/// reservation, unless the request has arrived: accept that with the same Endpoint.
///
/// Drop it before the Endpoint. A reserved Endpoint is not freed before the adapter.
pub struct Rsp {
    handle: Handle,
    _evd: Evd,
}

impl Rsp {
    pub(crate) fn new(adapter: &Adapter, conn_qual: u64, ep: &Ep, evd: &Evd) -> Result<Self> {
        let (ia, ep, requests) = (adapter.ia.raw(), ep.handle().raw(), evd.handle().raw());
        // SAFETY: `rsp` is valid for writes.
        let handle = Handle::made(|rsp| unsafe {
            bindings::dat_rsp_create(ia, conn_qual, ep, requests, rsp)
        })?;
        Ok(Self {
            handle,
            _evd: evd.clone(),
        })
    }
}

impl Drop for Rsp {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        unsafe { bindings::dat_rsp_free(self.handle.raw()) };
    }
}

/// Common Service Point (CSP): listens at an address and a port until it is dropped.
/// [`Ep::common_connect`] connects to it.
pub struct Csp {
    handle: Handle,
    _evd: Evd,
}

impl Csp {
    pub(crate) fn new(adapter: &Adapter, at: &Address, evd: &Evd) -> Result<Self> {
        let stream = bindings::DAT_COMM::default();
        let requests = evd.handle().raw();
        // SAFETY: `stream` and the address are valid for reads, and `csp` for writes.
        let handle = Handle::made(|csp| unsafe {
            let ia = adapter.ia.raw();
            bindings::dat_csp_create(ia, &raw const stream, at.as_ptr(), requests, csp)
        })?;
        Ok(Self {
            handle,
            _evd: evd.clone(),
        })
    }

    /// Returns the address and the port: `dat_csp_query`.
    pub fn address(&self) -> Result<SocketAddr> {
        let mut param = KBox::new(bindings::DAT_CSP_PARAM::default(), GFP_KERNEL)?;
        // SAFETY: `param` is valid for writes.
        let ret = unsafe { bindings::dat_csp_query(self.handle.raw(), 0, &raw mut *param) };
        to_result(ret)?;
        address::of_storage(&param.address).ok_or(Error::new(bindings::DAT_INVALID_ADDRESS, 0))
    }
}

impl Drop for Csp {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers.
        unsafe { bindings::dat_csp_free(self.handle.raw()) };
    }
}
