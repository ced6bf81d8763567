// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Errors of calls and of operations.

use crate::bmi::engine;
use std::fmt;

/// `Result` with the library's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

macro_rules! failures {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// Reason why an operation has failed, or a post was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Failure {
            $($(#[$doc])* $name,)*
        }

        impl From<engine::Error> for Failure {
            fn from(error: engine::Error) -> Self {
                match error {
                    $(engine::Error::$name => Self::$name,)*
                }
            }
        }

        impl Failure {
            /// Returns the error number of Linux.
            #[must_use]
            pub fn errno(self) -> i32 {
                match self {
                    $(Self::$name => engine::Error::$name.errno(),)*
                }
            }
        }

        impl fmt::Display for Failure {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $text,)*
                })
            }
        }
    };
}

failures! {
    /// An argument is invalid.
    Invalid = "an argument is invalid";
    /// Memory is short, or the limit of locked memory is reached.
    NoMemory = "memory is short, here or at the peer: ulimit -l limits locked memory";
    /// The operation was cancelled, here or by the peer.
    Cancelled = "the operation was cancelled";
    /// The message is longer than the receive, or than an unexpected message may be.
    TooLong = "the message is longer than its receive, or than an unexpected message may be";
    /// The peer has refused the connection.
    Refused = "the peer has refused the connection: does a BMI server listen at this address?";
    /// The peer cannot be reached.
    Unreachable = "the peer cannot be reached: is there a route from an RDMA device to it?";
    /// The peer has another version of the protocol.
    Version = "the peer has another version of the protocol";
    /// The peer has violated the protocol.
    Protocol = "the peer has violated the protocol";
    /// The connection has broken, or the peer has ended it.
    Reset = "the connection has broken, or the peer has ended it";
    /// The peer does not answer.
    TimedOut = "the peer does not answer";
    /// The peer made the connection, which has ended. Only the peer can make another one.
    NotConnected = "the connection has ended, and only the peer can make another one";
    /// The RDMA device was removed. An instance does not use a device that comes back.
    DeviceLost = "the RDMA device was removed: open another instance when there is one again";
}

impl std::error::Error for Failure {}

/// Error of a call.
#[derive(Debug)]
pub enum Error {
    /// A call of DAT has failed.
    Dat(libkdapl::Error),
    /// A post was refused.
    Post(Failure),
    /// An address is malformed, or its host is unknown.
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// This machine has no RDMA device whose port is up.
    NoDevice,
    /// The options are not possible together, or one of them is not.
    Options(String),
    /// All 16 contexts are open.
    Contexts,
}

impl From<libkdapl::Error> for Error {
    fn from(error: libkdapl::Error) -> Self {
        Self::Dat(error)
    }
}

impl From<engine::Error> for Error {
    fn from(error: engine::Error) -> Self {
        Self::Post(error.into())
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::Post(failure)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dat(error) => fmt::Display::fmt(error, f),
            Self::Post(failure) => fmt::Display::fmt(failure, f),
            Self::Address { address, reason } => write!(
                f,
                "address '{address}': {reason}: an address is kdapl://HOST:PORT, for example \
                 kdapl://storage1:7180"
            ),
            Self::NoDevice => f.write_str(
                "there is no RDMA device whose port is up: 'kdapltest devices' lists the devices; \
                 'rdma link add rxe0 type rxe netdev eth0' makes a soft-RoCE one",
            ),
            Self::Options(reason) => f.write_str(reason),
            Self::Contexts => f.write_str("all 16 contexts are open: close one first"),
        }
    }
}

impl std::error::Error for Error {}
