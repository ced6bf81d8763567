// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The completion queues of an EVD, and who may use how much of them.
//!
//! A queue pair has its completion queues for life, and those their depth. So that none ever overflows,
//! an Endpoint takes a [`CqShare`] for all that it may have in flight before it gets a queue pair; an EVD
//! whose queues have no room for it gets one more. Completions of all of them are drained into the one
//! ring. All of one Endpoint's receives go through one queue, and so do all of its requests: they keep
//! their order.
//!
//! One that notifies of solicited receives only is a queue of its own: what was once asked to notify
//! of each completion cannot be asked for less.

use super::{
    no_room,
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicU32,
        cq_room::{
            next_depth,
            CqRoom,
            Taken, //
        },
        streams::StreamSet,
        vector::Placement, //
    },
    rdma::{
        cq::{
            Armed,
            Cq,
            Notify, //
        },
        device::Device, //
    },
};
use kernel::{
    cpu::CpuId,
    sync::atomic::Atomic, //
};

/// Completions that the first completion queue has room for, twice: a short EVD may serve many
/// receives, of which the consumer takes the events as they come.
const MIN_DEPTH: u32 = 512;

/// Position of the completion vector among the arguments of `dat_evd_create`: behind those of DAT.
const ARGUMENT_VECTOR: u8 = 6;

/// Where the completion queues go of a consumer on this processor who asks for a completion vector, or
/// for [`Placement::ANY`].
pub(in crate::dat) fn place(vector: i32, device: &Device) -> DatResult<Placement> {
    let cpu = CpuId::current().as_u32();
    Placement::new(vector, cpu, device.completion_vectors())
        .ok_or(DatError::invalid_parameter(ARGUMENT_VECTOR))
}

/// The queue length that a consumer gets who asked for `qlen`: a power of two.
pub(in crate::dat) fn queue_length(qlen: i32, max: u32) -> DatResult<u32> {
    u32::try_from(qlen)
        .ok()
        .filter(|qlen| (1..=max).contains(qlen))
        .ok_or(DatError::invalid_parameter(2))?
        .checked_next_power_of_two()
        .ok_or(DatError::memory())
}

/// State of an EVD's completion queues that needs no lock.
pub(super) struct CqState {
    /// Completion streams of the Endpoints that report to the EVD, and how they wake: see
    /// [`stream`](super::stream).
    pub(super) streams: Atomic<u32>,
    /// Completion vectors of the completion queues.
    pub(super) placement: Placement,
    /// Number of DTOs that were given up and may have left a completion in a queue.
    pub(super) given_up: AtomicU32,
}

impl CqState {
    /// The state of an EVD without streams.
    pub(super) fn new(placement: Placement) -> Self {
        Self {
            streams: Atomic::new(StreamSet::NONE.word()),
            placement,
            given_up: AtomicU32::new(0),
        }
    }
}

/// One completion queue.
pub(super) struct EvdCq {
    pub(super) cq: Arc<Cq<Evd>>,
    pub(super) room: CqRoom,
    /// Which completions it notifies of, where nobody has to see them all.
    notify: Notify,
}

/// The completion queues of an EVD. Lies behind its consumer's lock.
pub(super) struct Cqs {
    list: KVVec<Arc<EvdCq>>,
    /// Where the next drain begins.
    next: usize,
    /// Whether there may be more: completions go here, and the device is there.
    open: bool,
}

impl Cqs {
    /// None, and never any unless they are [opened](Cqs::open_with).
    pub(super) const fn none() -> Self {
        Self {
            list: KVVec::new(),
            next: 0,
            open: false,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }

    /// How many completions they hold at most.
    pub(super) fn depth(&self) -> u32 {
        let depths = self.list.iter().map(|queue| queue.room.depth());
        depths.fold(0, u32::saturating_add)
    }

    /// The first one, from which on there may be more.
    fn open_with(&mut self, first: Arc<EvdCq>) -> DatResult {
        self.list.push(first, GFP_KERNEL_ACCOUNT)?;
        self.open = true;
        Ok(())
    }

    /// Gives them all away. Nothing comes any more.
    pub(super) fn close(&mut self) -> KVVec<Arc<EvdCq>> {
        self.open = false;
        core::mem::take(&mut self.list)
    }

    /// Asks each to notify. With `all`, of every completion.
    pub(super) fn arm(&self, all: bool) -> Armed {
        let mut armed = Armed::Quiet;
        for queue in &self.list {
            let notify = if all { Notify::Next } else { queue.notify };
            if queue.cq.arm(notify) == Armed::Missed {
                armed = Armed::Missed;
            }
        }
        armed
    }

    /// Does something to each in turn until it says that it is enough; the next time the one behind
    /// has its turn first.
    pub(super) fn take_turns(&mut self, mut enough: impl FnMut(&EvdCq) -> bool) {
        if let [only] = self.list.as_slice() {
            enough(only);
            return;
        }
        let count = self.list.len();
        for turn in 0..count {
            let place = self.next.saturating_add(turn).checked_rem(count);
            let Some(queue) = place.and_then(|place| self.list.get(place)) else {
                return;
            };
            if enough(queue) {
                self.next = place.map_or(0, |place| place.saturating_add(1));
                return;
            }
        }
    }

    /// Takes room in one of them.
    fn take(&self, entries: u32, notify: Notify) -> Option<Arc<EvdCq>> {
        let mut queues = self.list.iter();
        let found = queues.find(|queue| queue.notify == notify && queue.room.take(entries));
        found.cloned()
    }
}

impl EvdCq {
    fn new(
        evd: &Arc<Evd>,
        device: &Arc<Device>,
        nth: u32,
        depth: u32,
        notify: Notify,
    ) -> DatResult<Arc<Self>> {
        let vector = evd
            .cqs
            .placement
            .vector_of_queue(nth, device.completion_vectors());
        Ok(Arc::new(
            Self {
                cq: Cq::new(device.clone(), evd.clone(), depth, vector)?,
                room: CqRoom::new(depth),
                notify,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

/// A queue pair's share of a completion queue. Dropped after the queue pair was destroyed.
pub(in crate::dat) struct CqShare {
    evd: Arc<Evd>,
    queue: Arc<EvdCq>,
    taken: Taken,
}

impl CqShare {
    fn new(evd: Arc<Evd>, queue: Arc<EvdCq>, taken: Taken) -> Self {
        Self { evd, queue, taken }
    }

    /// The completion queue.
    pub(in crate::dat) fn cq(&self) -> Arc<Cq<Evd>> {
        self.queue.cq.clone()
    }

    /// The EVD of the completion queue.
    pub(in crate::dat) fn evd(&self) -> Arc<Evd> {
        self.evd.clone()
    }

    /// Splits off a share with a number of entries.
    pub(in crate::dat) fn split(mut self, entries: u32) -> (Self, Self) {
        let taken = self.taken.split(entries);
        let other = Self::new(self.evd.clone(), self.queue.clone(), taken);
        (self, other)
    }

    /// Gives up DTOs in flight. Their completions take room in the completion queue until the queue
    /// pair is destroyed and they are drained. One caller at a time.
    pub(in crate::dat) fn give_up(&self, count: u32) {
        self.evd.cqs.given_up.add(self.taken.give_up(count));
    }
}

impl Drop for CqShare {
    fn drop(&mut self) {
        self.taken.end(&self.queue.room);
    }
}

impl Evd {
    /// Whether completions of DTOs that were given up may be left in a completion queue.
    pub(in crate::dat) fn has_given_up(&self) -> bool {
        self.cqs.given_up.load_acquire() != 0
    }

    /// The completion queue that an EVD begins with.
    pub(super) fn open_cqs(self: &Arc<Self>, device: &Arc<Device>) -> DatResult {
        let depth = self
            .qlen()
            .max(MIN_DEPTH)
            .saturating_mul(2)
            .min(device.limits().max_cqe);
        let first = EvdCq::new(self, device, 0, depth, Notify::Next)?;
        self.consumer.lock().cqs.open_with(first)
    }

    /// Takes room for `entries` completions in one completion queue; there may be one more then.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (EVD) if no queue of the device holds so many, or if what freed or reset
    /// Endpoints have left behind a full EVD takes the room, until the consumer takes some events;
    /// (device) once that is gone.
    pub(in crate::dat) fn share(
        self: &Arc<Self>,
        device: &Arc<Device>,
        entries: u32,
        notify: Notify,
    ) -> DatResult<CqShare> {
        let share = |queue| CqShare::new(self.clone(), queue, Taken::new(entries));
        loop {
            let (count, last) = {
                let consumer = self.consumer.lock();
                if let Some(queue) = consumer.cqs.take(entries, notify) {
                    return Ok(share(queue));
                }
                self.may_grow(&consumer, notify)?
            };
            let max = device.limits().max_cqe;
            let depth = next_depth(last, entries, max).ok_or(no_room())?;
            let new = EvdCq::new(self, device, count, depth, notify)?;
            new.room.take(entries);
            // One that nobody has armed so far does not keep a sleeper asleep that waits already.
            new.cq.arm(notify);
            if self.add_queue(&new)? {
                return Ok(share(new));
            }
        }
    }

    /// Whether there may be one more completion queue. How many there are, and how long the last one is
    /// that notifies so.
    fn may_grow(&self, consumer: &Consumer, notify: Notify) -> DatResult<(u32, u32)> {
        if !consumer.cqs.open {
            return Err(DatError::device());
        }
        let queues = consumer.cqs.list.iter();
        // Completions of QPs that outlive their Endpoints do not count: their number is limited.
        if queues.clone().any(|queue| queue.room.has_given_up()) {
            return Err(no_room());
        }
        let depths = queues
            .filter(|queue| queue.notify == notify)
            .map(|queue| queue.room.depth());
        Ok((consumer.cqs.count(), depths.last().unwrap_or(0)))
    }

    /// Adds one. `false` if somebody else was quicker to add some, which may have room.
    fn add_queue(self: &Arc<Self>, new: &Arc<EvdCq>) -> DatResult<bool> {
        let count = self.consumer.lock().cqs.list.len();
        let mut list = KVVec::with_capacity(count.saturating_add(1), GFP_KERNEL_ACCOUNT)?;
        let old;
        {
            let mut consumer = self.consumer.lock();
            let queues = &mut consumer.cqs;
            if !queues.open {
                return Err(DatError::device());
            }
            if queues.list.len() != count {
                return Ok(false);
            }
            for queue in Iterator::chain(queues.list.iter(), [new]) {
                list.push_within_capacity(queue.clone())
                    .map_err(|_| DatError::internal())?;
            }
            old = core::mem::replace(&mut queues.list, list);
        }
        drop(old);
        Ok(true)
    }
}
