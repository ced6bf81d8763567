// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Charges a process for the resources of a device that it holds.
//!
//! Each resource is charged to the `rdma` cgroup of the process and to its user. The administrator
//! limits the cgroup by `rdma.max` (`hca_object` and `hca_handle`), as for the verbs' own device.
//! Without a setting there is no limit. The limits of users are those of
//! [`User`](crate::sys::user::User): of all that the user holds, with the memory that drivers
//! allocate, and of its share of each device.
//!
//! C header: [`include/linux/cgroup_rdma.h`](srctree/include/linux/cgroup_rdma.h)

use super::{
    device::Device,
    qp::Capacity,
    srq::SrqCapacity, //
};
use crate::{
    model::{
        allowance::Item,
        footprint::{
            self,
            WorkQueue, //
        },
    },
    sys::user::{
        FixedCharge,
        User, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::Arc, //
};

/// Resource that is charged.
#[derive(Clone, Copy)]
pub(crate) enum Resource {
    /// An open Interface Adapter.
    Handle,
    /// A protection domain.
    Domain,
    /// A completion queue for this number of completions.
    CompletionQueue(u32),
    /// A queue pair.
    QueuePair(Capacity),
    /// A shared receive queue.
    SharedReceiveQueue(SrqCapacity),
    /// A memory region of this number of bytes.
    Region(u64),
}

impl Resource {
    /// Returns whether the cgroup counts the resource as a handle. Otherwise it is an object.
    fn is_handle(self) -> bool {
        matches!(self, Self::Handle)
    }

    /// Returns the item of the user's account, and how many of these the device has.
    fn item(self, device: &Device) -> (Item, u32) {
        let limits = device.limits();
        match self {
            // A device has any number of them.
            Self::Handle => (Item::Adapter, 0),
            Self::Domain => (Item::Domain, limits.max_pd),
            Self::CompletionQueue(_) => (Item::CompletionQueue, limits.max_cq),
            Self::QueuePair(_) => (Item::QueuePair, limits.max_qp),
            Self::SharedReceiveQueue(_) => (Item::SharedReceiveQueue, limits.max_srq),
            Self::Region(_) => (Item::Region, limits.max_mr),
        }
    }

    /// Returns an estimate of the driver's allocations, in kilobytes.
    fn footprint(self) -> u32 {
        match self {
            Self::Handle | Self::Domain => footprint::object(),
            Self::CompletionQueue(entries) => footprint::completion_queue(entries),
            Self::QueuePair(capacity) => footprint::queue_pair(
                WorkQueue {
                    dtos: capacity.max_send_wr,
                    segments: capacity.max_send_sge,
                },
                WorkQueue {
                    dtos: capacity.max_recv_wr,
                    segments: capacity.max_recv_sge,
                },
            ),
            Self::SharedReceiveQueue(capacity) => footprint::receive_queue(WorkQueue {
                dtos: capacity.max_wr,
                segments: capacity.max_sge,
            }),
            Self::Region(length) => footprint::region(length),
        }
    }
}

/// A charge. The drop uncharges it.
///
/// # Invariants
///
/// `cgroup` is charged for one `resource` of `device`, or is null if this kernel charges no cgroup.
pub(crate) struct Charge {
    cgroup: *mut bindings::rdma_cgroup,
    resource: Resource,
    // Dropped before the device: they are counted by its number.
    holds: Option<[FixedCharge; 3]>,
    device: Arc<Device>,
}

// SAFETY: A charge is a count under the controller's own lock, and any thread may uncharge it.
unsafe impl Send for Charge {}
// SAFETY: As above. A shared reference offers no operation.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges the cgroup and the user of the calling process. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above a limit, `ENOMEM`.
    pub(crate) fn new(device: &Arc<Device>, resource: Resource) -> Result<Self> {
        let user = User::current()?;
        let user_here = user.on(device.index())?;
        let (item, available) = resource.item(device);
        // If one of them fails, the drop of the others ends their charges.
        let holds = [
            user.hold(item, 1)?,
            user_here.into_share(item, available)?,
            user.into_hold(Item::DriverMemory, resource.footprint())?,
        ];
        let mut cgroup = core::ptr::null_mut();
        // SAFETY: The device is alive, and `cgroup` is a local variable.
        let ret = unsafe {
            bindings::kdapl_helper_rdmacg_charge(
                device.as_ptr(),
                resource.is_handle(),
                &raw mut cgroup,
            )
        };
        kernel::error::to_result(ret)?;
        // INVARIANT: The cgroup was charged. If the kernel has no such controller, the helper left
        // null.
        Ok(Self {
            cgroup,
            resource,
            holds: Some(holds),
            device: device.clone(),
        })
    }

    /// Charges the user for ever, because the driver has failed to destroy the resource. The drop
    /// still uncharges the cgroup, whose counts are those of a device that may be removed.
    pub(super) fn keep(&mut self) {
        core::mem::forget(self.holds.take());
    }
}

/// Charges the user of the calling process for pages that are to be pinned.
///
/// `RLIMIT_MEMLOCK` limits an address space. A process gets another one by a fork or an exec, and
/// what it has registered before stays pinned for as long as the file is open.
///
/// # Errors
///
/// `EAGAIN` above the limit, `ENOMEM`.
pub(super) fn charge_pinned(pages: u64) -> Result<FixedCharge> {
    let kilobytes = pages.saturating_mul(PAGE_SIZE as u64) >> 10;
    let kilobytes = u32::try_from(kilobytes).unwrap_or(u32::MAX);
    User::current()?.into_hold(Item::PinnedMemory, kilobytes)
}

impl Drop for Charge {
    fn drop(&mut self) {
        // SAFETY: By the type invariant there is a charge, or the pointer is null, which the helper
        // accepts. The device is alive.
        unsafe {
            bindings::kdapl_helper_rdmacg_uncharge(
                self.device.as_ptr(),
                self.resource.is_handle(),
                self.cgroup,
            )
        };
    }
}
