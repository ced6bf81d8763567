// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Looking after connections whose completions nobody takes.
//!
//! A peer that dies is noticed by the failure of what is sent to it: a completion. A consumer that
//! waits for connection events only, and takes completions some other time, would hear of BROKEN as
//! late as that. So once a second somebody looks, as long as there is a connection: at the EVDs of those
//! that stand, which is no more than the consumer has connected.

use super::Ia;
use crate::{
    dat::ep::Ep,
    sys::workqueue::{
        cancel_delayed_sync,
        queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    sync::{
        atomic::{
            Full,
            Relaxed, //
        },
        Arc, //
    },
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// The work item that looks.
pub(super) const WATCH: u64 = 0;

/// Milliseconds between two looks.
const PERIOD_MS: u32 = 1_000;

impl Ia {
    /// One more connection stands. Context: any that may take a spinlock.
    pub(in crate::dat) fn connection_began(this: &Arc<Self>) {
        if this.connections.fetch_add(1, Full) == 0 {
            Self::look_soon(this);
        }
    }

    /// One connection less.
    pub(in crate::dat) fn connection_ended(&self) {
        self.connections.fetch_sub(1, Full);
    }

    /// Looks no more. The connections have ended.
    pub(super) fn stop_looking(this: &Arc<Self>) {
        cancel_delayed_sync::<_, WATCH>(this);
    }

    fn look_soon(this: &Arc<Self>) {
        let _ = queue().enqueue_delayed::<_, WATCH>(this.clone(), msecs_to_jiffies(PERIOD_MS));
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { WATCH }> for Ia { self.watch }
}

impl WorkItem<WATCH> for Ia {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        if this.connections.load(Relaxed) == 0 {
            return;
        }
        this.each::<Ep>(|ep| ep.look());
        Self::look_soon(&this);
    }
}
