// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! `DAT_RETURN` codes.

use crate::abi::DAT_RETURN;
use libkdapl::{Error, Subtype, Type};

/// A code other than `DAT_SUCCESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ret(pub DAT_RETURN);

/// Result of the body of a call.
pub type Result<T> = std::result::Result<T, Ret>;

impl Ret {
    /// Makes an error of this type and subtype.
    pub const fn new(kind: Type, subtype: Subtype) -> Self {
        Self(kind.code(subtype))
    }

    /// Makes an error of this type without a subtype.
    pub const fn of(kind: Type) -> Self {
        Self::new(kind, Subtype::NO_SUBTYPE)
    }

    /// Makes `DAT_INVALID_PARAMETER` for the argument with this number, counted from 1.
    pub const fn argument(number: u16) -> Self {
        Self::new(Type::INVALID_PARAMETER, Subtype(Subtype::INVALID_ARG1.0 + number - 1))
    }

    /// Makes `DAT_INVALID_HANDLE` with this subtype.
    pub const fn handle(which: Subtype) -> Self {
        Self::new(Type::INVALID_HANDLE, which)
    }

    /// `DAT_MODEL_NOT_SUPPORTED`, for operations that kDAPL or the device lacks.
    pub const UNSUPPORTED: Self = Self::of(Type::MODEL_NOT_SUPPORTED);

    /// Returns the type of the error (`DAT_GET_TYPE`).
    pub const fn kind(self) -> Type {
        Type((self.0 >> 16) as u16 & 0x3fff)
    }
}

impl From<Error> for Ret {
    fn from(error: Error) -> Self {
        match &error {
            Error::Dat(dat) => Self(dat.code),
            // DAT has no codes for these errors; their text has the details.
            Error::Open(_) => Self::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_DEVICE),
            Error::Memory { .. } => {
                Self::new(Type::INSUFFICIENT_RESOURCES, Subtype::RESOURCE_MEMORY)
            }
            Error::Transport { .. } if error.errno() == Some(libc::EFAULT) => {
                Self::of(Type::INVALID_PARAMETER)
            }
            _ => Self::of(Type::INTERNAL_ERROR),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_put_together_as_dat_error_h_does() {
        assert_eq!(Ret::argument(3).0, 0x8006_0027);
        assert_eq!(Ret::handle(Subtype::INVALID_HANDLE_PZ).0, 0x8005_000f);
        assert_eq!(Ret::of(Type::NOT_IMPLEMENTED).0, 0xbfff_0000);
        assert_eq!(Ret::argument(3).kind(), Type::INVALID_PARAMETER);
    }
}
