// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Queries an Event Dispatcher (EVD).

use super::{
    Evd,
    Flags, //
};
use crate::dat::prelude::*;

/// Result of [`Evd::query`].
pub(crate) struct Param {
    pub(crate) qlen: u32,
    pub(crate) flags: Flags,
    pub(crate) queued: u32,
    /// Handle of the CNO, or 0.
    pub(crate) cno: u64,
    /// `DAT_EVD_STATE`.
    pub(crate) state: u32,
    /// Completion vector of the first completion queue.
    pub(crate) vector: u32,
    /// Number of completion queues.
    pub(crate) queues: u32,
}

impl Evd {
    /// Returns the parameters: `dat_evd_query`.
    pub(crate) fn query(self: &Arc<Self>) -> Param {
        let (cno, enabled) = self.wakeup.link.query();
        let enabled = if enabled {
            kdapl_bindings::KDAPL_EVD_ENABLED
        } else {
            kdapl_bindings::KDAPL_EVD_DISABLED
        };
        let waitable = if self.wakeup.unwaitable.load_acquire() {
            kdapl_bindings::KDAPL_EVD_UNWAITABLE
        } else {
            kdapl_bindings::KDAPL_EVD_WAITABLE
        };
        // No call takes an event with the lock held, so the count is exact.
        let mut consumer = self.consumer.lock();
        self.note_taken(&mut consumer);
        // Another call may have noted what the process has taken, without queueing the pump.
        self.queue_pump_if_needed();
        Param {
            qlen: self.qlen(),
            flags: self.flags,
            queued: self.queued(),
            cno,
            state: enabled | waitable | self.config(),
            vector: self.cqs.placement.first(),
            queues: consumer.cqs.count(),
        }
    }
}
