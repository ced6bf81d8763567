// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Prepares registrations: maps the pages and the region, without a lock.

use super::{
    FastLmr,
    FastRegistration,
    Inner,
    Resources, //
};
use crate::{
    dat::{
        lmr::{
            privilege::{
                self,
                access, //
            },
            registration_error, //
        },
        prelude::*,
        pz::{
            Fast,
            Memory,
            Region, //
        },
    },
    model::{
        fast_lmr::LmrInput,
        handle::Handle, //
    },
    rdma::{
        dma_pages::DmaPages,
        fast_mr::FastMr,
        mr::{
            Access,
            Permission, //
        },
    },
    sys::{
        task::CallContext,
        workqueue::queue, //
    },
};
use kernel::{
    error::code::ERANGE,
    page::PAGE_SIZE, //
};

/// Arguments of `dat_lmr_fmr` other than handles.
#[derive(Clone, Copy)]
pub(crate) struct Fmr {
    /// Number of pages, or of entries of a list.
    pub(crate) pages: u32,
    /// Addresses begin at 0, and not at that of the memory.
    pub(crate) is_zero_based: bool,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    /// Cookie of the completion.
    pub(crate) cookie: u64,
    /// `DAT_COMPLETION_FLAGS`.
    pub(crate) flags: u32,
}

impl Fmr {
    /// Returns whether peers may perform atomic operations on the memory.
    pub(in crate::dat) fn has_remote_atomics(&self) -> bool {
        self.privileges & privilege::REMOTE_ATOMIC != 0
    }
}

/// A registration whose request was not posted yet. The drop abandons it.
pub(in crate::dat) struct PreparedRegistration {
    lmr: Arc<FastLmr>,
    /// `None` once the request was posted.
    resources: Option<Resources>,
    registration: FastRegistration,
    access: Access,
}

/// Returns the address of the first byte for both sides.
///
/// # Errors
///
/// `ERANGE` if zero-based memory does not begin at a page boundary.
fn address(pages: &DmaPages, is_zero_based: bool) -> Result<u64> {
    match (is_zero_based, pages.first() % PAGE_SIZE as u64) {
        (false, _) => Ok(pages.first()),
        (true, 0) => Ok(0),
        (true, _) => Err(ERANGE),
    }
}

impl FastLmr {
    /// Prepares a registration. `map` maps the pages for the device.
    ///
    /// Context: any. May sleep in [`CallContext::Process`] only: to replace a region after a
    /// request that has failed, or in a driver that sleeps to map one.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (privileges) for undefined privileges.
    /// - LENGTH_ERROR for no pages, or more than the LMR was allocated for.
    /// - INVALID_STATE (LMR in use) while memory is registered or a request is outstanding.
    /// - INVALID_ADDRESS: (malformed) for pages that the kernel does not have, or not as requested;
    ///   (unsupported) for those that do not meet at page boundaries.
    /// - INVALID_HANDLE (LMR) if the LMR was freed, or the device removed.
    /// - INSUFFICIENT_RESOURCES if a lost region cannot be replaced, as in [`CallContext::Atomic`].
    /// - MODEL_NOT_SUPPORTED in [`CallContext::Atomic`] if the driver sleeps.
    pub(in crate::dat) fn prepare(
        self: &Arc<Self>,
        fmr: &Fmr,
        map: impl FnOnce(&mut DmaPages) -> Result,
        context: CallContext,
    ) -> DatResult<PreparedRegistration> {
        let access = access(fmr.privileges)?;
        if fmr.pages == 0 || fmr.pages > self.max_pages {
            return Err(Kind::LengthError.into());
        }
        if self.sleeps_to_map && !context.may_sleep() {
            return Err(Kind::ModelNotSupported.into());
        }
        let (effects, resources) = {
            let mut inner = self.lock();
            inner.unless_released()?;
            inner.may_prepare(context)?;
            let effects = inner.step(LmrInput::Prepare)?;
            inner.is_suppressed = false;
            (effects, inner.resources.take())
        };
        let mut prepared = PreparedRegistration {
            lmr: self.clone(),
            resources,
            registration: FastRegistration::default(),
            access,
        };
        if effects.replace {
            prepared.drop_region()?;
        }
        if context.may_sleep() {
            prepared.replace_region()?;
        }
        prepared.map(fmr, map)?;
        Ok(prepared)
    }
}

impl Inner {
    /// Checks that the LMR was not released.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (LMR).
    pub(in crate::dat) fn unless_released(&self) -> DatResult {
        if self.is_released {
            return Err(DatError::new(
                Kind::InvalidHandle,
                Subtype::InvalidHandleLmr,
            ));
        }
        Ok(())
    }

    /// Checks whether a registration may be prepared in this context: whether it needs no other
    /// region, or may wait for one.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    fn may_prepare(&self, context: CallContext) -> DatResult {
        let is_lost = self.state.is_lost();
        match context {
            CallContext::Atomic if is_lost => Err(DatError::memory()),
            CallContext::Atomic | CallContext::Process => Ok(()),
        }
    }
}

impl PreparedRegistration {
    /// Returns the LMR.
    pub(in crate::dat) fn lmr(&self) -> &Arc<FastLmr> {
        &self.lmr
    }

    /// Returns the region to register.
    pub(in crate::dat) fn region(&self) -> DatResult<&Arc<FastMr>> {
        let resources = self.resources.as_ref();
        resources
            .and_then(|resources| resources.region.as_ref())
            .ok_or(DatError::internal())
    }

    /// Returns the handle of the Protection Zone.
    pub(in crate::dat) fn pz(&self) -> u64 {
        self.resources
            .as_ref()
            .map_or(0, |resources| resources.pz.handle())
    }

    fn resources(&mut self) -> DatResult<&mut Resources> {
        self.resources.as_mut().ok_or(DatError::internal())
    }

    /// Destroys the region, whose key is not valid any more on return, and ends the mapping of its
    /// pages. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INTERNAL_ERROR if the driver fails to destroy the region.
    fn drop_region(&mut self) -> DatResult {
        let lmr = self.lmr.clone();
        let resources = self.resources()?;
        Resources::end_reports(resources.reports());
        if !lmr.drop_region(resources) {
            return Err(DatError::internal());
        }
        resources.pages.unmap();
        Ok(())
    }

    /// Creates a region if there is none. Context: process; sleeps in that case.
    fn replace_region(&mut self) -> DatResult {
        let (lmr, max_pages) = (self.lmr.clone(), self.lmr.max_pages);
        let resources = self.resources()?;
        if resources.region.is_some() {
            return Ok(());
        }
        let region = FastMr::reusable(resources.pz.pd()?, max_pages).map_err(registration_error)?;
        resources.pz.add_peer_invalidation(region.key(), lmr)?;
        resources.region = Some(region);
        Ok(())
    }

    /// Maps the pages and the region.
    fn map(&mut self, fmr: &Fmr, map: impl FnOnce(&mut DmaPages) -> Result) -> DatResult {
        let access = self.access;
        let resources = self.resources()?;
        map(&mut resources.pages).map_err(registration_error)?;
        let address = address(&resources.pages, fmr.is_zero_based).map_err(registration_error)?;
        let reports = resources.reports();
        let region = resources.region.take().ok_or(DatError::memory())?;
        let Some(mut region) = Arc::into_unique_or_drop(region) else {
            // A request holds the region.
            Resources::end_reports(reports);
            return Err(DatError::internal());
        };
        let mapped = region.as_mut().map(&resources.pages, address, access);
        let rmr_context = region.key();
        resources.region = Some(Arc::from(region));
        mapped.map_err(registration_error)?;
        self.registration = FastRegistration {
            address,
            length: resources.pages.length(),
            privileges: fmr.privileges,
            lmr_context: resources.pz.new_context(),
            rmr_context,
        };
        Ok(())
    }

    /// Puts the resources back: the request was posted to an Endpoint. Posts may use the LMR
    /// context from now on.
    ///
    /// Context: the caller holds `Ep::inner` and the lock of the LMR, whose fields are `inner`.
    pub(in crate::dat) fn commit(&mut self, inner: &mut Inner, ep: Handle, is_suppressed: bool) {
        let Some(mut resources) = self.resources.take() else {
            return;
        };
        let region = Region {
            address: self.registration.address,
            length: self.registration.length,
            writable: self.registration.privileges & privilege::LOCAL_WRITE != 0,
            memory: Memory::Fast(Fast {
                lkey: resources.region.as_ref().map_or(0, |region| region.lkey()),
                is_open: self.access.contains(Permission::RemoteWrite),
                is_shared: resources.pages.is_shared(),
            }),
            is_hidden: false,
        };
        if let Some(room) = resources.room.take() {
            resources
                .pz
                .insert_region(room, self.registration.lmr_context, region);
        }
        inner.resources = Some(resources);
        inner.registration = self.registration;
        inner.ep = Some(ep);
        inner.is_suppressed = is_suppressed;
        let _ = inner.step(LmrInput::Register);
    }

    /// Returns the LMR context and the RMR context.
    pub(in crate::dat) fn contexts(&self) -> (u32, u32) {
        (self.registration.lmr_context, self.registration.rmr_context)
    }
}

impl Drop for PreparedRegistration {
    fn drop(&mut self) {
        let Some(mut resources) = self.resources.take() else {
            return;
        };
        resources.pages.unmap();
        let is_released = {
            let mut inner = self.lmr.lock();
            inner.resources = Some(resources);
            let _ = inner.step(LmrInput::Abandon);
            inner.is_released
        };
        if is_released {
            // The drop of the resources sleeps.
            let _ = queue().enqueue(self.lmr.clone());
        }
    }
}
