// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Addresses, and options.

use super::{number, returned, store, text};
use crate::addresses::is_within;
use crate::errors::{EINVAL, ENOSYS};
use crate::header::*;
use crate::library::{self, Outcome};
use libkdapl_bmi::LONGEST;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Options of `BMI_set_info` that change nothing here.
const WITHOUT_EFFECT: [c_uint; 5] = [
    BMI_FORCEFUL_CANCEL_MODE,
    BMI_TCP_BUFFER_SEND_SIZE,
    BMI_TCP_BUFFER_RECEIVE_SIZE,
    BMI_OPTIMISTIC_BUFFER_REG,
    BMI_TCP_CHECK_UNEXPECTED,
];

#[no_mangle]
extern "C" fn BMI_addr_lookup(address: *mut i64, id: *const c_char) -> c_int {
    // SAFETY: The program passes a C string.
    let id = unsafe { text(id) };
    returned(library::get().and_then(|library| {
        let id = id?.filter(|_| !address.is_null()).ok_or(EINVAL)?;
        let ours = id.split(',').find(|one| one.starts_with("kdapl://")).ok_or(EINVAL)?;
        let known = library.addresses().looked_up(ours);
        let found = match known {
            Some(known) => known,
            None => {
                let peer = library.bmi.lookup(ours).map_err(number)?;
                library.addresses().insert(ours, peer)
            }
        };
        // SAFETY: The program has room for the number.
        unsafe { store(address, 0, found) };
        Ok(0)
    }))
}

#[no_mangle]
extern "C" fn BMI_addr_rev_lookup(address: i64) -> *const c_char {
    let lookup = || {
        let library = library::get().ok()?;
        let addresses = library.addresses();
        let text = addresses.get(address)?.text.as_ptr();
        Some(text)
    };
    lookup().unwrap_or(std::ptr::null())
}

#[no_mangle]
extern "C" fn BMI_addr_rev_lookup_unexpected(address: i64) -> *const c_char {
    BMI_addr_rev_lookup(address)
}

#[no_mangle]
extern "C" fn BMI_query_addr_range(address: i64, id: *const c_char, netmask: c_int) -> c_int {
    // SAFETY: The program passes a C string.
    let id = unsafe { text(id) };
    returned(library::get().and_then(|library| {
        let id = id?.ok_or(EINVAL)?;
        let addresses = library.addresses();
        let address = addresses.get(address).ok_or(EINVAL)?;
        let text = address.text.to_str().map_err(|_| EINVAL)?;
        is_within(text, id, netmask).map(i32::from).ok_or(EINVAL)
    }))
}

#[no_mangle]
extern "C" fn BMI_set_info(address: i64, option: c_int, _parameter: *mut c_void) -> c_int {
    returned(library::get().and_then(|library| set(&library, address, option as c_uint)))
}

fn set(library: &library::Library, address: i64, option: c_uint) -> Outcome {
    let mut addresses = library.addresses();
    let known = match option {
        BMI_DROP_ADDR => addresses.forget(address),
        BMI_INC_ADDR_REF => addresses.add_reference(address),
        BMI_DEC_ADDR_REF => addresses.drop_reference(address),
        BMI_TCP_CLOSE_SOCKET => {
            let peer = addresses.get(address).map(|address| address.peer.clone());
            peer.map(|peer| peer.disconnect()).is_some()
        }
        other if WITHOUT_EFFECT.contains(&other) => true,
        _ => return Err(ENOSYS),
    };
    known.then_some(0).ok_or(EINVAL)
}

#[no_mangle]
extern "C" fn BMI_get_info(_address: i64, option: c_int, parameter: *mut c_void) -> c_int {
    returned(library::get().and_then(|library| {
        let value = match option as c_uint {
            BMI_CHECK_INIT => return Ok(0),
            BMI_CHECK_MAXSIZE => LONGEST as c_int,
            BMI_DROP_ADDR_QUERY => 0,
            BMI_GET_UNEXP_SIZE => library.bmi.unexpected_limit() as c_int,
            _ => return Err(ENOSYS),
        };
        if parameter.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: The program has room for an int.
        unsafe { store(parameter.cast(), 0, value) };
        Ok(0)
    }))
}
