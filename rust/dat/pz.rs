// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protection Zones (PZ): memory and Endpoints that may be used together.
//!
//! A PZ has a protection domain (PD) of the device. It also has the table of the Local Memory
//! Regions (LMR) that work requests of its Endpoints may name, and of the Remote Memory Regions
//! (RMR) that RDMA reads may name.

mod bound;
mod fast;
mod recent;
mod region;
mod reserved;

pub(super) use self::{
    bound::{
        Bound,
        BoundReservation, //
    },
    fast::{
        PeerInvalidation,
        RegionReservation, //
    },
    recent::Recent,
    region::{
        add_segments,
        Fast,
        Keyed,
        Memory,
        Region,
        Sharing,
        Use, //
    },
};

pub(crate) use self::reserved::RESERVED_CONTEXT;

use super::base::{
    Freeing,
    IaBase,
    Object,
    Objects,
    Segment,
    Usable,
    UseCount, //
};
use crate::{
    dat::prelude::*,
    model::{
        handle::HandleKind,
        recent_region::Editions, //
    },
    rdma::{
        fast_mr::FastMr,
        pd::Pd,
        registrar::Registrar,
        wr::{
            AllMemory,
            SgList, //
        },
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        lock::{
            new_spinlock_irq,
            SpinLockIrq,
            SpinLockIrqGuard, //
        },
    },
};
use kernel::{
    new_mutex,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex, //
    },
};

/// Bit of an LMR context that says that the LMR is memory of the kernel.
const CONTEXT_OF_KERNEL: u32 = 1 << 31;

/// Protection Zone.
#[pin_data]
pub(crate) struct Pz {
    handle: u64,
    /// `None` after the PZ was freed or the device was removed.
    #[pin]
    pd: Mutex<Option<Arc<Pd>>>,
    /// `None` until the first registration, after one that failed, and without `pd`.
    #[pin]
    registrar: Mutex<Option<Registrar>>,
    /// Regions of this PZ, by LMR context.
    ///
    /// Every segment of a post is checked against them. The device alone would also accept keys
    /// that the consumer never got. One of those gives kernel users of the device access to all
    /// memory of the kernel.
    #[pin]
    regions: SpinLockIrq<RBTree<u32, Region>>,
    /// Editions of `regions`.
    editions: Editions,
    /// Parts of LMRs that RMRs of this PZ are bound to, by RMR context.
    #[pin]
    bound: SpinLockIrq<RBTree<u32, Bound>>,
    /// LMRs that peers may invalidate, by the upper bits of their RMR contexts.
    #[pin]
    peers: SpinLockIrq<RBTree<u32, Arc<dyn PeerInvalidation>>>,
    /// Counter for LMR contexts that are not keys of the device.
    contexts: Atomic<u32>,
    /// Key for DMA addresses, which are valid once the adapter has a reserved LMR.
    all_memory: AllMemory,
    ia: Arc<IaBase>,
    uses: UseCount,
    _counted: Counted,
}

impl Pz {
    /// Creates a PZ: `dat_pz_create`. Returns its handle.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory, or above a limit; (device) after the device
    /// was removed.
    pub(super) fn create(ia: &Arc<IaBase>, zones: &Arc<Objects<Self>>) -> DatResult<u64> {
        let entry = Objects::reserve(zones)?;
        let pd = Pd::new(ia.device()?)?;
        let handle = entry.handle().into_raw();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                all_memory: pd.all_memory(),
                ia: ia.clone(),
                pd <- new_mutex!(Some(pd), "Pz::pd"),
                registrar <- new_mutex!(None, "Pz::registrar"),
                regions <- new_spinlock_irq!(RBTree::new(), "Pz::regions"),
                editions: Editions::new(*handle),
                bound <- new_spinlock_irq!(RBTree::new(), "Pz::bound"),
                peers <- new_spinlock_irq!(RBTree::new(), "Pz::peers"),
                contexts: Atomic::new(0),
                uses: UseCount::none(),
                _counted: Counted::new(census::Kind::Pz),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Returns the protection domain.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) after the PZ was freed or the device was removed.
    pub(super) fn pd(&self) -> DatResult<Arc<Pd>> {
        self.pd.lock().clone().ok_or(DatError::device())
    }

    /// Registers a region of this PZ: its key is valid on return.
    ///
    /// Context: process; sleeps, for as long as [`Registrar::register`] at most.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) without memory, or above a limit; (device) if the device
    /// does not answer or was removed. INTERNAL_ERROR if it refuses the region.
    pub(super) fn register(&self, region: &Arc<FastMr>) -> DatResult {
        let mut registrar = self.registrar.lock();
        // Under the lock: `release_device` finds each registrar.
        let pd = self.pd()?;
        let ready = match registrar.take() {
            Some(ready) => ready,
            None => Registrar::new(pd, self.ia.port())?,
        };
        let failure = match ready.register(region) {
            Ok(ready) => {
                *registrar = Some(ready);
                return Ok(());
            }
            Err(failure) => failure,
        };
        // Its queue pair is destroyed after the lock is released.
        drop(registrar);
        Err(failure.error.into())
    }

    /// Releases the protection domain.
    pub(super) fn release_device(&self) {
        let pd = self.pd.lock().take();
        let registrar = self.registrar.lock().take();
        drop(registrar);
        drop(pd);
    }

    /// Allows posts to use an LMR context.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (memory) without memory.
    pub(super) fn add_region(&self, context: u32, region: Region) -> DatResult {
        let node = RBTreeNode::new(context, region, GFP_KERNEL_ACCOUNT)?;
        let old = self.regions_to_change().insert(node);
        drop(old);
        Ok(())
    }

    /// Forbids posts to use an LMR context that is kept.
    pub(super) fn hide_region(&self, context: u32) {
        self.set_hidden(context, true);
    }

    /// Allows posts to use a hidden LMR context again.
    pub(super) fn show_region(&self, context: u32) {
        self.set_hidden(context, false);
    }

    fn set_hidden(&self, context: u32, is_hidden: bool) {
        if let Some(region) = self.regions_to_change().get_mut(&context) {
            region.is_hidden = is_hidden;
        }
    }

    /// Forbids posts to use an LMR context.
    pub(super) fn remove_region(&self, context: u32) {
        let node = self.regions_to_change().remove_node(&context);
        drop(node);
    }

    /// Locks the regions, and ends the use of the [copies](recent) of them.
    fn regions_to_change(&self) -> SpinLockIrqGuard<'_, RBTree<u32, Region>> {
        let regions = self.regions.lock();
        self.editions.advance();
        regions
    }

    /// Returns a new context for an LMR of kernel memory.
    ///
    /// All contexts of one PZ are made here, or all of them are keys of the device, never both.
    pub(super) fn new_context(&self) -> u32 {
        loop {
            // A context is never 0, and is reused only after all others were used.
            let context = self.contexts.fetch_add(1, Relaxed) | CONTEXT_OF_KERNEL;
            if self.regions.lock().get(&context).is_none() {
                return context;
            }
        }
    }

    /// Returns the memory of a segment that is a part of an LMR of this PZ, or of the reserved LMR.
    pub(super) fn find(&self, segment: &Segment) -> Option<Sharing> {
        match self.regions.lock().get(&segment.context) {
            Some(region) => region.find(segment.address, segment.length),
            None => self.is_reserved(segment).then_some(Sharing::Shared),
        }
    }

    /// Adds segments to a work request, if the access `to` the memory is allowed. Returns the
    /// number of their bytes. A segment of length 0 is [not checked](add_segments).
    ///
    /// # Errors
    ///
    /// * PROTECTION_VIOLATION if no LMR of the PZ has the context, or the segment exceeds its
    ///   region;
    /// * PRIVILEGES_VIOLATION if the region was created without the privilege for the access;
    /// * INVALID_PARAMETER (segments) if the work request has no room for the segment.
    pub(super) fn add(&self, list: &mut SgList, segments: &[Segment], to: Use) -> DatResult<u64> {
        let regions = self.regions.lock();
        add_segments(segments, |segment| match regions.get(&segment.context) {
            Some(region) if region.holds(segment.address, segment.length) => {
                if region.is_hidden && to != Use::WaitingReceive {
                    return Err(to.violates_protection());
                }
                if !region.allows(to) {
                    return Err(to.violates_privileges());
                }
                region
                    .add_to(list, segment)
                    .map_err(|_| DatError::Invalid(Arg::SegmentCount))
            }
            None if self.is_reserved(segment) => self.add_reserved(list, segment),
            Some(_) | None => Err(to.violates_protection()),
        })
    }
}

impl Object for Pz {
    const KIND: HandleKind = HandleKind::Pz;
    const INVALID: Subtype = Subtype::InvalidHandlePz;

    /// Checks that the PZ is unused.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an Endpoint or an LMR uses the PZ.
    fn prepare_free(&self) -> DatResult {
        if self.uses.any() {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStatePzInUse,
            ));
        }
        Ok(())
    }

    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.release_device();
    }
}

impl Usable for Pz {
    fn uses(&self) -> &UseCount {
        &self.uses
    }
}
