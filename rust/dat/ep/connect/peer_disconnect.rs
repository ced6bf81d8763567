// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Delays the end of a connection whose peer has disconnected, until outstanding requests are
//! acknowledged.
//!
//! Acknowledgements travel between the queue pairs (QPs), a disconnect through `rdma_cm`, so the
//! disconnect may be faster. If it stopped the QP at once, a request that has reached the peer
//! would be reported as flushed. So the connection stays for a short time while requests are
//! outstanding.

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
    time::{
        Instant,
        Monotonic, //
    },
    workqueue::WorkItem, //
};

/// Milliseconds to wait for acknowledgements after a disconnect.
const GRACE_MS: i64 = 40;

/// Time at which a peer has disconnected.
pub(in crate::dat::ep) type PeerDisconnectTime = Instant<Monotonic>;

impl Ep {
    /// Ends the connection because the peer has disconnected, once the requests have completed or
    /// the delay is over. This is called in a handler of the ID, so a work item does it: it drains
    /// all completions.
    pub(in crate::dat::ep) fn end_by_peer_disconnect(self: &Arc<Self>, id: &IdRef<'_>) {
        let stood = {
            let mut inner = self.inner.lock();
            let stood = inner.owns(id) && inner.phase.is_connected();
            if stood {
                inner.connection.peer_disconnect_time = Some(PeerDisconnectTime::now());
            }
            stood
        };
        if stood {
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
            let waits = |left: PeerDisconnectTime| left.elapsed().as_millis() < GRACE_MS;
            inner.requests.outstanding() != 0
                && inner.connection.peer_disconnect_time.is_some_and(waits)
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
