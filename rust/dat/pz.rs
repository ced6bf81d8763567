// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Protection Zones.

use super::{
    ia::Ia,
    objects::Objects,
    users::{
        Shared,
        Users, //
    },
};
use crate::{
    model::{
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        handle::HandleKind,
    },
    rdma::pd::Pd,
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        Mutex,
        SpinLock, //
    },
};

/// What an LMR context opens.
#[derive(Clone, Copy)]
pub(super) struct Region {
    /// Start in the consumer's memory.
    pub(super) address: u64,
    /// Bytes.
    pub(super) length: u64,
    /// Whether receives and RDMA reads may write here.
    pub(super) writable: bool,
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
    users: Users,
    _counted: Counted,
}

impl Pz {
    /// `dat_pz_create`. Context: process; sleeps.
    pub(crate) fn create(ia: &Ia) -> DatResult<u64> {
        let place = Objects::reserve(ia.objects(), HandleKind::Pz)?;
        let pd = Pd::new(ia.device()?)?;
        let handle = place.handle().into_raw();
        let this = Arc::pin_init(
            pin_init!(Self {
                handle,
                pd <- new_mutex!(Some(pd), "Pz::pd"),
                regions <- new_spinlock!(RBTree::new(), "Pz::regions"),
                users: Users::none(),
                _counted: Counted::new(census::Kind::Pz),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        place.commit(this)?;
        Ok(handle)
    }

    /// `dat_pz_free`.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while an Endpoint or an LMR uses it.
    pub(crate) fn free(ia: &Ia, handle: u64) -> DatResult {
        let pz = ia.objects().take::<Self>(handle, |pz| {
            if pz.users.any() {
                return Err(DatError::new(
                    Kind::InvalidState,
                    Subtype::InvalidStatePzInUse,
                ));
            }
            Ok(())
        })?;
        pz.release_device();
        Ok(())
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

    /// Whether a segment may be used so.
    ///
    /// # Errors
    ///
    /// PROTECTION_VIOLATION if the context is not of this zone or the segment leaves its region,
    /// PRIVILEGES_VIOLATION if it is to be written and may not be.
    pub(super) fn check(&self, context: u32, address: u64, length: u32, to: Use) -> DatResult {
        let region = self.regions.lock().get(&context).copied();
        let (protection, privileges) = match to {
            Use::Read => (Subtype::ProtectionRead, Subtype::PrivilegesRead),
            Use::Write => (Subtype::ProtectionWrite, Subtype::PrivilegesWrite),
        };
        match region {
            Some(region) if region.holds(address, length) => {
                if to == Use::Write && !region.writable {
                    return Err(DatError::new(Kind::PrivilegesViolation, privileges));
                }
                Ok(())
            }
            Some(_) | None => Err(DatError::new(Kind::ProtectionViolation, protection)),
        }
    }
}

impl Shared for Pz {
    fn users(&self) -> &Users {
        &self.users
    }
}
