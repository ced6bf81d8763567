// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Types of DAT return codes.

use super::named::named;

named! {
    /// Type of a DAT return code.
    ///
    /// The discriminants are DAT's numbers, shifted down to bit 0.
    Kind;

    /// The operation was aborted.
    Abort = 1, DAT_ABORT;
    /// The connection qualifier is in use.
    ConnQualInUse = 2, DAT_CONN_QUAL_IN_USE;
    /// A resource is exhausted. The subtype names it.
    InsufficientResources = 3, DAT_INSUFFICIENT_RESOURCES;
    /// kDAPL, or a layer below it, has an internal error.
    InternalError = 4, DAT_INTERNAL_ERROR;
    /// A handle is invalid. The subtype names the expected type.
    InvalidHandle = 5, DAT_INVALID_HANDLE;
    /// An argument is invalid. The subtype is its position.
    InvalidParameter = 6, DAT_INVALID_PARAMETER;
    /// The object is in a state that does not allow the call. The subtype names the state.
    InvalidState = 7, DAT_INVALID_STATE;
    /// A length is wrong.
    LengthError = 8, DAT_LENGTH_ERROR;
    /// The provider does not support the operation.
    ModelNotSupported = 9, DAT_MODEL_NOT_SUPPORTED;
    /// There is no such Interface Adapter (`DAT_NAME_NOT_FOUND` as well).
    ProviderNotFound = 0xa, DAT_PROVIDER_NOT_FOUND;
    /// The caller or the memory lacks a privilege.
    PrivilegesViolation = 0xb, DAT_PRIVILEGES_VIOLATION;
    /// Two objects belong to different Protection Zones.
    ProtectionViolation = 0xc, DAT_PROTECTION_VIOLATION;
    /// The Event Dispatcher (EVD) is empty.
    QueueEmpty = 0xd, DAT_QUEUE_EMPTY;
    /// The EVD is full.
    QueueFull = 0xe, DAT_QUEUE_FULL;
    /// The time-out expired.
    TimeoutExpired = 0xf, DAT_TIMEOUT_EXPIRED;
    /// The provider is registered already.
    ProviderAlreadyRegistered = 0x10, DAT_PROVIDER_ALREADY_REGISTERED;
    /// The provider is in use.
    ProviderInUse = 0x11, DAT_PROVIDER_IN_USE;
    /// The address is invalid.
    InvalidAddress = 0x12, DAT_INVALID_ADDRESS;
    /// A signal interrupted the call.
    InterruptedCall = 0x13, DAT_INTERRUPTED_CALL;
    /// No connection qualifier is available.
    ConnQualUnavailable = 0x14, DAT_CONN_QUAL_UNAVAILABLE;
    /// The local memory region (LMR) is the reserved one.
    ReservedLmr = 0x15, DAT_RESERVED_LMR;
    /// The port is in use.
    PortInUse = 0x16, DAT_PORT_IN_USE;
    /// The communicator is not supported.
    CommNotSupported = 0x17, DAT_COMM_NOT_SUPPORTED;
    /// The call is not implemented.
    NotImplemented = 0x3fff, DAT_NOT_IMPLEMENTED;
}
