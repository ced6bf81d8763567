// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Common Service Points (CSPs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::evd::Evd;
use crate::foreign::{self, put, wanted, Lent};
use crate::ia::Ia;
use crate::object::{find, find_as};
use crate::pz::fields;
use crate::ret::Ret;
use libkdapl::sys::kdapl_sockaddr;
use libkdapl::{Subtype, Type};
use std::sync::Arc;

/// A Common Service Point.
pub struct Csp {
    pub cell: &'static Cell,
    ia: Arc<Ia>,
    dat: libkdapl::Csp,
    /// Memory that the result of a query points to.
    comm: Lent<DAT_COMM>,
    address: Lent<kdapl_sockaddr>,
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    comm: *mut DAT_COMM,
    address: DAT_IA_ADDRESS_PTR,
    evd: DAT_EVD_HANDLE,
    csp_handle: *mut DAT_CSP_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        let evd = find_as::<Evd>(evd, Subtype::INVALID_HANDLE_EVD_CR)?;
        let comm = foreign::get(comm, 2)?;
        wanted(csp_handle, 5)?;
        let address = (!address.is_null()).then(|| foreign::address(address)).transpose()?;
        let family =
            address.map(|address| if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 });
        let stream = |kind: i32| kind == libc::SOCK_STREAM || kind == 0;
        let known =
            comm.domain as i32 == 0 || family.is_none_or(|family| comm.domain as i32 == family);
        if !known || !stream(comm.type_ as i32) || comm.protocol != 0 {
            return Err(Ret::of(Type::COMM_NOT_SUPPORTED));
        }
        // A request that arrives meanwhile waits for the handle.
        let _waits = ia.folded();
        let dat = ia.dat.create_csp(address, &evd.dat)?;
        let csp = ia.adopt(dat.handle(), |cell| {
            let address = dat.address().map_or_else(kdapl_sockaddr::default, Into::into);
            let (comm, address) = (Lent::new(comm), Lent::new(address));
            Csp { cell, ia: ia.clone(), dat, comm, address }
        })?;
        put(csp_handle, 5, csp.cell.handle())
    })
}

pub extern "C" fn query(
    csp: DAT_CSP_HANDLE,
    mask: DAT_CSP_PARAM_MASK,
    param: *mut DAT_CSP_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let csp = find::<Csp>(csp)?;
        fields(mask.into(), DAT_CSP_FIELD_ALL.into())?;
        wanted(param, 3)?;
        let query = csp.dat.query()?;
        put(
            param,
            3,
            DAT_CSP_PARAM {
                ia_handle: csp.ia.handle(),
                comm: csp.comm.address(),
                address_ptr: csp.address.address().cast(),
                evd_handle: csp.ia.handle_of(query.evd),
            },
        )
    })
}

pub extern "C" fn free(csp: DAT_CSP_HANDLE) -> DAT_RETURN {
    entry(|| {
        let csp = find::<Csp>(csp)?;
        csp.dat.free()?;
        csp.ia.forget(csp.dat.handle());
        Ok(())
    })
}
