// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protection Zones.

use crate::{
    adapter::{
        Adapter,
        Handle, //
    },
    bindings,
    ep::{
        Ep,
        EpAttr,
        Evds, //
    },
    error::Result,
    fmr::{
        Fmr,
        Scattered, //
    },
    memory::{
        self,
        Buffer, //
    },
    rmr::Rmr,
    shared::{
        Access,
        Shared, //
    },
    srq::Srq,
    transfer::Lmr, //
};
use kernel::{
    bindings::scatterlist,
    prelude::*,
    sync::Arc, //
};

/// Zone that is freed after its memory and Endpoints.
pub(crate) struct Zone {
    pub(crate) adapter: Arc<Adapter>,
    pub(crate) handle: Handle,
}

impl Drop for Zone {
    fn drop(&mut self) {
        // SAFETY: The call has no pointers. After the close of the adapter the handle is refused.
        unsafe { bindings::dat_pz_free(self.handle.raw()) };
    }
}

/// Protection Zone (PZ): memory and Endpoints that may be used together. Clones are the same zone.
#[derive(Clone)]
pub struct Pz(pub(crate) Arc<Zone>);

impl Pz {
    pub(crate) fn new(adapter: &Arc<Adapter>) -> Result<Self> {
        // SAFETY: `pz` is valid for writes.
        let handle = Handle::made(|pz| unsafe { bindings::dat_pz_create(adapter.ia.raw(), pz) })?;
        let zone = Zone {
            adapter: adapter.clone(),
            handle,
        };
        Ok(Self(Arc::new(zone, GFP_KERNEL)?))
    }

    /// Allocates `number` buffers of `size` bytes for DTOs of this zone, in one region. They are
    /// zeroed.
    pub fn buffers(&self, number: usize, size: usize) -> Result<KVec<Buffer>> {
        memory::buffers(self, number, size)
    }

    /// Allocates one buffer.
    pub fn buffer(&self, size: usize) -> Result<Buffer> {
        memory::buffer(self, size)
    }

    /// Allocates memory that peers of this zone may access at once, as `access` says, or when an
    /// [`Rmr`] is bound to it. It is zeroed. Over iWARP only [`Access::Bind`] is supported.
    pub fn share(&self, size: usize, access: Access) -> Result<Shared> {
        Shared::new(self, size, access)
    }

    /// Registers memory of another zone in this one, too, which may be of another adapter. The
    /// result is the same memory, which is freed after both were dropped.
    pub fn share_again(&self, memory: &Shared, access: Access) -> Result<Shared> {
        memory.again(self, access)
    }

    /// Maps the first `length` bytes of a scatterlist for DTOs: `dat_lmr_kcreate`. A DTO has up to
    /// `segments` of its entries.
    ///
    /// # Errors
    ///
    /// LENGTH_ERROR if the list is shorter, or its transfer takes too many DTOs.
    ///
    /// # Safety
    ///
    /// The list and its memory stay as they are until the result is dropped, and until the adapter
    /// is closed if that is being closed meanwhile.
    pub unsafe fn map(
        &self,
        list: *mut scatterlist,
        (entries, length): (u32, u32),
        segments: u32,
    ) -> Result<Lmr> {
        // SAFETY: By the safety requirement.
        unsafe { Lmr::new(self, list, (entries, length), segments) }
    }

    /// Creates a Remote Memory Region, which is not bound: `dat_rmr_create`.
    pub fn create_rmr(&self) -> Result<Rmr> {
        Rmr::new(self)
    }

    /// Creates a Local Memory Region for memory of up to `max_pages` pages that requests register:
    /// `dat_lmr_allocate`.
    pub fn allocate_fmr<M: Scattered>(&self, max_pages: u32) -> Result<Fmr<M>> {
        Fmr::new(self, max_pages)
    }

    /// Creates a Shared Receive Queue of at least `receives` receives, which may have so many
    /// segments each: `dat_srq_create`. A buffer takes a segment for each page of its memory that
    /// is not contiguous.
    pub fn create_srq(&self, receives: u32, segments: u32) -> Result<Srq> {
        Srq::new(self, receives, segments)
    }

    /// Creates an Endpoint: `dat_ep_create`. `None` selects the default attributes.
    pub fn create_ep(&self, evds: Evds<'_>, attr: Option<&EpAttr>) -> Result<Ep> {
        Ep::new(self, evds, None, attr)
    }

    /// Creates an Endpoint that takes its receives from a queue: `dat_ep_create_with_srq`.
    pub fn create_ep_with_srq(
        &self,
        evds: Evds<'_>,
        srq: &Srq,
        attr: Option<&EpAttr>,
    ) -> Result<Ep> {
        Ep::new(self, evds, Some(srq), attr)
    }
}
