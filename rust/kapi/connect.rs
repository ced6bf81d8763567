// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The calls that connect an Endpoint.

use super::{
    export::{
        export,
        Address,
        Data, //
    },
    registry::Adapter, //
};
use crate::{
    dat::{
        ep::{
            Connect,
            ConnectArguments,
            Ep, //
        },
        evd::deadline,
        prelude::*, //
    },
    model::{
        ep::ReadyGate,
        handle::KernelHandle, //
    },
    rdma::addr::SockAddr,
    sys::wait::Deadline, //
};
use kdapl_bindings as bindings;

fn address(address: &Address) -> DatResult<SockAddr> {
    address.get().ok_or(DatError::malformed_address())
}

/// Converts the size of private data.
///
/// # Errors
///
/// INVALID_PARAMETER (size of the private data) below 0.
fn size(count: i32) -> DatResult<u32> {
    u32::try_from(count).map_err(|_| DatError::Invalid(Arg::PrivateDataSize))
}

/// Checks the arguments of a connect call and copies its private data.
fn prepare(adapter: &Adapter, arguments: &ConnectArguments, data: &Data) -> DatResult<Connect> {
    let mut connect = arguments.examine(adapter.ia.attr())?;
    // SAFETY: The header obliges the caller to pass as many bytes as the size says, which `examine`
    // has made the length of `connect.data`.
    unsafe { data.read(connect.data.bytes_mut()) }?;
    Ok(connect)
}

/// Converts a time-out, in microseconds, to the deadline of a connect call.
///
/// # Errors
///
/// INVALID_PARAMETER (time-out) for a time-out of 0.
fn connect_deadline(timeout: u32) -> DatResult<Deadline> {
    match timeout {
        0 => Err(DatError::Invalid(Arg::Timeout)),
        micros => Ok(deadline(micros)),
    }
}

export! {
    /// `dat_ep_connect`.
    fn dat_ep_connect(
        ep: KernelHandle,
        remote: Address,
        conn_qual: u64,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
        qos: u32,
        flags: u32,
    ) {
        let (adapter, ep) = Adapter::find::<Ep>(ep)?;
        let remote = address(&remote)?;
        let arguments = ConnectArguments {
            private_data_size: size(private_data_size)?,
            deadline: connect_deadline(timeout),
            qos,
            flags,
            gate: ReadyGate::Open,
        };
        let connect = prepare(&adapter, &arguments, &private_data)?;
        ep.connect(remote, conn_qual, connect)
    }

    /// `dat_ep_dup_connect`.
    fn dat_ep_dup_connect(
        ep: KernelHandle,
        other: KernelHandle,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
        qos: u32,
    ) {
        let (adapter, ep) = Adapter::find::<Ep>(ep)?;
        let other = adapter
            .ia.get_as::<Ep>(adapter.inner(other), Subtype::InvalidHandle2)?;
        let arguments = ConnectArguments {
            private_data_size: size(private_data_size)?,
            deadline: connect_deadline(timeout),
            qos,
            flags: bindings::DAT_CONNECT_DEFAULT_FLAG,
            gate: ReadyGate::Open,
        };
        let connect = prepare(&adapter, &arguments, &private_data)?;
        ep.dup_connect(&other, connect)
    }

    /// `dat_ep_common_connect`.
    fn dat_ep_common_connect(
        ep: KernelHandle,
        remote: Address,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
    ) {
        let (adapter, ep) = Adapter::find::<Ep>(ep)?;
        let remote = address(&remote)?;
        let arguments = ConnectArguments {
            private_data_size: size(private_data_size)?,
            deadline: connect_deadline(timeout),
            qos: bindings::DAT_QOS_BEST_EFFORT,
            flags: bindings::DAT_CONNECT_DEFAULT_FLAG,
            gate: ReadyGate::Open,
        };
        let connect = prepare(&adapter, &arguments, &private_data)?;
        ep.common_connect(remote, connect)
    }
}
