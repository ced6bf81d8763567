// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Delays the end of a connection whose peer has disconnected, until outstanding requests are
//! acknowledged.
//!
//! Acknowledgements travel between the queue pairs (QPs), a disconnect through `rdma_cm`, so the
//! disconnect may be faster. If it stopped the QP at once, a request that has reached the peer
//! would be reported as flushed. So the connection stays for a short time while requests are
//! outstanding.
//!
//! The time is counted in runs of the work item. A processor that did something else meanwhile has
//! not processed the acknowledgements either, and its clock would end the delay at once.

use crate::{
    dat::{
        ep::{
            Ep,
            PEER_DISCONNECT, //
        },
        prelude::*, //
    },
    model::ep::Network,
    rdma::cm::IdRef,
    sys::workqueue::queue, //
};
use kernel::{
    impl_has_delayed_work,
    time::msecs_to_jiffies,
    workqueue::WorkItem, //
};

/// Milliseconds to wait for acknowledgements after a disconnect, on an idle processor.
const GRACE_MS: u32 = 100;

/// Ticks between two runs of the work item. A delay of one tick ends with the tick after the next.
const TICKS_BETWEEN_RUNS: usize = 2;

impl Ep {
    /// Ends the connection because the peer has disconnected, once the requests have completed or
    /// the delay is over. This is called in a handler of the ID, so a work item does it: it drains
    /// all completions.
    pub(in crate::dat::ep) fn end_by_peer_disconnect(self: &Arc<Self>, id: &IdRef<'_>) {
        let was_connected = {
            let mut inner = self.inner.lock();
            let was_connected = inner.owns(id) && inner.phase.is_connected();
            if was_connected {
                inner.connection.grace_runs = msecs_to_jiffies(GRACE_MS) / TICKS_BETWEEN_RUNS;
            }
            was_connected
        };
        if was_connected {
            self.recheck_after(0);
        } else {
            let _ = self.feed(Network::PeerDisconnected, Some(id));
        }
    }

    /// Queues the work item, to run after `ticks`.
    fn recheck_after(self: &Arc<Self>, ticks: usize) {
        let _ = queue().enqueue_delayed::<_, PEER_DISCONNECT>(self.clone(), ticks);
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { PEER_DISCONNECT }> for Ep { self.peer_disconnect_work }
}

impl WorkItem<PEER_DISCONNECT> for Ep {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.drain_evds();
        let stays = {
            let mut inner = this.inner.lock();
            this.close_end_if_connected(&mut inner);
            inner.requests.outstanding() != 0 && inner.connection.spend_grace_run()
        };
        if stays {
            this.recheck_after(1);
        } else {
            // If the connection has ended in another way, this changes nothing. A reset cancels the
            // work item.
            let _ = this.feed(Network::PeerDisconnected, None);
        }
    }
}
