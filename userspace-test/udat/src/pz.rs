// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Protection Zones (PZs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{put, wanted};
use crate::ia::Ia;
use crate::object::find;
use crate::ret::{Result, Ret};
use std::sync::Arc;

/// A Protection Zone.
pub struct Pz {
    pub cell: &'static Cell,
    pub ia: Arc<Ia>,
    pub dat: libkdapl::Pz,
}

pub extern "C" fn create(ia: DAT_IA_HANDLE, pz_handle: *mut DAT_PZ_HANDLE) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(pz_handle, 2)?;
        let dat = ia.dat.create_pz()?;
        let pz = ia.adopt(dat.handle(), |cell| Pz { cell, ia: ia.clone(), dat })?;
        put(pz_handle, 2, pz.cell.handle())
    })
}

pub extern "C" fn query(
    pz: DAT_PZ_HANDLE,
    mask: DAT_PZ_PARAM_MASK,
    param: *mut DAT_PZ_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let pz = find::<Pz>(pz)?;
        fields(mask.into(), DAT_PZ_FIELD_ALL.into())?;
        put(param, 3, DAT_PZ_PARAM { ia_handle: pz.ia.handle() })
    })
}

pub extern "C" fn free(pz: DAT_PZ_HANDLE) -> DAT_RETURN {
    entry(|| {
        let pz = find::<Pz>(pz)?;
        pz.dat.free()?;
        pz.ia.forget(pz.dat.handle());
        Ok(())
    })
}

/// Refuses unknown fields. The mask is the second argument of every query.
pub fn fields(mask: u64, all: u64) -> Result<()> {
    if mask & !all != 0 {
        return Err(Ret::argument(2));
    }
    Ok(())
}
