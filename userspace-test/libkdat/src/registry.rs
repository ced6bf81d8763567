// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! The calls that list adapters. There is no registry of providers: the adapters are the machine's
//! devices.

use libkdapl::{Subtype, Type};
use udat::abi::*;
use udat::entry::entry;
use udat::foreign;
use udat::ia;
use udat::ret::{Result, Ret};

/// Returns whether there is a device with this name.
fn is_known(name: &str) -> bool {
    libkdapl::devices().is_ok_and(|devices| devices.iter().any(|device| device.name == name))
}

fn info(name: &str) -> DAT_PROVIDER_INFO {
    DAT_PROVIDER_INFO {
        ia_name: foreign::name_field(name),
        dapl_version_major: DAT_VERSION_MAJOR,
        dapl_version_minor: DAT_VERSION_MINOR,
        is_thread_safe: DAT_TRUE,
    }
}

#[no_mangle]
pub extern "C" fn dat_registry_list_providers(
    max_to_return: DAT_COUNT,
    entries_returned: *mut DAT_COUNT,
    list: *mut *mut DAT_PROVIDER_INFO,
) -> DAT_RETURN {
    entry(|| {
        let room = usize::try_from(max_to_return).map_err(|_| Ret::argument(1))?;
        foreign::put(entries_returned, 2, 0)?;
        if room != 0 {
            foreign::wanted(list, 3)?;
        }
        let devices = libkdapl::devices()?;
        let listed = devices.iter().take(room);
        for (place, device) in listed.enumerate() {
            let entry = foreign::get(list.wrapping_add(place), 3)?;
            foreign::put(entry, 3, info(&device.name))?;
        }
        foreign::put(entries_returned, 2, devices.len().min(room) as DAT_COUNT)
    })
}

/// Checks the names of two adapters.
fn both_known(one: DAT_NAME_PTR, other: DAT_NAME_PTR) -> Result<()> {
    for (position, name) in [one, other].into_iter().enumerate() {
        let name = foreign::text(name).ok_or(Ret::argument(position as u16 + 1))?;
        if !is_known(&name) {
            return Err(Ret::new(Type::PROVIDER_NOT_FOUND, Subtype::NAME_NOT_REGISTERED));
        }
    }
    Ok(())
}

/// Related adapters would require devices with several paths.
#[no_mangle]
pub extern "C" fn dat_registry_providers_related(
    one: DAT_NAME_PTR,
    other: DAT_NAME_PTR,
    relationship: *mut DAT_HA_RELATIONSHIP,
) -> DAT_RETURN {
    entry(|| {
        foreign::wanted(relationship, 3)?;
        both_known(one, other).and(Err(Ret::UNSUPPORTED))
    })
}

#[no_mangle]
pub extern "C" fn dat_ia_ha_related(
    ia: DAT_IA_HANDLE,
    name: DAT_NAME_PTR,
    related: *mut DAT_BOOLEAN,
) -> DAT_RETURN {
    entry(|| ia::ha_related(ia, name, related, is_known))
}
