// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Event Dispatchers (EVDs).

use crate::abi::*;
use crate::cell::Cell;
use crate::cno::Cno;
use crate::entry::entry;
use crate::event;
use crate::foreign::{get, put, wanted};
use crate::ia::Ia;
use crate::object::{find, find_as, find_or_null};
use crate::pz::fields;
use crate::ret::{Result, Ret};
use libkdapl::{EvdConfig, EvdFlags, Subtype, Type};
use std::sync::Arc;
use std::time::Duration;

/// An Event Dispatcher.
pub struct Evd {
    pub cell: &'static Cell,
    pub ia: Arc<Ia>,
    pub dat: libkdapl::Evd,
}

/// Converts a time-out of DAT, in microseconds.
pub fn duration(timeout: DAT_TIMEOUT) -> Option<Duration> {
    (timeout != DAT_TIMEOUT::MAX).then(|| Duration::from_micros(timeout.into()))
}

impl Evd {
    pub fn adopt(ia: &Arc<Ia>, dat: libkdapl::Evd) -> Result<Arc<Self>> {
        ia.adopt(dat.handle(), |cell| Self { cell, ia: ia.clone(), dat })
    }

    /// Returns the parameters of the EVD.
    fn state(&self) -> Result<DAT_EVD_PARAM> {
        let query = self.dat.query()?;
        let enabled = if query.enabled { DAT_EVD_STATE_ENABLED } else { DAT_EVD_STATE_DISABLED };
        let waitable =
            if query.waitable { DAT_EVD_STATE_WAITABLE } else { DAT_EVD_STATE_UNWAITABLE };
        let wakes = match query.wakes {
            EvdConfig::Threshold => DAT_EVD_STATE_CONFIG_THRESHOLD,
            EvdConfig::Notify => DAT_EVD_STATE_CONFIG_NOTIFY,
            EvdConfig::Solicited => DAT_EVD_STATE_CONFIG_SOLICITED,
        };
        Ok(DAT_EVD_PARAM {
            ia_handle: self.ia.handle(),
            evd_qlen: query.qlen,
            evd_state: enabled | waitable | wakes,
            cno_handle: query.cno.map_or(std::ptr::null_mut(), |cno| self.ia.handle_of(cno)),
            evd_flags: query.flags.0,
        })
    }
}

/// Returns `QUEUE_EMPTY` without a class, as other providers do, unless the IA has the option
/// `strict`. Programs compare with the bare number.
pub fn lenient<T>(ia: &Ia, outcome: libkdapl::Result<T>) -> Result<T> {
    outcome.map_err(Ret::from).map_err(|ret| {
        let bare = !ia.origin.options.strict && ret.kind() == Type::QUEUE_EMPTY;
        Ret(if bare { u32::from(Type::QUEUE_EMPTY.0) << 16 } else { ret.0 })
    })
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    min_qlen: DAT_COUNT,
    cno: DAT_CNO_HANDLE,
    flags: DAT_EVD_FLAGS,
    evd_handle: *mut DAT_EVD_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(evd_handle, 5)?;
        let cno = find_or_null::<Cno>(cno, Subtype::INVALID_HANDLE_CNO)?;
        // Extension events are queued with those of DTOs, whether or not this flag requests them.
        let flags = EvdFlags(flags & !DAT_IB_EVD_EXTENSION_FLAG);
        let dat = ia.dat.create_evd(flags, min_qlen)?;
        if let Some(cno) = cno {
            dat.modify_cno(Some(&cno.dat))?;
        }
        put(evd_handle, 5, Evd::adopt(&ia, dat)?.cell.handle())
    })
}

pub extern "C" fn query(
    evd: DAT_EVD_HANDLE,
    mask: DAT_EVD_PARAM_MASK,
    param: *mut DAT_EVD_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let evd = find::<Evd>(evd)?;
        fields(mask.into(), DAT_EVD_FIELD_ALL.into())?;
        put(param, 3, evd.state()?)
    })
}

pub extern "C" fn modify_cno(evd: DAT_EVD_HANDLE, cno: DAT_CNO_HANDLE) -> DAT_RETURN {
    entry(|| {
        let evd = find::<Evd>(evd)?;
        let cno = find_or_null::<Cno>(cno, Subtype::INVALID_HANDLE_CNO)?;
        Ok(evd.dat.modify_cno(cno.as_ref().map(|cno| &cno.dat))?)
    })
}

pub extern "C" fn enable(evd: DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| Ok(find::<Evd>(evd)?.dat.enable()?))
}

pub extern "C" fn disable(evd: DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| Ok(find::<Evd>(evd)?.dat.disable()?))
}

pub extern "C" fn set_unwaitable(evd: DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| Ok(find::<Evd>(evd)?.dat.set_unwaitable()?))
}

pub extern "C" fn clear_unwaitable(evd: DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| Ok(find::<Evd>(evd)?.dat.clear_unwaitable()?))
}

pub extern "C" fn resize(evd: DAT_EVD_HANDLE, min_qlen: DAT_COUNT) -> DAT_RETURN {
    entry(|| Ok(find::<Evd>(evd)?.dat.resize(min_qlen).map(|_| ())?))
}

pub extern "C" fn wait(
    evd: DAT_EVD_HANDLE,
    timeout: DAT_TIMEOUT,
    threshold: DAT_COUNT,
    to: *mut DAT_EVENT,
    nmore: *mut DAT_COUNT,
) -> DAT_RETURN {
    entry(|| {
        let evd = find::<Evd>(evd)?;
        // Check before the wait, so that an event that has been taken can be written.
        wanted(to, 4)?;
        wanted(nmore, 5)?;
        let (event, more) = evd.dat.wait(duration(timeout), threshold)?;
        put(nmore, 5, DAT_COUNT::try_from(more).unwrap_or(DAT_COUNT::MAX))?;
        put(to, 4, event::of(&evd, event)?)
    })
}

pub extern "C" fn dequeue(evd: DAT_EVD_HANDLE, to: *mut DAT_EVENT) -> DAT_RETURN {
    entry(|| {
        let evd = find::<Evd>(evd)?;
        wanted(to, 2)?;
        let (event, _) = lenient(&evd.ia, evd.dat.dequeue())?;
        put(to, 2, event::of(&evd, event)?)
    })
}

pub extern "C" fn post_se(evd: DAT_EVD_HANDLE, from: *const DAT_EVENT) -> DAT_RETURN {
    entry(|| {
        let evd = find::<Evd>(evd)?;
        Ok(evd.dat.post_se(event::software(&get(from, 2)?)?)?)
    })
}

pub extern "C" fn free(evd: DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| {
        let evd = find_as::<Evd>(evd, Subtype::INVALID_HANDLE_EVD_REQUEST)?;
        evd.dat.free()?;
        evd.ia.forget(evd.dat.handle());
        Ok(())
    })
}
