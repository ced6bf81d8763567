// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Public, Reserved and Common Service Points (PSPs, RSPs, CSPs).

use super::{
    address_in,
    address_out,
    zero,
    Outcome, //
};
use crate::{
    chardev::client::Client,
    dat::passive::{
        Brings,
        Communicator,
        Csp,
        Psp,
        Rsp, //
    },
};
use kdapl_bindings as uapi;

pub(super) fn psp_create(client: &Client, message: &mut uapi::kdapl_psp_create) -> Outcome {
    let created = client.ia().and_then(|ia| {
        let brings = Brings::from_bits(message.flags)?;
        ia.create_psp(message.conn_qual, message.evd, brings, message.backlog)
    });
    Ok(created.map(|(handle, conn_qual)| {
        message.handle = handle;
        message.conn_qual = conn_qual;
    }))
}

pub(super) fn psp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| ia.free::<Psp>(message.handle)))
}

pub(super) fn psp_query(client: &Client, message: &mut uapi::kdapl_psp_query) -> Outcome {
    let found = client.ia().and_then(|ia| ia.get::<Psp>(message.handle));
    Ok(found.map(|psp| {
        let param = psp.query();
        message.conn_qual = param.conn_qual;
        message.evd = param.evd;
        message.flags = param.brings.bits();
        message.backlog = param.backlog;
    }))
}

pub(super) fn rsp_create(client: &Client, message: &mut uapi::kdapl_rsp) -> Outcome {
    let created = client
        .ia()
        .and_then(|ia| ia.create_rsp(message.conn_qual, message.ep, message.evd));
    Ok(created.map(|handle| message.handle = handle))
}

pub(super) fn rsp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| ia.free::<Rsp>(message.handle)))
}

pub(super) fn rsp_query(client: &Client, message: &mut uapi::kdapl_rsp) -> Outcome {
    let found = client.ia().and_then(|ia| ia.get::<Rsp>(message.handle));
    Ok(found.map(|rsp| {
        let param = rsp.query();
        message.conn_qual = param.conn_qual;
        message.evd = param.evd;
        message.ep = param.ep;
    }))
}

pub(super) fn csp_create(client: &Client, message: &mut uapi::kdapl_csp) -> Outcome {
    zero(message.pad)?;
    let created = client.ia().and_then(|ia| {
        let address = match message.address.sa {
            [0, 0, high, low, ..] => ia.attr().address.with_port(u16::from_be_bytes([high, low])),
            _ => address_in(&message.address)?,
        };
        let communicator = Communicator {
            domain: message.domain,
            kind: message.type_,
            protocol: message.protocol,
        };
        ia.create_csp(&communicator, address, message.evd)
    });
    Ok(created.map(|(handle, address)| {
        message.handle = handle;
        message.address = address_out(address);
    }))
}

pub(super) fn csp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| ia.free::<Csp>(message.handle)))
}

pub(super) fn csp_query(client: &Client, message: &mut uapi::kdapl_csp) -> Outcome {
    zero(message.pad)?;
    let found = client.ia().and_then(|ia| ia.get::<Csp>(message.handle));
    Ok(found.map(|csp| {
        let param = csp.query();
        message.address = address_out(param.address);
        message.evd = param.evd;
        message.domain = param.communicator.domain;
        message.type_ = param.communicator.kind;
        message.protocol = param.communicator.protocol;
    }))
}
