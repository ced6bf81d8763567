// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Repeats a connect without a time-out (`DAT_TIMEOUT_INFINITE`) that the peer has not answered,
//! and over iWARP a connect whose local port is in use.
//!
//! `rdma_cm` gives up after some seconds or minutes. Such a connect ends when the peer answers,
//! also by a reject, or when the consumer ends it. So the Endpoint makes another attempt with a new
//! ID of the connection manager (CM), after a delay that grows. The queue pair (QP) and its posted
//! receives stay.
//!
//! Over iWARP the local port of an attempt may be one that a TCP socket uses: `rdma_cm` does not
//! know the ports of TCP. A new ID mostly has another one.
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
        workqueue::{
            cancel_delayed,
            queue, //
        },
    },
};
use kernel::time::msecs_to_jiffies;

/// Milliseconds before the first repetition.
const FIRST_DELAY_MS: u32 = 250;

/// Number of times that the delay doubles.
const DOUBLINGS: u32 = 5;

/// Largest number of attempts that follow at once when TCP uses the local port.
const MAX_OTHER_PORTS: u32 = 32;

/// State of the repetitions of a connect.
pub(in crate::dat::ep) struct Repeat {
    /// Quality of service of each attempt.
    qos: Qos,
    /// Number of attempts that have failed.
    failures: u32,
    /// Number of attempts whose local port was in use.
    ports_in_use: u32,
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
            ports_in_use: 0,
            requested: false,
            is_due: false,
        }
    }

    /// Records that the request is about to be sent.
    pub(in crate::dat::ep) fn note_request(&mut self) {
        self.requested = true;
    }

    /// Returns whether the connect timer makes another attempt.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Counts an attempt whose local port was in use. Returns whether another one follows at once.
    fn tries_another_port(&mut self) -> bool {
        self.ports_in_use = self.ports_in_use.saturating_add(1);
        self.ports_in_use <= MAX_OTHER_PORTS
    }

    /// Counts a failure. Returns the milliseconds until the next attempt.
    fn next_delay(&mut self) -> u32 {
        let delay = FIRST_DELAY_MS << self.failures.min(DOUBLINGS);
        self.failures = self.failures.saturating_add(1);
        delay
    }
}

impl Inner {
    /// Returns whether the connect is in progress, and the peer has not accepted.
    fn may_attempt_again(&self) -> bool {
        matches!(self.phase, Phase::Connecting(_)) && !self.connection.attempt.confirms
    }

    /// Returns whether the connect goes on until the peer answers.
    fn repeats(&self) -> bool {
        self.may_attempt_again() && matches!(self.connection.attempt.deadline, Deadline::Never)
    }
}

impl Ep {
    /// Handles the end of an attempt that the peer has not answered: reports UNREACHABLE, or
    /// prepares another attempt.
    pub(in crate::dat::ep) fn unanswered(self: &Arc<Self>, id: &IdRef<'_>) {
        self.unanswered_as(id, Network::Unreachable);
    }

    /// As [`Ep::unanswered`], but reports `failure`.
    fn unanswered_as(self: &Arc<Self>, id: &IdRef<'_>, failure: Network) {
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
            self.failed(id, failure);
        }
    }

    /// Handles an attempt whose local port TCP uses. Makes another attempt at once, unless there
    /// were many.
    pub(super) fn local_port_in_use(self: &Arc<Self>, id: &IdRef<'_>) {
        let tries_again = {
            let mut inner = self.inner.lock();
            let tries_again = inner.owns(id)
                && inner.may_attempt_again()
                && inner.connection.attempt.repeat.tries_another_port();
            if tries_again {
                self.repeat_after(&mut inner, 0);
            }
            tries_again
        };
        if !tries_again {
            self.unsent(id, Network::NonPeerRejected);
        }
    }

    /// Handles an attempt whose request could not be sent: reports `failure`, or prepares another
    /// attempt.
    pub(super) fn unsent(self: &Arc<Self>, id: &IdRef<'_>, failure: Network) {
        {
            let mut inner = self.inner.lock();
            if inner.owns(id) {
                inner.connection.attempt.repeat.requested = false;
            }
        }
        self.unanswered_as(id, failure);
    }

    /// Starts the connect timer, which makes another attempt after a delay that grows.
    fn repeat_later(self: &Arc<Self>, inner: &mut Inner) {
        let delay = inner.connection.attempt.repeat.next_delay();
        self.repeat_after(inner, delay);
    }

    /// Starts the connect timer, which makes another attempt after so many milliseconds, or at the
    /// deadline ends the connect.
    fn repeat_after(self: &Arc<Self>, inner: &mut Inner, milliseconds: u32) {
        inner.connection.attempt.repeat.is_due = true;
        let left = inner.connection.attempt.deadline.millis_left();
        let left = left.map_or(u32::MAX, |left| u32::try_from(left).unwrap_or(u32::MAX));
        // It runs for the deadline otherwise. The attempt starts it for that again.
        cancel_delayed::<_, CONNECT>(self);
        let delay = msecs_to_jiffies(milliseconds.min(left));
        let _ = queue().enqueue_delayed::<_, CONNECT>(self.clone(), delay);
    }

    /// Makes another attempt if one is due, unless the connect has ended meanwhile or its time is
    /// over. Context: the connect timer.
    pub(super) fn repeat(self: &Arc<Self>) {
        let old = {
            let mut inner = self.inner.lock();
            let is_due = core::mem::take(&mut inner.connection.attempt.repeat.is_due);
            let is_late = inner.connection.attempt.deadline.has_passed();
            if !is_due || is_late || !inner.may_attempt_again() {
                return;
            }
            inner.connection.attempt.request_waits = false;
            inner.connection.attempt.repeat.requested = false;
            inner.connection.id.take()
        };
        // Waits for a handler of the last attempt, unless the thread of a call still has the ID.
        drop(old);
        if let Err(error) = self.attempt_again() {
            self.attempt_failed(error);
        }
    }

    /// Handles another attempt that could not begin. The last one may still hold the user's share
    /// of a resource.
    fn attempt_failed(self: &Arc<Self>, error: DatError) {
        {
            let mut inner = self.inner.lock();
            let lacks = error.kind() == Kind::InsufficientResources;
            if inner.repeats() || (lacks && inner.may_attempt_again()) {
                return self.repeat_later(&mut inner);
            }
        }
        let failure = match error.kind() {
            Kind::InvalidAddress => Network::Unreachable,
            _ => Network::NonPeerRejected,
        };
        // Refused if the connect has ended.
        let _ = self.feed(failure, None);
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
        let adopts = inner.may_attempt_again() && inner.connection.id.is_none();
        if adopts {
            inner.connection.id = Some(id.clone());
        }
        adopts
    }
}
