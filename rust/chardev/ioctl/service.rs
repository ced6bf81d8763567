// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Public, Reserved and Common Service Points (PSPs, RSPs, CSPs).

use super::{
    address_in,
    address_out,
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::passive::{
        Communicator,
        Csp,
        EpSupplier,
        Psp,
        PspProperties,
        Rsp, //
    },
};
use kdapl_bindings as uapi;

pub(super) fn psp_create(client: &Client, message: &mut uapi::kdapl_psp_create) -> CallResult {
    let ia = client.ia()?;
    let properties = PspProperties {
        supplier: EpSupplier::from_bits(message.flags)?,
        backlog: message.backlog,
        takes_handoffs: false,
    };
    let (handle, conn_qual) = ia.create_psp(message.conn_qual, message.evd, properties)?;
    message.handle = handle;
    message.conn_qual = conn_qual;
    Ok(())
}

pub(super) fn psp_free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Psp>(message.handle)?)
}

pub(super) fn psp_query(client: &Client, message: &mut uapi::kdapl_psp_query) -> CallResult {
    let ia = client.ia()?;
    let psp = ia.get::<Psp>(message.handle)?;
    let param = psp.query();
    message.conn_qual = param.conn_qual;
    message.evd = param.evd;
    message.flags = param.properties.supplier.bits();
    message.backlog = param.properties.backlog;
    Ok(())
}

pub(super) fn rsp_create(client: &Client, message: &mut uapi::kdapl_rsp) -> CallResult {
    let ia = client.ia()?;
    let handle = ia.create_rsp(message.conn_qual, message.ep, message.evd)?;
    message.handle = handle;
    Ok(())
}

pub(super) fn rsp_free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Rsp>(message.handle)?)
}

pub(super) fn rsp_query(client: &Client, message: &mut uapi::kdapl_rsp) -> CallResult {
    let ia = client.ia()?;
    let rsp = ia.get::<Rsp>(message.handle)?;
    let param = rsp.query();
    message.conn_qual = param.conn_qual;
    message.evd = param.evd;
    message.ep = param.ep;
    Ok(())
}

pub(super) fn csp_create(client: &Client, message: &mut uapi::kdapl_csp) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let address = match message.address.sa {
        [0, 0, high, low, ..] => ia.attr().address.with_port(u16::from_be_bytes([high, low])),
        _ => address_in(&message.address)?,
    };
    let communicator = Communicator {
        domain: message.domain,
        kind: message.type_,
        protocol: message.protocol,
    };
    let (handle, address) = ia.create_csp(&communicator, address, message.evd)?;
    message.handle = handle;
    message.address = address_out(address);
    Ok(())
}

pub(super) fn csp_free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Csp>(message.handle)?)
}

pub(super) fn csp_query(client: &Client, message: &mut uapi::kdapl_csp) -> CallResult {
    zero(message.pad)?;
    let ia = client.ia()?;
    let csp = ia.get::<Csp>(message.handle)?;
    let param = csp.query();
    message.address = address_out(param.address);
    message.evd = param.evd;
    message.domain = param.communicator.domain;
    message.type_ = param.communicator.kind;
    message.protocol = param.communicator.protocol;
    Ok(())
}
