// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Flag words as types.

use crate::sys::*;
use std::fmt;

/// A flag word with a constant for each flag.
macro_rules! flags {
    ($(#[$doc:meta])* $type:ident: $word:ty { $($(#[$each:meta])* $name:ident = $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
        pub struct $type(pub $word);

        impl $type {
            $($(#[$each])* pub const $name: Self = Self($value);)*

            /// Whether all flags of `other` are set.
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
    /// The event streams that may feed an [`Evd`](crate::Evd).
    EvdFlags: u32 {
        /// Events that the program posts itself.
        SOFTWARE = KDAPL_EVD_SOFTWARE,
        /// Connection requests.
        CR = KDAPL_EVD_CR,
        /// Completions of data transfer operations.
        DTO = KDAPL_EVD_DTO,
        /// Connections made and lost.
        CONNECTION = KDAPL_EVD_CONNECTION,
        /// Completions of RMR binds.
        RMR_BIND = KDAPL_EVD_RMR_BIND,
        /// Asynchronous errors.
        ASYNC = KDAPL_EVD_ASYNC,
    }
}

flags! {
    /// Who may do what with a region.
    Privileges: u32 {
        /// The program's sends and RDMA writes read it.
        LOCAL_READ = KDAPL_MEM_LOCAL_READ,
        /// The peer's RDMA reads read it.
        REMOTE_READ = KDAPL_MEM_REMOTE_READ,
        /// The program's receives and RDMA reads write it.
        LOCAL_WRITE = KDAPL_MEM_LOCAL_WRITE,
        /// The peer's RDMA writes write it.
        REMOTE_WRITE = KDAPL_MEM_REMOTE_WRITE,
        /// All four of these.
        ALL = KDAPL_MEM_ALL,
        /// The peer's atomic operations work there. Only where there are [such](Extensions).
        REMOTE_ATOMIC = KDAPL_MEM_REMOTE_ATOMIC,
    }
}

flags! {
    /// How a data transfer operation completes; none is the default. Also what an Endpoint is
    /// configured for ([`EpAttr`](crate::EpAttr)), one for its receives and one for its requests.
    CompletionFlags: u32 {
        /// Requests: no event unless it fails.
        SUPPRESS = KDAPL_COMPLETION_SUPPRESS,
        /// What takes a receive of the peer's: wakes a peer that waits for solicited messages only. An
        /// Endpoint's receives: wait for such.
        SOLICITED_WAIT = KDAPL_COMPLETION_SOLICITED_WAIT,
        /// Does not wake the waiter, unless it fails. The Endpoint has to be configured for it.
        UNSIGNALLED = KDAPL_COMPLETION_UNSIGNALLED,
        /// Requests: starts after all earlier RDMA reads and atomic operations.
        BARRIER_FENCE = KDAPL_COMPLETION_BARRIER_FENCE,
        /// An Endpoint: everything counts towards the waiter's threshold (the default).
        EVD_THRESHOLD = KDAPL_COMPLETION_EVD_THRESHOLD,
    }
}

flags! {
    /// Operations of the InfiniBand extensions of DAT that an [`Ia`](crate::Ia) has; iWARP has none.
    Extensions: u32 {
        /// RDMA write with immediate data.
        IMMED_DATA = KDAPL_EXTENSION_IMMED_DATA,
        /// Fetch and add.
        FETCH_AND_ADD = KDAPL_EXTENSION_FETCH_AND_ADD,
        /// Compare and swap.
        CMP_AND_SWAP = KDAPL_EXTENSION_CMP_AND_SWAP,
    }
}
