// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Kinds of Local Memory Regions (LMR). Two kinds have no fixed memory: LMRs that requests
//! register, and the reserved LMR.

use super::{
    FastLmr,
    Lmr,
    Param, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Objects,
            UseCount, //
        },
        prelude::*,
        pz::{
            Pz,
            RESERVED_CONTEXT, //
        },
    },
    model::atomic::AtomicBool,
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::new_mutex;

/// Kind of an LMR.
pub(super) enum Role {
    /// The same memory for the life of the LMR.
    Memory,
    /// Memory that requests register and invalidate.
    Fast(Arc<FastLmr>),
    /// All memory, at DMA addresses.
    Reserved,
}

impl Role {
    /// Returns the present parameters of an LMR that was created with `param`.
    pub(super) fn query(&self, param: Param) -> Param {
        let Self::Fast(fast) = self else {
            return param;
        };
        let now = fast.registration();
        Param {
            address: now.address,
            length: now.length,
            privileges: now.privileges,
            lmr_context: now.lmr_context,
            rmr_context: now.rmr_context,
            ..param
        }
    }

    /// Returns whether the LMR has memory of its own.
    pub(super) fn is_memory(&self) -> bool {
        matches!(self, Self::Memory)
    }

    /// Refuses registrations and invalidations from now on.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (LMR in use) while a request is outstanding, or about to be posted.
    pub(super) fn refuse_requests(&self) -> DatResult {
        match self {
            Self::Fast(fast) => fast.refuse_requests(),
            Self::Memory | Self::Reserved => Ok(()),
        }
    }

    /// Checks that the LMR is not the reserved one.
    ///
    /// # Errors
    ///
    /// RESERVED_LMR.
    pub(super) fn unless_reserved(&self) -> DatResult {
        match self {
            Self::Reserved => Err(Kind::ReservedLmr.into()),
            Self::Memory | Self::Fast(_) => Ok(()),
        }
    }

    /// Returns whether the device may access the memory of a registration for ever.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Fast(fast) if fast.is_lost())
    }

    /// Releases the resources. Context: process; sleeps.
    pub(super) fn release(&self) {
        if let Self::Fast(fast) = self {
            fast.release();
        }
    }
}

impl Lmr {
    /// Creates an LMR for registrations of up to `max_pages` pages: `dat_lmr_allocate`. Returns the
    /// handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - MODEL_NOT_SUPPORTED if work requests of the device cannot register memory.
    /// - LENGTH_ERROR for no pages, or more than a region of the device has.
    /// - INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn allocate(
        regions: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        max_pages: u32,
    ) -> DatResult<u64> {
        if !pz.pd()?.has_fast_registration() {
            return Err(Kind::ModelNotSupported.into());
        }
        let param = Param {
            pz: pz.handle(),
            ..Param::default()
        };
        let fast = FastLmr::new(pz, max_pages)?;
        // The Protection Zone refers to it until it is released.
        Self::enter(regions, param, Role::Fast(fast.clone())).inspect_err(|_| fast.release())
    }

    /// Creates the reserved LMR: `dat_ia_reserved_lmr`. Returns the handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn reserve(regions: &Arc<Objects<Self>>) -> DatResult<u64> {
        let param = Param {
            length: u64::MAX,
            privileges: super::privilege::LOCAL_READ | super::privilege::LOCAL_WRITE,
            lmr_context: RESERVED_CONTEXT,
            ..Param::default()
        };
        Self::enter(regions, param, Role::Reserved)
    }

    /// Creates an LMR without memory of its own, and puts it into the table. Returns the handle.
    fn enter(regions: &Arc<Objects<Self>>, param: Param, role: Role) -> DatResult<u64> {
        let entry = Objects::reserve(regions)?;
        let handle = entry.handle().into_raw();
        let this = Arc::pin_init(
            pin_init!(Self {
                param,
                backing <- new_mutex!(None, "Lmr::backing"),
                handle,
                role,
                is_lost: AtomicBool::new(false),
                uses: UseCount::none(),
                _counted: Counted::new(census::Kind::Lmr),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// Returns the part of an LMR that requests register and invalidate.
    ///
    /// # Errors
    ///
    /// - RESERVED_LMR.
    /// - INVALID_HANDLE (LMR) for an LMR that `dat_lmr_allocate` has not created.
    pub(in crate::dat) fn fast(&self) -> DatResult<&Arc<FastLmr>> {
        match &self.role {
            Role::Fast(fast) => Ok(fast),
            Role::Reserved => Err(Kind::ReservedLmr.into()),
            Role::Memory => Err(DatError::new(
                Kind::InvalidHandle,
                Subtype::InvalidHandleLmr,
            )),
        }
    }

    /// Checks whether an RMR may be bound to the LMR.
    ///
    /// # Errors
    ///
    /// - RESERVED_LMR.
    /// - MODEL_NOT_SUPPORTED for an LMR that requests register: it has an RMR context itself.
    pub(in crate::dat) fn may_bind(&self) -> DatResult {
        match &self.role {
            Role::Memory => Ok(()),
            Role::Fast(_) => Err(Kind::ModelNotSupported.into()),
            Role::Reserved => Err(Kind::ReservedLmr.into()),
        }
    }
}
