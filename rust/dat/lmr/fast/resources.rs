// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Resources of an LMR that requests register.

use crate::{
    dat::{
        base::InUse,
        prelude::*,
        pz::{
            Pz,
            RegionReservation, //
        },
    },
    rdma::{
        dma_pages::DmaPages,
        fast_mr::FastMr, //
    },
};

/// Resources of an LMR. Dropped in this order.
pub(in crate::dat) struct Resources {
    /// `None` if the last one could not be replaced.
    pub(super) region: Option<Arc<FastMr>>,
    pub(super) pages: DmaPages,
    /// Memory for the LMR context. `None` while the context is valid.
    pub(super) room: Option<RegionReservation>,
    pub(super) pz: InUse<Pz>,
}

/// Protection Zone (PZ) that reports invalidations by peers, and the key that they name.
type Reports = Option<(Arc<Pz>, u32)>;

impl Resources {
    /// Returns the zone and the key of the region, if there is one.
    pub(super) fn reports(&self) -> Reports {
        let region = self.region.as_ref()?;
        Some((self.pz.object(), region.key()))
    }

    /// Destroys the region. Returns `false` if the driver fails to do so: the pages stay mapped
    /// then.
    ///
    /// Context: process; sleeps.
    pub(super) fn drop_region(&mut self) -> bool {
        let is_destroyed = self.region.take().is_none_or(FastMr::destroy);
        if !is_destroyed {
            self.pages.leak();
        }
        is_destroyed
    }

    /// Ends the reports of invalidations by peers. Called before the region is destroyed, because
    /// the device may give its key to another one.
    pub(super) fn end_reports(reports: Reports) {
        if let Some((pz, key)) = reports {
            pz.remove_peer_invalidation(key);
        }
    }
}

impl Drop for Resources {
    fn drop(&mut self) {
        self.drop_region();
    }
}
