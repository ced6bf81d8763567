// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends an Endpoint: after its free, a failure of its queue pair (QP), or the removal of its
//! device.

mod acknowledgement;
mod break_connection;
mod give_up;
mod stop;

pub(in crate::dat) use self::stop::flush_freed;

use super::{
    connect::HeldBack,
    distinct,
    Ep,
    Kept,
    Named,
    CONNECT,
    LAST_RECEIVE,
    PEER_DISCONNECT, //
};
use crate::{
    dat::{
        base::{
            Freeing,
            SlotStorage, //
        },
        evd::{
            no_room,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        dto::DtoSlots,
        ep::{
            Network,
            Phase, //
        },
        handle::LIVES,
        requests::{
            Requests,
            Signalling, //
        },
    },
    rdma::qp,
    sys::{
        memcg::Payer,
        workqueue::cancel_delayed_sync, //
    },
};
use kernel::{
    sync::ArcBorrow,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
};

/// Number of resets since the completion queues were last known to hold no completion of an earlier
/// life.
#[derive(Default)]
pub(super) struct PastLives(u32);

impl PastLives {
    /// Returns whether a completion queue may hold a completion of an earlier life.
    pub(super) const fn any(&self) -> bool {
        self.0 != 0
    }
}

/// Milliseconds without progress after which the wait for the flush of a live Endpoint ends.
const FLUSH_MS: u32 = 100;

/// Shortest pause between two polls of a flushing device in microseconds. Each further pause is
/// twice as long, up to a millisecond.
const FIRST_PAUSE_US: i64 = 50;

/// Waits until the device has completed the flushed DTOs. Gives up if `unflushed` reaches no new
/// minimum for `patience_ms`, so that a consumer that keeps posting does not prolong the wait.
/// Counts the time of `unflushed`, which may poll for thousands of Endpoints. Counts pauses at
/// their nominal length: on a busy machine the device's workers are late, too.
///
/// Context: process; sleeps.
pub(super) fn flush(patience_ms: u32, unflushed: impl Fn() -> u32) {
    let patience_us = i64::from(patience_ms).saturating_mul(1_000);
    let (mut least, mut pause, mut waited) = (unflushed(), FIRST_PAUSE_US, 0_i64);
    while least != 0 && waited < patience_us {
        fsleep(Delta::from_micros(pause));
        let polled = Instant::<Monotonic>::now();
        let left = unflushed();
        let took = polled.elapsed().as_micros_ceil();
        waited = waited.saturating_add(pause).saturating_add(took);
        pause = pause.saturating_mul(2).min(1_000);
        if left < least {
            (least, waited) = (left, 0);
        }
    }
}

/// As [`flush`], for Endpoints that stay.
///
/// Context: process; sleeps.
pub(in crate::dat) fn flush_live(unflushed: impl Fn() -> u32) {
    flush(FLUSH_MS, unflushed);
}

impl Ep {
    /// Ends the Endpoint in any phase: releases all objects, and reports no further events.
    /// Completions that are left are given up, unless the caller has [stopped](Ep::stop) and
    /// flushed it while its handle was valid.
    ///
    /// Context: process; sleeps.
    pub(super) fn end(self: &Arc<Self>, freeing: Freeing<'_, Self>) {
        self.stop();
        let was = self.inner.lock().freed_in.unwrap_or(Phase::Freed);
        self.release_all_after_reset(was);
        // The removal of the device waits for this, and the next step for readers of the file.
        drop(freeing);
        self.hide_trace();
        // The QP is destroyed, so no failure of it starts these timers again.
        self.cancel_timers();
        self.release_parts();
    }

    /// Cancels the timers of a connection, and waits for those that run.
    ///
    /// Context: process; sleeps.
    pub(super) fn cancel_timers(self: &Arc<Self>) {
        cancel_delayed_sync::<_, CONNECT>(self);
        cancel_delayed_sync::<_, LAST_RECEIVE>(self);
        cancel_delayed_sync::<_, PEER_DISCONNECT>(self);
        // The others may break the connection.
        self.cancel_break();
    }

    /// Releases the objects and the memory of a freed Endpoint whose QP is destroyed. An RMR that
    /// was bound on the Endpoint may keep the rest.
    fn release_parts(&self) {
        // The drop may release the last references, which sleeps, so it follows the lock.
        let parts = {
            let mut inner = self.inner.lock();
            let traffic = core::mem::take(&mut inner.traffic);
            self.context.totals.lock().add_past(&traffic);
            (
                core::mem::take(&mut inner.streams),
                core::mem::take(&mut inner.parts),
                core::mem::replace(
                    &mut inner.requests,
                    Requests::new(SlotStorage::empty(), Signalling::All),
                ),
                core::mem::replace(&mut inner.receives, DtoSlots::new(SlotStorage::empty())),
                core::mem::replace(&mut inner.named, Named::none()),
                core::mem::replace(&mut inner.held, HeldBack::none()),
            )
        };
        drop(parts);
    }

    /// Breaks the connection of a device that is being removed. Outstanding DTOs begin to flush.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn break_for_removal(self: &Arc<Self>) {
        let _ = self.feed(Network::DeviceRemoved, None);
    }

    /// Releases QP and ID of a device that is being removed. DTOs that have not flushed by now
    /// never will.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn release_device(self: &Arc<Self>) {
        // A thread that frees the Endpoint meanwhile waits for this.
        let _free = self.context.eps.begin_free();
        let now = self.inner.lock().phase;
        self.release_all_after_reset(now);
        self.settle();
    }

    /// Releases everything, but not while a reset destroys the QP.
    ///
    /// Until the QP is destroyed its completions still arrive, and need the slots that are freed
    /// here.
    ///
    /// An Endpoint is reset in DISCONNECTED only. In other phases this may run in handlers of
    /// `rdma_cm`, for which a reset waits, so there the mutex is not taken.
    fn release_all_after_reset(&self, phase: Phase) {
        let _no_old_qp = (phase == Phase::Disconnected).then(|| self.old_qp.lock());
        self.release_all();
    }

    /// Releases ID and QP, and gives up the DTOs that have not completed by then.
    fn release_all(&self) {
        // In this order: no event arrives once the ID is destroyed, no completion once the QP is.
        // Over iWARP the ID may keep the QP alive, and the QP its shares of the completion queues.
        let (id, qp) = self.take_connection();
        drop(id);
        self.destroy_qp(qp);
        self.drain_evds();
        self.give_up_dtos();
        self.preposted.lock().clear();
        self.inner.lock().preposted_count = None;
    }

    /// Checks that no completion of an earlier life can be taken for one of the next life. Such a
    /// completion may stay in a completion queue while the EVD is full.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) after too many resets while such a completion may be left,
    /// until the consumer dequeues some events.
    pub(super) fn may_begin_life(&self, past_lives: &mut PastLives) -> DatResult {
        self.drain_evds();
        if !self.inner.lock().parts.evds_have_given_up_dtos() {
            *past_lives = PastLives::default();
        }
        if past_lives.0.saturating_add(2) > LIVES {
            return Err(no_room());
        }
        Ok(())
    }

    /// Begins another life: completions of the last one are ignored from now on. The QP is
    /// destroyed.
    pub(super) fn begin_life(&self, past_lives: &mut PastLives) {
        self.drain_evds();
        // Count every life after one that left DTOs unfinished: `wr_id` has four bits for the
        // count.
        if past_lives.any() || self.inner.lock().unfinished() != 0 {
            past_lives.0 = past_lives.0.saturating_add(1);
        }
        // The pending effects were taken with the connection. But a thread that could not send its
        // request may have left its ID here since. It is dropped after the lock.
        let pending = {
            let mut inner = self.inner.lock();
            inner.life = inner.life.wrapping_add(1);
            inner.parts.note_life_ended();
            inner.pending_effects.take()
        };
        drop(pending);
        self.give_up_dtos();
        // End the demand of held receives here: the work item has no effects that would.
        let demand = self.inner.lock().demand.take();
        drop(demand);
    }

    /// Drains both EVDs.
    pub(in crate::dat) fn drain_evds(&self) {
        if let Some(evds) = self.dto_evds() {
            evds.receives.drain_all();
            evds.requests.drain_all();
        }
    }

    /// Queues the work items that drain both EVDs, if the Endpoint is connected.
    pub(in crate::dat) fn queue_pumps(&self) {
        let evds = {
            let inner = self.inner.lock();
            let evds = inner.phase.is_connected().then(|| inner.parts.dto_evds());
            evds.flatten()
        };
        if let Some(evds) = evds {
            distinct(&evds).for_each(|evd| evd.queue_pump());
        }
    }

    /// Polls all completions of both EVDs. Returns the number of DTOs and probes in flight, but
    /// counts no DTOs whose EVD is full: their completions may wait in its spill, whose memory is
    /// charged to `payer`.
    ///
    /// A driver may need the QP for the poll of each completion. Then the number is that of
    /// [`Ep::unpolled`].
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn unflushed(&self, payer: Payer<'_>) -> u32 {
        let needs_qp = {
            let inner = self.inner.lock();
            if inner.unfinished() == 0 {
                return 0;
            }
            let qp = inner.qp.as_ref();
            qp.is_some_and(|qp| qp.is_used_by_late_polls())
        };
        self.drain_evds_fully(payer);
        if needs_qp {
            return self.unpolled();
        }
        let inner = self.inner.lock();
        let left = |outstanding: u32, evd: DatResult<&Evd>| match evd {
            Ok(evd) if !evd.is_full() => outstanding,
            Ok(_) | Err(_) => 0,
        };
        let receives = inner
            .receives
            .outstanding()
            .saturating_add(inner.srq_receives.are_expected().into());
        left(receives, inner.parts.recv_evd())
            .saturating_add(left(
                inner.requests.outstanding(),
                inner.parts.request_evd(),
            ))
            .saturating_add(inner.connection.keepalive.probes())
    }
}

impl qp::Handler for Ep {
    type Kept = Kept;

    fn failed(this: ArcBorrow<'_, Self>) {
        Self::break_after_error_reply(&Arc::from(this));
    }

    fn last_receive(this: ArcBorrow<'_, Self>) {
        Self::end_receives(&Arc::from(this));
    }

    fn destroyed(kept: Self::Kept) {
        kept.end();
    }

    fn leaked(kept: Self::Kept) {
        kept.leak();
    }
}

#[kunit_tests(kdapl_dat_ep_teardown)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn the_wait_for_a_flush_counts_slow_polls() {
        let polls = Cell::new(0);
        flush(20, || {
            polls.set(polls.get() + 1);
            fsleep(Delta::from_millis(10));
            1
        });
        // The first poll begins the wait.
        assert!(polls.get() <= 3);
    }

    #[test]
    fn the_wait_for_a_flush_ends_with_it() {
        let left = Cell::new(3_u32);
        flush(1_000, || left.replace(left.get().saturating_sub(1)));
        assert!(left.get() == 0);
    }
}
