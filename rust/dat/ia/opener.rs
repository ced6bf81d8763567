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

/// Danger of a device for others than its user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Danger {
    /// A peer can reach kernel memory through the driver.
    Memory,
    /// A peer can keep the driver from destroying a queue pair.
    Removal,
}

impl Danger {
    fn of(device: &Device) -> Option<Self> {
        let driver = device.driver();
        if !driver.checks_peers {
            Some(Self::Memory)
        } else if device.is_iwarp() && !driver.outlasts_silent_peers {
            Some(Self::Removal)
        } else {
            None
        }
    }
}

/// Logs the danger of a device, if there is one. Each is logged once per device.
pub(super) fn warn_of_danger(device: &Device) {
    match Danger::of(device) {
        Some(Danger::Memory) => device.warn_of_peers(),
        Some(Danger::Removal) => device.warn_of_silent_peers(),
        None => {}
    }
}

/// Returns whether processes need `CAP_SYS_RAWIO` to open a device, because a peer can reach kernel
/// memory through its driver, or keep the device from being removed.
pub(crate) fn is_restricted(device: &Device) -> bool {
    let all_users: i32 = compat::parameter(module_parameters::unsafe_drivers.value());
    all_users == 0 && Danger::of(device).is_some()
}
