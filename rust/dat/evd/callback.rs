// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion callback of an EVD. It wakes the waiter directly, from the driver's context.

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
        this.retract_empty();
        // With UNSIGNALLED, only the completion itself says whether it wakes. The callback must not
        // poll, so the pump does, and notifies.
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
            // If the pump is queued already, this reference is dropped here. It is not the last
            // one, since the completion queue has one.
            let _ = queue().enqueue(Arc::from(this));
        }
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.overflowed();
    }
}
