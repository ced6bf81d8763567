// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Reserved Service Points (RSPs), which listen for one request and reserve an endpoint for it.

use crate::ep::Ep;
use crate::error::Result;
use crate::evd::Evd;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use std::sync::Arc;

/// Result of [`Rsp::query`].
#[derive(Clone, Copy, Debug)]
pub struct RspQuery {
    /// Connection qualifier.
    pub conn_qual: u64,
    /// EVD for its request.
    pub evd: Handle,
    /// Endpoint that is reserved for the request, if the program supplied one.
    pub ep: Option<Handle>,
}

/// A listener for one request. Keeps its endpoint alive.
#[derive(Clone, Debug)]
pub struct Rsp(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped first: it feeds the EVD, and the kernel frees no endpoint that it uses.
    object: Object,
    _ep: Option<Ep>,
    _evd: Evd,
}

impl Rsp {
    pub(crate) fn create(
        device: &Arc<Device>,
        conn_qual: u64,
        evd: &Evd,
        ep: Option<&Ep>,
    ) -> Result<Self> {
        let mut message = kdapl_rsp {
            conn_qual,
            evd: evd.handle().0,
            ep: ep.map_or(0, |ep| ep.handle().0),
            ..Default::default()
        };
        raw::call(device, call::RSP_CREATE, &mut message)?;
        let object = Object::new(device, message.handle, call::RSP_FREE);
        Ok(Self(Arc::new(Inner { object, _ep: ep.cloned(), _evd: evd.clone() })))
    }

    /// Returns the kernel's handle, which the request carries.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Returns qualifier, EVD and endpoint.
    ///
    /// # Errors
    /// `INVALID_HANDLE/RSP` after the RSP was freed.
    pub fn query(&self) -> Result<RspQuery> {
        let mut message = kdapl_rsp { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.object.device, call::RSP_QUERY, &mut message)?;
        Ok(RspQuery {
            conn_qual: message.conn_qual,
            evd: Handle(message.evd),
            ep: (message.ep != 0).then_some(Handle(message.ep)),
        })
    }

    /// Stops listening. If no request has arrived, its endpoint becomes unconnected.
    ///
    /// # Errors
    /// `INVALID_HANDLE/RSP` if it was freed before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
