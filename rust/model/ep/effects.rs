// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Effects of a [`step`](super::step), which its caller executes.
//!
//! Abbreviations: DTO (Data Transfer Operation), EVD (Event Dispatcher), QP (queue pair).

numbered! {
    /// Type of a connection event. The discriminants are DAT's numbers.
    ConnectionEvent {
        /// The connection is established.
        Established = 0x4001,
        /// The peer's consumer has rejected the connection request.
        PeerRejected = 0x4002,
        /// The connection request failed for another reason than a reject by the peer's consumer, a
        /// time-out or an unreachable address.
        NonPeerRejected = 0x4003,
        /// The connection request was accepted on this side, but the connection was not
        /// established.
        AcceptCompletionError = 0x4004,
        /// One side has disconnected.
        Disconnected = 0x4005,
        /// The connection has failed.
        Broken = 0x4006,
        /// The time-out of `dat_ep_connect` has expired.
        TimedOut = 0x4007,
        /// The address does not respond.
        Unreachable = 0x4008,
    }
}

/// Effects of a step, in the order in which they are executed. The two events (`event` and
/// `report_broken`) are the exception: they are queued first, with the Endpoint's lock held.
///
/// An effect that has no object (no pending timer, no QP, no connection id) does nothing, so the
/// caller needs no special cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Effects {
    /// Stop the connect timer. An expiry that is in progress already is ignored.
    pub(crate) stop_timer: bool,
    /// Start the connect timer. `dat_ep_connect` executes this effect after it has started the
    /// address resolution.
    pub(crate) start_timer: bool,
    /// Move the QP to the error state, so that all posted DTOs flush.
    pub(crate) qp_error: bool,
    /// Replace the QP with a new one in INIT, with nothing posted.
    pub(crate) qp_reset: bool,
    /// Disconnect from the peer, or answer the peer's disconnect (`rdma_disconnect()`).
    pub(crate) send_disconnect: bool,
    /// Take the connection id from the Endpoint and destroy it. Not allowed in the id's own
    /// handler. Later events of the id are ignored.
    pub(crate) abandon_id: bool,
    /// Queue this connection event.
    pub(crate) event: Option<ConnectionEvent>,
    /// Report on the asynchronous EVD that the Endpoint is broken. There is no connection event for
    /// it.
    pub(crate) report_broken: bool,
}

impl Effects {
    /// No effects.
    pub(crate) const NONE: Self = Self {
        stop_timer: false,
        start_timer: false,
        qp_error: false,
        qp_reset: false,
        send_disconnect: false,
        abandon_id: false,
        event: None,
        report_broken: false,
    };

    /// Combines these effects with those of a later step. The events of both have been queued
    /// already.
    pub(crate) const fn and(self, later: Self) -> Self {
        Self {
            stop_timer: self.stop_timer | later.stop_timer,
            start_timer: self.start_timer | later.start_timer,
            qp_error: self.qp_error | later.qp_error,
            qp_reset: self.qp_reset | later.qp_reset,
            send_disconnect: self.send_disconnect | later.send_disconnect,
            abandon_id: self.abandon_id | later.abandon_id,
            event: None,
            report_broken: false,
        }
    }

    /// Returns the effects that remain after a step in a handler of the connection manager, which
    /// has stopped the timer and queued the events.
    pub(crate) const fn left_in_handler(self) -> Self {
        Self {
            stop_timer: false,
            event: None,
            report_broken: false,
            ..self
        }
    }

    /// Start the connect timer.
    pub(super) const START_TIMER: Self = Self {
        start_timer: true,
        ..Self::NONE
    };

    /// Flush the posted DTOs.
    pub(crate) const FLUSH: Self = Self {
        qp_error: true,
        ..Self::NONE
    };

    /// Flush the posted DTOs of an Endpoint that fails without a connection.
    pub(super) const LOST: Self = Self {
        report_broken: true,
        ..Self::FLUSH
    };

    /// Flush the posted DTOs and disconnect from the peer.
    pub(super) const HANG_UP: Self = Self {
        send_disconnect: true,
        ..Self::FLUSH
    };

    /// Flush the posted DTOs and destroy the connection id.
    pub(super) const GONE: Self = Self {
        abandon_id: true,
        ..Self::FLUSH
    };
}
