// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Statistics of the open Interface Adapters (IAs) of this machine.

use crate::error::Result;
use crate::ia::text;
use crate::raw::{self, call, Device};
use crate::sys::*;
use crate::Type;

/// Statistics of an open IA. Counts start when it is opened.
#[derive(Clone, Debug)]
pub struct IaStat {
    /// Number that identifies the IA. No other IA gets it until the module is unloaded.
    pub serial: u64,
    /// Process that opened it, in the caller's PID namespace. `None` for a kernel module, and for a
    /// process that has no number there or has ended.
    pub pid: Option<u32>,
    /// Name that the process had then; empty for a kernel module.
    pub process: String,
    /// It belongs to a kernel module.
    pub is_kernel: bool,
    /// Name of the RDMA device.
    pub adapter: String,
    /// The kernel's answer, with all counts.
    pub raw: kdapl_ia_stat,
}

/// Returns the statistics of all open IAs that the caller may see: those of its own user, and with
/// `CAP_NET_ADMIN` all of its network namespace, of kernel modules too. In the order in which they
/// were opened.
///
/// # Errors
/// [`Error::Open`](crate::Error::Open) if the module is not loaded or the caller may not use it;
/// `ENOTTY` from a module that is older than this library.
pub fn ia_stats() -> Result<Vec<IaStat>> {
    let device = Device::open()?;
    let (mut found, mut serial) = (Vec::new(), 0);
    loop {
        let mut message = kdapl_ia_stat { serial, ..Default::default() };
        match raw::call(&device, call::IA_STAT, &mut message) {
            Ok(()) => {
                serial = message.serial;
                found.push(IaStat::new(message));
            }
            Err(error) if error.kind() == Some(Type::PROVIDER_NOT_FOUND) => return Ok(found),
            Err(error) => return Err(error),
        }
    }
}

impl IaStat {
    fn new(message: kdapl_ia_stat) -> Self {
        Self {
            serial: message.serial,
            pid: (message.pid != 0).then_some(message.pid),
            process: text(&message.name),
            is_kernel: message.is_kernel != 0,
            adapter: text(&message.adapter_name),
            raw: message,
        }
    }
}
