// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The adapter of a port.

use crate::{
    bindings,
    nvmet::MAX_TRANSFER,
    slots,
    wire::Depths, //
};
use kdat::{
    EpAttr,
    Ia,
    Limits,
    Pz, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Largest number of RDMA reads that a queue starts at a time.
const READS: u32 = 16;

/// Adapter (IA) and zone (PZ) of a port. Its queues keep it: the last of them closes it, by a work
/// item, as an upcall must not.
pub(crate) struct Adapter {
    pub(crate) pz: Pz,
    pub(crate) limits: Limits,
    /// Closed last.
    pub(crate) ia: Ia,
}

impl Adapter {
    /// Opens the adapter of an address.
    ///
    /// # Errors
    ///
    /// EOPNOTSUPP if the target cannot read from hosts. That is so over iWARP.
    pub(crate) fn open(address: &CStr) -> Result<Arc<Self>> {
        let ia = Ia::open(address, 8)?;
        let limits = ia.limits()?;
        if limits.reads_are_writes {
            pr_err!("the device of {address:?} is not supported: it uses iWARP\n");
            return Err(Error::from_errno(-(bindings::EOPNOTSUPP as i32)));
        }
        let pz = ia.create_pz()?;
        Ok(Arc::new(Self { pz, limits, ia }, GFP_KERNEL)?)
    }

    /// Returns the number of entries of a list that a transfer of either direction may have.
    pub(crate) fn segments(&self) -> u32 {
        let limits = &self.limits;
        limits.read_segments.min(limits.write_segments).max(1)
    }

    /// Returns the number of requests of the largest transfer.
    fn largest(&self) -> u32 {
        let pages = MAX_TRANSFER / PAGE_SIZE as u32;
        pages.div_ceil(self.segments()).saturating_add(1)
    }

    /// Returns the number of requests that commands of a queue may reserve. `None` if the device
    /// allows too few. Those for responses without a reservation are left out.
    pub(crate) fn requests(&self, depths: Depths) -> Option<u32> {
        let most = self.limits.dtos.checked_sub(depths.commands.into())?;
        slots::requests(depths.responses, self.largest(), most)
    }

    /// Returns the attributes of the Endpoint of a queue. A receive is a command, and `inline`
    /// bytes of in-capsule data, whose memory may be pages that are apart.
    pub(crate) fn attributes(&self, depths: Depths, requests: u32, inline: usize) -> EpAttr {
        let count = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
        let segments = count(self.segments());
        let pages = inline.div_ceil(PAGE_SIZE) as u32;
        EpAttr {
            max_recv_dtos: depths.commands.into(),
            max_request_dtos: count(requests),
            max_recv_iov: count(self.limits.segments.min(1 + pages)),
            max_request_iov: 1,
            max_rdma_read_iov: segments,
            max_rdma_write_iov: segments,
            max_rdma_read_out: count(self.limits.reads_out.min(READS)),
            ..EpAttr::default()
        }
    }
}
