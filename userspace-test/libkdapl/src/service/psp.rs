// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Public Service Points: listeners for any number of requests.

use crate::error::Result;
use crate::evd::Evd;
use crate::object::{Handle, Object};
use crate::raw::{self, call, Device};
use crate::sys::*;
use std::sync::Arc;

/// Who brings the endpoint for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EpCreator {
    /// The program, when it accepts.
    #[default]
    Consumer = KDAPL_PSP_CONSUMER,
    /// The kernel: each request comes with a new one, which wants a zone and event queues before
    /// it can be accepted with. See [`Cr::provided_ep`](crate::Cr::provided_ep).
    Provider = KDAPL_PSP_PROVIDER,
}

/// How a [`Psp`] is to listen.
#[derive(Clone, Copy, Debug, Default)]
pub struct PspOptions {
    /// What to listen for; `None` for a free qualifier of the kernel's choice.
    pub conn_qual: Option<u64>,
    /// Who brings the endpoints.
    pub endpoints: EpCreator,
    /// Requests that may wait for an answer; `None` for the default.
    pub backlog: Option<u32>,
}

/// What [`Psp::query`] tells.
#[derive(Clone, Copy, Debug)]
pub struct PspQuery {
    /// What it listens for.
    pub conn_qual: u64,
    /// Where its requests arrive.
    pub evd: Handle,
    /// `DAT_PSP_FLAGS`.
    pub flags: u32,
    /// Requests that may wait for an answer.
    pub backlog: u32,
}

/// A listener.
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

    /// The kernel's handle, which requests carry.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// What it listens for.
    #[must_use]
    pub fn conn_qual(&self) -> u64 {
        self.0.conn_qual
    }

    /// Qualifier, EVD and how it listens.
    ///
    /// # Errors
    /// `INVALID_HANDLE/PSP` once freed.
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

    /// Stops listening; requests that arrived can still be answered, and connections stand.
    ///
    /// # Errors
    /// `INVALID_HANDLE/PSP` if it was freed before.
    pub fn free(&self) -> Result<()> {
        self.0.object.free()
    }
}
