// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The completion callback. It wakes the waiter itself, from the driver's context.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::completion::WakeMode,
    rdma::cq,
    sys::workqueue::queue, //
};
use kernel::sync::{
    atomic::Acquire,
    ArcBorrow, //
};

impl cq::Handler for Evd {
    fn completed(this: ArcBorrow<'_, Self>) {
        let looks_first = this.mode() == WakeMode::Unsignalled;
        if looks_first {
            this.wakeup.must_notify.swap(true);
        } else {
            this.wakeup.doorbell.ring();
            if !this.wakeup.threshold.needs_counting() {
                this.wakeup.waiter.wake();
            }
            this.notify();
        }
        if looks_first || this.wakeup.demand.load(Acquire) != 0 {
            // If it is queued already the reference comes back, and is not the last: the
            // completion queue has one.
            let _ = queue().enqueue(Arc::from(this));
        }
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.overflowed();
    }
}
