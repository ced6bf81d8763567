// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Detecting the death of a peer for a consumer that takes no completions.
//!
//! The death of a peer shows as the failure of a send: a completion. A consumer that waits for
//! connection events only, and takes completions at some other time, would receive BROKEN as late as
//! that. So a work item drains all EVDs of the adapter once a second while a connection exists.

use super::Domain;
use crate::{
    dat::{
        evd::Evd,
        prelude::*, //
    },
    sys::workqueue::{
        cancel_delayed_sync,
        queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    sync::atomic::{
        Full,
        Relaxed, //
    },
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Identifies the work item that drains.
pub(super) const WATCH: u64 = 0;

/// Milliseconds between two runs.
const PERIOD_MS: u32 = 1_000;

impl Domain {
    /// Counts one more connection. Context: any that may take a spinlock.
    pub(super) fn connection_began(self: &Arc<Self>) {
        if self.connections.fetch_add(1, Full) == 0 {
            self.schedule();
        }
    }

    /// Counts one connection less.
    pub(super) fn connection_ended(&self) {
        self.connections.fetch_sub(1, Full);
    }

    /// Stops the work item. All connections have ended.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn stop_watch(self: &Arc<Self>) {
        cancel_delayed_sync::<_, WATCH>(self);
    }

    fn schedule(self: &Arc<Self>) {
        let _ = queue().enqueue_delayed::<_, WATCH>(self.clone(), msecs_to_jiffies(PERIOD_MS));
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { WATCH }> for Domain { self.watch }
}

impl WorkItem<WATCH> for Domain {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.connections.load(Relaxed) == 0 {
            return;
        }
        this.evds.for_each(Evd::drain_soon);
        this.schedule();
    }
}
