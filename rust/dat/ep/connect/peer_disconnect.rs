// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A peer that disconnects, having received what it has not acknowledged here yet.
//!
//! An acknowledgement goes from queue pair to queue pair, a disconnect by `rdma_cm`: the disconnect may be
//! quicker. Were the QP stopped on it at once, a request that has arrived would be reported as flushed. So
//! while requests are outstanding the connection stays a little longer.

use crate::{
    dat::{
        ep::{
            Ep,
            LEFT, //
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

/// Milliseconds in which acknowledgements may come behind a disconnect.
const GRACE_MS: i64 = 40;

/// When a peer has disconnected.
pub(in crate::dat::ep) type PeerDisconnectTime = Instant<Monotonic>;

impl Ep {
    /// Ends the connection because the peer has disconnected, once the requests are done or have had
    /// their time. In a handler of the id, so the work item does that: it drains all completions.
    pub(in crate::dat::ep) fn peer_left(self: &Arc<Self>, id: &IdRef<'_>) {
        let stood = {
            let mut inner = self.inner.lock();
            let stood = inner.owns(id) && inner.phase.is_connected();
            if stood {
                inner.connection.peer_left = Some(PeerDisconnectTime::now());
            }
            stood
        };
        if stood {
            self.recheck_delay_ms(0);
        } else {
            let _ = self.feed(Network::PeerDisconnected, Some(id));
        }
    }

    /// Looks after so many ticks whether the requests are done.
    fn recheck_delay_ms(self: &Arc<Self>, ticks: usize) {
        let _ = queue().enqueue_delayed::<_, LEFT>(self.clone(), ticks);
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { LEFT }> for Ep { self.left }
}

impl WorkItem<LEFT> for Ep {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.drain();
        let stays = {
            let inner = this.inner.lock();
            let waits = |left: PeerDisconnectTime| left.elapsed().as_millis() < GRACE_MS;
            inner.requests.outstanding() != 0 && inner.connection.peer_left.is_some_and(waits)
        };
        if stays {
            this.recheck_delay_ms(1);
        } else {
            // Where the connection has ended otherwise this changes nothing; a reset takes the item back.
            let _ = this.feed(Network::PeerDisconnected, None);
        }
    }
}
