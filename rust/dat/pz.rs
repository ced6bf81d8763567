// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protection Zones.

use super::base::{
    IaBase,
    Object,
    Objects,
    Segment,
    Shared,
    Users, //
};
use crate::{
    dat::prelude::*,
    model::handle::HandleKind,
    rdma::{
        kernel_memory::KernelMemory,
        pd::Pd,
        wr::SgList, //
    },
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::{
    new_mutex, new_spinlock,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Mutex,
        SpinLock, //
    },
};

/// The bit that tells an LMR context of the kernel's memory.
const CONTEXT_OF_KERNEL: u32 = 1 << 31;

/// What an LMR context opens.
pub(super) struct Region {
    /// Start in the consumer's memory.
    pub(super) address: u64,
    /// Bytes.
    pub(super) length: u64,
    /// Whether receives and RDMA reads may write here.
    pub(super) writable: bool,
    pub(super) memory: Memory,
}

/// How a work request names the memory of a region.
pub(super) enum Memory {
    /// By the consumer's addresses and the LMR context.
    Registered,
    /// By the device's addresses.
    Kernel(Arc<KernelMemory>),
}

impl Region {
    /// Whether a segment lies in it.
    fn holds(&self, address: u64, length: u32) -> bool {
        match address.checked_sub(self.address) {
            Some(offset) => offset
                .checked_add(u64::from(length))
                .is_some_and(|end| end <= self.length),
            None => false,
        }
    }

    /// Adds a segment that lies in it to a work request.
    #[inline(always)]
    fn add_to(&self, list: &mut SgList, segment: &Segment) -> Result {
        match &self.memory {
            Memory::Registered => list.push(segment.address, segment.length, segment.context),
            Memory::Kernel(memory) => memory.push(
                list,
                segment.address.saturating_sub(self.address),
                segment.length,
            ),
        }
    }
}

/// What a DTO does to local memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// It reads: send, RDMA write.
    Read,
    /// It writes: receive, RDMA read.
    Write,
}

/// A Protection Zone: which memory and which Endpoints go together.
#[pin_data]
pub(crate) struct Pz {
    handle: u64,
    /// `None` once freed, or once the device is gone.
    #[pin]
    pd: Mutex<Option<Arc<Pd>>>,
    /// The LMRs of this zone by their context.
    ///
    /// A provider would also take keys that no consumer was ever given, above all the one that
    /// opens all of the kernel's memory to in-kernel users. So a post is checked here first.
    #[pin]
    regions: SpinLock<RBTree<u32, Region>>,
    /// Counts the contexts of LMRs that the device knows nothing of.
    contexts: Atomic<u32>,
    users: Users,
    _counted: Counted,
}

impl Pz {
    /// `dat_pz_create`. Context: process; sleeps.
    pub(super) fn create(ia: &IaBase, zones: &Arc<Objects<Self>>) -> DatResult<u64> {
        let entry = Objects::reserve(zones)?;
        let pd = Pd::new(ia.device()?)?;
        let handle = entry.handle().into_raw();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                pd <- new_mutex!(Some(pd), "Pz::pd"),
                regions <- new_spinlock!(RBTree::new(), "Pz::regions"),
                contexts: Atomic::new(0),
                users: Users::none(),
                _counted: Counted::new(census::Kind::Pz),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        entry.commit(this)?;
        Ok(handle)
    }

    /// Its handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Its protection domain.
    pub(super) fn pd(&self) -> DatResult<Arc<Pd>> {
        self.pd.lock().clone().ok_or(DatError::device())
    }

    /// Lets go of the protection domain.
    pub(super) fn release_device(&self) {
        let pd = self.pd.lock().take();
        drop(pd);
    }

    /// Makes an LMR context valid for posts.
    pub(super) fn add_region(&self, context: u32, region: Region) -> DatResult {
        let node = RBTreeNode::new(context, region, GFP_KERNEL_ACCOUNT)?;
        let old = self.regions.lock().insert(node);
        drop(old);
        Ok(())
    }

    /// The opposite of [`Pz::add_region`].
    pub(super) fn remove_region(&self, context: u32) {
        let node = self.regions.lock().remove_node(&context);
        drop(node);
    }

    /// A context for an LMR of the kernel's memory. A zone has such ones, or such that the device gives, but
    /// not both.
    pub(super) fn new_context(&self) -> u32 {
        // Never 0; and not again before all others were used.
        self.contexts.fetch_add(1, Relaxed) | CONTEXT_OF_KERNEL
    }

    /// Adds a segment to a work request, if it may be used so.
    ///
    /// # Errors
    ///
    /// PROTECTION_VIOLATION if the context is not of this zone or the segment leaves its region,
    /// PRIVILEGES_VIOLATION if it is to be written and may not be, INVALID_PARAMETER (argument 2) if it
    /// takes more segments of the device than a work request has.
    #[inline(always)]
    pub(super) fn add(&self, list: &mut SgList, segment: &Segment, to: Use) -> DatResult {
        let regions = self.regions.lock();
        let (protection, privileges) = match to {
            Use::Read => (Subtype::ProtectionRead, Subtype::PrivilegesRead),
            Use::Write => (Subtype::ProtectionWrite, Subtype::PrivilegesWrite),
        };
        match regions.get(&segment.context) {
            Some(region) if region.holds(segment.address, segment.length) => {
                if to == Use::Write && !region.writable {
                    return Err(DatError::new(Kind::PrivilegesViolation, privileges));
                }
                region
                    .add_to(list, segment)
                    .map_err(|_| DatError::invalid_parameter(2))
            }
            Some(_) | None => Err(DatError::new(Kind::ProtectionViolation, protection)),
        }
    }
}

impl Object for Pz {
    const KIND: HandleKind = HandleKind::Pz;
    const INVALID: Subtype = Subtype::InvalidHandlePz;

    /// # Errors
    ///
    /// INVALID_STATE while an Endpoint or an LMR uses the zone.
    fn may_free(&self) -> DatResult {
        if self.users.any() {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStatePzInUse,
            ));
        }
        Ok(())
    }

    fn shutdown(self: &Arc<Self>) {
        self.release_device();
    }
}

impl Shared for Pz {
    fn users(&self) -> &Users {
        &self.users
    }
}
