// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory regions that a work request registers (fast registration).
//!
//! The key of such a region is valid from the execution of the request on, until another request
//! or a peer invalidates it, or the region is destroyed.
//!
//! A driver may change the translation of a live key when a region is mapped again. So a region is
//! mapped by its only owner: each request in a send queue holds a reference, as [`PostedMr`]. The
//! owner also knows that no key of it is valid. The low byte of the key changes with each mapping,
//! so that an old key is not valid again before 255 more.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod reuse;

use super::{
    charge::{
        Charge,
        Resource, //
    },
    dma_list::DmaList,
    kernel_memory::KernelMemory,
    mr::{
        destroy,
        Access,
        Permission, //
    },
    pd::Pd,
    umem::Umem,
    wr::{
        self,
        SendFlags, //
    },
};
use crate::sys::workqueue::queue;
use core::ptr::NonNull;
use kdapl_bindings as bindings;
use kernel::{
    impl_has_work, new_work,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc,
        UniqueArc, //
    },
    task::might_sleep,
    workqueue::{
        Work,
        WorkItem, //
    },
};

/// State of a region that no request has registered.
const UNUSED: u32 = 0;
/// State of a region whose request is in a send queue.
const POSTED: u32 = 1;
/// State of a region whose request has ended.
const ENDED: u32 = 2;

/// Memory that is mapped for a device.
#[derive(Clone)]
pub(crate) enum RegionMemory {
    /// Pinned memory of a process.
    Process(Arc<Umem>),
    /// Memory of the kernel.
    Kernel(KernelMemory),
}

impl RegionMemory {
    /// Keeps the memory for the device for ever: a region over it could not be destroyed.
    fn stay(&self) {
        match self {
            Self::Process(memory) => memory.stay(),
            Self::Kernel(memory) => memory.stay(),
        }
    }

    /// Returns whether it is memory of the kernel that the device may access for ever.
    pub(crate) fn is_lost(&self) -> bool {
        matches!(self, Self::Kernel(memory) if memory.stays())
    }

    /// Maps `length` bytes from `offset` on into a region, whose users address them from `address`
    /// on.
    ///
    /// # Safety
    ///
    /// The region is alive. No request has registered it.
    unsafe fn map_into(
        &self,
        raw: NonNull<bindings::ib_mr>,
        offset: u64,
        length: u64,
        address: u64,
    ) -> Result {
        let raw = raw.as_ptr();
        let ret = match self {
            // SAFETY: The memory is alive, and by the safety requirement the region.
            Self::Process(memory) => unsafe {
                bindings::kdapl_helper_map_umem(raw, memory.as_ptr(), offset, length, address)
            },
            Self::Kernel(memory) => {
                let mut list = DmaList::of(memory, offset, length)?;
                let (list, count) = list.as_raw();
                // SAFETY: As above. The list has `count` entries. The driver copies them.
                unsafe { bindings::kdapl_helper_map_dma_list(raw, list, count, length, address) }
            }
        };
        kernel::error::to_result(ret)
    }
}

/// Returns whether an error says that a region cannot map the memory as it lies: `EADDRNOTAVAIL`.
pub(crate) fn is_not_available(error: Error) -> bool {
    error.to_errno() == -(bindings::KDAPL_EADDRNOTAVAIL as i32)
}

/// Mapped memory, and the owner that keeps it, if there is one: it is dropped after the region.
type OwnedMemory = (RegionMemory, Option<Arc<dyn Send + Sync>>);

/// A memory region for fast registration.
///
/// # Invariants
///
/// `raw` is a live memory region in `pd`, owned by this value, unless `is_over`, which is set in
/// the drop only. It maps a part of the memory in `memory`, or memory that the owner of the region
/// keeps.
#[pin_data(PinnedDrop)]
pub(crate) struct FastMr {
    raw: NonNull<bindings::ib_mr>,
    access: Access,
    state: Atomic<u32>,
    /// Key of the last request, which the device has; at first the key that the driver has chosen.
    last_key: Atomic<u32>,
    #[pin]
    release: Work<FastMr>,
    memory: Option<OwnedMemory>,
    /// The region was destroyed, or cannot be.
    is_over: bool,
    charge: Charge,
    pd: Arc<Pd>,
}

// SAFETY: `ib_core` allows the use of a memory region from any thread.
unsafe impl Send for FastMr {}
// SAFETY: As above.
unsafe impl Sync for FastMr {}

impl FastMr {
    /// Creates a region over `length` bytes of `memory` from `offset` on. Its users address it from
    /// `address` on, which has the same offset in its page as the memory. `owner` of the memory, if
    /// it has another one, is dropped after the region.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `E2BIG` if the range has more pages than a region of the device, `EFAULT` or `EINVAL` for a
    /// range beyond the memory, `EADDRNOTAVAIL` if the device has the memory at another offset in
    /// its page or it is not contiguous but for page boundaries, `EAGAIN` above a limit of the
    /// user, `ENOMEM`, any other error of the driver.
    pub(crate) fn new(
        pd: Arc<Pd>,
        (memory, owner): (RegionMemory, Option<Arc<dyn Send + Sync>>),
        offset: u64,
        length: u64,
        address: u64,
        access: Access,
    ) -> Result<Arc<Self>> {
        let into_page = address % PAGE_SIZE as u64;
        let bytes = into_page.saturating_add(length);
        let pages = u32::try_from(bytes.div_ceil(PAGE_SIZE as u64)).map_err(|_| E2BIG)?;
        let this = Self::allocate(pd, pages, length, access, Some((memory, owner)))?;
        if let Some((memory, _)) = &this.memory {
            // SAFETY: The region was just created.
            unsafe { memory.map_into(this.raw, offset, length, address) }?;
        }
        Ok(this)
    }

    /// Creates a region for `pages` pages, which maps nothing yet. It is charged as one of `length`
    /// bytes. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `E2BIG` for more pages than a region of the device has. Otherwise as for [`FastMr::new`].
    fn allocate(
        pd: Arc<Pd>,
        pages: u32,
        length: u64,
        access: Access,
        memory: Option<OwnedMemory>,
    ) -> Result<Arc<Self>> {
        might_sleep();
        if pages > pd.device().limits().max_fast_reg_pages {
            return Err(E2BIG);
        }
        let charge = Charge::new(pd.device(), Resource::Region(length))?;
        // Allocated first, so that the region that is created below has an owner in any case.
        let room = UniqueArc::new_uninit(GFP_KERNEL_ACCOUNT)?;
        // SAFETY: The protection domain is alive.
        let raw = unsafe {
            bindings::ib_alloc_mr(
                pd.as_ptr(),
                bindings::ib_mr_type_IB_MR_TYPE_MEM_REG,
                pages.max(1),
            )
        };
        let raw = NonNull::new(kernel::error::from_err_ptr(raw)?).ok_or(ENOMEM)?;
        // SAFETY: The region was just created.
        let key = unsafe { (*raw.as_ptr()).rkey };
        // INVARIANT: The region was just created, and maps nothing.
        let Ok(this) = room.pin_init_with(pin_init!(Self {
            raw,
            access,
            state: Atomic::new(UNUSED),
            last_key: Atomic::new(key),
            release <- new_work!("FastMr::release"),
            memory,
            is_over: false,
            charge,
            pd,
        }));
        Ok(Arc::from(this))
    }

    /// Returns the key for the peer.
    pub(crate) fn key(&self) -> u32 {
        // SAFETY: By the type invariant the region is alive.
        unsafe { (*self.raw.as_ptr()).rkey }
    }

    /// Returns the key for work requests of this side.
    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: By the type invariant the region is alive.
        unsafe { (*self.raw.as_ptr()).lkey }
    }

    /// Returns whether requests of this side may write to the memory.
    pub(crate) fn is_writable(&self) -> bool {
        self.access.contains(Permission::LocalWrite)
    }

    /// Returns whether the request that registers the region has not ended yet.
    pub(crate) fn is_posted(&self) -> bool {
        self.state.load(Acquire) == POSTED
    }

    /// Returns whether the region is in a protection domain.
    pub(super) fn is_in(&self, pd: &Arc<Pd>) -> bool {
        Arc::ptr_eq(&self.pd, pd)
    }

    /// Returns the key that the device has, valid or not.
    pub(super) fn last_key(&self) -> u32 {
        self.last_key.load(Relaxed)
    }

    /// Builds the request that registers the region.
    pub(super) fn registration(&self, wr_id: u64, flags: SendFlags) -> bindings::ib_reg_wr {
        wr::build_registration(
            wr_id,
            self.raw.as_ptr(),
            self.key(),
            u32::from(self.access),
            flags,
        )
    }
}

#[pinned_drop]
impl PinnedDrop for FastMr {
    fn drop(self: Pin<&mut Self>) {
        if self.is_over {
            return;
        }
        let region = self.project();
        // SAFETY: By the type invariant this value owns the region. No request is left: each of
        // them holds a reference.
        let is_destroyed = unsafe { destroy(*region.raw, region.charge) };
        if let (false, Some((memory, _))) = (is_destroyed, region.memory) {
            memory.stay();
        }
    }
}

impl_has_work! {
    impl HasWork<Self> for FastMr { self.release }
}

impl WorkItem for FastMr {
    type Pointer = Arc<Self>;

    /// Drops a reference where the thread may sleep.
    fn run(_this: Arc<Self>) {}
}

/// Reference to a region while a request that registers or invalidates it is in a send queue.
///
/// The driver may access the region until a registration has completed or the queue pair is
/// destroyed, so the owner must not drop the reference before. A request that invalidates names the
/// region by its key only.
///
/// The drop may be in any context that may take a spinlock: a work item destroys the region if this
/// is the last reference.
pub(crate) struct PostedMr {
    region: Option<Arc<FastMr>>,
    registers: bool,
}

impl PostedMr {
    /// Marks a region as posted, for a request that registers it.
    ///
    /// # Errors
    ///
    /// `EBUSY` if it was posted since it was mapped.
    pub(super) fn for_registration(region: Arc<FastMr>) -> Result<Self> {
        if region.state.cmpxchg(UNUSED, POSTED, Relaxed).is_err() {
            return Err(EBUSY);
        }
        Ok(Self {
            region: Some(region),
            registers: true,
        })
    }

    /// Holds a region for a request that invalidates it.
    pub(super) fn for_invalidation(region: Arc<FastMr>) -> Self {
        Self {
            region: Some(region),
            registers: false,
        }
    }

    /// Reverts [`PostedMr::for_registration`]: the driver has refused the request, which may be
    /// posted again.
    pub(super) fn withdraw(mut self) {
        if let (Some(region), true) = (&self.region, self.registers) {
            region.state.store(UNUSED, Release);
        }
        self.registers = false;
    }

    /// Notes that the device gets the key of the region: the request was posted.
    pub(super) fn was_posted(&self) {
        if let Some(region) = &self.region {
            region.last_key.store(region.key(), Relaxed);
        }
    }
}

impl Drop for PostedMr {
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            if self.registers {
                region.state.store(ENDED, Release);
            }
            // Destroys the region in a work item, if this was the last reference.
            if let Some(last) = Arc::into_unique_or_drop(region) {
                let _ = queue().enqueue(Arc::from(last));
            }
        }
    }
}
