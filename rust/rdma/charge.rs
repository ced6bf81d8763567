// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a process holds of a device, charged to its `rdma` cgroup as the verbs' own device does.
//!
//! The administrator limits it by `rdma.max` (`hca_object` and `hca_handle`); there is no limit where
//! none was set.
//!
//! C header: [`include/linux/cgroup_rdma.h`](srctree/include/linux/cgroup_rdma.h)

use super::device::Device;
use kdapl_bindings as bindings;
use kernel::{
    prelude::*,
    sync::Arc, //
};

/// What is charged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    /// An open adapter.
    Handle,
    /// Anything made in it: protection domain, queue, region.
    Object,
}

/// A charge, from its making to its drop.
///
/// # Invariants
///
/// `cgroup` was charged for one `resource` of `device`, or is null if nothing is charged here.
pub(crate) struct Charge {
    cgroup: *mut bindings::rdma_cgroup,
    resource: Resource,
    device: Arc<Device>,
}

// SAFETY: The charge is a number behind the controller's own lock, given back from any thread.
unsafe impl Send for Charge {}
// SAFETY: As above; nothing can be done with a reference.
unsafe impl Sync for Charge {}

impl Charge {
    /// Charges the calling process's cgroup. Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the limit, `ENOMEM`.
    pub(crate) fn new(device: &Arc<Device>, resource: Resource) -> Result<Self> {
        let mut cgroup = core::ptr::null_mut();
        // SAFETY: The device is alive, and `cgroup` is ours.
        let ret = unsafe {
            bindings::kdapl_helper_rdmacg_charge(
                device.as_ptr(),
                resource == Resource::Handle,
                &raw mut cgroup,
            )
        };
        kernel::error::to_result(ret)?;
        // INVARIANT: Charged, or the kernel has no such controller and the helper left null.
        Ok(Self {
            cgroup,
            resource,
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
                self.resource == Resource::Handle,
                self.cgroup,
            )
        };
    }
}
