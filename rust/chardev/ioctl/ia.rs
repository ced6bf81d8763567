// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on devices and Interface Adapters (IAs).

use super::{
    address_out,
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        base::{
            Until,
            WIDE_QUAL_OVERHEAD, //
        },
        ia::{
            close_flag,
            first_address,
            is_restricted, //
        },
        prelude::*, //
    },
    rdma::{
        client,
        device::{
            Device,
            Transport,
            NAME_LEN, //
        },
    },
    sys::net::NetRef, //
};
use kdapl_bindings as uapi;

fn transport(transport: Transport) -> u32 {
    match transport {
        Transport::Ib => uapi::KDAPL_TRANSPORT_IB,
        Transport::Roce => uapi::KDAPL_TRANSPORT_ROCE,
        Transport::Iwarp => uapi::KDAPL_TRANSPORT_IWARP,
    }
}

/// Returns the `index`-th device that the caller may see.
///
/// # Errors
///
/// PROVIDER_NOT_FOUND.
fn device(index: u32, net: &NetRef) -> DatResult<Arc<Device>> {
    client::find(index, |device| device.is_visible(net)).ok_or(NOT_FOUND)
}

const NOT_FOUND: DatError = DatError::new(Kind::ProviderNotFound, Subtype::NameNotRegistered);

pub(super) fn device_get(_: &Client, message: &mut uapi::kdapl_device) -> CallResult {
    let net = NetRef::current()?;
    let device = device(message.index, &net)?;
    let own = first_address(&device, &net)?;
    let port = own
        .as_ref()
        .map_or(*device.ports().start(), |(port, _)| *port);
    message.abi_version = uapi::KDAPL_ABI_VERSION;
    message.name = device.name();
    (message.netdev, message.address) = match own {
        Some((_, own)) => (own.netdev, address_out(own.address)),
        None => (netdev(&device, port, &net), Default::default()),
    };
    message.node_guid = device.guid();
    message.transport = transport(device.port_transport(port));
    message.port_active = device.is_port_active(port).into();
    message.flags = match is_restricted(&device) {
        true => uapi::KDAPL_DEVICE_RESTRICTED.into(),
        false => 0,
    };
    Ok(())
}

/// Returns the name of a port's network device, or an empty one.
fn netdev(device: &Device, port: u32, net: &NetRef) -> [u8; NAME_LEN] {
    device.netdev(port, net).unwrap_or([0; NAME_LEN])
}

pub(super) fn port_get(_: &Client, message: &mut uapi::kdapl_port) -> CallResult {
    let net = NetRef::current()?;
    let device = device(message.device, &net)?;
    let port = message.port;
    if !device.ports().contains(&port) {
        return Err(NOT_FOUND.into());
    }
    let addresses = device.addresses(port, &net).map_err(DatError::from)?;
    let found = addresses.get(message.address_index as usize);
    message.addresses = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
    (message.netdev, message.address, message.prefix) = match found {
        Some(found) => (found.netdev, address_out(found.address), found.local.prefix),
        None => (netdev(&device, port, &net), Default::default(), 0),
    };
    message.transport = transport(device.port_transport(port));
    message.port_active = device.is_port_active(port).into();
    message.max_message_size = device.max_message_size(port);
    Ok(())
}

pub(super) fn open(client: &Client, message: &mut uapi::kdapl_ia_open) -> CallResult {
    if message.abi_version != uapi::KDAPL_ABI_VERSION {
        return Err(EINVAL.into());
    }
    let end = message.name.iter().position(|&byte| byte == 0);
    let name = message.name.get(..end.ok_or(EINVAL)?).ok_or(EINVAL)?;
    let ia = client.open(name, message.async_evd_qlen)?;
    message.ia = ia.handle();
    message.async_evd = ia.async_evd_handle();
    Ok(())
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_ia_query) -> CallResult {
    let ia = client.ia()?;
    let attr = ia.attr();
    let (connect, accept, reject) = attr.max_private_data;
    let of_process = |regions| match attr.registers_process_memory {
        true => regions,
        false => 0,
    };
    *message = uapi::kdapl_ia_query {
        hdr: message.hdr,
        adapter_name: attr.adapter_name,
        netdev_name: attr.netdev_name,
        address: address_out(attr.address),
        async_evd: ia.async_evd_handle(),
        max_lmr_size: attr.max_lmr_size,
        max_message_size: attr.max_message_size,
        max_rdma_size: attr.max_message_size,
        fw_version: attr.fw_version,
        vendor_id: attr.vendor_id,
        hw_version: attr.hw_version,
        transport: transport(attr.transport),
        max_eps: attr.max_eps,
        max_dto_per_ep: attr.max_dto_per_ep,
        max_rdma_read_per_ep_in: attr.max_read_in,
        max_rdma_read_per_ep_out: attr.max_read_out,
        max_evds: attr.max_evds,
        max_evd_qlen: attr.max_evd_qlen,
        max_iov_segments_per_dto: attr.max_iov,
        max_iov_segments_per_rdma_read: attr.max_read_iov,
        max_iov_segments_per_rdma_write: attr.max_iov,
        max_lmrs: of_process(attr.max_lmrs),
        max_pzs: attr.max_pzs,
        max_private_data_connect: connect,
        max_private_data_accept: accept,
        max_private_data_reject: reject,
        wide_qual_overhead: WIDE_QUAL_OVERHEAD,
        completion_vectors: attr.completion_vectors,
        extensions: attr.extensions.bits(),
        abi_version: uapi::KDAPL_ABI_VERSION,
        dto_size: size_of::<uapi::kdapl_dto>() as u32,
        event_size: size_of::<uapi::kdapl_event>() as u32,
        zb_supported: attr.zb_supported.into(),
        max_srqs: attr.max_srqs,
        max_recv_per_srq: attr.max_recv_per_srq,
        max_iov_segments_per_srq: attr.max_srq_iov,
        port: attr.port,
        max_rmrs: of_process(attr.max_rmrs),
        mtu: attr.mtu,
    };
    Ok(())
}

pub(super) fn close(client: &Client, message: &mut uapi::kdapl_ia_close) -> CallResult {
    zero(message.pad)?;
    let close = close_flag(message.flags)?;
    Ok(client.close(close, Until::Killed)?)
}
