// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service points: where requests for connections arrive.

pub mod csp;
pub mod psp;
pub mod rsp;

pub use csp::Csp;
pub use psp::Psp;
pub use rsp::Rsp;

use crate::abi::{DAT_CONN_QUAL, DAT_HANDLE};
use crate::ia::Ia;
use libkdapl::Handle;

/// What a request says of the service point that it came to.
pub struct Origin {
    /// Null if it has been freed meanwhile.
    pub handle: DAT_HANDLE,
    /// An Endpoint comes with each request.
    pub brings_ep: bool,
}

/// The service point that the kernel calls `key`, and the qualifier that the program knows it by where
/// the kernel listens for `qualifier`.
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
