// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `dat_ep_modify`.

use super::{attr, times, Ep};
use crate::abi::*;
use crate::entry::entry;
use crate::evd::Evd;
use crate::foreign::get;
use crate::object::{find, find_or_null};
use crate::pz::Pz;
use crate::ret::{Result, Ret};
use libkdapl::{EpChange, EpFields, Subtype};

pub extern "C" fn modify(
    ep: DAT_EP_HANDLE,
    mask: DAT_EP_PARAM_MASK,
    param: *const DAT_EP_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let ep = find::<Ep>(ep)?;
        // DAT's mask has 32 bits. The kernel's bits above them are not part of DAT.
        let mut fields = EpFields(u32::try_from(mask).map_err(|_| Ret::argument(2))?.into());
        let param = get(param, 3)?;
        let mut attr = attr::from_dat(&param.ep_attr, 3)?;
        if times::are_in(fields) {
            fields = times::without(fields) | times::add(&mut attr, &param.ep_attr, 3)?;
        }
        let pz = named(fields, EpFields::PZ, || find::<Pz>(param.pz_handle))?;
        let evd = |field, handle, which| {
            named(fields, field, || find_or_null::<Evd>(handle, which)).map(Option::flatten)
        };
        let recv =
            evd(EpFields::RECV_EVD, param.recv_evd_handle, Subtype::INVALID_HANDLE_EVD_RECV)?;
        let request = evd(
            EpFields::REQUEST_EVD,
            param.request_evd_handle,
            Subtype::INVALID_HANDLE_EVD_REQUEST,
        )?;
        let connect =
            evd(EpFields::CONNECT_EVD, param.connect_evd_handle, Subtype::INVALID_HANDLE_EVD_CONN)?;
        let mut change = EpChange::of(fields, attr);
        if let Some(pz) = &pz {
            change = change.pz(&pz.dat);
        }
        if let Some(evd) = &recv {
            change = change.recv(&evd.dat);
        }
        if let Some(evd) = &request {
            change = change.request(&evd.dat);
        }
        if let Some(evd) = &connect {
            change = change.connect(&evd.dat);
        }
        ep.dat.modify(change)?;
        Ok(())
    })
}

/// Returns the object of a field if the mask contains the field.
fn named<T>(
    fields: EpFields,
    field: EpFields,
    find: impl FnOnce() -> Result<T>,
) -> Result<Option<T>> {
    fields.contains(field).then(find).transpose()
}
