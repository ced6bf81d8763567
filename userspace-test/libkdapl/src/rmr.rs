// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Remote Memory Regions (RMRs): parts of LMRs that are open to peers.

use crate::ep::Ep;
use crate::error::Result;
use crate::flags::{CompletionFlags, Privileges};
use crate::lmr::Lmr;
use crate::object::{Handle, Object, Pz};
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::Segment;
use std::sync::Arc;

/// Result of [`Rmr::query`].
pub type RmrQuery = kdapl_rmr_query;

/// Part of an [`Lmr`] to bind an [`Rmr`] to.
#[derive(Clone, Copy, Debug)]
pub struct RmrBinding<'a> {
    /// Region that contains the part.
    pub lmr: &'a Lmr,
    /// The part, as a local segment of the region.
    pub segment: Segment,
    /// `REMOTE_READ` and `REMOTE_WRITE`.
    pub privileges: Privileges,
}

/// A remote memory region.
#[derive(Clone, Debug)]
pub struct Rmr {
    object: Arc<Object>,
    _pz: Pz,
}

impl Rmr {
    pub(crate) fn create(device: &Arc<Device>, pz: &Pz) -> Result<Self> {
        let mut message = kdapl_rmr_create { pz: pz.handle().0, ..Default::default() };
        raw::call(device, call::RMR_CREATE, &mut message)?;
        let object = Arc::new(Object::new(device, message.handle, call::RMR_FREE));
        Ok(Self { object, _pz: pz.clone() })
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.object.handle
    }

    /// Binds the region, by a request of `ep`, which completes with
    /// [`Event::RmrBind`](crate::Event::RmrBind). Returns the segment for the peer. An earlier one
    /// is not valid any more. On a disconnected endpoint the event says that the request was
    /// flushed, the context is 0, and the RMR stays as it was.
    ///
    /// # Errors
    /// `INVALID_STATE` unless connected or disconnected; `PROTECTION_VIOLATION` for a region or an
    /// endpoint of another zone, or a part outside of the region; `PRIVILEGES_VIOLATION` for a
    /// privilege that the region lacks for its own side; `LENGTH_ERROR` for more pages than the
    /// device can bind.
    pub fn bind(
        &self,
        ep: &Ep,
        to: &RmrBinding<'_>,
        cookie: u64,
        flags: CompletionFlags,
    ) -> Result<Segment> {
        let mut message = kdapl_rmr_bind {
            handle: self.handle().0,
            lmr: to.lmr.handle().0,
            ep: ep.handle().0,
            cookie,
            segment: to.segment,
            privileges: to.privileges.0,
            flags: flags.0,
            ..Default::default()
        };
        // The bind is a request of the endpoint.
        let _posts = ep.posts();
        raw::call(&self.object.device, call::RMR_BIND, &mut message)?;
        Ok(Segment { context: message.rmr_context, ..to.segment })
    }

    /// Unbinds the region, by a request of `ep`. Its segment is not valid any more, unless the
    /// event says that the request was flushed.
    ///
    /// # Errors
    /// `INVALID_STATE` unless connected or disconnected.
    pub fn unbind(&self, ep: &Ep, cookie: u64, flags: CompletionFlags) -> Result<()> {
        let mut message = kdapl_rmr_bind {
            handle: self.handle().0,
            ep: ep.handle().0,
            cookie,
            flags: flags.0,
            ..Default::default()
        };
        let _posts = ep.posts();
        raw::call(&self.object.device, call::RMR_BIND, &mut message)
    }

    /// Returns the parameters of the region.
    ///
    /// # Errors
    /// `INVALID_HANDLE/RMR` after the region was freed.
    pub fn query(&self) -> Result<RmrQuery> {
        let mut message = kdapl_rmr_query { handle: self.handle().0, ..Default::default() };
        raw::call(&self.object.device, call::RMR_QUERY, &mut message)?;
        Ok(message)
    }

    /// Frees the region. Its segment is not valid any more.
    ///
    /// # Errors
    /// `INVALID_HANDLE/RMR` after the region was freed.
    pub fn free(&self) -> Result<()> {
        self.object.free()
    }
}
