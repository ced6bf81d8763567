// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Regions of Remote Memory Regions (RMRs) over the memory of an LMR.

use super::{
    access,
    privilege,
    refused,
    Backing,
    Lmr,
    Param, //
};
use crate::{
    dat::{
        base::{
            InUse,
            Segment, //
        },
        prelude::*, //
    },
    rdma::fast_mr::{
        FastMr,
        MappedMemory, //
    },
};

impl Lmr {
    /// Creates a region over a part of the memory, with `privileges` for peers. No request has
    /// registered it yet.
    ///
    /// At the first call the memory of a process is pinned, and charged to its `RLIMIT_MEMLOCK`,
    /// once more, because the driver does not share the pages of the LMR.
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
    /// - INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn open_to_peers(
        this: InUse<Self>,
        segment: &Segment,
        privileges: u32,
    ) -> DatResult<Arc<FastMr>> {
        let offset = this.check_bind(segment, privileges)?;
        let access = access(privileges)?;
        let (memory, pd) = {
            let mut backing = this.backing.lock();
            match &mut *backing {
                Some(backing) => (backing.mapped(&this.param)?, backing.pz.pd()?),
                None => return Err(DatError::device()),
            }
        };
        let owner: Arc<dyn Send + Sync> = Arc::new(this, GFP_KERNEL_ACCOUNT)?;
        let (length, address) = (u64::from(segment.length), segment.address);
        FastMr::new(pd, (memory, Some(owner)), offset, length, address, access).map_err(refused)
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

impl Backing {
    /// Returns the memory for regions of RMRs. Pins that of a process at the first call.
    fn mapped(&mut self, param: &Param) -> DatResult<MappedMemory> {
        if let Some(mapped) = &self.mapped {
            return Ok(mapped.clone());
        }
        let (start, length) = (param.address, param.length);
        let memory = self
            .pz
            .pd()?
            .pin(start, length, access(param.privileges)?)
            .map_err(refused)?;
        let mapped = MappedMemory::Process(Arc::new(memory, GFP_KERNEL_ACCOUNT)?);
        self.mapped = Some(mapped.clone());
        Ok(mapped)
    }
}
