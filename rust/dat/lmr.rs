// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Local Memory Regions (LMR).
//!
//! An LMR of a process is a memory region (MR) of the device. An LMR of a kernel consumer is a
//! mapping of kernel memory for the device, and an MR too if peers have privileges.

mod bind;
mod fast;
mod hint;
mod of_kernel;
mod param;
mod privilege;
mod role;

pub(super) use self::fast::{
    FastLmr,
    Inner as FastLmrState,
    Outstanding,
    PreparedRegistration, //
};
pub(super) use self::hint::hint;
pub(crate) use self::{
    fast::Fmr,
    hint::Hint,
    of_kernel::KernelArguments,
    param::{
        Description,
        Param,
        ProcessArguments, //
    },
};

use self::{
    privilege::access,
    role::Role, //
};
use super::{
    base::{
        Freeing,
        IaAttr,
        IaBase,
        InUse,
        Object,
        Objects,
        Usable,
        UseCount, //
    },
    pz::{
        Memory,
        Pz,
        Region, //
    },
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicBool,
        fast_lmr::in_use,
        handle::HandleKind, //
    },
    rdma::{
        fast_mr::{
            is_not_available,
            FastMr,
            RegionMemory, //
        },
        mr::Mr, //
    },
    sys::{
        census::{
            self,
            Counted, //
        },
        process::AddressSpace, //
    },
};
use kernel::{
    error::code::*,
    new_mutex,
    sync::Mutex, //
};

/// Local Memory Region.
#[pin_data]
pub(crate) struct Lmr {
    param: Param,
    /// Memory of a [`Role::Memory`] LMR. `None` for other roles, after the free, and after the
    /// removal of the device.
    #[pin]
    backing: Mutex<Option<Backing>>,
    handle: u64,
    role: Role,
    /// The device may access the memory, which is the kernel's, for ever.
    is_lost: AtomicBool,
    /// RMRs that are bound to this memory, and calls that register or invalidate it.
    uses: UseCount,
    _counted: Counted,
}

/// MR of an LMR.
enum MrKind {
    /// Over the memory of a process, which has this address space and the memory at `start`.
    Process {
        _mr: Mr,
        space: AddressSpace,
        start: u64,
    },
    Kernel {
        _region: Arc<FastMr>,
    },
}

/// Resources of an LMR. Dropped in this order.
struct Backing {
    /// `None` for kernel memory without privileges of peers.
    registration: Option<MrKind>,
    /// The same memory, for regions of RMRs and for other LMRs. `None` for the memory of a process
    /// until the first bind.
    mapped: Option<RegionMemory>,
    lmr_context: u32,
    pz: InUse<Pz>,
}

impl Lmr {
    /// Returns the length in bytes.
    pub(in crate::dat) fn length(&self) -> u64 {
        self.param.length
    }

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
    ///   support them, for zero-based memory if the driver does not, and for all memory of
    ///   processes if the driver is not trusted with it;
    /// * INVALID_ADDRESS (malformed) if a part of the range is not mapped, or is not writable as
    ///   requested; (unsupported) for zero-based memory that does not begin at a page boundary;
    /// * INSUFFICIENT_RESOURCES above the process's limit or the machine's memory.
    pub(super) fn create(
        ia: &IaBase,
        regions: &Arc<Objects<Self>>,
        pz: InUse<Pz>,
        arguments: &ProcessArguments,
    ) -> DatResult<(u64, Param)> {
        let &ProcessArguments {
            start,
            length,
            privileges,
            zero_based,
        } = arguments;
        check_range(ia.attr(), start, length)?;
        let access = access(privileges)?;
        let has_atomics = ia.attr().extensions.has_atomics();
        if privileges & privilege::REMOTE_ATOMIC != 0 && !has_atomics {
            return Err(Kind::ModelNotSupported.into());
        }
        let space = AddressSpace::current().ok_or(Kind::ModelNotSupported)?;
        let address = if zero_based { 0 } else { start };
        let mr = Mr::register_user(pz.pd()?, start, length, address, access)
            .map_err(registration_error)?
            .ok_or(Kind::ModelNotSupported)?;
        let param = Param {
            pz: pz.handle(),
            address,
            length,
            privileges,
            description: Description::of_process(start, zero_based),
            lmr_context: mr.lkey(),
            rmr_context: mr.rkey(),
        };
        let registration = MrKind::Process {
            _mr: mr,
            space,
            start,
        };
        Self::build(regions, param, pz, Some(registration), Memory::Registered)
    }

    /// Creates an LMR, allows posts to use it, and puts it into the table.
    fn build(
        regions: &Arc<Objects<Self>>,
        param: Param,
        pz: InUse<Pz>,
        registration: Option<MrKind>,
        memory: Memory,
    ) -> DatResult<(u64, Param)> {
        let entry = Objects::reserve(regions)?;
        let region = Region {
            address: param.address,
            length: param.length,
            writable: param.privileges & privilege::LOCAL_WRITE != 0,
            memory,
            is_hidden: false,
        };
        let mapped = region.memory.of_kernel().cloned().map(RegionMemory::Kernel);
        pz.add_region(param.lmr_context, region)?;
        let handle = entry.handle().into_raw();
        let backing = Backing {
            registration,
            mapped,
            lmr_context: param.lmr_context,
            pz,
        };
        let this = Arc::pin_init(
            pin_init!(Self {
                param,
                backing <- new_mutex!(Some(backing), "Lmr::backing"),
                handle,
                role: Role::Memory,
                is_lost: AtomicBool::new(false),
                uses: UseCount::none(),
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

    /// Frees the LMR: `dat_lmr_free`. `is_used` returns whether a DTO in flight names an LMR
    /// context that no post can name meanwhile. It is called for memory of the kernel only: the
    /// device needs no key for that, which would end with the LMR.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE (LMR); RESERVED_LMR; INVALID_STATE (LMR in use) also while a DTO uses the
    /// memory; INTERNAL_ERROR if the driver has failed to destroy a region over memory of the
    /// kernel, so that the device may still access it. The LMR is freed then. Memory of a process
    /// stays pinned in this case.
    pub(super) fn free(&self, lmrs: &Objects<Self>, is_used: impl Fn(u32) -> bool) -> DatResult {
        let _freeing = lmrs.begin_free();
        let mut backing = self.backing.lock();
        let hidden = backing.as_ref().map(Backing::forbid_posts);
        if hidden.flatten().is_some_and(is_used) {
            backing.as_ref().map(Backing::allow_posts);
            return Err(in_use());
        }
        if let Err(error) = lmrs.take(self.handle, Self::prepare_free) {
            backing.as_ref().map(Backing::allow_posts);
            return Err(error);
        }
        self.release_locked(&mut backing);
        if self.is_lost.load_acquire() || self.role.is_lost() {
            return Err(DatError::internal());
        }
        Ok(())
    }

    /// Returns the parameters: `dat_lmr_query`.
    pub(crate) fn query(&self) -> Param {
        self.role.query(self.param)
    }

    /// Returns the handle.
    pub(super) fn handle(&self) -> u64 {
        self.handle
    }

    /// Releases the memory.
    ///
    /// Context: process; sleeps.
    pub(super) fn release(&self) {
        self.release_locked(&mut self.backing.lock());
    }

    /// As [`Lmr::release`], with the lock held: another thread that frees or releases the LMR waits
    /// for it.
    fn release_locked(&self, backing: &mut Option<Backing>) {
        let memory = backing.as_ref().and_then(|backing| backing.mapped.clone());
        *backing = None;
        if memory.is_some_and(|memory| memory.is_lost()) {
            self.is_lost.swap(true);
        }
        self.role.release();
    }
}

impl Object for Lmr {
    const KIND: HandleKind = HandleKind::Lmr;
    const INVALID: Subtype = Subtype::InvalidHandleLmr;

    /// Returns whether posts may name the LMR, which then is in the table that is read under RCU.
    /// Only requests that register or invalidate memory name an LMR.
    fn is_looked_up(&self) -> bool {
        !self.role.is_memory()
    }

    /// Permits the free, after which no request begins: one could begin before the LMR is released.
    ///
    /// # Errors
    ///
    /// INVALID_STATE (LMR in use) while an RMR is bound to the memory or a request is outstanding;
    /// RESERVED_LMR.
    fn prepare_free(&self) -> DatResult {
        self.role.unless_reserved()?;
        if self.uses.any() {
            return Err(in_use());
        }
        self.role.refuse_requests()
    }

    /// Releases the memory at the close of the adapter: `dat_lmr_free` is [`Lmr::free`]. Waits
    /// until the device no longer uses it.
    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.release();
    }
}

impl Usable for Lmr {
    fn uses(&self) -> &UseCount {
        &self.uses
    }
}

impl Drop for Backing {
    fn drop(&mut self) {
        // Before the MR is destroyed. Afterwards the device may assign its key to another MR.
        self.pz.remove_region(self.lmr_context);
        drop(self.registration.take());
    }
}

impl Backing {
    /// Returns the start of the memory in the calling process; `None` if that has not created the
    /// LMR, and for memory of the kernel.
    fn start_in_caller(&self) -> Option<u64> {
        match &self.registration {
            Some(MrKind::Process { space, start, .. }) if space.is_current() => Some(*start),
            _ => None,
        }
    }

    /// Forbids posts to name memory of the kernel. Returns its LMR context; `None` for memory of a
    /// process.
    fn forbid_posts(&self) -> Option<u32> {
        let is_of_kernel = matches!(self.mapped, Some(RegionMemory::Kernel(_)));
        is_of_kernel.then(|| {
            self.pz.hide_region(self.lmr_context);
            self.lmr_context
        })
    }

    /// Allows posts to name the memory again.
    fn allow_posts(&self) {
        self.pz.show_region(self.lmr_context);
    }
}

/// Checks the range of a region.
///
/// # Errors
///
/// LENGTH_ERROR.
fn check_range(attr: &IaAttr, address: u64, length: u64) -> DatResult {
    if length == 0 || address.checked_add(length).is_none() || length > attr.max_lmr_size {
        return Err(Kind::LengthError.into());
    }
    Ok(())
}

/// Translates the error of a failed registration.
pub(super) fn registration_error(error: Error) -> DatError {
    if error == EINVAL || error == EOVERFLOW || error == E2BIG {
        Kind::LengthError.into()
    } else if error == ENOTSUPP {
        Kind::ModelNotSupported.into()
    } else if is_not_available(error) || error == ERANGE {
        DatError::new(Kind::InvalidAddress, Subtype::InvalidAddressUnsupported)
    } else {
        error.into()
    }
}
