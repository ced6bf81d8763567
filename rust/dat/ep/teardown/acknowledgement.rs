// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Waits for the acknowledgement of the last message before a disconnect.
//!
//! The disconnect travels through `rdma_cm`, and may be faster than the acknowledgement. An
//! Endpoint of kDAPL then [waits for it](super::super::connect). But other providers stop at once,
//! and report the send as flushed, though the message has arrived.
//!
//! Over iWARP nothing waits: a request completes there when TCP has the data.

use super::super::{
    Ep,
    EpContext, //
};
use kernel::{
    sync::atomic::Relaxed,
    time::{
        delay::fsleep,
        Delta, //
    },
};

/// Milliseconds between the receive of a message and a disconnect by the consumer, in which the
/// acknowledgement of the message reaches the peer.
const ACKNOWLEDGEMENT_MS: u32 = 5;

impl EpContext {
    /// Waits until the peers have the acknowledgements of the last messages, before all connections
    /// of an adapter end: see [`Ep::await_acknowledgement`].
    ///
    /// Context: process; sleeps for [`ACKNOWLEDGEMENT_MS`] at most.
    pub(in crate::dat) fn await_acknowledgements(&self) {
        let connected = self.connections.load(Relaxed) > 0;
        if connected && !self.ia.is_iwarp() {
            fsleep(Delta::from_millis(ACKNOWLEDGEMENT_MS.into()));
        }
    }
}

impl Ep {
    /// Waits until the peer has the acknowledgement of the last message, if the consumer has just
    /// received it.
    ///
    /// Context: process; sleeps for [`ACKNOWLEDGEMENT_MS`] at most.
    pub(in crate::dat::ep) fn await_acknowledgement(&self) {
        // The close of an adapter waits for all its Endpoints together.
        if self.context.ia.is_iwarp() || self.context.eps.is_closed() {
            return;
        }
        let last_receive = {
            let inner = self.inner.lock();
            let last_receive = inner.connection.last_receive;
            last_receive.filter(|_| inner.phase.is_connected())
        };
        if last_receive.is_some_and(|time| time.elapsed() <= 1) {
            fsleep(Delta::from_millis(ACKNOWLEDGEMENT_MS.into()));
        }
    }
}
