// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Trust in the driver of a device.
//!
//! C header:
//! [`include/uapi/rdma/ib_user_ioctl_verbs.h`](srctree/include/uapi/rdma/ib_user_ioctl_verbs.h)

use super::device::Device;
use crate::model::driver::{
    id,
    DriverProperties, //
};
use core::str;
use kdapl_bindings as bindings;
use kernel::{
    page::PAGE_SIZE,
    prelude::*,
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
};

const _: () = {
    assert!(id::MLX5 == bindings::rdma_driver_id_RDMA_DRIVER_MLX5);
    assert!(id::MLX4 == bindings::rdma_driver_id_RDMA_DRIVER_MLX4);
    assert!(id::CXGB4 == bindings::rdma_driver_id_RDMA_DRIVER_CXGB4);
    assert!(id::MTHCA == bindings::rdma_driver_id_RDMA_DRIVER_MTHCA);
    assert!(id::BNXT_RE == bindings::rdma_driver_id_RDMA_DRIVER_BNXT_RE);
    assert!(id::OCRDMA == bindings::rdma_driver_id_RDMA_DRIVER_OCRDMA);
    assert!(id::IRDMA == bindings::rdma_driver_id_RDMA_DRIVER_IRDMA);
    assert!(id::VMW_PVRDMA == bindings::rdma_driver_id_RDMA_DRIVER_VMW_PVRDMA);
    assert!(id::QEDR == bindings::rdma_driver_id_RDMA_DRIVER_QEDR);
    assert!(id::HNS == bindings::rdma_driver_id_RDMA_DRIVER_HNS);
    assert!(id::RXE == bindings::rdma_driver_id_RDMA_DRIVER_RXE);
    assert!(id::HFI1 == bindings::rdma_driver_id_RDMA_DRIVER_HFI1);
    assert!(id::SIW == bindings::rdma_driver_id_RDMA_DRIVER_SIW);
    assert!(id::ERDMA == bindings::rdma_driver_id_RDMA_DRIVER_ERDMA);
    assert!(id::IONIC == bindings::rdma_driver_id_RDMA_DRIVER_IONIC);
};

/// Warnings that were logged for a device. Each is logged once per device, whichever process causes
/// it.
pub(super) struct WarnedOnce {
    memory: Atomic<bool>,
    peers: Atomic<bool>,
    silent_peers: Atomic<bool>,
}

impl WarnedOnce {
    /// No warning was logged yet.
    pub(super) const fn none() -> Self {
        Self {
            memory: Atomic::new(false),
            peers: Atomic::new(false),
            silent_peers: Atomic::new(false),
        }
    }
}

/// Returns true for the first call only.
fn is_first(warned: &Atomic<bool>) -> bool {
    !warned.load(Relaxed) && !warned.xchg(true, Relaxed)
}

impl Device {
    /// Returns the properties of the device's driver.
    pub(crate) fn driver(&self) -> DriverProperties {
        // SAFETY: By the type invariant the device is alive.
        DriverProperties::from_id(unsafe { (*self.as_ptr()).ops.driver_id })
    }

    /// Returns the length in bytes of the longest memory region that the driver accepts.
    pub(crate) fn max_region(&self) -> u64 {
        self.driver().max_region(PAGE_SIZE as u64)
    }

    /// Warns that processes cannot register memory with this device.
    pub(super) fn warn_of_memory(&self) {
        if is_first(&self.warned().memory) {
            pr_warn!(
                "{}: no memory of processes can be registered: the driver is not known to do so \
                 for callers in the kernel (docs/drivers.md)\n",
                printable(&self.name())
            );
        }
    }

    /// Warns that a peer may access all memory of the machine through this device.
    pub(crate) fn warn_of_peers(&self) {
        if is_first(&self.warned().peers) {
            pr_warn!(
                "{}: the driver is not known to deny peers access to kernel memory: the device \
                 requires CAP_SYS_RAWIO or unsafe_drivers=1 (docs/drivers.md)\n",
                printable(&self.name())
            );
        }
    }

    /// Warns that a silent peer may keep this device from being removed.
    pub(crate) fn warn_of_silent_peers(&self) {
        if is_first(&self.warned().silent_peers) {
            pr_warn!(
                "{}: over iWARP a silent peer may keep the driver from destroying a queue pair: \
                 the device requires CAP_SYS_RAWIO or unsafe_drivers=1 (docs/drivers.md)\n",
                printable(&self.name())
            );
        }
    }
}

/// Returns the name of a device as text.
fn printable(name: &[u8]) -> &str {
    let name = name.split(|&byte| byte == 0).next().unwrap_or(name);
    str::from_utf8(name).unwrap_or("?")
}
