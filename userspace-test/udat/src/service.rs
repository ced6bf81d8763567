// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service points: Public, Reserved and Common ones.

pub mod csp;
pub mod psp;
pub mod rsp;

pub use csp::Csp;
pub use psp::Psp;
pub use rsp::Rsp;

use crate::abi::{DAT_CONN_QUAL, DAT_HANDLE};
use crate::ia::Ia;
use libkdapl::Handle;

/// Service point that a request arrived at.
pub struct Origin {
    /// Handle; null if the service point was freed in the meantime.
    pub handle: DAT_HANDLE,
    /// Each request comes with an Endpoint.
    pub brings_ep: bool,
}

/// Returns the service point for the kernel's handle `key`, and its qualifier as the program knows
/// it. `qualifier` is the one that the kernel listens for.
pub fn of_request(ia: &Ia, key: Handle, qualifier: u64) -> (Origin, DAT_CONN_QUAL) {
    let handle = ia.handle_of(key);
    if let Some(psp) = ia.object_of::<Psp>(key) {
        return (Origin { handle, brings_ep: psp.brings_ep }, psp.qualifier);
    }
    if let Some(rsp) = ia.object_of::<Rsp>(key) {
        return (Origin { handle, brings_ep: rsp.brings_ep }, rsp.qualifier);
    }
    (Origin { handle, brings_ep: false }, qualifier)
}
