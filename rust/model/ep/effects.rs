// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What the caller of [`step`](super::step) has to do.

numbered! {
    /// A connection event, with DAT's event number.
    Notice {
        /// The connection stands.
        Established = 0x4001,
        /// The peer's consumer rejected the request.
        PeerRejected = 0x4002,
        /// The request failed, not by the peer's consumer, nor for lack of an answer.
        NonPeerRejected = 0x4003,
        /// The request was accepted here, but no connection came of it.
        AcceptCompletionError = 0x4004,
        /// One side ended the connection.
        Disconnected = 0x4005,
        /// The connection broke.
        Broken = 0x4006,
        /// The time given to `dat_ep_connect` is up.
        TimedOut = 0x4007,
        /// The address does not answer.
        Unreachable = 0x4008,
    }
}

/// What to do after a step, in the order of the fields.
///
/// Every effect is harmless if there is nothing to do it to (no timer pending, no QP, no id), so
/// the caller needs no case analysis of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Effects {
    /// Stop the connect timer; one that fires all the same is ignored.
    pub(crate) stop_timer: bool,
    /// Start the connect timer.
    pub(crate) start_timer: bool,
    /// Move the QP to ERR, so that all that is posted flushes.
    pub(crate) qp_error: bool,
    /// Make the QP as new: in INIT, nothing posted.
    pub(crate) qp_reset: bool,
    /// Tell the peer (`rdma_disconnect`; it answers as well if the peer asked first).
    pub(crate) send_disconnect: bool,
    /// Part with the CM id: take it from the Endpoint and destroy it, from a context where that is
    /// allowed (never in its own handler). Whatever it still reports is ignored.
    pub(crate) abandon_id: bool,
    /// Queue this connection event now.
    pub(crate) notice: Option<Notice>,
    /// Report on the asynchronous EVD that the Endpoint is broken: no connection event can.
    pub(crate) report_broken: bool,
}

impl Effects {
    /// Nothing to do.
    pub(crate) const NONE: Self = Self {
        stop_timer: false,
        start_timer: false,
        qp_error: false,
        qp_reset: false,
        send_disconnect: false,
        abandon_id: false,
        notice: None,
        report_broken: false,
    };

    /// These, and what a later step asks for as well. The events of both are queued already.
    pub(crate) const fn and(self, later: Self) -> Self {
        Self {
            stop_timer: self.stop_timer | later.stop_timer,
            start_timer: self.start_timer | later.start_timer,
            qp_error: self.qp_error | later.qp_error,
            qp_reset: self.qp_reset | later.qp_reset,
            send_disconnect: self.send_disconnect | later.send_disconnect,
            abandon_id: self.abandon_id | later.abandon_id,
            notice: None,
            report_broken: self.report_broken | later.report_broken,
        }
    }

    /// What is left to do after a step in a handler of the CM, where the timer was stopped. The
    /// notices are queued already.
    pub(crate) const fn left_in_handler(self) -> Self {
        Self {
            stop_timer: false,
            notice: None,
            report_broken: false,
            ..self
        }
    }

    /// An attempt begins.
    pub(super) const START_TIMER: Self = Self {
        start_timer: true,
        ..Self::NONE
    };

    /// Flush what is posted.
    pub(crate) const FLUSH: Self = Self {
        qp_error: true,
        ..Self::NONE
    };

    /// Flush what is posted on an Endpoint that fails without a connection.
    pub(super) const LOST: Self = Self {
        report_broken: true,
        ..Self::FLUSH
    };

    /// Flush, and see that the peer knows.
    pub(super) const HANG_UP: Self = Self {
        send_disconnect: true,
        ..Self::FLUSH
    };

    /// Flush, and part with the id.
    pub(super) const GONE: Self = Self {
        abandon_id: true,
        ..Self::FLUSH
    };
}
