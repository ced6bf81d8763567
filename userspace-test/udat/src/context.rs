// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Calls on handles of any type.

use crate::abi::*;
use crate::cell::{self, Cell};
use crate::entry::entry;
use crate::foreign::put;
use crate::object::Object;
use crate::ret::{Result, Ret};
use libkdapl::Subtype;

/// Returns the cell and the object of a handle.
fn live(handle: DAT_HANDLE) -> Result<(&'static Cell, Object)> {
    let cell = cell::find(handle);
    let live = cell.and_then(|cell| Some((cell, cell.object()?)));
    live.ok_or(Ret::handle(Subtype::INVALID_HANDLE1))
}

pub extern "C" fn set(handle: DAT_HANDLE, context: DAT_CONTEXT) -> DAT_RETURN {
    entry(|| {
        live(handle)?.0.set_context(crate::foreign::word(context));
        Ok(())
    })
}

pub extern "C" fn get(handle: DAT_HANDLE, context: *mut DAT_CONTEXT) -> DAT_RETURN {
    entry(|| put(context, 2, DAT_CONTEXT { as_64: live(handle)?.0.context() }))
}

pub extern "C" fn handle_type(handle: DAT_HANDLE, to: *mut DAT_HANDLE_TYPE) -> DAT_RETURN {
    entry(|| put(to, 2, live(handle)?.1.handle_type()))
}
