// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Errors of operations and of calls, and their numbers.

/// Reason why an operation or a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Error {
    /// An argument is invalid.
    Invalid,
    /// Storage of the home is used up.
    NoMemory,
    /// The operation was cancelled, here or by the peer.
    Cancelled,
    /// The message is longer than the receive, or than an unexpected message may be.
    TooLong,
    /// The peer has refused the connection.
    Refused,
    /// The peer cannot be reached.
    Unreachable,
    /// The peer speaks another version of the protocol.
    Version,
    /// The peer has violated the protocol.
    Protocol,
    /// The connection has broken, or the peer has ended it.
    Reset,
    /// The peer no longer answers.
    TimedOut,
    /// The peer made the connection, which has ended. Only the peer can make another one.
    NotConnected,
    /// The RDMA device was removed.
    DeviceLost,
}

impl Error {
    /// Returns the error number of Linux.
    pub(crate) const fn errno(self) -> i32 {
        match self {
            Self::Invalid => 22,       // EINVAL
            Self::NoMemory => 12,      // ENOMEM
            Self::Cancelled => 125,    // ECANCELED
            Self::TooLong => 90,       // EMSGSIZE
            Self::Refused => 111,      // ECONNREFUSED
            Self::Unreachable => 113,  // EHOSTUNREACH
            Self::Version => 93,       // EPROTONOSUPPORT
            Self::Protocol => 71,      // EPROTO
            Self::Reset => 104,        // ECONNRESET
            Self::TimedOut => 110,     // ETIMEDOUT
            Self::NotConnected => 107, // ENOTCONN
            Self::DeviceLost => 19,    // ENODEV
        }
    }

    /// Returns the reason in a REFUSE message. A reason that only a later version knows is taken
    /// for a cancellation.
    pub(super) const fn of_refusal(reason: i32) -> Self {
        match reason {
            90 => Self::TooLong,
            12 => Self::NoMemory,
            _ => Self::Cancelled,
        }
    }
}
