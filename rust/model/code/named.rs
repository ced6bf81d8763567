// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Enums whose variants have DAT's numbers and DAT's names.

/// Defines an enum, and the function `name` that returns DAT's name of a number.
macro_rules! named {
    (
        $(#[$doc:meta])* $enum:ident;
        $($(#[$row:meta])* $variant:ident = $number:literal, $name:ident;)+
    ) => {
        $(#[$doc])*
        #[cfg_attr(
            not(kdapl_host),
            expect(dead_code, reason = "the table is DAT's, complete on purpose")
        )]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub(crate) enum $enum {
            $($(#[$row])* $variant = $number,)+
        }

        /// Returns DAT's name of the variant with this number.
        pub(crate) fn name(number: u32) -> Option<&'static core::ffi::CStr> {
            let name = match number {
                $($number => concat!(stringify!($name), "\0"),)+
                _ => return None,
            };
            core::ffi::CStr::from_bytes_with_nul(name.as_bytes()).ok()
        }
    };
}
pub(crate) use named;
