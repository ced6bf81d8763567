// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Shared Receive Queues (SRQs).

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::foreign::{self, put, wanted, with_segments, word};
use crate::ia::Ia;
use crate::object::{find, find_as};
use crate::pz::{fields, Pz};
use crate::ret::{Result, Ret};
use libkdapl::{Handle, Subtype};
use std::sync::Arc;

/// A Shared Receive Queue.
pub struct Srq {
    pub cell: &'static Cell,
    pub ia: Arc<Ia>,
    pub dat: libkdapl::Srq,
}

/// Converts a number; `argument` is its position in the call.
fn number(count: DAT_COUNT, argument: u16) -> Result<u32> {
    u32::try_from(count).map_err(|_| Ret::argument(argument))
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    pz: DAT_PZ_HANDLE,
    attr: *mut DAT_SRQ_ATTR,
    srq_handle: *mut DAT_SRQ_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(srq_handle, 4)?;
        let pz = find_as::<Pz>(pz, Subtype::INVALID_HANDLE_PZ)?;
        let attr = foreign::get(attr, 3)?;
        if attr.low_watermark != DAT_SRQ_LW_DEFAULT as DAT_COUNT {
            return Err(Ret::argument(3));
        }
        let (dtos, iov) = (number(attr.max_recv_dtos, 3)?, number(attr.max_recv_iov, 3)?);
        let dat = ia.dat.create_srq(&pz.dat, dtos, iov)?;
        let srq = ia.adopt(dat.handle(), |cell| Srq { cell, ia: ia.clone(), dat })?;
        put(srq_handle, 4, srq.cell.handle())
    })
}

pub extern "C" fn free(srq: DAT_SRQ_HANDLE) -> DAT_RETURN {
    entry(|| {
        let srq = find::<Srq>(srq)?;
        srq.dat.free()?;
        srq.ia.forget(srq.dat.handle());
        Ok(())
    })
}

pub extern "C" fn post_recv(
    srq: DAT_SRQ_HANDLE,
    count: DAT_COUNT,
    iov: *mut DAT_LMR_TRIPLET,
    cookie: DAT_DTO_COOKIE,
) -> DAT_RETURN {
    entry(|| {
        let srq = find::<Srq>(srq)?;
        with_segments(iov, count, (2, 3), |segments| {
            Ok(srq.dat.post_recv(segments, word(cookie))?)
        })
    })
}

pub extern "C" fn query(
    srq: DAT_SRQ_HANDLE,
    mask: DAT_SRQ_PARAM_MASK,
    param: *mut DAT_SRQ_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let srq = find::<Srq>(srq)?;
        fields(mask.into(), DAT_SRQ_FIELD_ALL.into())?;
        wanted(param, 3)?;
        let query = srq.dat.query()?;
        let count = |number: u32| DAT_COUNT::try_from(number).unwrap_or(DAT_COUNT::MAX);
        let value = DAT_SRQ_PARAM {
            ia_handle: srq.ia.handle(),
            srq_state: DAT_SRQ_STATE_OPERATIONAL,
            pz_handle: srq.ia.handle_of(Handle(query.pz)),
            max_recv_dtos: count(query.max_recv_dtos),
            max_recv_iov: count(query.max_recv_iov),
            low_watermark: count(query.low_watermark),
            available_dto_count: count(query.available),
            outstanding_dto_count: count(query.outstanding),
        };
        put(param, 3, value)
    })
}

pub extern "C" fn resize(srq: DAT_SRQ_HANDLE, max: DAT_COUNT) -> DAT_RETURN {
    entry(|| Ok(find::<Srq>(srq)?.dat.resize(number(max, 2)?)?))
}

pub extern "C" fn set_lw(srq: DAT_SRQ_HANDLE, low_watermark: DAT_COUNT) -> DAT_RETURN {
    entry(|| Ok(find::<Srq>(srq)?.dat.set_low_watermark(number(low_watermark, 2)?)?))
}
