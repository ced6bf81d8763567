// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! LMRs of kernel memory.

use super::{
    privilege::{
        self,
        access, //
    },
    registration_error,
    Description,
    Lmr,
    MrKind,
    Param, //
};
use crate::{
    dat::{
        base::{
            IaBase,
            InUse,
            Objects, //
        },
        prelude::*,
        pz::{
            Keyed,
            Memory,
            Pz, //
        },
    },
    rdma::{
        device::Transport,
        fast_mr::{
            FastMr,
            RegionMemory, //
        },
        kernel_memory::KernelMemory,
        mr::Permission,
        pd::Pd, //
    },
};

/// Arguments of `dat_lmr_kcreate` other than handles.
#[derive(Clone, Copy)]
pub(crate) struct KernelArguments {
    /// Length in bytes.
    pub(crate) length: u64,
    /// `DAT_MEM_PRIV_FLAGS`.
    pub(crate) privileges: u32,
    /// Memory as the consumer describes it.
    pub(crate) description: Description,
}

impl Lmr {
    /// Creates an LMR of kernel memory: `dat_lmr_kcreate`. `map` maps the memory for the device.
    /// Returns the handle and the parameters.
    ///
    /// With privileges of peers the LMR has an RMR context, which is valid for all Endpoints of the
    /// PZ on return. Without them, a peer can access the memory only through DTOs that the consumer
    /// posts, and through RMRs that are bound to it.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// * LENGTH_ERROR if the length is 0 or above the adapter's maximum, or with privileges of
    ///   peers above that of an RMR, or the memory is shorter;
    /// * INVALID_PARAMETER (privileges) for undefined privileges;
    /// * MODEL_NOT_SUPPORTED for privileges of peers if the device cannot register memory without a
    ///   connection, or has no atomic operations;
    /// * INVALID_ADDRESS (malformed) if a part of the range is not memory of the kernel, not
    ///   mapped, or not writable as requested; (unsupported) if the device cannot register it,
    ///   because it is not contiguous but for page boundaries, or zero-based and does not begin at
    ///   one.
    pub(in crate::dat) fn create_of_kernel(
        ia: &IaBase,
        regions: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        arguments: &KernelArguments,
        map: impl FnOnce(Arc<Pd>) -> DatResult<KernelMemory>,
    ) -> DatResult<(u64, Param)> {
        let pd = pz.pd()?;
        check(ia, &pd, arguments)?;
        let memory = map(pd)?;
        let needs_write = access(arguments.privileges)?.contains(Permission::LocalWrite);
        if needs_write && !memory.is_writable() {
            return Err(DatError::malformed_address());
        }
        let mut param = Param {
            pz: pz.handle(),
            address: match arguments.description.zero_based {
                true => 0,
                false => memory.start(),
            },
            length: arguments.length,
            privileges: arguments.privileges,
            description: arguments.description,
            lmr_context: pz.new_context(),
            rmr_context: 0,
        };
        if arguments.privileges & privilege::REMOTE == 0 {
            let memory = Memory::Kernel(memory);
            return Self::build(regions, param, pz, None, memory);
        }
        let region = open(&pz, &memory, &param)?;
        param.rmr_context = region.key();
        let memory = Memory::Keyed(Keyed {
            memory,
            lkey: region.lkey(),
        });
        let registration = MrKind::Kernel { _region: region };
        Self::build(regions, param, pz, Some(registration), memory)
    }

    /// Returns the kernel memory, for requests of a protection domain. `None` for memory of a
    /// process.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (device) after the LMR was freed or the device was removed.
    pub(in crate::dat) fn kernel_memory(&self, pd: Arc<Pd>) -> DatResult<Option<KernelMemory>> {
        let backing = self.backing.lock();
        let backing = (*backing).as_ref().ok_or(DatError::device())?;
        match &backing.mapped {
            Some(RegionMemory::Kernel(memory)) => Ok(Some(memory.for_domain(pd)?)),
            Some(RegionMemory::Process(_)) | None => Ok(None),
        }
    }
}

/// Checks the arguments that do not depend on the memory.
fn check(ia: &IaBase, pd: &Pd, arguments: &KernelArguments) -> DatResult {
    let (attr, privileges) = (ia.attr(), arguments.privileges);
    if arguments.length == 0 || arguments.length > attr.max_lmr_size {
        return Err(Kind::LengthError.into());
    }
    access(privileges)?;
    if privileges & privilege::REMOTE == 0 {
        return Ok(());
    }
    let can_register = pd.has_fast_registration() && attr.transport != Transport::Iwarp;
    let has_atomics = attr.extensions.has_atomics();
    if !can_register || (privileges & privilege::REMOTE_ATOMIC != 0 && !has_atomics) {
        return Err(Kind::ModelNotSupported.into());
    }
    if arguments.length > attr.max_rmr_size {
        return Err(Kind::LengthError.into());
    }
    Ok(())
}

/// Registers the memory: its key is valid on return.
fn open(pz: &Pz, memory: &KernelMemory, param: &Param) -> DatResult<Arc<FastMr>> {
    let access = access(param.privileges)?;
    let memory = RegionMemory::Kernel(memory.clone());
    let (length, address) = (param.length, param.address);
    let region = FastMr::new(pz.pd()?, (memory, None), 0, length, address, access)
        .map_err(registration_error)?;
    pz.register(&region)?;
    Ok(region)
}
