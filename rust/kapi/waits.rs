// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Threads in `dat_evd_wait` and `dat_cno_wait`, for which the close of their adapter waits.

use crate::sys::wait::{
    new_wait_queue,
    WaitQueue, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Acquire,
            Atomic,
            Relaxed,
            Release, //
        },
        Arc, //
    },
};

/// Number of waits on the objects of an adapter.
#[pin_data]
pub(super) struct Waits {
    count: Atomic<i32>,
    /// Threads that close the adapter.
    #[pin]
    closing: WaitQueue,
}

impl Waits {
    /// Creates a count of zero.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                count: Atomic::new(0),
                closing <- new_wait_queue!("Waits::closing"),
            }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Begins a wait. The caller holds the lock of the adapter's slot.
    pub(super) fn begin(self: &Arc<Self>) -> WaitInProgress {
        self.count.fetch_add(1, Relaxed);
        WaitInProgress(self.clone())
    }

    /// Waits until all waits have ended. No other begins, because the adapter has left its slot.
    ///
    /// Context: process; sleeps.
    pub(super) fn await_ends(&self) {
        self.closing.wait_for(|| self.count.load(Acquire) == 0);
    }
}

/// A wait in progress, until the drop. The thread does not use the consumer's memory afterwards.
pub(super) struct WaitInProgress(Arc<Waits>);

impl Drop for WaitInProgress {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Release) == 1 {
            self.0.closing.wake_all();
        }
    }
}
