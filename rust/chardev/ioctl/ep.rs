// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Endpoints (EPs).

use super::{
    address_out,
    zero,
    zeros,
    CallFailure,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        ep::{
            with_attributes,
            Ep,
            EpAttr,
            EpChange,
            Handles, //
        },
        ia::close_flag,
        prelude::*, //
    },
    model::{
        code::order,
        watermarks::Marks, //
    },
    rdma::addr::SockAddr, //
};
use kdapl_bindings as uapi;

/// Returns an Endpoint for a call that checks its state.
pub(super) fn find(client: &Client, handle: u64) -> DatResult<Arc<Ep>> {
    client.get(handle)
}

/// Returns an Endpoint for a call that is allowed in all states.
fn find_in_any_state(client: &Client, handle: u64) -> DatResult<Arc<Ep>> {
    let ep = find(client, handle)?;
    ep.expect_not_freed()?;
    Ok(ep)
}

fn attr_in(message: &uapi::kdapl_ep_attr) -> EpAttr {
    let mut attr = EpAttr::default();
    macro_rules! copy {
        ($($name:ident: $bit:ident,)+) => {
            $(attr.$name = message.$name;)+
        };
    }
    with_attributes!(copy);
    attr
}

/// Converts the attributes that `mask` names. The others are 0.
fn attr_out(attr: &EpAttr, mask: u64) -> uapi::kdapl_ep_attr {
    let mut message = uapi::kdapl_ep_attr::default();
    macro_rules! copy {
        ($($name:ident: $bit:ident,)+) => {
            $(message.$name = masked(mask, uapi::$bit, attr.$name);)+
        };
    }
    with_attributes!(copy);
    message
}

/// Returns the value if its bit is in the mask, else 0.
fn masked<T: Default>(mask: u64, bit: impl Into<u64>, value: T) -> T {
    if mask & bit.into() == 0 {
        T::default()
    } else {
        value
    }
}

/// All bits of `DAT_EP_PARAM_MASK`, and those of kDAPL's own attributes.
const ALL: u64 = uapi::KDAPL_EP_FIELD_ALL;

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_ep_create) -> CallResult {
    zero(message.pad)?;
    zeros(&message.attr.reserved)?;
    zero(message.flags & !uapi::KDAPL_EP_HAS_ATTR)?;
    let asked = (message.flags & uapi::KDAPL_EP_HAS_ATTR != 0).then(|| attr_in(&message.attr));
    let handles = Handles {
        pz: message.pz,
        recv_evd: message.recv_evd,
        request_evd: message.request_evd,
        connect_evd: message.connect_evd,
        srq: message.srq,
    };
    let ia = client.ia()?;
    let order = match handles.srq {
        0 => order::dat_ep_create,
        _ => order::dat_ep_create_with_srq,
    };
    let (handle, given) = ia
        .create_ep(&handles, asked)
        .map_err(|error| CallFailure::Ordered(order, error))?;
    message.handle = handle;
    message.attr = attr_out(&given, ALL);
    Ok(())
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Ep>(message.handle)?)
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_ep_query) -> CallResult {
    let mask = message.mask;
    let ep = find_in_any_state(client, message.handle)?;
    if mask & !ALL != 0 {
        return Err(DatError::Invalid(Arg::Mask).into());
    }
    let param = ep.query();
    let sockaddr = |bit: u32, address: SockAddr| masked(mask, bit, address_out(address));
    *message = uapi::kdapl_ep_query {
        hdr: message.hdr,
        handle: message.handle,
        mask,
        ia: masked(mask, uapi::KDAPL_EP_FIELD_IA, param.ia),
        pz: masked(mask, uapi::KDAPL_EP_FIELD_PZ, param.handles.pz),
        recv_evd: masked(mask, uapi::KDAPL_EP_FIELD_RECV_EVD, param.handles.recv_evd),
        request_evd: masked(
            mask,
            uapi::KDAPL_EP_FIELD_REQUEST_EVD,
            param.handles.request_evd,
        ),
        connect_evd: masked(
            mask,
            uapi::KDAPL_EP_FIELD_CONNECT_EVD,
            param.handles.connect_evd,
        ),
        srq: masked(mask, uapi::KDAPL_EP_FIELD_SRQ, param.handles.srq),
        local_port_qual: masked(
            mask,
            uapi::KDAPL_EP_FIELD_LOCAL_PORT_QUAL,
            param.local.port().into(),
        ),
        remote_port_qual: masked(
            mask,
            uapi::KDAPL_EP_FIELD_REMOTE_PORT_QUAL,
            param.remote_qual,
        ),
        local_address: sockaddr(uapi::KDAPL_EP_FIELD_LOCAL_ADDRESS, param.local),
        remote_address: sockaddr(uapi::KDAPL_EP_FIELD_REMOTE_ADDRESS, param.remote),
        state: masked(mask, uapi::KDAPL_EP_FIELD_STATE, param.state.number()),
        qp_num: param.qp_num,
        attr: attr_out(&param.attr, mask),
    };
    Ok(())
}

pub(super) fn modify(client: &Client, message: &mut uapi::kdapl_ep_modify) -> CallResult {
    zeros(&message.attr.reserved)?;
    let change = change_in(message)?;
    let ia = client.ia()?;
    let ep = ia.get::<Ep>(message.handle)?;
    ep.post_mapped();
    let attr = ia.modify_ep(&ep, &change)?;
    message.attr = attr_out(&attr, ALL);
    Ok(())
}

fn change_in(message: &uapi::kdapl_ep_modify) -> DatResult<EpChange> {
    let handles = Handles {
        pz: message.pz,
        recv_evd: message.recv_evd,
        request_evd: message.request_evd,
        connect_evd: message.connect_evd,
        srq: 0,
    };
    EpChange::new(message.mask, &handles, attr_in(&message.attr))
}

pub(super) fn reset(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    let ep = find(client, message.handle)?;
    ep.post_mapped();
    Ok(ep.reset()?)
}

pub(super) fn ready(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(find(client, message.handle)?.ready()?)
}

pub(super) fn get_status(client: &Client, message: &mut uapi::kdapl_ep_status) -> CallResult {
    zero(message.pad)?;
    let ep = find_in_any_state(client, message.handle)?;
    let status = ep.status();
    message.state = status.state.number();
    message.recv_outstanding = status.receives;
    message.request_outstanding = status.requests;
    message.recv_idle = (status.receives == 0).into();
    message.request_idle = (status.requests == 0).into();
    Ok(())
}

pub(super) fn disconnect(client: &Client, message: &mut uapi::kdapl_ep_disconnect) -> CallResult {
    zero(message.pad)?;
    let ep = find(client, message.handle)?;
    let close = close_flag(message.flags)?;
    // The promise was for a connected Endpoint.
    ep.post_mapped();
    Ok(ep.disconnect(close)?)
}

pub(super) fn private_data(
    client: &Client,
    message: &mut uapi::kdapl_ep_private_data,
) -> CallResult {
    zero(message.pad)?;
    let ep = find_in_any_state(client, message.handle)?;
    let data = ep.peer_data();
    message.size = data.size();
    message.data = data.buffer();
    Ok(())
}

/// Converts a watermark.
fn mark(number: u32) -> Option<u32> {
    (number != uapi::KDAPL_WATERMARK_INFINITE).then_some(number)
}

pub(super) fn set_watermark(client: &Client, message: &mut uapi::kdapl_ep_watermark) -> CallResult {
    let marks = Marks {
        soft: mark(message.soft_high),
        hard: mark(message.hard_high),
    };
    Ok(find(client, message.handle)?.set_watermarks(marks)?)
}

pub(super) fn recv_query(client: &Client, message: &mut uapi::kdapl_ep_recv_query) -> CallResult {
    let buffers = find_in_any_state(client, message.handle)?.receive_buffers()?;
    message.allocated = buffers;
    // An Endpoint completes its receives in the order in which it has got them.
    message.span = buffers;
    Ok(())
}
