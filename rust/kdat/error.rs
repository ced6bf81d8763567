// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Errors of DAT calls.

use crate::bindings;
use core::{
    ffi::CStr,
    fmt,
    num::NonZeroU32, //
};
use kernel::{
    alloc::AllocError,
    error::code,
    str::CStrExt as _, //
};

/// Types of errors, as [`Error::kind`] returns them.
pub mod kind {
    use crate::bindings;

    macro_rules! kinds {
        ($($name:ident = $raw:ident;)+) => {
            $(
                #[doc = concat!("`", stringify!($raw), "`.")]
                pub const $name: u32 = bindings::$raw;
            )+
        };
    }

    kinds! {
        ABORT = DAT_ABORT;
        CONN_QUAL_IN_USE = DAT_CONN_QUAL_IN_USE;
        INSUFFICIENT_RESOURCES = DAT_INSUFFICIENT_RESOURCES;
        INTERNAL_ERROR = DAT_INTERNAL_ERROR;
        INVALID_HANDLE = DAT_INVALID_HANDLE;
        INVALID_PARAMETER = DAT_INVALID_PARAMETER;
        INVALID_STATE = DAT_INVALID_STATE;
        LENGTH_ERROR = DAT_LENGTH_ERROR;
        MODEL_NOT_SUPPORTED = DAT_MODEL_NOT_SUPPORTED;
        PROVIDER_NOT_FOUND = DAT_PROVIDER_NOT_FOUND;
        PRIVILEGES_VIOLATION = DAT_PRIVILEGES_VIOLATION;
        PROTECTION_VIOLATION = DAT_PROTECTION_VIOLATION;
        QUEUE_EMPTY = DAT_QUEUE_EMPTY;
        QUEUE_FULL = DAT_QUEUE_FULL;
        TIMEOUT_EXPIRED = DAT_TIMEOUT_EXPIRED;
        INVALID_ADDRESS = DAT_INVALID_ADDRESS;
        INTERRUPTED_CALL = DAT_INTERRUPTED_CALL;
        CONN_QUAL_UNAVAILABLE = DAT_CONN_QUAL_UNAVAILABLE;
    }
}

/// Return code of a DAT call that has failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Error(NonZeroU32);

/// Result of a DAT call.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

impl Error {
    /// Memory is exhausted.
    pub(crate) const MEMORY: Self = Self::new(
        bindings::DAT_INSUFFICIENT_RESOURCES,
        bindings::DAT_RESOURCE_MEMORY,
    );

    /// Creates an error from a type and a subtype.
    pub(crate) const fn new(kind: u32, subtype: u32) -> Self {
        match NonZeroU32::new(bindings::DAT_CLASS_ERROR | kind | subtype) {
            Some(code) => Self(code),
            None => unreachable!(),
        }
    }

    /// Returns the `DAT_RETURN`.
    pub fn code(self) -> u32 {
        self.0.get()
    }

    /// Returns the type: a constant of [`kind`].
    pub fn kind(self) -> u32 {
        self.code() & 0x3fff_0000
    }

    /// Returns the subtype, which `include/rdma/kdat_subtypes.h` names.
    pub fn subtype(self) -> u32 {
        self.code() & 0xffff
    }

    /// Returns whether the device was removed, has no more of a resource, or the adapter is being
    /// closed.
    pub fn is_of_device(self) -> bool {
        self == Self::new(
            bindings::DAT_INSUFFICIENT_RESOURCES,
            bindings::DAT_RESOURCE_DEVICE,
        )
    }

    /// Returns whether a Shared Receive Queue has as many receives as it can hold.
    pub fn is_srq_full(self) -> bool {
        self == Self::new(
            bindings::DAT_INSUFFICIENT_RESOURCES,
            bindings::DAT_RESOURCE_SRQ,
        )
    }

    /// Returns DAT's names of the type and the subtype: `dat_strerror`.
    pub fn names(self) -> (&'static CStr, &'static CStr) {
        let (mut major, mut minor) = (core::ptr::null(), core::ptr::null());
        // SAFETY: Both pointers are valid for writes.
        let ret = unsafe { bindings::dat_strerror(self.code(), &raw mut major, &raw mut minor) };
        if ret != bindings::DAT_SUCCESS {
            return (c"DAT_UNKNOWN", c"");
        }
        // SAFETY: The call has set both to NUL-terminated strings of kdapl.ko, which stays loaded
        // while this module uses its symbols.
        unsafe { (CStr::from_char_ptr(major), CStr::from_char_ptr(minor)) }
    }
}

/// Converts a `DAT_RETURN`.
pub(crate) fn to_result(ret: u32) -> Result {
    NonZeroU32::new(ret).map_or(Ok(()), |code| Err(Error(code)))
}

impl fmt::Debug for Error {
    /// Writes the names of the type and the subtype.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.names();
        let text = |name: &'static CStr| name.to_str().unwrap_or("");
        write!(f, "{} {}", text(major), text(minor))
    }
}

/// The `Display` of the kernel's messages.
impl kernel::fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Self {
        Self::MEMORY
    }
}

impl From<Error> for kernel::error::Error {
    /// Returns the errno that is closest to the type; ENODEV for a lack of resources of the device,
    /// which is mostly its removal.
    fn from(error: Error) -> Self {
        match error.kind() {
            _ if error.is_of_device() => code::ENODEV,
            kind::INSUFFICIENT_RESOURCES => code::ENOMEM,
            kind::PROVIDER_NOT_FOUND => code::ENODEV,
            kind::CONN_QUAL_IN_USE => code::EBUSY,
            kind::TIMEOUT_EXPIRED => code::ETIMEDOUT,
            kind::INTERRUPTED_CALL => code::EINTR,
            kind::QUEUE_EMPTY => code::EAGAIN,
            kind::INVALID_PARAMETER | kind::INVALID_ADDRESS | kind::LENGTH_ERROR => code::EINVAL,
            _ => code::EIO,
        }
    }
}
