// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Adapters in the network namespace of the caller.

use crate::{
    ensure,
    name, //
};
use core::ptr::NonNull;
use kdat::Ia;
use kernel::prelude::*;

/// Opens the adapter in the network namespace of the process that loads the module. The initial
/// namespace has the device.
pub(crate) fn opened_here(_round: u32) -> Result {
    // SAFETY: A process that runs has its namespaces, which only itself changes.
    let net = unsafe { (*(*kernel::current!().as_ptr()).nsproxy).net_ns };
    let net = NonNull::new(net).ok_or(EINVAL)?;
    // SAFETY: The process has a reference to its namespace during the call.
    let ia = unsafe { Ia::open_in(net.cast(), &name()?, 8) }?;
    ensure(ia.limits()?.dtos > 0, "the adapter has limits")
}
