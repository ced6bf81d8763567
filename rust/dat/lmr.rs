// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Local Memory Regions (LMR).
//!
//! An LMR of a process is a memory region (MR) of the device. An LMR of a kernel consumer is a
//! mapping of kernel memory for the device.

mod bind;

use super::{
    base::{
        Attr,
        IaBase,
        InUse,
        Object,
        Objects,
        Shared,
        Users, //
    },
    pz::{
        Memory,
        Pz,
        Region, //
    },
};
use crate::{
    dat::prelude::*,
    model::handle::HandleKind,
    rdma::{
        fast_mr::MappedMemory,
        kernel_memory::KernelMemory,
        mr::{
            Access,
            Mr,
            Permission, //
        },
        pd::Pd, //
    },
    sys::census::{
        self,
        Counted, //
    },
};
use kernel::{
    error::code::*,
    new_mutex,
    sync::Mutex, //
};

/// Bits of `DAT_MEM_PRIV_FLAGS`.
mod privilege {
    use kdapl_bindings as uapi;

    pub(super) const LOCAL_READ: u32 = uapi::KDAPL_MEM_LOCAL_READ;
    pub(super) const REMOTE_READ: u32 = uapi::KDAPL_MEM_REMOTE_READ;
    pub(super) const LOCAL_WRITE: u32 = uapi::KDAPL_MEM_LOCAL_WRITE;
    pub(super) const REMOTE_WRITE: u32 = uapi::KDAPL_MEM_REMOTE_WRITE;
    /// `DAT_IB_MEM_PRIV_REMOTE_ATOMIC`.
    pub(super) const REMOTE_ATOMIC: u32 = uapi::KDAPL_MEM_REMOTE_ATOMIC;
    /// All privileges of peers.
    pub(super) const REMOTE: u32 = REMOTE_READ | REMOTE_WRITE | REMOTE_ATOMIC;
    /// All defined privileges.
    pub(super) const KNOWN: u32 = LOCAL_READ | LOCAL_WRITE | REMOTE;
}

/// Arguments and results of creating an LMR.
#[derive(Clone, Copy)]
pub(crate) struct Param {
    pub(crate) pz: u64,
    /// Start address in the consumer's memory.
    pub(crate) address: u64,
    /// Length in bytes.
    pub(crate) length: u64,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    pub(crate) lmr_context: u32,
    pub(crate) rmr_context: u32,
}

/// Local Memory Region.
#[pin_data]
pub(crate) struct Lmr {
    param: Param,
    /// `None` after the LMR was freed or the device was removed.
    #[pin]
    backing: Mutex<Option<Backing>>,
    handle: u64,
    /// RMRs that are bound to this memory.
    users: Users,
    _counted: Counted,
}

/// Resources of an LMR. Dropped in this order.
struct Backing {
    /// `None` for kernel memory.
    mr: Option<Mr>,
    /// The same memory, for regions of RMRs. That of a process is `None` until the first bind.
    mapped: Option<MappedMemory>,
    lmr_context: u32,
    pz: InUse<Pz>,
}

impl Lmr {
    /// Registers memory of the calling process: `dat_lmr_create`. Returns the handle and the
    /// parameters.
    ///
    /// The pages are pinned and charged to the process's `RLIMIT_MEMLOCK`.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * LENGTH_ERROR if the length is 0 or above the adapter's maximum, or the range wraps;
    /// * INVALID_PARAMETER (privileges) for undefined privileges;
    /// * MODEL_NOT_SUPPORTED for the privilege of remote atomic operations if the device does not
    ///   support them, and for all memory of processes if the driver is not trusted with it;
    /// * INVALID_ADDRESS if a part of the range is not mapped, or is not writable as requested;
    /// * INSUFFICIENT_RESOURCES above the process's limit or the machine's memory.
    pub(super) fn create(
        ia: &IaBase,
        regions: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        address: u64,
        length: u64,
        privileges: u32,
    ) -> DatResult<(u64, Param)> {
        check_range(ia.attr(), address, length)?;
        let access = access(privileges)?;
        let has_atomics = ia.attr().extensions.has_atomics();
        if privileges & privilege::REMOTE_ATOMIC != 0 && !has_atomics {
            return Err(Kind::ModelNotSupported.into());
        }
        let mr = Mr::register_user(pz.pd()?, address, length, access)
            .map_err(refused)?
            .ok_or(Kind::ModelNotSupported)?;
        let param = Param {
            pz: pz.handle(),
            address,
            length,
            privileges,
            lmr_context: mr.lkey(),
            rmr_context: mr.rkey(),
        };
        Self::build(regions, param, pz, Some(mr), Memory::Registered)
    }

    /// Creates an LMR of kernel memory: `dat_lmr_kcreate`. `map` maps the memory for the device.
    /// Returns the handle and the parameters.
    ///
    /// The LMR has no RMR context. So a peer can access the memory only through DTOs that the
    /// consumer posts, and through RMRs that are bound to it.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * LENGTH_ERROR if the length is 0 or above the adapter's maximum, or the range wraps;
    /// * INVALID_PARAMETER (privileges) for undefined privileges;
    /// * MODEL_NOT_SUPPORTED for privileges of peers;
    /// * INVALID_ADDRESS if a part of the range is not memory of the kernel, not mapped, or not
    ///   writable as requested.
    pub(super) fn create_of_kernel(
        ia: &IaBase,
        regions: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        address: u64,
        length: u64,
        privileges: u32,
        map: impl FnOnce(Arc<Pd>) -> Result<KernelMemory>,
    ) -> DatResult<(u64, Param)> {
        check_range(ia.attr(), address, length)?;
        access(privileges)?;
        if privileges & privilege::REMOTE != 0 {
            return Err(Kind::ModelNotSupported.into());
        }
        let memory = map(pz.pd()?).map_err(refused)?;
        let memory = Arc::new(memory, GFP_KERNEL_ACCOUNT)?;
        let param = Param {
            pz: pz.handle(),
            address,
            length,
            privileges,
            lmr_context: pz.new_context(),
            rmr_context: 0,
        };
        Self::build(regions, param, pz, None, Memory::Kernel(memory))
    }

    /// Creates an LMR, allows posts to use it, and puts it into the table.
    fn build(
        regions: &Arc<Objects<Self>>,
        param: Param,
        pz: InUse<Pz>,
        mr: Option<Mr>,
        memory: Memory,
    ) -> DatResult<(u64, Param)> {
        let entry = Objects::reserve(regions)?;
        let region = Region {
            address: param.address,
            length: param.length,
            writable: param.privileges & privilege::LOCAL_WRITE != 0,
            memory,
        };
        let mapped = match &region.memory {
            Memory::Registered => None,
            Memory::Kernel(memory) => Some(MappedMemory::Kernel(memory.clone())),
        };
        pz.add_region(param.lmr_context, region)?;
        let handle = entry.handle().into_raw();
        let backing = Backing {
            mr,
            mapped,
            lmr_context: param.lmr_context,
            pz,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                param,
                backing <- new_mutex!(Some(backing), "Lmr::backing"),
                handle,
                users: Users::none(),
                _counted: Counted::new(census::Kind::Lmr),
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        if let Err(error) = entry.commit(this.clone()) {
            this.release();
            return Err(error);
        }
        Ok((handle, param))
    }

    /// Returns the parameters: `dat_lmr_query`.
    pub(crate) fn query(&self) -> Param {
        self.param
    }

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Releases the memory.
    pub(super) fn release(&self) {
        let backing = self.backing.lock().take();
        drop(backing);
    }
}

impl Object for Lmr {
    const KIND: HandleKind = HandleKind::Lmr;
    const INVALID: Subtype = Subtype::InvalidHandleLmr;

    /// Checks whether no RMR is bound to the memory.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (LMR in use).
    fn may_free(&self) -> DatResult {
        if self.users.any() {
            return Err(DatError::new(
                Kind::InvalidState,
                Subtype::InvalidStateLmrInUse,
            ));
        }
        Ok(())
    }

    /// Implements `dat_lmr_free`: releases the memory. Waits until the device no longer uses it.
    fn shutdown(self: &Arc<Self>) {
        self.release();
    }
}

impl Shared for Lmr {
    fn users(&self) -> &Users {
        &self.users
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // Before the MR is destroyed. Afterwards the device may assign its key to another MR.
        self.pz.remove_region(self.lmr_context);
        drop(self.mr.take());
    }
}

/// Checks the range of a region.
///
/// # Errors
///
/// LENGTH_ERROR.
fn check_range(attr: &Attr, address: u64, length: u64) -> DatResult {
    if length == 0 || address.checked_add(length).is_none() || length > attr.max_lmr_size {
        return Err(Kind::LengthError.into());
    }
    Ok(())
}

/// Translates the error of a failed registration.
fn refused(error: Error) -> DatError {
    if error == EINVAL || error == EOVERFLOW || error == E2BIG {
        Kind::LengthError.into()
    } else {
        error.into()
    }
}

/// Converts privileges to access rights of the verbs.
///
/// # Errors
///
/// INVALID_PARAMETER (privileges) for undefined privileges.
fn access(privileges: u32) -> DatResult<Access> {
    if privileges & !privilege::KNOWN != 0 {
        return Err(DatError::Invalid(Arg::Privileges));
    }
    let mut access = Access::default();
    if privileges & privilege::LOCAL_WRITE != 0 {
        access |= Permission::LocalWrite;
    }
    if privileges & privilege::REMOTE_READ != 0 {
        access |= Permission::RemoteRead;
    }
    if privileges & privilege::REMOTE_WRITE != 0 {
        // The verbs require local write access for remote write access.
        access |= Permission::RemoteWrite | Permission::LocalWrite;
    }
    if privileges & privilege::REMOTE_ATOMIC != 0 {
        // As for remote write access.
        access |= Permission::RemoteAtomic | Permission::LocalWrite;
    }
    Ok(access)
}
