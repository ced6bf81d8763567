// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! From the completion queue to the ring, and who does it.
//!
//! The completion callback only wakes; see [`cq::Handler`]. Whoever is woken drains. The pump is a
//! work item that drains while there is *demand*: a waiter for many events is not to be woken
//! before there are that many, and an Endpoint that winds up owes its last event once all its DTOs
//! are reported, whether or not anybody waits for them.

use super::{
    no_room,
    Consumer,
    Evd, //
};
use crate::{
    model::{
        code::DatResult,
        event::{
            Event,
            Fault, //
        },
        handle::WrId,
    },
    rdma::{
        cq::{
            self,
            Armed, //
        },
        wc::{
            Batch,
            Wc, //
        },
    },
    sys::workqueue::queue,
};
use kernel::{
    impl_has_work,
    sync::{
        atomic::{
            Acquire,
            Full,
            Relaxed,
            Release, //
        },
        Arc,
        ArcBorrow, //
    },
    workqueue::WorkItem, //
};

/// Completions that are polled at a time.
const BATCH: usize = 8;

/// DAT's reason of an asynchronous EVD event: overflow.
const REASON_OVERFLOW: u32 = 0;

impl Evd {
    /// Moves completions into the ring, as far as it has room. What has none stays where it is.
    pub(super) fn drain(&self, consumer: &Consumer) {
        let Some(cq) = &consumer.cq else {
            return;
        };
        // Before the first look: by now their queue pairs are destroyed, and all that those have
        // left lies here.
        let given_up = self.given_up.load(Acquire);
        let mut batch = Batch::<BATCH>::new();
        loop {
            let room = usize::try_from(self.room()).map_or(BATCH, |room| room.min(BATCH));
            if room == 0 {
                return;
            }
            let completions = cq.poll(&mut batch, room);
            for completion in completions {
                self.complete(completion);
            }
            if completions.len() < room {
                break;
            }
        }
        if given_up != 0 {
            self.given_up.fetch_sub(given_up, Relaxed);
            self.in_flight.fetch_sub(given_up, Relaxed);
        }
    }

    /// Hands a completion to the Endpoint that posted the work request.
    fn complete(&self, completion: &Wc) {
        let wr = WrId::from_raw(completion.wr_id());
        // None: the Endpoint was freed, and its events with it.
        if let Some(ep) = self.objects.poster(wr) {
            ep.complete(self, wr, completion);
        }
    }

    /// One more DTO in flight reports here.
    ///
    /// A completion queue that overflows is lost, and with it every event that is owed. So DTOs are
    /// not posted that it might have no room for.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES (EVD).
    pub(in crate::dat) fn begin_dto(&self) -> DatResult {
        self.begin_dtos(1)
    }

    /// As [`Evd::begin_dto`], for `count` of them; all or none.
    pub(in crate::dat) fn begin_dtos(&self, count: u32) -> DatResult {
        let before = self.in_flight.fetch_add(in_flight(count), Relaxed);
        if u32::try_from(before).is_ok_and(|before| before.saturating_add(count) <= self.depth) {
            return Ok(());
        }
        self.end_dtos(count);
        Err(no_room())
    }

    /// `count` DTOs are in flight no more.
    pub(in crate::dat) fn end_dtos(&self, count: u32) {
        self.in_flight.fetch_sub(in_flight(count), Relaxed);
    }

    /// `count` DTOs in flight are given up: their queue pair is destroyed. What it has left in the
    /// completion queue takes room there until it is drained.
    pub(in crate::dat) fn give_up_dtos(&self, count: u32) {
        self.given_up.fetch_add(in_flight(count), Release);
    }

    /// Whether completions may lie here whose DTOs are given up.
    pub(in crate::dat) fn has_given_up(&self) -> bool {
        self.given_up.load(Acquire) != 0
    }

    /// Whether as many events lie here as may: nothing is drained before the consumer takes some.
    pub(in crate::dat) fn is_full(&self) -> bool {
        self.room() == 0
    }

    /// How many events are kept back for now, which are to find room here.
    pub(super) fn held(&self) -> u32 {
        u32::try_from(self.held.load(Relaxed)).unwrap_or(0)
    }

    /// How many events the queue length leaves room for.
    fn room(&self) -> u32 {
        self.qlen()
            .saturating_sub(self.ring.len())
            .saturating_sub(self.held())
    }

    /// The event of a completion that was drained is kept back, until [`Evd::end_hold`].
    pub(in crate::dat) fn hold(&self) {
        self.held.fetch_add(1, Relaxed);
    }

    /// An event is kept back no more: it was reported, or will never be.
    pub(in crate::dat) fn end_hold(&self) {
        self.held.fetch_sub(1, Relaxed);
    }

    /// Starts the pump, if there is demand.
    pub(super) fn pump_again(self: &Arc<Self>) {
        if self.demand.load(Acquire) != 0 {
            let _ = queue().enqueue(self.clone());
        }
    }

    /// Drains once, sometime soon, if DTOs are in flight.
    pub(in crate::dat) fn look(this: &Arc<Self>) {
        if this.in_flight.load(Relaxed) > 0 {
            let _ = queue().enqueue(this.clone());
        }
    }

    /// There is one more reason to drain without a waiter, until the drop of what this returns.
    pub(in crate::dat) fn begin_demand(this: &Arc<Self>) -> Demand {
        this.demand.fetch_add(1, Full);
        let _ = queue().enqueue(this.clone());
        Demand(this.clone())
    }

    fn pump(&self) {
        let consumer = self.consumer.lock();
        loop {
            self.drain(&consumer);
            let Some(cq) = &consumer.cq else {
                return;
            };
            // A full ring is for the consumer to empty, which drains the rest.
            if self.demand.load(Acquire) == 0 || self.is_full() {
                return;
            }
            if cq.arm() == Armed::Quiet {
                // What came between the drain and the arming.
                self.drain(&consumer);
                return;
            }
        }
    }

    /// Drains now.
    pub(in crate::dat) fn drain_now(&self) {
        self.drain(&self.consumer.lock());
    }

    /// Events were lost: says so on the asynchronous EVD.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn overflowed(&self) {
        let event = Event::Async {
            fault: Fault::EvdOverflow,
            object: self.handle,
            reason: REASON_OVERFLOW,
        };
        // If that is full as well, or is the one that overflowed, there is nobody left to tell.
        let _ = self.async_evd.as_ref().map(|evd| evd.post(&event));
    }
}

/// A reason to drain without a waiter.
pub(in crate::dat) struct Demand(Arc<Evd>);

impl Drop for Demand {
    fn drop(&mut self) {
        self.0.demand.fetch_sub(1, Full);
    }
}

/// A count of DTOs, as it is added up. There are fewer than a queue has entries.
fn in_flight(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

impl_has_work! {
    impl HasWork<Self> for Evd { self.pump }
}

impl WorkItem for Evd {
    type Pointer = Arc<Self>;

    /// The pump: drains, and leaves the completion queue armed for as long as there is demand.
    fn run(this: Arc<Self>) {
        this.pump();
        if this.ring.len() != 0 {
            this.notify();
        }
    }
}

impl cq::Handler for Evd {
    fn completed(this: ArcBorrow<'_, Self>) {
        this.bell.ring();
        if !this.wanted.counts() {
            this.sleepers.wake_all();
        }
        this.notify();
        if this.demand.load(Acquire) != 0 {
            // If it is queued already the reference comes back, and is not the last: the
            // completion queue has one.
            let _ = queue().enqueue(Arc::from(this));
        }
    }

    fn failed(this: ArcBorrow<'_, Self>) {
        this.overflowed();
    }
}
