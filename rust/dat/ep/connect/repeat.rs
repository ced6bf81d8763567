// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Repeats a connect without a time-out (`DAT_TIMEOUT_INFINITE`) that the peer has not answered.
//!
//! `rdma_cm` gives up after some seconds or minutes. Such a connect ends when the peer answers,
//! also by a reject, or when the consumer ends it. So the Endpoint makes another attempt with a new
//! ID of the connection manager (CM), after a delay that grows. The queue pair (QP) and its posted
//! receives stay.
//!
//! Over iWARP a peer that has accepted the TCP connection and does not answer then ends the
//! connect: the driver has stopped the QP, which has flushed the receives.

use crate::{
    dat::{
        ep::{
            Ep,
            Inner,
            Qos,
            CONNECT, //
        },
        prelude::*, //
    },
    model::ep::{
        Network,
        Phase, //
    },
    rdma::cm::{
        CmId,
        IdRef, //
    },
    sys::{
        memcg::Payer,
        wait::Deadline,
        workqueue::queue, //
    },
};
use kernel::time::msecs_to_jiffies;

/// Milliseconds before the first repetition.
const FIRST_DELAY_MS: u32 = 250;

/// Number of times that the delay doubles.
const DOUBLINGS: u32 = 5;

/// State of the repetitions of a connect.
pub(in crate::dat::ep) struct Repeat {
    /// Quality of service of each attempt.
    qos: Qos,
    /// Number of attempts that have failed.
    failures: u32,
    /// The request of this attempt was sent.
    requested: bool,
    /// The connect timer makes another attempt.
    is_due: bool,
}

impl Repeat {
    /// Creates the state for a first attempt.
    pub(in crate::dat::ep) fn new(qos: Qos) -> Self {
        Self {
            qos,
            failures: 0,
            requested: false,
            is_due: false,
        }
    }

    /// Records that the request is about to be sent.
    pub(in crate::dat::ep) fn note_request(&mut self) {
        self.requested = true;
    }

    /// Counts a failure. Returns the milliseconds until the next attempt.
    fn next_delay(&mut self) -> u32 {
        let delay = FIRST_DELAY_MS << self.failures.min(DOUBLINGS);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

impl Inner {
    /// Returns whether the connect goes on until the peer answers.
    fn repeats(&self) -> bool {
        matches!(
            (self.phase, self.connection.attempt.deadline),
            (Phase::Connecting(_), Deadline::Never)
        ) && !self.connection.attempt.confirms
    }
}

impl Ep {
    /// Handles the end of an attempt that the peer has not answered: reports UNREACHABLE, or
    /// prepares another attempt.
    pub(in crate::dat::ep) fn unanswered(self: &Arc<Self>, id: &IdRef<'_>) {
        let is_iwarp = self.context.ia.is_iwarp();
        let repeats = {
            let mut inner = self.inner.lock();
            let qp_was_stopped = is_iwarp && inner.connection.attempt.repeat.requested;
            let repeats = inner.owns(id) && inner.repeats() && !qp_was_stopped;
            if repeats {
                self.repeat_later(&mut inner);
            }
            repeats
        };
        if !repeats {
            self.failed(id, Network::Unreachable);
        }
    }

    /// As [`Ep::unanswered`], for an attempt whose request could not be sent.
    pub(in crate::dat::ep) fn unsent(self: &Arc<Self>, id: &IdRef<'_>) {
        {
            let mut inner = self.inner.lock();
            if inner.owns(id) {
                inner.connection.attempt.repeat.requested = false;
            }
        }
        self.unanswered(id);
    }

    /// Starts the connect timer, which makes another attempt.
    fn repeat_later(self: &Arc<Self>, inner: &mut Inner) {
        let repeat = &mut inner.connection.attempt.repeat;
        repeat.is_due = true;
        let delay = msecs_to_jiffies(repeat.next_delay());
        let _ = queue().enqueue_delayed::<_, CONNECT>(self.clone(), delay);
    }

    /// Makes another attempt, unless the connect has ended meanwhile. Context: the connect timer.
    pub(in crate::dat::ep) fn repeat(self: &Arc<Self>) {
        let old = {
            let mut inner = self.inner.lock();
            if !core::mem::take(&mut inner.connection.attempt.repeat.is_due) || !inner.repeats() {
                return;
            }
            inner.connection.attempt.request_waits = false;
            inner.connection.attempt.repeat.requested = false;
            inner.connection.id.take()
        };
        // Waits for a handler of the last attempt.
        drop(old);
        if self.attempt_again().is_err() {
            let mut inner = self.inner.lock();
            if inner.repeats() {
                self.repeat_later(&mut inner);
            }
        }
    }

    fn attempt_again(self: &Arc<Self>) -> DatResult {
        let (qos, remote) = {
            let inner = self.inner.lock();
            (
                inner.connection.attempt.repeat.qos,
                inner.connection.addresses.remote,
            )
        };
        let ia = &self.context.ia;
        let local = ia.source_address(remote)?;
        let id = self.make_id(qos, Payer::Other(ia.mem_cgroup()))?;
        if !self.adopt(&id) {
            return Ok(());
        }
        id.resolve_addr(local, ia.port(), remote)?;
        // The thread that has called connect may still have to post the receives.
        if self.post_preposted(&id) {
            self.request(&id.lock());
        }
        Ok(())
    }

    /// Makes this ID that of the present attempt. Returns `false` if the connect has ended.
    ///
    /// A reset waits for the connect timer, so no other connect can have begun.
    fn adopt(&self, id: &Arc<CmId>) -> bool {
        let mut inner = self.inner.lock();
        let adopts = inner.repeats() && inner.connection.id.is_none();
        if adopts {
            inner.connection.id = Some(id.clone());
        }
        adopts
    }
}
