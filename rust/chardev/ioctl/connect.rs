// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls that connect an Endpoint (EP).

use super::{
    address_in,
    deadline,
    ready_gate,
    zero,
    CallResult,
    ABSOLUTE, //
};
use crate::{
    chardev::client::Client,
    dat::{
        ep::{
            Connect,
            ConnectArguments,
            Ep, //
        },
        ia::Ia,
        prelude::*, //
    },
    sys::{
        uapi::read_bytes,
        wait::Deadline, //
    },
};
use kdapl_bindings as uapi;

/// Returns the deadline of a connect call.
///
/// # Errors
///
/// INVALID_PARAMETER (time-out) for a duration of 0.
fn connect_deadline(hdr: &uapi::kdapl_hdr, timeout_ns: u64) -> DatResult<Deadline> {
    match timeout_ns {
        0 if hdr.flags & ABSOLUTE == 0 => Err(DatError::Invalid(Arg::Timeout)),
        time => Ok(deadline(hdr, time)),
    }
}

/// Returns the file's IA and one of its EPs.
fn find(client: &Client, handle: u64) -> DatResult<(Arc<Ia>, Arc<Ep>)> {
    let ia = client.ia()?;
    let ep = ia.get(handle)?;
    Ok((ia, ep))
}

/// Reads the private data and makes the call, unless an argument was invalid.
fn carry_out<T>(
    private_data: u64,
    prepared: DatResult<(Connect, T)>,
    call: impl FnOnce(Connect, T) -> DatResult,
) -> CallResult {
    let (mut connect, what) = prepared?;
    read_bytes(private_data, connect.data.bytes_mut())?;
    Ok(call(connect, what)?)
}

pub(super) fn connect(client: &Client, message: &mut uapi::kdapl_ep_connect) -> CallResult {
    zero(message.pad)?;
    let arguments = ConnectArguments {
        private_data_size: message.private_data_size,
        deadline: connect_deadline(&message.hdr, message.timeout_ns),
        qos: message.qos,
        flags: message.flags,
        gate: ready_gate(&message.hdr),
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let connect = arguments.examine(ia.attr())?;
        Ok((connect, (ep, address_in(&message.remote_address)?)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, remote)| {
        ep.connect(remote, message.conn_qual, connect)
    })
}

pub(super) fn dup_connect(client: &Client, message: &mut uapi::kdapl_ep_dup_connect) -> CallResult {
    let arguments = ConnectArguments {
        private_data_size: message.private_data_size,
        deadline: connect_deadline(&message.hdr, message.timeout_ns),
        qos: message.qos,
        flags: 0,
        gate: ready_gate(&message.hdr),
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let other = ia.get_as::<Ep>(message.dup, Subtype::InvalidHandle2)?;
        Ok((arguments.examine(ia.attr())?, (ep, other)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, other)| {
        ep.dup_connect(&other, connect)
    })
}

pub(super) fn common_connect(
    client: &Client,
    message: &mut uapi::kdapl_ep_common_connect,
) -> CallResult {
    zero(message.pad)?;
    let arguments = ConnectArguments {
        private_data_size: message.private_data_size,
        deadline: connect_deadline(&message.hdr, message.timeout_ns),
        qos: uapi::KDAPL_QOS_BEST_EFFORT,
        flags: 0,
        gate: ready_gate(&message.hdr),
    };
    let prepared = find(client, message.handle).and_then(|(ia, ep)| {
        let remote = address_in(&message.remote_address)?;
        Ok((arguments.examine(ia.attr())?, (ep, remote)))
    });
    carry_out(message.private_data, prepared, |connect, (ep, remote)| {
        ep.common_connect(remote, connect)
    })
}
