// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Events of an Event Dispatcher (EVD) in memory that a process maps: see
//! [`model::mapped_ring`](crate::model::mapped_ring).
//!
//! A call that takes an event and finds more moves those to the mapped ring, and the process takes
//! them without a call. The kernel learns of that when it reads the head. While the kernel waits
//! for room, or counts taken receives, a flag in the ring makes the process take events by calls.
//!
//! A call after which no other event is queued arms the completion queues, and claims that the EVD
//! is empty but for the mapped events. Until the claim is retracted, the process polls without a
//! call.

use super::{
    Consumer,
    Evd,
    Words, //
};
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        event::Record,
        mapped_ring::MappedRing,
        ring::RingConsumer, //
    },
    rdma::cq::Armed,
    sys::mapped_memory::{
        Area,
        MappedMemory, //
    },
};
use kernel::{
    mm::virt::VmaNew,
    sync::{
        atomic::Relaxed,
        SetOnce, //
    },
};

/// The ring of an EVD that was mapped.
pub(super) type Mapped = SetOnce<MappedRing<MappedMemory>>;

impl Evd {
    /// Maps an area of the EVD's mapped ring into a process. The first call creates the ring.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`MappedMemory::map`]; `EAGAIN` while another thread creates the ring.
    pub(crate) fn map(&self, area: Area, vma: &VmaNew) -> Result {
        if self.queue.mapped.as_ref().is_none() {
            let memory = MappedMemory::new(&self.context.user)?;
            let ring = MappedRing::new(memory, self.qlen()).ok_or(EINVAL)?;
            ring.memory().publish_event_slots(ring.slots());
            // Another thread may have been faster.
            let _ = self.queue.mapped.populate(ring);
            self.update_calls_only();
        }
        let ring = self.queue.mapped.as_ref().ok_or(EAGAIN)?;
        ring.memory().map(area, vma)
    }

    /// Sets or clears the flag by which a process that has mapped the ring takes events by calls.
    ///
    /// It must call if waits are stopped, since its calls fail then; if completions wait for room;
    /// and if an Endpoint's watermark counts each receive that is taken.
    pub(super) fn update_calls_only(&self) {
        if let Some(ring) = self.queue.mapped.as_ref() {
            let is_reported = || self.queue.receive_reports.load(Relaxed) != 0;
            ring.update_calls_only(|| self.is_over() || is_reported() || self.room() == 0);
        }
    }

    /// Updates the flag, and then checks for room again. Returns whether there is room. If there is
    /// none, the process calls when it has taken the next event.
    #[cold]
    pub(super) fn recheck_room(&self) -> bool {
        self.update_calls_only();
        self.room() != 0
    }

    /// Returns the number of mapped events that the consumer has not taken.
    pub(super) fn handed_over(&self) -> u32 {
        self.queue.mapped.as_ref().map_or(0, MappedRing::len)
    }

    /// Returns the number of events that can be taken, without the completions in the completion
    /// queues.
    pub(in crate::dat) fn queued(&self) -> u32 {
        self.queue.ring.len().saturating_add(self.handed_over())
    }

    /// Takes the oldest event of those that were handed over. They precede all others.
    #[inline(always)]
    pub(super) fn pop_handed_over(&self, consumer: &mut Consumer) -> Option<Record> {
        let ring = self.queue.mapped.as_ref()?;
        let record = ring.pop();
        // Notes this event, and those that the process has taken.
        self.note_taken(consumer);
        record
    }

    /// Reports the receives that a process has taken without a call, and wakes writers that wait
    /// for the room.
    pub(super) fn note_taken(&self, consumer: &mut Consumer) {
        let Some(ring) = self.queue.mapped.as_ref() else {
            return;
        };
        let Some(head) = ring.head() else {
            // The process has lost its events by an invalid index. They take no room any more.
            return self.wake_writers();
        };
        if head == consumer.known_taken {
            return;
        }
        if self.queue.receive_reports.load(Relaxed) != 0 {
            // The slots are not reused: nothing is handed over meanwhile.
            let count = head.wrapping_sub(consumer.known_taken).min(ring.slots());
            let first = head.wrapping_sub(count);
            ring.for_each_in(first, count, |record| self.report_if_receive(record));
        }
        consumer.known_taken = head;
        self.update_calls_only();
        self.wake_writers();
    }

    /// Calls `visit` for the mapped events from this index on.
    pub(super) fn for_each_mapped(&self, from: u32, visit: impl FnMut(&Record)) {
        if let Some(ring) = self.queue.mapped.as_ref() {
            ring.for_each_from(from, visit);
        }
    }

    /// Hands queued events over to a process that has mapped the ring, as many as fit.
    ///
    /// All stay if the process has to take them by calls, or if completion flags decide which event
    /// wakes.
    ///
    /// Context: process; sleeps.
    pub(crate) fn hand_over(self: &Arc<Self>) {
        let Some(mapped) = self.queue.mapped.as_ref() else {
            return;
        };
        let mut consumer = self.consumer.lock();
        self.note_taken(&mut consumer);
        let is_reported = self.queue.receive_reports.load(Relaxed) != 0;
        if is_reported || self.mode() != WakeMode::Threshold {
            return;
        }
        let (ring, slots) = (&self.queue.ring, &mut consumer.slots);
        let oldest = |slots: &RingConsumer<Words>| {
            let mut oldest = None;
            ring.for_each_in(slots, 0..1, |record| oldest = Some(*record));
            oldest
        };
        mapped.fill(slots, oldest, |slots| {
            let _ = ring.pop(slots);
        });
        // A writer may have found too little room while an event counted twice.
        self.wake_writers();
    }

    /// Claims that the EVD is empty but for the mapped events, if it is: the process need not call
    /// before the next event. The claim arms the completion queues.
    ///
    /// Context: process; sleeps.
    pub(crate) fn claim_empty(&self) {
        if let Some(mapped) = self.queue.mapped.as_ref() {
            let consumer = self.consumer.lock();
            mapped.claim_empty(|| {
                self.queue.ring.is_empty_to_consumer()
                    && !self.needs_calls()
                    && consumer.cqs.is_open()
                    && consumer.cqs.arm() == Armed::Empty
            });
        }
    }

    /// Returns whether a process has to call if it finds the EVD empty: completion flags decide
    /// which completion notifies, or the call prepares the next trigger of a CNO or wake-up of a
    /// file.
    fn needs_calls(&self) -> bool {
        self.mode() != WakeMode::Threshold || self.wakeup.link.is_live() || self.has_file()
    }

    /// Retracts the claim that the EVD is empty. The caller has queued an event, or has changed
    /// something else that the claim depends on.
    ///
    /// Context: any, including hard IRQ.
    pub(super) fn retract_empty(&self) {
        if let Some(mapped) = self.queue.mapped.as_ref() {
            mapped.retract_empty();
        }
    }
}
