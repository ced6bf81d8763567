// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory, addresses and options.

use super::{
    peer_of,
    put,
    ret,
    shared,
    string, //
};
use crate::{
    address::{
        Hosts,
        TEXT, //
    },
    engine::LONGEST,
    instance::Instance,
    memory::Memory, //
};
use kernel::{
    ffi::{
        c_char,
        c_int,
        c_void, //
    },
    prelude::*, //
};

/// `bmi_memalloc()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_memalloc(bmi: *const Instance, size: i64) -> *mut c_void {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let allocate = || -> Result<usize> {
        // A larger allocation is a warning of the kernel.
        let size = c_int::try_from(size).ok().filter(|size| *size > 0);
        let size = usize::try_from(size.ok_or(EINVAL)?).map_err(|_| EINVAL)?;
        let shared = shared?;
        // Without the lock: a long allocation stops no message.
        let zones = shared.with(|inner| inner.state.home.devices.zones());
        let memory = Memory::on_all(&zones, size)?;
        shared.with(|inner| inner.keep(memory))
    };
    allocate().map_or(
        core::ptr::null_mut(),
        core::ptr::with_exposed_provenance_mut,
    )
}

/// `bmi_memfree()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_memfree(bmi: *const Instance, buffer: *mut c_void) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let memory = shared.and_then(|shared| shared.with(|inner| inner.free(buffer.addr())));
    // The memory is freed without the lock.
    ret(memory.map(|memory| {
        drop(memory);
        0
    }))
}

/// Options of `bmi_set_info()` and `bmi_get_info()`.
const DROP_ADDR: c_int = 1;
const CHECK_MAXSIZE: c_int = 3;
const INC_ADDR_REF: c_int = 5;
const DEC_ADDR_REF: c_int = 6;
const GET_UNEXP_SIZE: c_int = 10;
const CLOSE_SOCKET: c_int = 13;

/// `bmi_set_info()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_set_info(
    bmi: *const Instance,
    address: i64,
    option: c_int,
    _parameter: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let peer = peer_of(address);
    let set = || -> Result {
        shared?.with(|inner| {
            let state = &mut inner.state;
            state.engine.phase(peer).ok_or(EINVAL)?;
            match option {
                INC_ADDR_REF => state.engine.retain(peer),
                DEC_ADDR_REF => state.release(peer),
                CLOSE_SOCKET => state.disconnect(peer),
                DROP_ADDR => {
                    state.disconnect(peer);
                    state.release(peer);
                }
                _ => return Err(EINVAL),
            }
            Ok(())
        })
    };
    ret(set().map(|()| 0))
}

/// `bmi_get_info()`.
///
/// # Safety
///
/// `parameter` is valid for the type that the header names.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_get_info(
    bmi: *const Instance,
    _address: i64,
    option: c_int,
    parameter: *mut c_void,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let get = || -> Result<c_int> {
        if parameter.is_null() {
            return Err(EINVAL);
        }
        match option {
            CHECK_MAXSIZE => shared.map(|_| LONGEST as c_int),
            GET_UNEXP_SIZE => {
                let limit = shared?.with(|inner| inner.state.engine.unexpected_limit());
                Ok(c_int::try_from(limit).unwrap_or(c_int::MAX))
            }
            _ => Err(EINVAL),
        }
    };
    ret(get().map(|value| {
        // SAFETY: By the safety requirement.
        unsafe { put(parameter.cast(), value) };
        0
    }))
}

/// `bmi_addr_lookup()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_addr_lookup(
    bmi: *const Instance,
    address: *mut i64,
    text: *const c_char,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    // SAFETY: By the safety requirement.
    let text = unsafe { string(text) };
    let look_up = || -> Result<i64> {
        if address.is_null() {
            return Err(EINVAL);
        }
        let text = text.and_then(|text| text.to_str().ok()).ok_or(EINVAL)?;
        let hosts = Hosts::parse(text).ok_or(EINVAL)?;
        shared?.with(|inner| {
            inner.state.make_room()?;
            let peer = inner.state.engine.add_peer().map_err(|_| ENOMEM)?;
            let routes = &mut inner.state.home.connections.routes;
            routes.set_hosts(peer, Some(hosts));
            Ok(peer.0.raw() as i64)
        })
    };
    ret(look_up().map(|peer| {
        // SAFETY: By the safety requirement.
        unsafe { put(address, peer) };
        0
    }))
}

/// `bmi_addr_rev_lookup()`.
///
/// # Safety
///
/// As of the module `calls`.
#[no_mangle]
pub(crate) unsafe extern "C" fn bmi_addr_rev_lookup(
    bmi: *const Instance,
    address: i64,
    text: *mut c_char,
    size: usize,
) -> c_int {
    // SAFETY: By the safety requirement.
    let shared = unsafe { shared(bmi) };
    let peer = peer_of(address);
    let find = || -> Result<[u8; TEXT]> {
        shared?.with(|inner| {
            inner.state.engine.phase(peer).ok_or(EINVAL)?;
            let routes = &inner.state.home.connections.routes;
            routes.hosts(peer).and_then(Hosts::text).ok_or(EINVAL)
        })
    };
    ret(find().and_then(|bytes| {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(TEXT - 1) + 1;
        if text.is_null() || size < length {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirement `text` is valid for `size` bytes.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), text.cast(), length) };
        Ok(0)
    }))
}
