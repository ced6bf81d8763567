// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `dat_strerror`.

use std::ffi::{c_char, CStr};
use udat::abi::*;
use udat::entry::entry;
use udat::foreign;
use udat::ret::Ret;

include!(concat!(env!("OUT_DIR"), "/names.rs"));

fn name_of(table: &[(u32, &'static CStr)], value: u32) -> Option<&'static CStr> {
    table.iter().find(|(one, _)| *one == value).map(|(_, name)| *name)
}

#[no_mangle]
pub extern "C" fn dat_strerror(
    code: DAT_RETURN,
    major: *mut *const c_char,
    minor: *mut *const c_char,
) -> DAT_RETURN {
    entry(|| {
        foreign::wanted(major, 2)?;
        foreign::wanted(minor, 3)?;
        let kind = name_of(TYPES, code & DAT_TYPE_MASK).ok_or(Ret::argument(1))?;
        let detail = name_of(SUBTYPES, code & DAT_SUBTYPE_MASK).ok_or(Ret::argument(1))?;
        foreign::put(major, 2, kind.as_ptr())?;
        foreign::put(minor, 3, detail.as_ptr())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    fn text(code: DAT_RETURN) -> Option<(&'static CStr, &'static CStr)> {
        let (mut major, mut minor) = (ptr::null(), ptr::null());
        let ret = dat_strerror(code, &mut major, &mut minor);
        // SAFETY: The call has returned success, so both are C strings of the tables.
        (ret == 0).then(|| unsafe { (CStr::from_ptr(major), CStr::from_ptr(minor)) })
    }

    #[test]
    fn a_code_has_the_names_of_the_header() {
        assert_eq!(text(0), Some((c"DAT_SUCCESS", c"DAT_NO_SUBTYPE")));
        assert_eq!(text(0x8005_000c), Some((c"DAT_INVALID_HANDLE", c"DAT_INVALID_HANDLE_EP")));
        // The code of an empty queue without its class, and the type with the largest number.
        assert_eq!(text(0x000d_0000), Some((c"DAT_QUEUE_EMPTY", c"DAT_NO_SUBTYPE")));
        assert_eq!(text(0xbfff_0000), Some((c"DAT_NOT_IMPLEMENTED", c"DAT_NO_SUBTYPE")));
        assert_eq!(text(0x8024_0000), None);
        assert_eq!(text(0x8005_0068), None);
    }

    #[test]
    fn all_24_types_and_104_subtypes_are_there() {
        assert_eq!((TYPES.len(), SUBTYPES.len()), (26, 104));
    }
}
