// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT return codes.
//!
//! A `DAT_RETURN` is `class (31-30) | type (29-16) | subtype (15-0)`. Success is 0, and `Ok` in
//! this code. All other codes of kDAPL have the class ERROR. (Existing providers return some codes,
//! such as QUEUE_EMPTY, without the class bit, and programs that test the bit take them for
//! success.)

mod arg;
pub(crate) mod order;
mod subtype;

pub(crate) use self::{
    arg::Arg,
    order::Order,
    subtype::Subtype, //
};

/// Class bit of every code but success.
const CLASS_ERROR: u32 = 0x8000_0000;

/// Position of the type in a return code.
const KIND_SHIFT: u32 = 16;

/// Type of a DAT return code.
///
/// The discriminants are DAT's numbers, shifted down to bit 0.
#[cfg_attr(
    not(kdapl_host),
    expect(dead_code, reason = "the table is DAT's, complete on purpose")
)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub(crate) enum Kind {
    /// The operation was aborted.
    Abort = 1,
    /// The connection qualifier is in use.
    ConnQualInUse = 2,
    /// A resource is exhausted. The subtype names it.
    InsufficientResources = 3,
    /// kDAPL, or a layer below it, has an internal error.
    InternalError = 4,
    /// A handle is invalid. The subtype names the expected type.
    InvalidHandle = 5,
    /// An argument is invalid. The subtype is its position.
    InvalidParameter = 6,
    /// The object is in a state that does not allow the call. The subtype names the state.
    InvalidState = 7,
    /// A length is wrong.
    LengthError = 8,
    /// The provider does not support the operation.
    ModelNotSupported = 9,
    /// There is no such Interface Adapter (`DAT_NAME_NOT_FOUND` as well).
    ProviderNotFound = 0xa,
    /// The caller or the memory lacks a privilege.
    PrivilegesViolation = 0xb,
    /// Two objects belong to different Protection Zones.
    ProtectionViolation = 0xc,
    /// The Event Dispatcher (EVD) is empty.
    QueueEmpty = 0xd,
    /// The EVD is full.
    QueueFull = 0xe,
    /// The time-out expired.
    TimeoutExpired = 0xf,
    /// The provider is registered already.
    ProviderAlreadyRegistered = 0x10,
    /// The provider is in use.
    ProviderInUse = 0x11,
    /// The address is invalid.
    InvalidAddress = 0x12,
    /// A signal interrupted the call.
    InterruptedCall = 0x13,
    /// No connection qualifier is available.
    ConnQualUnavailable = 0x14,
    /// The local memory region (LMR) is the reserved one.
    ReservedLmr = 0x15,
    /// The port is in use.
    PortInUse = 0x16,
    /// The communicator is not supported.
    CommNotSupported = 0x17,
    /// The call is not implemented.
    NotImplemented = 0x3fff,
}

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
