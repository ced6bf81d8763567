// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! DAT return codes: one error type, from which the exact `DAT_RETURN` is made.
//!
//! A `DAT_RETURN` is `class (31-30) | type (29-16) | subtype (15-0)`. Success is zero and is `Ok`
//! here; everything else in kDAPL is of class ERROR, without exception. (Existing providers return
//! some codes, QUEUE_EMPTY for one, without the class bit, and programs that test the bit go wrong.)

mod subtype;

pub(crate) use self::subtype::Subtype;

/// The class bit of every code that is not success.
const CLASS_ERROR: u32 = 0x8000_0000;

/// Where the type begins in a return code.
const KIND_SHIFT: u32 = 16;

/// What went wrong: the type of a DAT return code.
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
    /// A resource is short; the subtype names it.
    InsufficientResources = 3,
    /// kDAPL itself, or what it stands on, is at fault.
    InternalError = 4,
    /// A handle is invalid; the subtype says for what.
    InvalidHandle = 5,
    /// An argument is invalid; the subtype gives its position.
    InvalidParameter = 6,
    /// The object is in a wrong state; the subtype names it.
    InvalidState = 7,
    /// A length is wrong.
    LengthError = 8,
    /// The provider does not do that.
    ModelNotSupported = 9,
    /// There is no such Interface Adapter (`DAT_NAME_NOT_FOUND` as well).
    ProviderNotFound = 0xa,
    /// A memory privilege is missing.
    PrivilegesViolation = 0xb,
    /// Protection Zones differ.
    ProtectionViolation = 0xc,
    /// The EVD holds no event.
    QueueEmpty = 0xd,
    /// The EVD is full.
    QueueFull = 0xe,
    /// The time is up.
    TimeoutExpired = 0xf,
    /// The provider is registered already.
    ProviderAlreadyRegistered = 0x10,
    /// The provider is in use.
    ProviderInUse = 0x11,
    /// The address is invalid.
    InvalidAddress = 0x12,
    /// A signal ended the call.
    InterruptedCall = 0x13,
    /// No connection qualifier is left.
    ConnQualUnavailable = 0x14,
    /// The LMR is the reserved one.
    ReservedLmr = 0x15,
    /// The port is in use.
    PortInUse = 0x16,
    /// The communicator is not supported.
    CommNotSupported = 0x17,
    /// Not implemented.
    NotImplemented = 0x3fff,
}

/// Why a DAT call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DatError {
    /// What went wrong.
    pub(crate) kind: Kind,
    /// What exactly.
    pub(crate) subtype: Subtype,
}

/// What a DAT call returns.
pub(crate) type DatResult<T = ()> = Result<T, DatError>;

impl DatError {
    /// Makes an error of a type and a subtype.
    pub(crate) const fn new(kind: Kind, subtype: Subtype) -> Self {
        Self { kind, subtype }
    }

    /// INVALID_ADDRESS for what is no address, or not one of the kind that is wanted.
    pub(crate) const fn malformed_address() -> Self {
        Self::new(Kind::InvalidAddress, Subtype::InvalidAddressMalformed)
    }

    /// INVALID_PARAMETER for the argument at position `n`, counted from 1 as DAT does.
    ///
    /// A position that DAT has no subtype for (0, or above 10) goes without one.
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

    /// INSUFFICIENT_RESOURCES: memory.
    pub(crate) const fn memory() -> Self {
        Self::new(Kind::InsufficientResources, Subtype::ResourceMemory)
    }

    /// INSUFFICIENT_RESOURCES: the device has no more, or is gone.
    pub(crate) const fn device() -> Self {
        Self::new(Kind::InsufficientResources, Subtype::ResourceDevice)
    }

    /// INTERNAL_ERROR.
    pub(crate) const fn internal() -> Self {
        Self::new(Kind::InternalError, Subtype::Unspecified)
    }

    /// The `DAT_RETURN` of this error, class bit included.
    pub(crate) const fn code(self) -> u32 {
        CLASS_ERROR | ((self.kind as u32) << KIND_SHIFT) | self.subtype as u32
    }
}

impl From<Kind> for DatError {
    /// An error that its type describes well enough.
    fn from(kind: Kind) -> Self {
        Self::new(kind, Subtype::Unspecified)
    }
}
