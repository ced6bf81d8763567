// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Checks whether a process or a kernel module may open a device.

use crate::{
    compat,
    module_parameters,
    rdma::device::Device,
    sys::task, //
};

/// Opener of an adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opener {
    /// The calling process, through `/dev/kdapl`.
    Process,
    /// A kernel module.
    Kernel,
}

impl Opener {
    /// Returns whether the opener may use a device, with regard to the safety of the device's
    /// driver.
    pub(super) fn may_open(self, device: &Device) -> bool {
        self == Self::Kernel || !is_restricted(device) || task::may_raw_io()
    }
}

/// Returns whether a peer can reach kernel memory through a device's driver.
pub(super) fn is_unsafe(device: &Device) -> bool {
    !device.driver().checks_peers
}

/// Returns whether processes need `CAP_SYS_RAWIO` to open a device, because a peer can reach kernel
/// memory through its driver.
pub(crate) fn is_restricted(device: &Device) -> bool {
    let all_users: i32 = compat::parameter(module_parameters::unsafe_drivers.value());
    is_unsafe(device) && all_users == 0
}
