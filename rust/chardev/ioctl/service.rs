// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Service points.

use super::{
    zero,
    Outcome, //
};
use crate::{
    chardev::client::Client,
    dat::{
        csp::Csp,
        psp::{
            Brings,
            Psp, //
        },
        rsp::Rsp,
    },
    model::code::{
        DatError,
        DatResult,
        Kind,
        Subtype, //
    },
    rdma::addr::SockAddr,
};
use kdapl_bindings as uapi;

/// The type of the streams that there are.
const SOCK_STREAM: u32 = uapi::sock_type_SOCK_STREAM;

pub(super) fn psp_create(client: &Client, message: &mut uapi::kdapl_psp_create) -> Outcome {
    let created = client.ia().and_then(|ia| {
        let brings = match message.flags {
            uapi::KDAPL_PSP_CONSUMER => Brings::Consumer,
            uapi::KDAPL_PSP_PROVIDER => Brings::Provider,
            _ => return Err(DatError::invalid_parameter(4)),
        };
        Psp::create(&ia, message.conn_qual, message.evd, brings, message.backlog)
    });
    Ok(created.map(|(handle, conn_qual)| {
        message.handle = handle;
        message.conn_qual = conn_qual;
    }))
}

pub(super) fn psp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| Psp::free(&ia, message.handle)))
}

pub(super) fn psp_query(client: &Client, message: &mut uapi::kdapl_psp_query) -> Outcome {
    let found = client
        .ia()
        .and_then(|ia| ia.objects().get::<Psp>(message.handle));
    Ok(found.map(|psp| {
        let param = psp.query();
        message.conn_qual = param.conn_qual;
        message.evd = param.evd;
        message.flags = match param.brings {
            Brings::Consumer => uapi::KDAPL_PSP_CONSUMER,
            Brings::Provider => uapi::KDAPL_PSP_PROVIDER,
        };
        message.backlog = param.backlog;
    }))
}

pub(super) fn rsp_create(client: &Client, message: &mut uapi::kdapl_rsp) -> Outcome {
    let created = client
        .ia()
        .and_then(|ia| Rsp::create(&ia, message.conn_qual, message.ep, message.evd));
    Ok(created.map(|handle| message.handle = handle))
}

pub(super) fn rsp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| Rsp::free(&ia, message.handle)))
}

pub(super) fn rsp_query(client: &Client, message: &mut uapi::kdapl_rsp) -> Outcome {
    let found = client
        .ia()
        .and_then(|ia| ia.objects().get::<Rsp>(message.handle));
    Ok(found.map(|rsp| {
        let param = rsp.query();
        message.conn_qual = param.conn_qual;
        message.evd = param.evd;
        message.ep = param.ep;
    }))
}

/// `DAT_COMM`: streams of the address's own family, which may be left out.
fn communicator(message: &uapi::kdapl_csp, address: SockAddr) -> DatResult {
    let family = u32::from(address.family());
    let supported = [0, family].contains(&message.domain)
        && [0, SOCK_STREAM].contains(&message.type_)
        && message.protocol == 0;
    if supported {
        Ok(())
    } else {
        Err(Kind::CommNotSupported.into())
    }
}

pub(super) fn csp_create(client: &Client, message: &mut uapi::kdapl_csp) -> Outcome {
    zero(message.pad)?;
    let created = client.ia().and_then(|ia| {
        let address = match message.address.sa {
            [0, 0, high, low, ..] => ia.attr().address.with_port(u16::from_be_bytes([high, low])),
            raw => SockAddr::from_raw(raw).map_err(|_| {
                DatError::new(Kind::InvalidAddress, Subtype::InvalidAddressMalformed)
            })?,
        };
        communicator(message, address)?;
        Csp::create(&ia, address, message.evd)
    });
    Ok(created.map(|(handle, address)| {
        message.handle = handle;
        message.address.sa = address.to_raw();
    }))
}

pub(super) fn csp_free(client: &Client, message: &mut uapi::kdapl_handle) -> Outcome {
    Ok(client.ia().and_then(|ia| Csp::free(&ia, message.handle)))
}

pub(super) fn csp_query(client: &Client, message: &mut uapi::kdapl_csp) -> Outcome {
    zero(message.pad)?;
    let found = client
        .ia()
        .and_then(|ia| ia.objects().get::<Csp>(message.handle));
    Ok(found.map(|csp| {
        let param = csp.query();
        message.address.sa = param.address.to_raw();
        message.evd = param.evd;
        message.domain = param.address.family().into();
        message.type_ = SOCK_STREAM;
        message.protocol = 0;
    }))
}
