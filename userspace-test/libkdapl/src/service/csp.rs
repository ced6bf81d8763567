// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Common Service Points (CSPs), which listen at an address instead of for a qualifier.

use crate::address;
use crate::error::Result;
use crate::evd::Evd;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use std::net::SocketAddr;
use std::sync::Arc;

/// Result of [`Csp::query`].
#[derive(Clone, Copy, Debug)]
pub struct CspQuery {
    /// Address and port that the CSP listens at.
    pub address: Option<SocketAddr>,
    /// EVD for its requests.
    pub evd: Handle,
    /// The kernel's answer.
    pub raw: kdapl_csp,
}

/// A listener at an address.
#[derive(Clone, Debug)]
pub struct Csp(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped before the EVD that it feeds.
    object: Object,
    address: Option<SocketAddr>,
    _evd: Evd,
}

impl Csp {
    pub(crate) fn create(
        device: &Arc<Device>,
        address: Option<SocketAddr>,
        evd: &Evd,
    ) -> Result<Self> {
        let mut message = kdapl_csp {
            address: address.map_or_else(kdapl_sockaddr::default, Into::into),
            evd: evd.handle().0,
            ..Default::default()
        };
        raw::call(device, call::CSP_CREATE, &mut message)?;
        let object = Object::new(device, message.handle, call::CSP_FREE);
        let address = address::decode(&message.address);
        Ok(Self(Arc::new(Inner { object, address, _evd: evd.clone() })))
    }

    /// Returns the kernel's handle, which requests carry.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Returns the address and the actual port that the CSP listens at.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address
    }

    /// Returns address and EVD.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CSP` after the CSP was freed.
    pub fn query(&self) -> Result<CspQuery> {
        let mut message = kdapl_csp { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.object.device, call::CSP_QUERY, &mut message)?;
        Ok(CspQuery {
            address: address::decode(&message.address),
            evd: Handle(message.evd),
            raw: message,
        })
    }

    /// Stops listening. Requests that have arrived can still be answered; connections persist.
    ///
    /// # Errors
    /// `INVALID_HANDLE/CSP` if it was freed before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
