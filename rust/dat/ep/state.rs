// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Feeds the state machine, and executes its effects.

use super::{
    Ep,
    Inner,
    PendingEffects,
    CONNECT, //
};
use crate::{
    dat::{
        evd::Demand,
        prelude::*, //
    },
    model::{
        ep::{
            step,
            ConnectionEvent,
            Effects,
            Input,
            Network,
            Phase,
            Progress, //
        },
        event::{
            AsyncEvent,
            Event, //
        },
        handle::{
            Direction,
            PerDirection, //
        },
    },
    rdma::cm::IdRef,
    sys::workqueue::cancel_delayed, //
};

/// Reason of an asynchronous Endpoint event: the QP went to the error state.
const REASON_TRANSFER_TO_ERROR: u32 = 0;

impl Ep {
    /// Takes one transition: changes the phase, and queues the connection event of the transition.
    /// The caller executes the other effects, after it has released the lock.
    pub(super) fn advance(&self, inner: &mut Inner, input: impl Into<Input>) -> DatResult<Effects> {
        self.take_step(inner, input.into())
    }

    /// Implements [`Ep::advance`].
    fn take_step(&self, inner: &mut Inner, input: Input) -> DatResult<Effects> {
        let input = match input {
            Input::Network(Network::Established) => inner.connection.gate.established().into(),
            other => other,
        };
        let (phase, effects) = step(inner.phase, input)?;
        let held_receives = inner.phase.holds_receives();
        self.enter(inner, input, phase);
        if is_winding_up(phase) {
            self.close_end_or_give_up(inner);
        }
        if let Some(event) = effects.event {
            self.report_connection(inner, event);
        }
        if held_receives && !phase.holds_receives() {
            // Reports the first batch. The effects report the rest: see [`Ep::settle`].
            inner.report_held_if_allowed(self.handle());
        }
        if effects.report_broken {
            self.report_broken();
        }
        Ok(effects)
    }

    /// The asynchronous event of an Endpoint that has failed, or, with an SRQ, whose last receive
    /// has completed.
    fn broken(&self) -> Event {
        Event::Async {
            cause: AsyncEvent::EpBroken,
            object: self.handle(),
            reason: REASON_TRANSFER_TO_ERROR,
        }
    }

    /// Reports on the asynchronous EVD that the Endpoint has failed.
    fn report_broken(&self) {
        self.context.report(&self.broken());
    }

    /// Queues a connection event. BROKEN becomes an asynchronous event if the consumer wants no
    /// connection events. With an SRQ an asynchronous event follows the end of a connection: the
    /// Endpoint has taken all its receives.
    fn report_connection(&self, inner: &Inner, event: ConnectionEvent) {
        if event == ConnectionEvent::Broken {
            self.context.connection_broke();
        }
        if event == ConnectionEvent::Broken && inner.parts.discard_connection_events() {
            return self.report_broken();
        }
        let private_data_size = match event {
            ConnectionEvent::Established | ConnectionEvent::PeerRejected => {
                inner.connection.peer_data.size()
            }
            ConnectionEvent::NonPeerRejected
            | ConnectionEvent::AcceptCompletionError
            | ConnectionEvent::Disconnected
            | ConnectionEvent::Broken
            | ConnectionEvent::TimedOut
            | ConnectionEvent::Unreachable => 0,
        };
        inner.parts.report_connection(&Event::Connection {
            event,
            ep: self.handle(),
            private_data_size,
            reason: 0,
        });
        let ends = matches!(
            event,
            ConnectionEvent::Disconnected | ConnectionEvent::Broken
        );
        if ends && inner.parts.srq.is_some() {
            self.report_broken();
        }
    }

    /// Changes the phase because of `input`. Counts connections.
    pub(super) fn enter(&self, inner: &mut Inner, input: Input, phase: Phase) {
        self.trace_step(inner, input, phase);
        let (before, now) = (inner.phase.is_connected(), phase.is_connected());
        inner.phase = phase;
        match phase {
            Phase::Connecting(_) | Phase::Accepting(_) => {
                inner.srq_receives.begin(inner.parts.srq.is_some());
                self.awaits_last_receive
                    .swap(inner.srq_receives.are_expected());
                if let Some(shares) = &inner.shares {
                    shares.set_taken_all(false);
                }
            }
            // The QP is in INIT, and takes no receives.
            Phase::Unconnected(_)
            | Phase::Reserved(_)
            | Phase::Passive(_)
            | Phase::Tentative(_) => inner.srq_receives.end(),
            Phase::Gated(_)
            | Phase::GatedEnded(_)
            | Phase::Connected(_)
            | Phase::Draining
            | Phase::Flushing(_)
            | Phase::Disconnected => {}
            Phase::Freed => inner.parts.note_life_ended(),
        }
        if now && !before {
            self.context.connection_began();
        } else if before && !now {
            self.context.connection_ended();
        }
    }

    /// Feeds one input, and executes the effects.
    ///
    /// `id` is the ID whose handler this is, or whose handler mutex the caller holds. If the
    /// Endpoint no longer owns it, the event belongs to an attempt that is over, and nothing
    /// happens. Other users of `rdma_cm` wait for a handler, so with an `id` the effects are left
    /// to the work item.
    ///
    /// Context: process; sleeps.
    pub(super) fn feed(
        self: &Arc<Self>,
        input: impl Into<Input>,
        id: Option<&IdRef<'_>>,
    ) -> DatResult {
        self.feed_with_change(input.into(), id, |_| {})
    }

    /// As [`Ep::feed`], with a `change` that is made under the same lock before the transition. It
    /// is made also if the transition is refused.
    pub(super) fn feed_with_change(
        self: &Arc<Self>,
        input: Input,
        id: Option<&IdRef<'_>>,
        change: impl FnOnce(&mut Inner),
    ) -> DatResult {
        let pending = {
            let mut inner = self.inner.lock();
            if id.is_some_and(|id| !inner.owns(id)) {
                return Ok(());
            }
            change(&mut inner);
            let effects = self.advance(&mut inner, input)?;
            if id.is_some() {
                self.perform_from_handler(&mut inner, effects);
                return Ok(());
            }
            inner.bind_effects(effects)
        };
        self.perform(pending);
        Ok(())
    }

    /// Stops the timer, and leaves the other effects to the work item. The caller has held the lock
    /// since the transition.
    fn perform_from_handler(self: &Arc<Self>, inner: &mut Inner, effects: Effects) {
        if effects.stop_timer {
            cancel_delayed::<_, CONNECT>(self);
        }
        let rest = effects.left_in_handler();
        if rest != Effects::NONE || is_winding_up(inner.phase) || inner.demand.is_some() {
            self.perform_later(inner, rest);
        }
    }

    /// Executes the effects of a transition. Context: process; sleeps.
    pub(super) fn perform(self: &Arc<Self>, pending: PendingEffects) {
        if pending.effects.stop_timer {
            // After a reset the timer belongs to another attempt.
            let inner = self.inner.lock();
            if inner.life == pending.life {
                cancel_delayed::<_, CONNECT>(self);
            }
        }
        if pending.effects.start_timer {
            self.start_timer();
        }
        // The call that connects is interrupted first: moving the QP to ERR waits for its end.
        pending.cancel_call();
        if pending.effects.qp_error {
            self.fail_qp(pending.life);
        }
        pending.disconnect_id();
        self.settle();
    }

    /// Reports the receives that are held back, if ESTABLISHED was reported or never will be. Then
    /// executes the effects that follow once nothing is outstanding, if any.
    pub(super) fn settle(self: &Arc<Self>) {
        // One batch in each critical section.
        while self.inner.lock().report_held_if_allowed(self.handle()) {}
        // A demand that is over is dropped after the lock.
        let (pending, _ended_demand) = {
            let mut inner = self.inner.lock();
            self.check_watermarks(&mut inner);
            let (effects, ended_demand) = self.wind_up(&mut inner);
            let pending = (effects != Effects::NONE).then(|| inner.bind_effects(effects));
            (pending, ended_demand)
        };
        if let Some(pending) = pending {
            self.perform(pending);
        }
    }

    /// Advances the state machine if requests or all DTOs have completed. Keeps the EVDs draining
    /// until then, and while receives are held back.
    ///
    /// Returns the remaining effects, and the demand on the EVDs that is over. The caller drops the
    /// latter after the lock.
    pub(super) fn wind_up(&self, inner: &mut Inner) -> (Effects, Option<PerDirection<Demand>>) {
        if !inner.needs_drains() && inner.demand.is_none() {
            return (Effects::NONE, None);
        }
        let effects = self.step_if_idle(inner);
        if !inner.needs_drains() {
            return (effects, inner.demand.take());
        }
        inner.begin_demand();
        (effects, None)
    }

    /// Advances the state machine if requests, or requests and receives, are idle. Returns the
    /// remaining effects.
    fn step_if_idle(&self, inner: &mut Inner) -> Effects {
        let mut left = Effects::NONE;
        if inner.has_outstanding_before_end(Direction::Request) {
            return left;
        }
        // These inputs are no calls of the consumer, so they never fail.
        if let Ok(effects) = self.advance(inner, Progress::RequestsIdle) {
            left = effects;
        }
        // Receives flush only after the QP was moved to ERR.
        let receives = inner.has_outstanding_before_end(Direction::Receive);
        if left.qp_error || receives || inner.srq_receives.are_expected() {
            return left;
        }
        if let Ok(effects) = self.advance(inner, Progress::Idle) {
            left = effects;
        }
        left
    }
}

impl Inner {
    /// Returns whether the EVDs have to be drained even if no consumer does it.
    fn needs_drains(&self) -> bool {
        is_winding_up(self.phase) || (self.phase != Phase::Freed && !self.held.is_empty())
    }

    /// Keeps the EVDs draining, until [`Ep::wind_up`]. Meanwhile no completion takes the fast path.
    pub(super) fn begin_demand(&mut self) {
        if self.demand.is_none() {
            self.demand = self
                .parts
                .dto_evds()
                .map(|evds| evds.map(|evd| evd.begin_demand()));
        }
    }
}

/// Returns whether an Endpoint waits for outstanding DTOs before it reports its last event.
fn is_winding_up(phase: Phase) -> bool {
    match phase {
        Phase::Draining | Phase::Flushing(_) => true,
        Phase::Unconnected(_)
        | Phase::Reserved(_)
        | Phase::Passive(_)
        | Phase::Tentative(_)
        | Phase::Connecting(_)
        | Phase::Accepting(_)
        | Phase::Gated(_)
        | Phase::GatedEnded(_)
        | Phase::Connected(_)
        | Phase::Disconnected
        | Phase::Freed => false,
    }
}
