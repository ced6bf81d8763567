// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Adapter of a controller, opened for each attempt to connect.

use crate::core::Addresses;
use kdat::{
    Ia,
    Pz, //
};
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Largest number of pages of a request's data.
const MAX_PAGES: u32 = 256;

/// Open adapter, which the connections of a controller share.
pub(crate) struct Device {
    pub(crate) pz: Pz,
    pub(crate) ia: Ia,
    /// Largest number of pages of a registration.
    pub(crate) fmr_pages: u32,
    /// Largest number of segments of a message.
    pub(crate) segments: u32,
    /// Largest number of RDMA reads that a controller may have outstanding on a queue.
    pub(crate) reads: i32,
}

impl Device {
    /// Opens the adapter from which the controller is reached.
    pub(crate) fn open(addresses: &Addresses) -> Result<Arc<Self>> {
        let ia = Ia::open(&addresses.adapter()?, 8)?;
        let limits = ia.limits()?;
        let pages = u32::try_from(limits.region as usize / PAGE_SIZE).unwrap_or(u32::MAX);
        let device = Self {
            pz: ia.create_pz()?,
            ia,
            fmr_pages: pages.clamp(2, MAX_PAGES + 1),
            segments: limits.segments.max(1),
            reads: limits.reads_in.try_into().unwrap_or(i32::MAX),
        };
        Ok(Arc::new(device, GFP_KERNEL)?)
    }

    /// Returns the largest number of pages of a request's data. As data may begin within a page,
    /// their registration has one more.
    pub(crate) fn data_pages(&self) -> u32 {
        self.fmr_pages - 1
    }
}
