// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on Consumer Notification Objects (CNOs).

mod agent;

use crate::abi::*;
use crate::cell::Cell;
use crate::entry::entry;
use crate::evd::{duration, lenient};
use crate::foreign::{put, put_if, wanted};
use crate::ia::Ia;
use crate::object::find;
use crate::pz::fields;
use crate::ret::Result;
use agent::{Agent, Proxy};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{mem, ptr};

/// A Consumer Notification Object.
pub struct Cno {
    pub cell: &'static Cell,
    pub ia: Arc<Ia>,
    pub dat: libkdapl::Cno,
    /// Thread that calls the program's proxy agent, if there is one.
    agent: Mutex<Option<Agent>>,
    /// File of a CNO made by `dat_cno_fd_create`. The program closes it.
    fd: Option<DAT_FD>,
}

impl Cno {
    fn make(ia: &Arc<Ia>, dat: libkdapl::Cno, fd: Option<DAT_FD>) -> Result<Arc<Self>> {
        ia.adopt(dat.handle(), |cell| {
            let agent = Mutex::default();
            Self { cell, ia: ia.clone(), dat, agent, fd }
        })
    }

    fn agent(&self) -> MutexGuard<'_, Option<Agent>> {
        self.agent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the proxy agent; `None` removes it. After an error the old one stays. Waits for a
    /// call of the old one that is in progress.
    fn set_agent(&self, proxy: Option<Proxy>) -> Result<()> {
        let mut agent = self.agent();
        let new = match proxy {
            Some(proxy) => Some(Agent::start(&self.ia, &self.dat, proxy)?),
            None => {
                self.dat.modify_agent(None)?;
                None
            }
        };
        let old = mem::replace(&mut *agent, new);
        // The function of the old agent may itself query the CNO or replace the agent.
        drop(agent);
        drop(old);
        Ok(())
    }

    /// Removes the proxy agent. Waits for a call in progress.
    pub fn end_agent(&self) {
        let old = self.agent().take();
        drop(old);
    }

    fn param(&self) -> DAT_CNO_PARAM {
        let (proxy_type, proxy) = match (self.fd, self.agent().as_ref()) {
            (Some(fd), _) => (DAT_PROXY_TYPE_FD, dat_cno_param__bindgen_ty_1 { fd }),
            (None, Some(agent)) => (
                DAT_PROXY_TYPE_AGENT,
                dat_cno_param__bindgen_ty_1 { agent: agent.proxy().as_dat() },
            ),
            (None, None) => {
                (DAT_PROXY_TYPE_NONE, dat_cno_param__bindgen_ty_1 { none: ptr::null_mut() })
            }
        };
        DAT_CNO_PARAM { ia_handle: self.ia.handle(), proxy_type, proxy }
    }
}

pub extern "C" fn create(
    ia: DAT_IA_HANDLE,
    agent: DAT_OS_WAIT_PROXY_AGENT,
    cno_handle: *mut DAT_CNO_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(cno_handle, 3)?;
        let cno = Cno::make(&ia, ia.dat.create_cno(None)?, None)?;
        if let Some(proxy) = Proxy::new(agent) {
            cno.set_agent(Some(proxy)).inspect_err(|_| ia.forget(cno.dat.handle()))?;
        }
        put(cno_handle, 3, cno.cell.handle())
    })
}

pub extern "C" fn fd_create(
    ia: DAT_IA_HANDLE,
    fd: *mut DAT_FD,
    cno_handle: *mut DAT_CNO_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let ia = find::<Ia>(ia)?;
        wanted(fd, 2)?;
        wanted(cno_handle, 3)?;
        let (file, dat) = ia.dat.create_cno_fd()?;
        let cno = Cno::make(&ia, dat, Some(file.as_raw_fd()))?;
        put(fd, 2, file.into_raw_fd())?;
        put(cno_handle, 3, cno.cell.handle())
    })
}

pub extern "C" fn modify_agent(cno: DAT_CNO_HANDLE, agent: DAT_OS_WAIT_PROXY_AGENT) -> DAT_RETURN {
    entry(|| find::<Cno>(cno)?.set_agent(Proxy::new(agent)))
}

pub extern "C" fn query(
    cno: DAT_CNO_HANDLE,
    mask: DAT_CNO_PARAM_MASK,
    param: *mut DAT_CNO_PARAM,
) -> DAT_RETURN {
    entry(|| {
        let cno = find::<Cno>(cno)?;
        // `DAT_CNO_FIELD_ALL` of the header lacks one of the fields.
        fields(mask.into(), 0x7)?;
        cno.dat.query()?;
        put(param, 3, cno.param())
    })
}

pub extern "C" fn wait(
    cno: DAT_CNO_HANDLE,
    timeout: DAT_TIMEOUT,
    evd_handle: *mut DAT_EVD_HANDLE,
) -> DAT_RETURN {
    entry(|| {
        let cno = find::<Cno>(cno)?;
        put(evd_handle, 3, ptr::null_mut())?;
        let evd = lenient(&cno.ia, cno.dat.wait(duration(timeout)))?;
        put(evd_handle, 3, evd.map_or(ptr::null_mut(), |evd| cno.ia.handle_of(evd)))
    })
}

pub extern "C" fn trigger(cno: DAT_CNO_HANDLE, evd_handle: *mut DAT_EVD_HANDLE) -> DAT_RETURN {
    entry(|| {
        find::<Cno>(cno)?.dat.trigger()?;
        // The trigger has no EVD.
        put_if(evd_handle, ptr::null_mut());
        Ok(())
    })
}

pub extern "C" fn free(cno: DAT_CNO_HANDLE) -> DAT_RETURN {
    entry(|| {
        let cno = find::<Cno>(cno)?;
        // The agent's thread polls an eventfd and is no waiter, so that the kernel's check for
        // waiters is sufficient.
        cno.dat.free()?;
        cno.end_agent();
        cno.ia.forget(cno.dat.handle());
        Ok(())
    })
}
