// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Types for flag words.

use crate::sys::*;
use std::fmt;

/// Defines a type for a flag word, with a constant for each flag.
macro_rules! flags {
    ($(#[$doc:meta])* $type:ident: $word:ty { $($(#[$each:meta])* $name:ident = $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $type(pub $word);

        impl $type {
            $($(#[$each])* pub const $name: Self = Self($value);)*

            /// Returns whether all flags of `other` are set.
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl std::ops::BitOr for $type {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let names: Vec<&str> = [$((Self::$name, stringify!($name)),)*]
                    .into_iter()
                    .filter(|(flag, _)| flag.0.count_ones() == 1 && self.contains(*flag))
                    .map(|(_, name)| name)
                    .collect();
                write!(f, "{:#x}({})", self.0, names.join("|"))
            }
        }
    };
}

pub(crate) use flags;

flags! {
    /// Event streams that may feed an [`Evd`](crate::Evd).
    EvdFlags: u32 {
        /// Software events, posted by the program.
        SOFTWARE = KDAPL_EVD_SOFTWARE,
        /// Connection requests.
        CR = KDAPL_EVD_CR,
        /// Completions of data transfer operations.
        DTO = KDAPL_EVD_DTO,
        /// Connection events.
        CONNECTION = KDAPL_EVD_CONNECTION,
        /// Completions of RMR binds.
        RMR_BIND = KDAPL_EVD_RMR_BIND,
        /// Asynchronous errors.
        ASYNC = KDAPL_EVD_ASYNC,
    }
}

flags! {
    /// Accesses that a region allows.
    Privileges: u32 {
        /// Read by local sends and RDMA Writes.
        LOCAL_READ = KDAPL_MEM_LOCAL_READ,
        /// Read by the peer's RDMA Reads.
        REMOTE_READ = KDAPL_MEM_REMOTE_READ,
        /// Written by local receives and RDMA Reads.
        LOCAL_WRITE = KDAPL_MEM_LOCAL_WRITE,
        /// Written by the peer's RDMA Writes.
        REMOTE_WRITE = KDAPL_MEM_REMOTE_WRITE,
        /// The four privileges above.
        ALL = KDAPL_MEM_ALL,
        /// Accessed by the peer's atomic operations. Requires a device that [supports](Extensions)
        /// them.
        REMOTE_ATOMIC = KDAPL_MEM_REMOTE_ATOMIC,
    }
}

flags! {
    /// Completion flags of a data transfer operation; 0 is the default. Also the completion flags
    /// of an endpoint's receives and of its requests ([`EpAttr`](crate::EpAttr)).
    CompletionFlags: u32 {
        /// Requests: no event unless the operation fails.
        SUPPRESS = KDAPL_COMPLETION_SUPPRESS,
        /// Operations that consume one of the peer's receives: wake a peer that waits for solicited
        /// messages only. An endpoint's receives: only such messages wake a waiter.
        SOLICITED_WAIT = KDAPL_COMPLETION_SOLICITED_WAIT,
        /// The completion does not wake a waiter, unless the operation fails. The endpoint must
        /// have the flag as well.
        UNSIGNALLED = KDAPL_COMPLETION_UNSIGNALLED,
        /// Requests: the operation starts after all earlier RDMA Reads and atomic operations.
        BARRIER_FENCE = KDAPL_COMPLETION_BARRIER_FENCE,
        /// Endpoints: every completion counts towards a waiter's threshold (the default).
        EVD_THRESHOLD = KDAPL_COMPLETION_EVD_THRESHOLD,
    }
}

flags! {
    /// Operations of DAT's InfiniBand extensions that an [`Ia`](crate::Ia) supports; none over
    /// iWARP.
    Extensions: u32 {
        /// RDMA Write with immediate data.
        IMMED_DATA = KDAPL_EXTENSION_IMMED_DATA,
        /// Fetch and Add.
        FETCH_AND_ADD = KDAPL_EXTENSION_FETCH_AND_ADD,
        /// Compare and Swap.
        CMP_AND_SWAP = KDAPL_EXTENSION_CMP_AND_SWAP,
    }
}
