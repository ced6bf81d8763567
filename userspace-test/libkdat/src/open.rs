// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `dat_ia_openv`.

use libkdapl::{Subtype, Type};
use udat::abi::*;
use udat::entry::entry;
use udat::options::Options;
use udat::origin::Origin;
use udat::ret::{Result, Ret};
use udat::{foreign, ia};

/// Returns the origin of an IA with this name: that of a device, with options.
pub fn origin(name: DAT_NAME_PTR) -> Result<Origin> {
    let name = foreign::text(name).ok_or(Ret::argument(1))?;
    let options = Options::parse(&name).map_err(|why| {
        eprintln!("kdapl: {why}");
        Ret::argument(1)
    })?;
    Ok(Origin { name, thread_safe: true, options, first_word: 0, program_handle: |own| own })
}

fn not_found(which: Subtype) -> Ret {
    Ret::new(Type::PROVIDER_NOT_FOUND, which)
}

/// Opens an IA. Every IA is safe to use from several threads, whether or not that is requested.
#[no_mangle]
pub extern "C" fn dat_ia_openv(
    name: DAT_NAME_PTR,
    async_evd_qlen: DAT_COUNT,
    async_evd: *mut DAT_EVD_HANDLE,
    ia_handle: *mut DAT_IA_HANDLE,
    major: DAT_UINT32,
    minor: DAT_UINT32,
    _thread_safe: DAT_BOOLEAN,
) -> DAT_RETURN {
    entry(|| {
        if major != DAT_VERSION_MAJOR {
            return Err(not_found(Subtype::MAJOR_NOT_FOUND));
        }
        if minor != DAT_VERSION_MINOR {
            return Err(not_found(Subtype::MINOR_NOT_FOUND));
        }
        ia::open(|| origin(name), async_evd_qlen, async_evd, ia_handle).map(drop)
    })
}
