// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends the connection of an Endpoint as broken, at once or after a delay.

use crate::{
    dat::{
        ep::{
            Ep,
            FAILURE, //
        },
        prelude::*, //
    },
    model::ep::Network,
    sys::workqueue::{
        cancel_delayed,
        cancel_delayed_sync,
        queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Milliseconds between a failure on this side and the stop of the QP, in which the device answers
/// the peer.
const ERROR_REPLY_MS: u32 = 20;

/// Milliseconds that `rdma_cm` has to report the reason for a QP that has stopped.
const CM_REASON_MS: u32 = 1_000;

impl Ep {
    /// Ends the connection, because the QP has failed on this side. It waits until the answer that
    /// reports the error to the peer has been sent: a QP in ERR sends no more answers.
    ///
    /// Context: any that may take a spinlock.
    pub(in crate::dat::ep) fn break_after_error_reply(self: &Arc<Self>) {
        self.break_after(ERROR_REPLY_MS);
    }

    /// Ends the connection as broken, because the QP was found stopped, unless `rdma_cm` reports
    /// another end soon.
    ///
    /// Context: any that may take a spinlock.
    pub(in crate::dat::ep) fn break_unless_cm_reports(self: &Arc<Self>) {
        self.break_after(CM_REASON_MS);
    }

    /// Ends the connection, if there is one, as broken. Outstanding DTOs begin to flush.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn break_connection(self: &Arc<Self>) {
        let _ = self.feed(Network::Broken, None);
    }

    /// Ends the connection as broken. Context: any that may take a spinlock.
    pub(in crate::dat::ep) fn break_soon(self: &Arc<Self>) {
        self.break_after(0);
    }

    /// Ends the connection as broken after a delay, or after a shorter one of another call.
    fn break_after(self: &Arc<Self>, milliseconds: u32) {
        let enqueue = |milliseconds| {
            let delay = msecs_to_jiffies(milliseconds);
            let _ = queue().enqueue_delayed::<_, FAILURE>(self.clone(), delay);
        };
        let cancel = || cancel_delayed::<_, FAILURE>(self);
        self.failure_delay.ask(milliseconds, enqueue, cancel);
    }

    /// Forgets the failures of a queue pair that was destroyed.
    ///
    /// Context: process; sleeps.
    pub(super) fn cancel_break(self: &Arc<Self>) {
        cancel_delayed_sync::<_, FAILURE>(self);
        self.failure_delay.end();
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { FAILURE }> for Ep { self.failure }
}

impl WorkItem<FAILURE> for Ep {
    type Pointer = Arc<Self>;

    /// Breaks the connection, after the delay in which an answer could be sent and `rdma_cm` could
    /// report another end.
    fn run(this: Arc<Self>) {
        this.failure_delay.end();
        this.break_connection();
    }
}
