// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Policies of upcalls, and the contexts in which they are made.

use crate::{
    model::upcall::{
        MAX_BUDGET,
        MAX_RUNNERS, //
    },
    sys::{
        lock::LockContext,
        workqueue::{
            bh_upcall_queue,
            upcall_queue, //
        },
    },
};
use kernel::workqueue::Queue;

/// `DAT_UPCALL_POLICY`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy {
    /// No upcalls.
    Disable,
    /// One upcall at a time, for one event each.
    SingleInstance,
    /// One upcall at a time. It reports that events are queued, and the consumer takes them itself.
    Notify,
    /// Several upcalls at a time, for one event each.
    Many,
    /// No upcalls. The change to this policy waits until all upcalls have returned.
    Teardown,
}

impl Policy {
    /// Returns whether the policy has upcalls.
    pub(crate) fn makes_upcalls(self) -> bool {
        self.max_active() > 0
    }

    /// Returns the largest number of runners that may be queued or run at once.
    pub(super) fn max_active(self) -> u32 {
        match self {
            Self::Disable | Self::Teardown => 0,
            Self::SingleInstance | Self::Notify => 1,
            Self::Many => MAX_RUNNERS,
        }
    }
}

/// Context in which an EVD makes its upcalls. It never changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpcallContext {
    /// A work item in a thread. Upcalls may sleep.
    Process,
    /// A soft interrupt. Upcalls must not sleep. A run makes this many at most.
    Bh {
        /// Between 1 and [`MAX_BUDGET`].
        budget: u32,
    },
}

impl UpcallContext {
    /// Returns the context for the locks that a runner takes.
    pub(in crate::dat::evd) fn lock_context(self) -> LockContext {
        match self {
            Self::Process => LockContext::Process,
            Self::Bh { .. } => LockContext::Any,
        }
    }

    /// Returns the number of upcalls that a runner makes before it lets others run.
    pub(super) fn budget(self) -> u32 {
        match self {
            Self::Process => MAX_BUDGET,
            Self::Bh { budget } => budget,
        }
    }

    /// Returns the queue of the runners.
    pub(super) fn queue(self) -> &'static Queue {
        match self {
            Self::Process => upcall_queue(),
            Self::Bh { .. } => bh_upcall_queue(),
        }
    }

    /// Returns whether upcalls of a policy can be made. One CPU makes those of a soft interrupt, so
    /// there is one at a time.
    pub(super) fn supports(self, policy: Policy) -> bool {
        self == Self::Process || policy.max_active() <= 1
    }
}
