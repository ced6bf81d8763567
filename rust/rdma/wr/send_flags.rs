// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Flags of work requests that do not depend on the operation.

use kdapl_bindings as bindings;

/// Flags of a work request for the send queue.
#[derive(Clone, Copy)]
pub(crate) struct SendFlags {
    /// Whether the device reports a success, too. It reports each failure.
    pub(crate) signalled: bool,
    /// Whether it starts only after earlier RDMA reads have completed.
    pub(crate) fence: bool,
}

impl SendFlags {
    /// Flags of a request that is reported, and not fenced.
    pub(crate) const SIGNALLED: Self = Self {
        signalled: true,
        fence: false,
    };

    /// Returns the verbs' flags.
    pub(super) fn as_raw(self) -> bindings::ib_send_flags {
        let mut flags = 0;
        if self.signalled {
            flags |= bindings::ib_send_flags_IB_SEND_SIGNALED;
        }
        if self.fence {
            flags |= bindings::ib_send_flags_IB_SEND_FENCE;
        }
        flags
    }
}
