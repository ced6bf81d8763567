// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Connection Requests (CRs).

use super::{
    address_out,
    ready_gate,
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        base::PrivateData,
        passive::Cr, //
    },
    sys::uapi::read_bytes, //
};
use kdapl_bindings as uapi;

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_cr_query) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let cr = ia.get::<Cr>(message.handle)?;
    let param = cr.query();
    message.remote_address = address_out(param.remote);
    message.remote_port_qual = param.remote.port().into();
    message.local_ep = param.local_ep;
    message.private_data_size = param.private_data.size();
    message.private_data = param.private_data.buffer();
    Ok(())
}

/// Reads the private data of an accept or a reject, up to `limit` bytes.
fn data_of(message: &uapi::kdapl_cr_answer, limit: u32) -> CallResult<PrivateData> {
    let mut data = PrivateData::with_len(message.private_data_size, limit)?;
    read_bytes(message.private_data, data.bytes_mut())?;
    Ok(data)
}

pub(super) fn accept(client: &Client, message: &mut uapi::kdapl_cr_answer) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let (_, limit, _) = ia.attr().max_private_data;
    let data = data_of(message, limit)?;
    let gate = ready_gate(&message.hdr);
    Ok(ia.accept(message.handle, message.ep, gate, &data)?)
}

pub(super) fn reject(client: &Client, message: &mut uapi::kdapl_cr_answer) -> CallResult {
    zero(message.pad)?;
    zero(message.ep)?;
    let ia = client.ia()?;
    let (_, _, limit) = ia.attr().max_private_data;
    let data = data_of(message, limit)?;
    Ok(ia.reject(message.handle, &data)?)
}

pub(super) fn handoff(client: &Client, message: &mut uapi::kdapl_cr_handoff) -> CallResult {
    Ok(client
        .ia()?
        .handoff(message.handle, message.conn_qual, None)?)
}
