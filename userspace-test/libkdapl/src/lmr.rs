// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Local Memory Regions (LMRs): buffers registered for the device.

use crate::error::Result;
use crate::flags::Privileges;
use crate::object::{Handle, Object, Pz};
use crate::raw::{self, call, Buffer, Device};
use crate::sys::*;
use crate::Segment;
use std::ops::Range;
use std::sync::Arc;

/// Result of [`Lmr::query`].
pub type LmrQuery = kdapl_lmr_query;

/// Contexts and memory of a region, as its creation has returned them.
#[derive(Clone, Copy, Debug)]
pub struct LmrRegistration {
    /// Context for local segments.
    pub lmr_context: u32,
    /// Context for the peer's remote segments.
    pub rmr_context: u32,
    /// Address of the first byte in segments: 0 in a zero-based region.
    pub address: u64,
    /// Length of the registered memory.
    pub size: u64,
}

/// A registered [`Buffer`], which stays mapped while the region exists.
#[derive(Clone, Debug)]
pub struct Lmr(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    // Dropped in this order: the registration, its memory, its protection zone.
    object: Object,
    buffer: Arc<Buffer>,
    registration: LmrRegistration,
    _pz: Pz,
}

impl Inner {
    /// Returns the addresses of the region.
    fn memory(&self) -> Range<u64> {
        let start = self.buffer.address(0);
        start..start.saturating_add(self.buffer.len() as u64)
    }

    /// Keeps endpoints from mapping DTOs of the region, which is about to be freed.
    fn forget(&self) {
        self.object.device.bursts.remove_region(self.registration.lmr_context, &self.memory());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Lmr {
    pub(crate) fn register(
        device: &Arc<Device>,
        pz: &Pz,
        buffer: Arc<Buffer>,
        privileges: Privileges,
        va_type: u32,
    ) -> Result<Self> {
        let mut message = kdapl_lmr_create {
            pz: pz.handle().0,
            address: buffer.address(0),
            length: buffer.len() as u64,
            privileges: privileges.0,
            va_type,
            ..Default::default()
        };
        raw::call(device, call::LMR_CREATE, &mut message)?;
        let inner = Inner {
            object: Object::new(device, message.handle, call::LMR_FREE),
            buffer,
            registration: LmrRegistration {
                lmr_context: message.lmr_context,
                rmr_context: message.rmr_context,
                address: message.registered_address,
                size: message.registered_size,
            },
            _pz: pz.clone(),
        };
        // Segments of a zero-based region have other addresses than its memory. Their DTOs are not
        // mapped.
        if va_type == KDAPL_VA_TYPE_VA {
            device.bursts.add_region(message.lmr_context, inner.memory());
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Returns the kernel's handle.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.0.object.handle
    }

    /// Returns the result of the creation, without a system call.
    #[must_use]
    pub fn registration(&self) -> LmrRegistration {
        self.0.registration
    }

    /// Returns the registered memory.
    #[must_use]
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.0.buffer
    }

    /// Returns the segment of `length` bytes at `offset`, for the local side of an operation.
    #[must_use]
    pub fn segment(&self, offset: usize, length: usize) -> Segment {
        self.triplet(offset, length, self.0.registration.lmr_context)
    }

    /// Returns the segment of `length` bytes at `offset`, for the peer: the program sends it to the
    /// peer as the target or source of RDMA.
    #[must_use]
    pub fn remote_segment(&self, offset: usize, length: usize) -> Segment {
        self.triplet(offset, length, self.0.registration.rmr_context)
    }

    fn triplet(&self, offset: usize, length: usize, context: u32) -> Segment {
        let address = self.0.registration.address + offset as u64;
        Segment { address, length: length as u32, context }
    }

    /// Returns the parameters of the region.
    ///
    /// # Errors
    /// `INVALID_HANDLE/LMR` after the region was freed.
    pub fn query(&self) -> Result<LmrQuery> {
        let mut message = kdapl_lmr_query { handle: self.handle().0, ..Default::default() };
        raw::call(&self.0.object.device, call::LMR_QUERY, &mut message)?;
        Ok(message)
    }

    /// Unregisters the region. Operations that still use it fail.
    ///
    /// # Errors
    /// `INVALID_STATE/LMR_IN_USE` if it cannot be unregistered now.
    pub fn free(&self) -> Result<()> {
        self.0.forget();
        self.0.object.free()
    }
}
