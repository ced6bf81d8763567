// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Protection Zones (PZs) and Local Memory Regions (LMRs).

use super::{
    zero,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        lmr::Lmr,
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
    if message.mem_type != 0 || message.va_type != 0 {
        return Err(Kind::ModelNotSupported.into());
    }
    let (handle, param) = ia.create_lmr(
        message.pz,
        message.address,
        message.length,
        message.privileges,
    )?;
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
        address: param.address,
        length: param.length,
        registered_address: param.address,
        registered_size: param.length,
        mem_type: 0,
        privileges: param.privileges,
        va_type: 0,
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
