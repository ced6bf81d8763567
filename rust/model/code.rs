// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT return codes.
//!
//! A `DAT_RETURN` is `class (31-30) | type (29-16) | subtype (15-0)`. Success is 0, and `Ok` in
//! this code. All other codes of kDAPL have the class ERROR. (Existing providers return some codes,
//! such as QUEUE_EMPTY, without the class bit, and programs that test the bit take them for
//! success.)

mod arg;
mod kind;
mod named;
pub(crate) mod order;
mod subtype;

pub(crate) use self::{
    arg::Arg,
    kind::Kind,
    order::Order,
    subtype::Subtype, //
};

use core::ffi::CStr;

/// Class bit of every code but success.
const CLASS_ERROR: u32 = 0x8000_0000;

/// Position of the type in a return code.
const KIND_SHIFT: u32 = 16;

/// Bits of the type, once it is shifted down.
const KIND_MASK: u32 = 0x3fff;

/// Bits of the subtype.
const SUBTYPE_MASK: u32 = 0xffff;

/// Subtypes of INVALID_PARAMETER, by the position of the argument.
const POSITIONS: [Subtype; 10] = [
    Subtype::InvalidArg1,
    Subtype::InvalidArg2,
    Subtype::InvalidArg3,
    Subtype::InvalidArg4,
    Subtype::InvalidArg5,
    Subtype::InvalidArg6,
    Subtype::InvalidArg7,
    Subtype::InvalidArg8,
    Subtype::InvalidArg9,
    Subtype::InvalidArg10,
];

/// Error of a DAT call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DatError {
    /// Type and subtype of the return code.
    Code(Kind, Subtype),
    /// INVALID_PARAMETER: this argument is invalid. Its position depends on the call.
    Invalid(Arg),
}

/// Result of a DAT call.
pub(crate) type DatResult<T = ()> = Result<T, DatError>;

impl DatError {
    /// Creates an error from a type and a subtype.
    pub(crate) const fn new(kind: Kind, subtype: Subtype) -> Self {
        Self::Code(kind, subtype)
    }

    /// Returns INVALID_ADDRESS for an address that is malformed or of the wrong kind.
    pub(crate) const fn malformed_address() -> Self {
        Self::new(Kind::InvalidAddress, Subtype::InvalidAddressMalformed)
    }

    /// Returns INSUFFICIENT_RESOURCES: no memory.
    pub(crate) const fn memory() -> Self {
        Self::new(Kind::InsufficientResources, Subtype::ResourceMemory)
    }

    /// Returns INSUFFICIENT_RESOURCES: the device has no more of the resource, or is gone.
    pub(crate) const fn device() -> Self {
        Self::new(Kind::InsufficientResources, Subtype::ResourceDevice)
    }

    /// Returns INTERNAL_ERROR.
    pub(crate) const fn internal() -> Self {
        Self::new(Kind::InternalError, Subtype::Unspecified)
    }

    /// Returns the type of the return code.
    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Code(kind, _) => kind,
            Self::Invalid(_) => Kind::InvalidParameter,
        }
    }

    /// Returns the `DAT_RETURN` of this error, class bit included, in a call whose arguments have
    /// this order.
    ///
    /// An argument has no subtype if the call does not have it, or at a position above 10.
    #[cold]
    pub(crate) fn code(self, order: &Order) -> u32 {
        let subtype = match self {
            Self::Code(_, subtype) => subtype,
            Self::Invalid(arg) => order
                .iter()
                .zip(POSITIONS)
                .find(|(names, _)| names.contains(&arg))
                .map_or(Subtype::Unspecified, |(_, subtype)| subtype),
        };
        CLASS_ERROR | ((self.kind() as u32) << KIND_SHIFT) | subtype as u32
    }
}

impl From<Kind> for DatError {
    /// Creates an error without a subtype.
    fn from(kind: Kind) -> Self {
        Self::new(kind, Subtype::Unspecified)
    }
}

/// Returns DAT's names of the type and the subtype of a return code. Without a subtype its name is
/// empty. Returns `None` if DAT does not have the type or the subtype.
pub(crate) fn names(code: u32) -> Option<(&'static CStr, &'static CStr)> {
    if code == 0 {
        return Some((c"DAT_SUCCESS", c""));
    }
    let minor = match code & SUBTYPE_MASK {
        0 => c"",
        subtype => subtype::name(subtype)?,
    };
    Some((kind::name((code >> KIND_SHIFT) & KIND_MASK)?, minor))
}
