// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which consumers may open which devices.

use crate::{
    compat,
    module_parameters,
    rdma::device::Device,
    sys::task, //
};

/// Who opens an adapter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consumer {
    /// The calling process, through `/dev/kdapl`.
    Process,
    /// A module of the kernel.
    Kernel,
}

impl Consumer {
    /// Whether it may use a device, as far as the device's driver is concerned.
    pub(super) fn may_open(self, device: &Device) -> bool {
        self == Self::Kernel || !is_restricted(device) || task::may_raw_io()
    }
}

/// Whether a peer reaches the kernel's memory through a device's driver.
pub(super) fn is_unsafe(device: &Device) -> bool {
    !device.driver().checks_peers
}

/// Whether processes may open a device with `CAP_SYS_RAWIO` only, for a peer reaches the kernel's memory
/// through its driver.
pub(crate) fn is_restricted(device: &Device) -> bool {
    let all_users: i32 = compat::parameter(module_parameters::unsafe_drivers.value());
    is_unsafe(device) && all_users == 0
}
