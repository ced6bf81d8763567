// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Functions of the table that depend on the lines of `dat.conf`.

use crate::registry::{self, Registration};
use libkdapl::{Subtype, Type};
use udat::abi::*;
use udat::entry::entry;
use udat::foreign::{self, VaList};
use udat::origin::Origin;
use udat::ret::{Result, Ret};
use udat::{extension, ia};

fn origin(registration: &'static Registration) -> Origin {
    Origin {
        name: registration.name().to_owned(),
        thread_safe: registration.thread_safe,
        options: registration.options.clone(),
        first_word: registration.table() as usize,
        program_handle: registry::number_of,
    }
}

/// Looks up the line of an adapter by name and thread safety.
fn line_of(name: DAT_NAME_PTR, thread_safe: bool) -> Result<Origin> {
    let name = foreign::text(name).ok_or(Ret::argument(1))?;
    let unknown = Ret::new(Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED);
    registry::find(&name, thread_safe).map(origin).ok_or(unknown)
}

pub extern "C" fn open_thread_safe(
    name: DAT_NAME_PTR,
    async_qlen: DAT_COUNT,
    async_evd: *mut DAT_EVD_HANDLE,
    ia_handle: *mut DAT_IA_HANDLE,
) -> DAT_RETURN {
    entry(|| ia::open(|| line_of(name, true), async_qlen, async_evd, ia_handle).map(drop))
}

pub extern "C" fn open(
    name: DAT_NAME_PTR,
    async_qlen: DAT_COUNT,
    async_evd: *mut DAT_EVD_HANDLE,
    ia_handle: *mut DAT_IA_HANDLE,
) -> DAT_RETURN {
    entry(|| ia::open(|| line_of(name, false), async_qlen, async_evd, ia_handle).map(drop))
}

pub extern "C" fn ha_related(
    ia: DAT_IA_HANDLE,
    name: DAT_NAME_PTR,
    answer: *mut DAT_BOOLEAN,
) -> DAT_RETURN {
    entry(|| ia::ha_related(ia, name, answer, registry::is_known))
}

/// Carries out an extended operation. The handle of a query is the name of its adapter.
fn operate(
    handle: DAT_HANDLE,
    operation: i32,
    arguments: *mut __va_list_tag,
    thread_safe: bool,
) -> DAT_RETURN {
    entry(|| {
        let mut arguments = VaList::new(arguments)?;
        let origin = || line_of(handle.cast(), thread_safe);
        extension::operate(handle, operation, &mut arguments, origin)
    })
}

pub extern "C" fn extended(
    handle: DAT_HANDLE,
    operation: i32,
    arguments: *mut __va_list_tag,
) -> DAT_RETURN {
    operate(handle, operation, arguments, false)
}

pub extern "C" fn extended_thread_safe(
    handle: DAT_HANDLE,
    operation: i32,
    arguments: *mut __va_list_tag,
) -> DAT_RETURN {
    operate(handle, operation, arguments, true)
}
