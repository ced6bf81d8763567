// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Public Service Points (PSPs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::evd::Evd;
use crate::foreign::{put, wanted};
use crate::ia::Ia;
use crate::object::{find, find_as};
use crate::pz::fields;
use crate::ret::{Result, Ret};
use libkdapl::{EpCreator, PspOptions, Subtype};
use std::sync::Arc;

/// A Public Service Point.
pub struct Psp {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    dat: libkdapl::Psp,
    /// Qualifier as the program knows it.
    pub qualifier: DAT_CONN_QUAL,
    pub brings_ep: bool,
}

fn creator(flags: DAT_PSP_FLAGS) -> Result<EpCreator> {
    match flags {
        DAT_PSP_CONSUMER_FLAG => Ok(EpCreator::Consumer),
        DAT_PSP_PROVIDER_FLAG => Ok(EpCreator::Provider),
        _ => Err(Ret::argument(4)),
    }
}

/// Listens for `qualifier`; `None` chooses a free one.
fn listen(
    ia: DAT_IA_HANDLE,
    qualifier: Option<DAT_CONN_QUAL>,
    evd: DAT_EVD_HANDLE,
    flags: DAT_PSP_FLAGS,
) -> Result<Arc<Psp>> {
    let ia = find::<Ia>(ia)?;
    let evd = find_as::<Evd>(evd, Subtype::INVALID_HANDLE_EVD_CR)?;
    let endpoints = creator(flags)?;
    // The kernel would choose a free qualifier for 0.
    if qualifier == Some(0) {
        return Err(Ret::argument(2));
    }
    let conn_qual = qualifier.map(|qualifier| ia.mapping().to_kernel(qualifier));
    let options = PspOptions { conn_qual, endpoints, backlog: None };
    let mut folded = ia.folded();
    let dat = ia.dat.create_psp_with(&evd.dat, &options)?;
    let qualifier = qualifier.unwrap_or(dat.conn_qual());
    super::note(&mut folded, dat.conn_qual(), qualifier);
    let brings_ep = endpoints == EpCreator::Provider;
    ia.adopt(dat.handle(), |cell| Psp { cell, ia: ia.clone(), dat, qualifier, brings_ep })
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    qualifier: DAT_CONN_QUAL,
    evd: DAT_EVD_HANDLE,
    flags: DAT_PSP_FLAGS,
    psp_handle: *mut DAT_PSP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        wanted(psp_handle, 5)?;
        put(psp_handle, 5, listen(ia, Some(qualifier), evd, flags)?.cell.handle())
    })
}

pub extern "C" fn create_any(
    ia: DAT_IA_HANDLE,
    qualifier: *mut DAT_CONN_QUAL,
    evd: DAT_EVD_HANDLE,
    flags: DAT_PSP_FLAGS,
    psp_handle: *mut DAT_PSP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        wanted(qualifier, 2)?;
        wanted(psp_handle, 5)?;
        let psp = listen(ia, None, evd, flags)?;
        put(qualifier, 2, psp.qualifier)?;
        put(psp_handle, 5, psp.cell.handle())
    })
}

pub extern "C" fn query(
    psp: DAT_PSP_HANDLE,
    mask: DAT_PSP_PARAM_MASK,
    param: *mut DAT_PSP_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let psp = find::<Psp>(psp)?;
        fields(mask.into(), DAT_PSP_FIELD_ALL.into())?;
        wanted(param, 3)?;
        let query = psp.dat.query()?;
        put(
            param,
            3,
            DAT_PSP_PARAM {
                ia_handle: psp.ia.handle(),
                conn_qual: psp.qualifier,
                evd_handle: psp.ia.handle_of(query.evd),
                psp_flags: query.flags,
            },
        )
    })
}

pub extern "C" fn free(psp: DAT_PSP_HANDLE) -> DAT_RETURN {
    entry(|| {
        let psp = find::<Psp>(psp)?;
        psp.dat.free()?;
        psp.ia.forget(psp.dat.handle());
        Ok(())
    })
}
