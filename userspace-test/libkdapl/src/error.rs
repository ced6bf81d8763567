// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Errors. Their texts name the call, the cause and a remedy.

use crate::codes::{Subtype, Type};
use crate::hint;
use crate::raw::DEVICE_PATH;
use std::{fmt, io};

/// `Result` with the library's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// A DAT return code other than `DAT_SUCCESS`, with the call that returned it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DatError {
    /// DAT's name of the call.
    pub call: &'static str,
    /// Return code: class, type and subtype.
    pub code: u32,
}

impl DatError {
    /// Returns the type of the error (`DAT_GET_TYPE`).
    #[must_use]
    pub fn kind(&self) -> Type {
        Type((self.code >> 16) as u16 & 0x3fff)
    }

    /// Returns the subtype of the error (`DAT_GET_SUBTYPE`).
    #[must_use]
    pub fn subtype(&self) -> Subtype {
        Subtype(self.code as u16)
    }

    /// Returns DAT's name of the class: error, warning or success.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self.code >> 30 {
            0 => "DAT_CLASS_SUCCESS",
            1 => "DAT_CLASS_WARNING",
            2 => "DAT_CLASS_ERROR",
            _ => "no DAT class",
        }
    }
}

impl fmt::Display for DatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.kind())?;
        if self.subtype() != Subtype::NO_SUBTYPE {
            write!(f, "/{}", self.subtype())?;
        }
        write!(f, ": {}", hint::for_dat(self.kind(), self.subtype()))
    }
}

impl fmt::Debug for DatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}/{} ({:#010x})", self.call, self.kind(), self.subtype(), self.code)
    }
}

/// Error of a call of the library.
#[derive(Debug)]
pub enum Error {
    /// DAT refused the call.
    Dat(DatError),
    /// The kernel refused the message.
    Transport {
        /// DAT's name of the call.
        call: &'static str,
        /// The errno of the call.
        source: io::Error,
    },
    /// `/dev/kdapl` could not be opened.
    Open(io::Error),
    /// Memory for a buffer could not be mapped.
    Memory {
        /// Requested size in bytes.
        length: usize,
        /// The errno of the call.
        source: io::Error,
    },
    /// A host has no address that can be used.
    Host {
        /// Name of the host.
        name: String,
        /// Error of the look-up.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn dat(call: &'static str, code: u32) -> Self {
        Self::Dat(DatError { call, code })
    }

    /// Returns the error of a call that has ended with an errno.
    pub(crate) fn of_call(call: &'static str, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::Interrupted {
            return Self::dat(call, Type::INTERRUPTED_CALL.code(Subtype::NO_SUBTYPE));
        }
        Self::Transport { call, source }
    }

    /// Returns the error that the kernel returns for a dequeue that finds no event.
    pub(crate) fn queue_empty(call: &'static str) -> Self {
        Self::dat(call, Type::QUEUE_EMPTY.code(Subtype::NO_SUBTYPE))
    }

    /// Returns the DAT type, if this is a DAT error.
    #[must_use]
    pub fn kind(&self) -> Option<Type> {
        match self {
            Self::Dat(error) => Some(error.kind()),
            _ => None,
        }
    }

    /// Returns the DAT subtype, if this is a DAT error.
    #[must_use]
    pub fn subtype(&self) -> Option<Subtype> {
        match self {
            Self::Dat(error) => Some(error.subtype()),
            _ => None,
        }
    }

    /// Returns the errno, if this is no DAT error.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Transport { source, .. } | Self::Open(source) | Self::Memory { source, .. } => {
                source.raw_os_error()
            }
            _ => None,
        }
    }

    /// Returns whether a wait ended because its time-out expired.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        self.kind() == Some(Type::TIMEOUT_EXPIRED)
    }

    /// Returns whether a dequeue found no event, or the read of a non-blocking file no record.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kind() == Some(Type::QUEUE_EMPTY) || self.errno() == Some(libc::EAGAIN)
    }

    /// Returns whether a signal interrupted the call.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.kind() == Some(Type::INTERRUPTED_CALL) || self.errno() == Some(libc::EINTR)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dat(error) => fmt::Display::fmt(error, f),
            Self::Transport { call, source } => {
                write!(f, "{call}: {source}: {}", hint::for_transport(source))
            }
            Self::Open(source) => {
                write!(f, "cannot open {DEVICE_PATH}: {source}: {}", hint::for_open(source))
            }
            Self::Memory { length, source } => {
                write!(f, "cannot map a buffer of {length} bytes: {source}")
            }
            Self::Host { name, source } => write!(
                f,
                "host '{name}': {source}: check its name ('getent ahosts {name}' looks it up), or \
                 give its address"
            ),
        }
    }
}

// `source()` is not implemented, since the texts include that of the source.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::Error;

    #[test]
    fn an_error_says_what_and_where_and_what_to_do() {
        let text = Error::dat("dat_evd_wait", 0x8007_004e).to_string();
        assert_eq!(
            text,
            "dat_evd_wait: DAT_INVALID_STATE/INVALID_STATE_EVD_WAITER: \
             another thread already waits on this EVD; one waiter per EVD"
        );
    }

    #[test]
    fn unknown_codes_keep_their_numbers() {
        let text = Error::dat("dat_ep_create", 0xbabc_ffff).to_string();
        assert!(text.starts_with("dat_ep_create: 0x3abc/0xffff"), "{text}");
    }
}
