// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Regions of Remote Memory Regions (RMRs) over the memory of an LMR.

use super::{
    privilege::{
        self,
        access, //
    },
    registration_error,
    Lmr, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Segment, //
        },
        prelude::*, //
    },
    rdma::{
        fast_mr::{
            FastMr,
            RegionMemory, //
        },
        pd::Pd, //
    },
};

/// Memory of an LMR.
enum Place {
    /// Mapped for the device.
    Mapped(RegionMemory),
    /// In the calling process from this address on, and not pinned yet for RMRs.
    InCaller(u64),
}

impl Lmr {
    /// Creates a region over a part of the memory, with `privileges` for peers. No request has
    /// registered it yet.
    ///
    /// At the first call the memory of a process is pinned, and charged to its `RLIMIT_MEMLOCK`,
    /// once more, because the driver does not share the pages of the LMR: `ib_mr` does not refer to
    /// them. Another process has other pages at the same addresses, so the process that has created
    /// the LMR makes this call.
    ///
    /// The LMR is in use until the region is dropped.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (privileges) for privileges other than of remote reads and writes.
    /// - PROTECTION_VIOLATION for a segment that is not within the LMR.
    /// - PRIVILEGES_VIOLATION for a privilege that the LMR does not grant to this side.
    /// - LENGTH_ERROR if the segment has more pages than a region of the device.
    /// - INVALID_ADDRESS at the first call, in another process or for memory that is not mapped any
    ///   more.
    /// - INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn open_to_peers(
        this: InUse<Self>,
        segment: &Segment,
        privileges: u32,
    ) -> DatResult<Arc<FastMr>> {
        let offset = this.check_bind(segment, privileges)?;
        let access = access(privileges)?;
        let (memory, pd) = this.mapped()?;
        let owner: Arc<dyn Send + Sync> = Arc::new(this, GFP_KERNEL_ACCOUNT)?;
        let (length, address) = (u64::from(segment.length), segment.address);
        FastMr::new(pd, (memory, Some(owner)), offset, length, address, access)
            .map_err(registration_error)
    }

    /// Returns the memory for regions of RMRs, and its protection domain. Pins the memory of a
    /// process at the first call.
    ///
    /// The lock is released meanwhile, because a page of a file system in user space may take any
    /// time. The removal of the device waits for the protection domain, as for a registration.
    fn mapped(&self) -> DatResult<(RegionMemory, Arc<Pd>)> {
        let (place, pd) = self.place()?;
        let start = match place {
            Place::Mapped(memory) => return Ok((memory, pd)),
            Place::InCaller(start) => start,
        };
        let pinned = pd
            .pin(start, self.param.length, access(self.param.privileges)?)
            .map_err(registration_error)?;
        let pinned = RegionMemory::Process(Arc::new(pinned, GFP_KERNEL_ACCOUNT)?);
        let mut backing = self.backing.lock();
        let Some(backing) = &mut *backing else {
            return Err(DatError::device());
        };
        // Another bind may have been faster.
        let mapped = backing.mapped.get_or_insert_with(|| pinned.clone());
        Ok((mapped.clone(), pd))
    }

    /// Returns where the memory is, and its protection domain.
    ///
    /// # Errors
    ///
    /// INVALID_ADDRESS if it has yet to be pinned and is that of another process.
    fn place(&self) -> DatResult<(Place, Arc<Pd>)> {
        let backing = self.backing.lock();
        let backing = backing.as_ref().ok_or(DatError::device())?;
        let place = match (&backing.mapped, backing.start_in_caller()) {
            (Some(memory), _) => Place::Mapped(memory.clone()),
            (None, Some(start)) => Place::InCaller(start),
            (None, None) => return Err(registration_error(EFAULT)),
        };
        Ok((place, backing.pz.pd()?))
    }

    /// Checks a bind. Returns the offset of the segment in the memory.
    fn check_bind(&self, segment: &Segment, privileges: u32) -> DatResult<u64> {
        const BINDABLE: u32 = privilege::REMOTE_READ | privilege::REMOTE_WRITE;
        if privileges & !BINDABLE != 0 {
            return Err(DatError::Invalid(Arg::Privileges));
        }
        let param = &self.param;
        let outside = DatError::from(Kind::ProtectionViolation);
        let offset = segment.address.checked_sub(param.address).ok_or(outside)?;
        let end = offset.checked_add(u64::from(segment.length));
        if segment.context != param.lmr_context || end.is_none_or(|end| end > param.length) {
            return Err(outside);
        }
        for (remote, local, subtype) in [
            (
                privilege::REMOTE_READ,
                privilege::LOCAL_READ,
                Subtype::PrivilegesRdmaRead,
            ),
            (
                privilege::REMOTE_WRITE,
                privilege::LOCAL_WRITE,
                Subtype::PrivilegesRdmaWrite,
            ),
        ] {
            if privileges & remote != 0 && param.privileges & local == 0 {
                return Err(DatError::new(Kind::PrivilegesViolation, subtype));
            }
        }
        Ok(offset)
    }
}
