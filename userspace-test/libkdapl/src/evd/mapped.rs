// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events that are taken from memory, without a system call.

use super::Evd;
use crate::raw::{call, Call, MappedEvents};
use crate::sys::{kdapl_evd_wait, kdapl_event};

impl Evd {
    /// Checks whether this call is a dequeue that finds nothing but mapped events, and no mapped
    /// DTO waits for a call. Call it before reading the mapped events: an event that is mapped
    /// afterwards clears the flag.
    pub(super) fn is_known_empty(&self, call: Call<kdapl_evd_wait>) -> bool {
        let mapped = self.0.mapped.get().and_then(Option::as_ref);
        call.request() == call::EVD_DEQUEUE.request()
            && !self.device().bursts.has_mapped()
            && mapped.is_some_and(|mapped| !mapped.calls_only() && mapped.claims_empty())
    }

    /// Takes the oldest event without a system call, if it is mapped and one event is enough. Also
    /// returns a number of events that are left, as [`wait`](Self::wait) does.
    pub(super) fn take_mapped(&self, threshold: i32) -> Option<(kdapl_event, u32)> {
        let mut event = kdapl_event::default();
        match self.take_mapped_into(threshold, std::slice::from_mut(&mut event)) {
            (0, _) => None,
            (_, nmore) => Some((event, nmore)),
        }
    }

    /// As [`take_mapped`](Self::take_mapped), for as many events as `room` holds.
    pub(super) fn take_mapped_into(
        &self,
        threshold: i32,
        room: &mut [kdapl_event],
    ) -> (usize, u32) {
        let mapped = self.0.mapped.get().and_then(Option::as_ref).filter(|_| threshold == 1);
        let Some(mapped) = mapped.filter(|mapped| Self::some_stay(mapped, room.len())) else {
            return (0, 0);
        };
        let mut taken = 0;
        for (slot, event) in room.iter_mut().zip(std::iter::from_fn(|| mapped.pop())) {
            *slot = event;
            taken += 1;
        }
        (taken, if taken == 0 { 0 } else { self.left(mapped) })
    }

    /// Checks whether `count` events can be taken from memory: others stay there, or the kernel
    /// claims that there are no others. Otherwise only a call can tell what is left. It takes the
    /// mapped events, and maps the next ones.
    fn some_stay(mapped: &MappedEvents, count: usize) -> bool {
        mapped.claims_empty() || mapped.len() as usize > count
    }

    /// Returns the number of mapped events, or that of all queued events if a call is necessary.
    fn left(&self, mapped: &MappedEvents) -> u32 {
        // Read before the number of events, as for a dequeue.
        let empty = mapped.claims_empty();
        let left = mapped.len();
        // Another thread has taken those that were to stay, or the kernel has to read the head.
        if mapped.calls_only() || (left == 0 && !empty) {
            // Ignore an error: the events were taken.
            return self.query().map_or(left, |query| query.queued);
        }
        left
    }

    /// Maps the events into memory, so that [`wait`](Self::wait) and [`dequeue`](Self::dequeue)
    /// take those that are there without a system call. Otherwise the first call that leaves events
    /// in the queue does so. Returns whether the kernel can map them.
    pub fn map_events(&self) -> bool {
        let map = || MappedEvents::new(self.device(), self.handle().0).ok();
        self.0.mapped.get_or_init(map).is_some()
    }
}
