// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Protection Zones (PZs) and Local Memory Regions (LMRs).

use super::{
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        lmr::{
            Lmr,
            ProcessArguments, //
        },
        prelude::*,
        pz::Pz, //
    },
};
use kdapl_bindings as uapi;

pub(super) fn pz_create(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    zero(message.handle)?;
    message.handle = client.ia()?.create_pz()?;
    Ok(())
}

pub(super) fn pz_free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Pz>(message.handle)?)
}

fn create_lmr(client: &Client, message: &mut uapi::kdapl_lmr_create) -> DatResult {
    let ia = client.ia()?;
    let zero_based = match (message.mem_type, message.va_type) {
        (0, uapi::KDAPL_VA_TYPE_VA) => false,
        (0, uapi::KDAPL_VA_TYPE_ZB) => true,
        _ => return Err(Kind::ModelNotSupported.into()),
    };
    let arguments = ProcessArguments {
        start: message.address,
        length: message.length,
        privileges: message.privileges,
        zero_based,
    };
    let (handle, param) = ia.create_lmr(message.pz, &arguments)?;
    message.handle = handle;
    message.lmr_context = param.lmr_context;
    message.rmr_context = param.rmr_context;
    message.registered_address = param.address;
    message.registered_size = param.length;
    Ok(())
}

pub(super) fn lmr_create(client: &Client, message: &mut uapi::kdapl_lmr_create) -> CallResult {
    zero(message.pad)?;
    Ok(create_lmr(client, message)?)
}

pub(super) fn lmr_free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free_lmr(message.handle)?)
}

fn query_lmr(client: &Client, message: &mut uapi::kdapl_lmr_query) -> DatResult {
    let param = client.get::<Lmr>(message.handle)?.query();
    *message = uapi::kdapl_lmr_query {
        hdr: message.hdr,
        handle: message.handle,
        pz: param.pz,
        address: param.description.region[0],
        length: param.length,
        registered_address: param.address,
        registered_size: param.length,
        mem_type: 0,
        privileges: param.privileges,
        va_type: match param.description.zero_based {
            true => uapi::KDAPL_VA_TYPE_ZB,
            false => uapi::KDAPL_VA_TYPE_VA,
        },
        lmr_context: param.lmr_context,
        rmr_context: param.rmr_context,
        pad: 0,
    };
    Ok(())
}

pub(super) fn lmr_query(client: &Client, message: &mut uapi::kdapl_lmr_query) -> CallResult {
    zero(message.pad)?;
    Ok(query_lmr(client, message)?)
}
