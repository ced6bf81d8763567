// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Reserved Service Points (RSPs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::ep::Ep;
use crate::evd::Evd;
use crate::foreign::{put, wanted};
use crate::ia::Ia;
use crate::object::{find, find_as, find_or_null};
use crate::pz::fields;
use libkdapl::Subtype;
use std::ptr;
use std::sync::Arc;

/// A Reserved Service Point.
pub struct Rsp {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    dat: libkdapl::Rsp,
    /// Qualifier as the program knows it.
    pub qualifier: DAT_CONN_QUAL,
    pub brings_ep: bool,
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    qualifier: DAT_CONN_QUAL,
    ep: DAT_EP_HANDLE,
    evd: DAT_EVD_HANDLE,
    rsp_handle: *mut DAT_RSP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        let ep = find_or_null::<Ep>(ep, Subtype::INVALID_HANDLE_EP)?;
        let evd = find_as::<Evd>(evd, Subtype::INVALID_HANDLE_EVD_CR)?;
        wanted(rsp_handle, 5)?;
        let port = ia.mapping().to_kernel(qualifier);
        let mut folded = ia.folded();
        let dat = ia.dat.create_rsp(port, &evd.dat, ep.as_ref().map(|ep| &ep.dat))?;
        super::note(&mut folded, port, qualifier);
        let brings_ep = ep.is_none();
        let rsp = ia.adopt(dat.handle(), |cell| {
            let ia = ia.clone();
            Rsp { cell, ia, dat, qualifier, brings_ep }
        })?;
        put(rsp_handle, 5, rsp.cell.handle())
    })
}

pub extern "C" fn query(
    rsp: DAT_RSP_HANDLE,
    mask: DAT_RSP_PARAM_MASK,
    param: *mut DAT_RSP_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let rsp = find::<Rsp>(rsp)?;
        fields(mask.into(), DAT_RSP_FIELD_ALL.into())?;
        wanted(param, 3)?;
        let query = rsp.dat.query()?;
        put(
            param,
            3,
            DAT_RSP_PARAM {
                ia_handle: rsp.ia.handle(),
                conn_qual: rsp.qualifier,
                evd_handle: rsp.ia.handle_of(query.evd),
                ep_handle: query.ep.map_or(ptr::null_mut(), |ep| rsp.ia.handle_of(ep)),
            },
        )
    })
}

pub extern "C" fn free(rsp: DAT_RSP_HANDLE) -> DAT_RETURN {
    entry(|| {
        let rsp = find::<Rsp>(rsp)?;
        rsp.dat.free()?;
        rsp.ia.forget(rsp.dat.handle());
        Ok(())
    })
}
