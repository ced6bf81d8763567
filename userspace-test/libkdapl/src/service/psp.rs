// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Public Service Points (PSPs), which listen for any number of requests.

use crate::error::Result;
use crate::evd::Evd;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use std::sync::Arc;

/// Creator of the endpoint for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EpCreator {
    /// The program, when it accepts the request.
    #[default]
    Consumer = KDAPL_PSP_CONSUMER,
    /// The kernel: each request comes with a new endpoint, which needs a protection zone before the
    /// request can be accepted. See [`Cr::provided_ep`](crate::Cr::provided_ep).
    Provider = KDAPL_PSP_PROVIDER,
}

/// Options of a [`Psp`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PspOptions {
    /// Connection qualifier to listen for; `None` lets the kernel choose a free one.
    pub conn_qual: Option<u64>,
    /// Creator of the endpoints.
    pub endpoints: EpCreator,
    /// Maximum number of unanswered requests; `None` for the default.
    pub backlog: Option<u32>,
}

/// Result of [`Psp::query`].
#[derive(Clone, Copy, Debug)]
pub struct PspQuery {
    /// Connection qualifier.
    pub conn_qual: u64,
    /// EVD for its requests.
    pub evd: Handle,
    /// `DAT_PSP_FLAGS`.
    pub flags: u32,
    /// Maximum number of unanswered requests.
    pub backlog: u32,
}

/// A listener for a connection qualifier.
#[derive(Clone, Debug)]
pub struct Psp(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped before the EVD that it feeds.
    object: Object,
    conn_qual: u64,
    _evd: Evd,
}

impl Psp {
    pub(crate) fn create(device: &Arc<Device>, evd: &Evd, options: &PspOptions) -> Result<Self> {
        let mut message = kdapl_psp_create {
            conn_qual: options.conn_qual.unwrap_or(0),
            evd: evd.handle().0,
            flags: options.endpoints as u32,
            backlog: options.backlog.unwrap_or(0),
            ..Default::default()
        };
        raw::call(device, call::PSP_CREATE, &mut message)?;
        let object = Object::new(device, message.handle, call::PSP_FREE);
        let conn_qual = message.conn_qual;
        Ok(Self(Arc::new(Inner { object, conn_qual, _evd: evd.clone() })))
    }

    /// Returns the kernel's handle, which requests carry.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Returns the connection qualifier.
    #[must_use]
    pub fn conn_qual(&self) -> u64 {
        self.0.conn_qual
    }

    /// Returns qualifier, EVD, flags and backlog.
    ///
    /// # Errors
    /// `INVALID_HANDLE/PSP` after the PSP was freed.
    pub fn query(&self) -> Result<PspQuery> {
        let mut message = kdapl_psp_query { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.object.device, call::PSP_QUERY, &mut message)?;
        Ok(PspQuery {
            conn_qual: message.conn_qual,
            evd: Handle(message.evd),
            flags: message.flags,
            backlog: message.backlog,
        })
    }

    /// Stops listening. Requests that have arrived can still be answered; connections persist.
    ///
    /// # Errors
    /// `INVALID_HANDLE/PSP` if it was freed before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
