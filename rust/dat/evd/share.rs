// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Shares of the completion queues of an Event Dispatcher (EVD).

use super::{
    cqs::EvdCq,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::cq_room::{
        CqReservation,
        Mark, //
    },
    rdma::cq::Cq,
    sys::memcg::Payer,
};

/// Share of a completion queue, reserved for a queue pair. Dropped after the queue pair was
/// destroyed, or was found indestructible.
pub(in crate::dat) struct CqShare {
    evd: Arc<Evd>,
    queue: Arc<EvdCq>,
    taken: CqReservation,
}

impl CqShare {
    pub(super) fn new(evd: Arc<Evd>, queue: Arc<EvdCq>, taken: CqReservation) -> Self {
        Self { evd, queue, taken }
    }

    /// Returns the completion queue.
    pub(in crate::dat) fn cq(&self) -> Arc<Cq<Evd>> {
        self.queue.cq.clone()
    }

    /// Returns the EVD of the completion queue.
    pub(in crate::dat) fn evd(&self) -> Arc<Evd> {
        self.evd.clone()
    }

    /// Returns whether this is a completion queue of this EVD.
    pub(in crate::dat) fn is_of(&self, evd: &Arc<Evd>) -> bool {
        Arc::ptr_eq(&self.evd, evd)
    }

    /// Reserves as many further entries of the completion queue as the share lacks. Returns `false`
    /// if the queue has too little room.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn lengthen(&self, entries: u32) -> bool {
        // The lock serialises reservations.
        let _consumer = self.evd.consumer.lock();
        let missing = entries.saturating_sub(self.taken.entries());
        let fits = self.queue.room.take(missing);
        if fits {
            self.taken.lengthen(missing);
        }
        fits
    }

    /// Sets a mark after the completions that are queued now.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn mark(&self) -> Mark {
        let _consumer = self.evd.consumer.lock();
        self.queue.room.mark()
    }

    /// Drains the completion queue. Returns whether all completions that were queued when the mark
    /// was set are drained, or the EVD takes no more completions.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn has_passed(&self, mark: Mark) -> bool {
        self.evd.drain_past(&self.queue, mark)
    }

    /// As [`CqShare::has_passed`], for the completions that are queued now. Completions without
    /// events need no room. Memory for the others is charged to `payer`.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn is_drained(&self, payer: Payer<'_>) -> bool {
        let mark = self.mark();
        if self.has_passed(mark) {
            return true;
        }
        self.evd.drain_fully(payer);
        self.has_passed(mark)
    }

    /// Splits the share. The second part has `entries` entries.
    pub(in crate::dat) fn split(mut self, entries: u32) -> (Self, Self) {
        let taken = self.taken.split(entries);
        let other = Self::new(self.evd.clone(), self.queue.clone(), taken);
        (self, other)
    }

    /// Reserves the entries for as long as there is the completion queue. The queue pair cannot be
    /// destroyed, so its completions may arrive at any time.
    pub(in crate::dat) fn stay(&self) {
        self.taken.stay();
    }

    /// Gives up outstanding DTOs. Their completions take room in the completion queue until the
    /// queue pair is destroyed and they are drained. The caller serialises calls.
    pub(in crate::dat) fn give_up(&self, count: u32) {
        self.evd.cqs.given_up.add(self.taken.give_up(count));
    }
}

impl Drop for CqShare {
    /// Context: process; sleeps.
    fn drop(&mut self) {
        // The entries that were given up get a mark.
        let _consumer = self.taken.has_given_up().then(|| self.evd.consumer.lock());
        self.taken.end(&self.queue.room);
    }
}
