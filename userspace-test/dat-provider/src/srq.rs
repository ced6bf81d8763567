// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Shared Receive Queues (SRQs). kDAPL has none yet, so that every handle is invalid.

use crate::abi::*;
use crate::entry::entry;
use crate::ia::Ia;
use crate::object::find;
use crate::ret::Ret;
use libkdapl::Subtype;

const NO_SRQ: Ret = Ret::handle(Subtype::INVALID_HANDLE_SRQ);

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    _pz: DAT_PZ_HANDLE,
    _attr: *mut DAT_SRQ_ATTR,
    _srq_handle: *mut DAT_SRQ_HANDLE,
) -> DAT_RETURN {
    entry(|| find::<Ia>(ia).and(Err(Ret::UNSUPPORTED)))
}

pub extern "C" fn free(_srq: DAT_SRQ_HANDLE) -> DAT_RETURN {
    entry(|| Err(NO_SRQ))
}

pub extern "C" fn post_recv(
    _srq: DAT_SRQ_HANDLE,
    _count: DAT_COUNT,
    _iov: *mut DAT_LMR_TRIPLET,
    _cookie: DAT_DTO_COOKIE,
) -> DAT_RETURN {
    entry(|| Err(NO_SRQ))
}

pub extern "C" fn query(
    _srq: DAT_SRQ_HANDLE,
    _mask: DAT_SRQ_PARAM_MASK,
    _param: *mut DAT_SRQ_PARAM,
) -> DAT_RETURN {
    entry(|| Err(NO_SRQ))
}

pub extern "C" fn resize(_srq: DAT_SRQ_HANDLE, _max: DAT_COUNT) -> DAT_RETURN {
    entry(|| Err(NO_SRQ))
}

pub extern "C" fn set_lw(_srq: DAT_SRQ_HANDLE, _low_watermark: DAT_COUNT) -> DAT_RETURN {
    entry(|| Err(NO_SRQ))
}
