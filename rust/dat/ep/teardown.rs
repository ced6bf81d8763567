// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! How an Endpoint ends: freed, failed, or left alone by its device.

use super::{
    Ep,
    Inner,
    Shares,
    CONNECT,
    FAILURE,
    LEFT, //
};
use crate::{
    dat::{
        evd::{
            no_room,
            Evd, //
        },
        prelude::*, //
    },
    model::{
        dto::Scan,
        ep::{
            Call,
            Network,
            Phase, //
        },
        handle::{
            Direction,
            LIVES, //
        },
    },
    rdma::qp,
    sys::workqueue::{
        cancel_delayed,
        cancel_delayed_sync,
        queue, //
    },
};
use kernel::{
    impl_has_delayed_work,
    sync::ArcBorrow,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    },
    workqueue::WorkItem, //
};

/// Milliseconds that an answer has for leaving before the QP is stopped.
const LAST_WORDS_MS: u32 = 20;

/// Milliseconds that `rdma_cm` has for telling why a QP has stopped.
const OTHER_NEWS_MS: u32 = 1_000;

/// Milliseconds in which a device completes something of what flushes.
const FLUSH_TRIES: u32 = 100;

/// How many DTOs are given up under one lock.
const GIVE_UP_BATCH: u32 = 64;

/// Gives the device time to complete what flushes, for as long as `unflushed` becomes less.
///
/// Context: process; sleeps.
pub(in crate::dat) fn flush(unflushed: impl Fn() -> u32) {
    let mut left = unflushed();
    let mut tries = 0;
    while left != 0 && tries < FLUSH_TRIES {
        fsleep(Delta::from_millis(1));
        let now = unflushed();
        tries = if now < left {
            0
        } else {
            tries.saturating_add(1)
        };
        left = now;
    }
}

impl Inner {
    /// Whether nothing was posted to the QP, nor is about to be, and it was never connected. It has
    /// nothing to flush, and is destroyed without waiting for its provider's workers.
    ///
    /// Once the Endpoint is freed this stays so.
    fn has_unused_qp(&self) -> bool {
        self.connection.id.is_none()
            && self.requests.outstanding() == 0
            && self.receives.outstanding() == 0
            && self.waiting == Some(0)
    }

    /// Gives up some of what is in flight from this slot on; says where there may be more.
    fn give_up_some(&mut self, ep: u64, direction: Direction, from: u32) -> Option<u32> {
        let (slots, evd) = match direction {
            Direction::Receive => (&mut self.receives, self.parts.recv_evd()),
            Direction::Request => (&mut self.requests, self.parts.request_evd()),
        };
        let (mut from, mut count) = (from, 0_u32);
        let next = loop {
            if count >= GIVE_UP_BATCH {
                break Some(from);
            }
            match slots.find_busy(from) {
                Scan::Busy(slot, dto) => {
                    slots.complete(slot);
                    count = count.saturating_add(1);
                    if let (Ok(evd), false) = (evd, self.phase == Phase::Freed) {
                        // What is beyond the queue length is for the events of connections.
                        let _ = evd.post(&dto.flushed(ep));
                    }
                    from = slot.saturating_add(1);
                }
                // Others have the lock first.
                Scan::Idle(next) => break Some(next),
                Scan::End => break None,
            }
        };
        if let Some(shares) = &self.shares {
            shares.give_up(direction, count);
        }
        next
    }
}

impl Ep {
    /// Freed, whatever it was doing: lets go of everything and reports nothing any more.
    ///
    /// Context: process; sleeps.
    pub(super) fn end(self: &Arc<Self>) {
        self.hide_trace();
        let (was, life, id, demand, is_unused) = {
            let mut inner = self.inner.lock();
            let was = inner.phase;
            self.enter(&mut inner, Call::Free.into(), Phase::Freed);
            inner.forget_early();
            let is_unused = inner.has_unused_qp();
            (
                was,
                inner.life,
                inner.connection.id.clone(),
                inner.demand.take(),
                is_unused,
            )
        };
        cancel_delayed::<_, CONNECT>(self);
        drop(demand);
        if !is_unused {
            self.fail_qp(life);
        }
        if let Some(id) = id {
            id.disconnect();
        }
        self.let_go_after_reset(was);
        // The QP is gone: nothing fails any more that would start this timer again.
        cancel_delayed_sync::<_, FAILURE>(self);
        cancel_delayed_sync::<_, LEFT>(self);
        let parts = {
            let mut inner = self.inner.lock();
            (
                core::mem::take(&mut inner.streams),
                core::mem::take(&mut inner.parts),
            )
        };
        drop(parts);
    }

    /// The device goes: the connection breaks, and what is outstanding begins to flush.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn device_leaves(self: &Arc<Self>) {
        let _ = self.feed(Network::DeviceRemoved, None);
    }

    /// The device goes, and what has not flushed by now never will: lets go of QP and id.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn device_removed(self: &Arc<Self>) {
        let now = self.inner.lock().phase;
        self.let_go_after_reset(now);
        self.settle();
    }

    /// Lets go of everything, but not in the middle of a reset, which may have taken the QP: as long as
    /// that is not gone its completions still come, and need the places that are given back here.
    ///
    /// An Endpoint is reset in DISCONNECTED alone. In other phases this may run in `rdma_cm`'s handlers,
    /// for which a reset waits.
    fn let_go_after_reset(&self, phase: Phase) {
        let _alone = (phase == Phase::Disconnected).then(|| self.resets.lock());
        self.let_go();
    }

    /// Parts with id and QP, and gives up what has not completed by then.
    fn let_go(&self) {
        // In this order: no event comes once the id is gone, no completion once the QP is. Over iWARP
        // the id may keep the QP, and that its shares.
        let (id, qp) = self.take_connection();
        drop(id);
        drop(qp);
        self.drain();
        self.give_up();
        self.preposted.lock().clear();
        self.inner.lock().waiting = None;
    }

    /// Sees that another life may begin: that no completion of an old one, which may lie in a queue
    /// behind a full EVD, can be taken for one of the new.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD) after many lives while such a completion may be there: until the
    /// consumer takes some events.
    pub(super) fn may_begin_life(&self) -> DatResult {
        self.drain();
        let mut inner = self.inner.lock();
        if !inner.parts.have_given_up() {
            inner.past_lives = 0;
        }
        if inner.past_lives.saturating_add(2) > LIVES {
            return Err(no_room());
        }
        Ok(())
    }

    /// Another life begins: what the last one has posted completes no more. There is no QP any more.
    pub(super) fn begin_life(&self) {
        self.drain();
        // The connection was taken with what concerned the peer. But a thread that could not send its
        // request may have left its id since, which is dropped after the lock.
        let due = {
            let mut inner = self.inner.lock();
            inner.life = inner.life.wrapping_add(1);
            inner.past_lives = inner.past_lives.saturating_add(1);
            inner.due.take()
        };
        drop(due);
        self.give_up();
    }

    /// Reports what is in flight as flushed, as far as there is room, and gives it up.
    ///
    /// What has completed is drained before: by the caller, while it still counts as completed.
    fn give_up(&self) {
        for direction in [Direction::Receive, Direction::Request] {
            let mut next = Some(0);
            while let Some(from) = next {
                let mut inner = self.inner.lock();
                next = inner.give_up_some(self.handle(), direction, from);
            }
        }
        let shares = self.inner.lock().shares.take();
        drop(shares);
        // What the completion queues hold no longer counts any more.
        self.drain();
    }

    /// Drains both EVDs.
    pub(super) fn drain(&self) {
        let evds = self.inner.lock().parts.dto_evds();
        if let Some((receives, requests)) = evds {
            receives.drain_now();
            requests.drain_now();
        }
    }

    /// Queues the pumps of both EVDs, if the Endpoint is connected.
    pub(in crate::dat) fn drain_soon(&self) {
        let evds = {
            let inner = self.inner.lock();
            let evds = inner.phase.is_connected().then(|| inner.parts.dto_evds());
            evds.flatten()
        };
        if let Some((receives, requests)) = evds {
            receives.drain_soon();
            if !Arc::ptr_eq(&receives, &requests) {
                requests.drain_soon();
            }
        }
    }

    /// Drains, and says how much is in flight that may be drained yet.
    pub(in crate::dat) fn unflushed(&self) -> u32 {
        self.drain();
        let inner = self.inner.lock();
        let left = |outstanding: u32, evd: DatResult<&Evd>| match evd {
            Ok(evd) if !evd.is_full() => outstanding,
            Ok(_) | Err(_) => 0,
        };
        left(inner.receives.outstanding(), inner.parts.recv_evd()).saturating_add(left(
            inner.requests.outstanding(),
            inner.parts.request_evd(),
        ))
    }

    /// The QP has failed at this side: ends the connection, once the answer that tells the peer what
    /// was wrong has had time to leave. A QP that is moved to ERR sends no answer any more.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn break_soon(self: &Arc<Self>) {
        self.break_after(LAST_WORDS_MS);
    }

    /// The QP was found stopped: the connection ends as broken, unless `rdma_cm` tells of another end
    /// soon.
    ///
    /// Context: any that may take a spinlock.
    pub(super) fn break_later(self: &Arc<Self>) {
        self.break_after(OTHER_NEWS_MS);
    }

    fn break_after(self: &Arc<Self>, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let _ = queue().enqueue_delayed::<_, FAILURE>(self.clone(), delay);
    }
}

impl qp::Handler for Ep {
    type Kept = Arc<Shares>;

    fn failed(this: ArcBorrow<'_, Self>) {
        Self::break_soon(&Arc::from(this));
    }

    fn destroyed(shares: Self::Kept) {
        Shares::end(shares);
    }
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self, { FAILURE }> for Ep { self.failure }
}

impl WorkItem<FAILURE> for Ep {
    type Pointer = Arc<Self>;

    /// The peer knows by now.
    fn run(this: Arc<Self>) {
        let _ = this.feed(Network::Broken, None);
    }
}
