// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Calls on Remote Memory Regions (RMRs).

use super::{
    dto::posts_without_promise,
    zeros,
    CallResult, //
};
use crate::{
    chardev::client::Client,
    dat::{
        ep::Ep,
        prelude::*,
        rmr::{
            BindArguments,
            Rmr, //
        },
    },
};
use kdapl_bindings as uapi;

pub(super) fn create(client: &Client, message: &mut uapi::kdapl_rmr_create) -> CallResult {
    message.handle = client.ia()?.create_rmr(message.pz)?;
    Ok(())
}

pub(super) fn free(client: &Client, message: &mut uapi::kdapl_handle) -> CallResult {
    Ok(client.ia()?.free::<Rmr>(message.handle)?)
}

pub(super) fn bind(client: &Client, message: &mut uapi::kdapl_rmr_bind) -> CallResult {
    zeros(&[message.pad, message.reserved])?;
    let ia = client.ia()?;
    if message.va_type != 0 {
        return Err(DatError::from(Kind::ModelNotSupported).into());
    }
    let arguments = BindArguments {
        segment: message.segment,
        privileges: message.privileges,
        cookie: message.cookie,
        flags: message.flags,
    };
    let bind = || ia.bind_rmr(message.handle, message.lmr, message.ep, &arguments);
    message.rmr_context = match ia.get::<Ep>(message.ep) {
        Ok(ep) => posts_without_promise(&ep, bind)?,
        // The call reports that the handle is invalid.
        Err(_) => bind()?,
    };
    Ok(())
}

pub(super) fn query(client: &Client, message: &mut uapi::kdapl_rmr_query) -> CallResult {
    let param = client.get::<Rmr>(message.handle)?.query();
    *message = uapi::kdapl_rmr_query {
        hdr: message.hdr,
        handle: message.handle,
        pz: param.pz,
        lmr: param.lmr,
        segment: param.segment,
        privileges: param.privileges,
        rmr_context: param.rmr_context,
    };
    Ok(())
}
