// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Service points: Public, Reserved and Common ones.

pub mod csp;
pub mod psp;
pub mod rsp;

pub use csp::Csp;
pub use psp::Psp;
pub use rsp::Rsp;

use crate::abi::{DAT_CONN_QUAL, DAT_HANDLE};
use crate::ia::{Folded, Ia};
use libkdapl::Handle;
use std::ptr;

/// Service point that a request arrived at.
pub struct Origin {
    /// Handle; null if the service point was freed in the meantime.
    pub handle: DAT_HANDLE,
    /// Qualifier as the program knows it.
    pub qualifier: DAT_CONN_QUAL,
    /// The request may have come with an Endpoint.
    pub may_bring_ep: bool,
}

impl Origin {
    fn known(ia: &Ia, key: Handle, qualifier: u64) -> Option<Self> {
        let handle = ia.handle_of(key);
        if let Some(psp) = ia.object_of::<Psp>(key) {
            return Some(Self { handle, qualifier: psp.qualifier, may_bring_ep: psp.brings_ep });
        }
        if let Some(rsp) = ia.object_of::<Rsp>(key) {
            return Some(Self { handle, qualifier: rsp.qualifier, may_bring_ep: rsp.brings_ep });
        }
        ia.object_of::<Csp>(key).map(|_| Self { handle, qualifier, may_bring_ep: false })
    }
}

/// Notes the program's qualifier of a service point for which the kernel listens at `port`.
fn note(folded: &mut Folded, port: u64, qualifier: DAT_CONN_QUAL) {
    if port == qualifier {
        folded.remove(&port);
    } else {
        folded.insert(port, qualifier);
    }
}

/// Returns the service point for the kernel's handle `key`. `qualifier` is the one that the kernel
/// listens for.
pub fn of_request(ia: &Ia, key: Handle, qualifier: u64) -> Origin {
    Origin::known(ia, key, qualifier).unwrap_or_else(|| {
        // Another thread creates the service point, and has locked the qualifiers meanwhile; or it
        // was freed while the request was queued.
        let folded = ia.folded().get(&qualifier).copied();
        Origin::known(ia, key, qualifier).unwrap_or(Origin {
            handle: ptr::null_mut(),
            qualifier: folded.unwrap_or(qualifier),
            may_bring_ep: true,
        })
    })
}
