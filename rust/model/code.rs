// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT return codes.
//!
//! A `DAT_RETURN` is `class (31-30) | type (29-16) | subtype (15-0)`. Success is 0, and `Ok` in
//! this code. All other codes of kDAPL have the class ERROR. (Existing providers return some codes,
//! such as QUEUE_EMPTY, without the class bit, and programs that test the bit take them for
//! success.)

mod subtype;

pub(crate) use self::subtype::Subtype;

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
#[repr(u32)]
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

/// Error of a DAT call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DatError {
    /// Type of the return code.
    pub(crate) kind: Kind,
    /// Subtype of the return code.
    pub(crate) subtype: Subtype,
}

/// Result of a DAT call.
pub(crate) type DatResult<T = ()> = Result<T, DatError>;

impl DatError {
    /// Creates an error from a type and a subtype.
    pub(crate) const fn new(kind: Kind, subtype: Subtype) -> Self {
        Self { kind, subtype }
    }

    /// Returns INVALID_ADDRESS for an address that is malformed or of the wrong kind.
    pub(crate) const fn malformed_address() -> Self {
        Self::new(Kind::InvalidAddress, Subtype::InvalidAddressMalformed)
    }

    /// Returns INVALID_PARAMETER for the argument at position `n`, counted from 1 as in DAT.
    ///
    /// DAT has subtypes for the positions 1 to 10. Other positions have none.
    pub(crate) const fn invalid_parameter(n: u8) -> Self {
        let subtype = match n {
            1 => Subtype::InvalidArg1,
            2 => Subtype::InvalidArg2,
            3 => Subtype::InvalidArg3,
            4 => Subtype::InvalidArg4,
            5 => Subtype::InvalidArg5,
            6 => Subtype::InvalidArg6,
            7 => Subtype::InvalidArg7,
            8 => Subtype::InvalidArg8,
            9 => Subtype::InvalidArg9,
            10 => Subtype::InvalidArg10,
            0 | 11..=u8::MAX => Subtype::Unspecified,
        };
        Self::new(Kind::InvalidParameter, subtype)
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

    /// Returns the `DAT_RETURN` of this error, class bit included.
    pub(crate) const fn code(self) -> u32 {
        CLASS_ERROR | ((self.kind as u32) << KIND_SHIFT) | self.subtype as u32
    }
}

impl From<Kind> for DatError {
    /// Creates an error without a subtype.
    fn from(kind: Kind) -> Self {
        Self::new(kind, Subtype::Unspecified)
    }
}
