// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Detects dead peers for a consumer that takes no completions.
//!
//! A dead peer shows as a failed send, which is a completion. A consumer that waits for connection
//! events only would not receive BROKEN before it takes completions. So once a second a work item
//! drains the Event Dispatchers (EVDs) of all connected Endpoints. The keepalive of idle
//! connections counts these runs. Before, unsignalled requests get a marker: otherwise their
//! connection would count as busy.

use super::EpContext;
use crate::{
    dat::prelude::*,
    model::keepalive,
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

/// Work item that drains the EVDs.
pub(super) const WATCH: u64 = 0;

/// Milliseconds between two runs.
const PERIOD_MS: u32 = keepalive::TICK_MS;

impl EpContext {
    /// Counts a new connection. The first one starts the work item. Context: any that may take a
    /// spinlock.
    pub(super) fn connection_began(self: &Arc<Self>) {
        self.established.fetch_add(1, Relaxed);
        if self.connections.fetch_add(1, Full) == 0 {
            self.schedule();
        }
    }

    /// Counts the end of a connection. The work item stops itself at its next run without
    /// connections.
    pub(super) fn connection_ended(&self) {
        self.connections.fetch_sub(1, Full);
    }

    /// Counts a connection that ends with BROKEN.
    pub(super) fn connection_broke(&self) {
        self.broken.fetch_add(1, Relaxed);
    }

    /// Stops the work item. The caller has ended all connections.
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
    impl HasDelayedWork<Self, { WATCH }> for EpContext { self.watch }
}

impl WorkItem<WATCH> for EpContext {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.connections.load(Relaxed) == 0 {
            return;
        }
        this.eps.for_each(|ep| {
            ep.queue_pumps();
            ep.close_end_in_time();
            ep.keep_alive();
        });
        this.schedule();
    }
}
