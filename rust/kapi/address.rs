// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that copy the addresses of a connection to the consumer.
//!
//! A pointer in the parameters of an Endpoint (EP) or of a Connection Request (CR) ends with its
//! object, which another thread may free at any time.

use super::{
    ep::find_in_any_state,
    export::{
        export,
        Out, //
    },
    registry::Adapter, //
};
use crate::{
    dat::passive::Cr,
    model::handle::KernelHandle, //
};
use kdapl_bindings::__kernel_sockaddr_storage;

export! {
    /// `kdapl_ep_addresses`.
    fn kdapl_ep_addresses(
        ep: KernelHandle,
        local: Out<__kernel_sockaddr_storage>,
        remote: Out<__kernel_sockaddr_storage>,
    ) {
        let ep = find_in_any_state(ep)?;
        let param = ep.query();
        local.put(param.local.to_storage());
        remote.put(param.remote.to_storage());
        Ok(())
    }

    /// `kdapl_cr_address`.
    fn kdapl_cr_address(cr: KernelHandle, remote: Out<__kernel_sockaddr_storage>) {
        remote.put(Adapter::object::<Cr>(cr)?.query().remote.to_storage());
        Ok(())
    }
}
