// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a process holds of a device, charged to its `rdma` cgroup and to its user.
//!
//! The administrator limits the first by `rdma.max` (`hca_object` and `hca_handle`), as with the
//! verbs' own device; there is no limit where none was set. The second has the limits of
//! [`User`](crate::sys::user::User): of what it has in all, memory of the drivers among it, and of its
//! share of each device.
//!
//! C header: [`include/linux/cgroup_rdma.h`](srctree/include/linux/cgroup_rdma.h)

use super::{
    device::Device,
    qp::Capacity, //
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
        Hold,
        User, //
    },
};
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What is charged.
#[derive(Clone, Copy)]
pub(crate) enum Resource {
    /// An open adapter.
    Handle,
    /// A protection domain.
    Domain,
    /// A completion queue for so many completions.
    CompletionQueue(u32),
    /// A queue pair.
    QueuePair(Capacity),
    /// A region over so many bytes.
    Region(u64),
}

impl Resource {
    /// Whether the cgroup counts it as a handle; else it is an object.
    fn is_handle(self) -> bool {
        matches!(self, Self::Handle)
    }

    /// What a user holds with it, and how much of that the device has.
    fn item(self, device: &Device) -> (Item, u32) {
        let limits = device.limits();
        match self {
            // A device has any number of them.
            Self::Handle => (Item::Adapter, 0),
            Self::Domain => (Item::Domain, limits.max_pd),
            Self::CompletionQueue(_) => (Item::CompletionQueue, limits.max_cq),
            Self::QueuePair(_) => (Item::QueuePair, limits.max_qp),
            Self::Region(_) => (Item::Region, limits.max_mr),
        }
    }

    /// Kilobytes that the driver is likely to allocate.
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
            Self::Region(length) => footprint::region(length),
        }
    }
}

/// A charge, from its making to its drop.
///
/// # Invariants
///
/// `cgroup` was charged for one `resource` of `device`, or is null if nothing is charged here.
pub(crate) struct Charge {
    cgroup: *mut bindings::rdma_cgroup,
    resource: Resource,
    // Dropped before the device: they are counted by its number.
    _holds: [Hold; 3],
    device: Arc<Device>,
}

// SAFETY: The charge is a number behind the controller's own lock, given back from any thread.
unsafe impl Send for Charge {}
// SAFETY: As above; nothing can be done with a reference.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges the calling process's cgroup and user. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above a limit, `ENOMEM`.
    pub(crate) fn new(device: &Arc<Device>, resource: Resource) -> Result<Self> {
        let (user, user_here) = (User::current()?, User::current_on(device.index())?);
        let (item, available) = resource.item(device);
        // What one of them refuses, the drop of the others gives back.
        let holds = [
            user.hold(item, 1)?,
            user_here.hold_share(item, available)?,
            user.hold(Item::DriverMemory, resource.footprint())?,
        ];
        let mut cgroup = core::ptr::null_mut();
        // SAFETY: The device is alive, and `cgroup` is ours.
        let ret = unsafe {
            bindings::kdapl_helper_rdmacg_charge(
                device.as_ptr(),
                resource.is_handle(),
                &raw mut cgroup,
            )
        };
        kernel::error::to_result(ret)?;
        // INVARIANT: Charged, or the kernel has no such controller and the helper left null.
        Ok(Self {
            cgroup,
            resource,
            _holds: holds,
            device: device.clone(),
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        // SAFETY: By the invariant there is a charge to give back; the helper takes null. The device
        // is alive.
        unsafe {
            bindings::kdapl_helper_rdmacg_uncharge(
                self.device.as_ptr(),
                self.resource.is_handle(),
                self.cgroup,
            )
        };
    }
}
