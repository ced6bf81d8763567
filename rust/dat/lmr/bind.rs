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
        base::Segment,
        prelude::*, //
    },
    rdma::{
        fast_mr::FastMr,
        umem::Umem, //
    },
};

impl Lmr {
    /// Creates a region over a part of the memory, with `privileges` for peers. No request has
    /// registered it yet.
    ///
    /// At the first call the memory is pinned, and charged to the `RLIMIT_MEMLOCK` of the calling
    /// process, once more, because the driver does not share the pages of the LMR.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// - INVALID_PARAMETER (privileges) for privileges other than of remote reads and writes.
    /// - PROTECTION_VIOLATION for a segment that is not within the LMR.
    /// - PRIVILEGES_VIOLATION for a privilege that the LMR does not grant to this side.
    /// - LENGTH_ERROR if the segment has more pages than a region of the device.
    /// - MODEL_NOT_SUPPORTED for memory of the kernel.
    /// - INSUFFICIENT_RESOURCES.
    pub(in crate::dat) fn open_to_peers(
        &self,
        segment: &Segment,
        privileges: u32,
    ) -> DatResult<Arc<FastMr>> {
        let offset = self.check_bind(segment, privileges)?;
        let (memory, pd) = {
            let mut backing = self.backing.lock();
            match &mut *backing {
                Some(backing) => (backing.pinned(&self.param)?, backing.pz.pd()?),
                None => return Err(DatError::device()),
            }
        };
        let range = offset..offset.saturating_add(u64::from(segment.length));
        FastMr::new(pd, memory, range, segment.address, access(privileges)?).map_err(refused)
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
    /// Returns the memory for regions of RMRs. Pins it at the first call.
    fn pinned(&mut self, param: &Param) -> DatResult<Arc<Umem>> {
        if let Some(pinned) = &self.pinned {
            return Ok(pinned.clone());
        }
        if self.mr.is_none() {
            return Err(Kind::ModelNotSupported.into());
        }
        let (start, length) = (param.address, param.length);
        let memory = self
            .pz
            .pd()?
            .pin(start, length, access(param.privileges)?)
            .map_err(refused)?;
        let memory = Arc::new(memory, GFP_KERNEL_ACCOUNT)?;
        self.pinned = Some(memory.clone());
        Ok(memory)
    }
}
