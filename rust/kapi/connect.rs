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

/// Takes the ready gate out of the flags of a connect or an accept.
pub(super) fn split_gate(flags: u32) -> (u32, ReadyGate) {
    match flags & bindings::KDAPL_READY_GATE_FLAG {
        0 => (flags, ReadyGate::Open),
        gate => (flags & !gate, ReadyGate::Closed),
    }
}

/// Arguments that all calls that connect have in common, in their C form.
struct Common {
    timeout: u32,
    private_data_size: i32,
    private_data: Data,
    qos: u32,
    flags: u32,
}

impl Common {
    /// Checks the arguments and copies the private data.
    fn prepare(&self, adapter: &Adapter) -> DatResult<Connect> {
        let (flags, gate) = split_gate(self.flags);
        let arguments = ConnectArguments {
            private_data_size: size(self.private_data_size)?,
            deadline: connect_deadline(self.timeout),
            qos: self.qos,
            flags,
            gate,
        };
        let mut connect = arguments.examine(adapter.ia.attr())?;
        // SAFETY: The header obliges the caller to pass as many bytes as the size says, which
        // `examine` has made the length of `connect.data`.
        unsafe { self.private_data.read(connect.data.bytes_mut()) }?;
        Ok(connect)
    }
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

/// Connects to the peer of another Endpoint.
fn dup_connect(ep: KernelHandle, other: KernelHandle, common: &Common) -> DatResult {
    let (adapter, ep) = Adapter::find::<Ep>(ep)?;
    let other = adapter
        .ia
        .get_as::<Ep>(adapter.inner(other), Subtype::InvalidHandle2)?;
    ep.dup_connect(&other, common.prepare(&adapter)?)
}

/// Connects to a CSP.
fn common_connect(ep: KernelHandle, remote: &Address, common: &Common) -> DatResult {
    let (adapter, ep) = Adapter::find::<Ep>(ep)?;
    let remote = address(remote)?;
    ep.common_connect(remote, common.prepare(&adapter)?)
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
        let common = Common { timeout, private_data_size, private_data, qos, flags };
        ep.connect(remote, conn_qual, common.prepare(&adapter)?)
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
        let flags = bindings::DAT_CONNECT_DEFAULT_FLAG;
        let common = Common { timeout, private_data_size, private_data, qos, flags };
        dup_connect(ep, other, &common)
    }

    /// `kdapl_ep_dup_connect`.
    fn kdapl_ep_dup_connect(
        ep: KernelHandle,
        other: KernelHandle,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
        qos: u32,
        flags: u32,
    ) {
        let common = Common { timeout, private_data_size, private_data, qos, flags };
        dup_connect(ep, other, &common)
    }

    /// `dat_ep_common_connect`.
    fn dat_ep_common_connect(
        ep: KernelHandle,
        remote: Address,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
    ) {
        let qos = bindings::DAT_QOS_BEST_EFFORT;
        let flags = bindings::DAT_CONNECT_DEFAULT_FLAG;
        let common = Common { timeout, private_data_size, private_data, qos, flags };
        common_connect(ep, &remote, &common)
    }

    /// `kdapl_ep_common_connect`.
    fn kdapl_ep_common_connect(
        ep: KernelHandle,
        remote: Address,
        timeout: u32,
        private_data_size: i32,
        private_data: Data,
        flags: u32,
    ) {
        let qos = bindings::DAT_QOS_BEST_EFFORT;
        let common = Common { timeout, private_data_size, private_data, qos, flags };
        common_connect(ep, &remote, &common)
    }

    /// `kdapl_ep_ready`.
    fn kdapl_ep_ready(ep: KernelHandle) {
        let (_adapter, ep) = Adapter::find::<Ep>(ep)?;
        ep.ready()
    }
}
