// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The completion queues of an EVD, and who may use how much of them.
//!
//! A queue pair has its completion queues for life, and those their depth. So that none ever overflows,
//! an Endpoint takes a [`Share`] for all that it may have in flight before it gets a queue pair; an EVD
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
    model::{
        code::{
            DatError,
            DatResult, //
        },
        room::{
            depth_behind,
            Room,
            Taken, //
        },
        vector::Placement,
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
    prelude::*,
    sync::Arc, //
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

/// One completion queue.
pub(super) struct Queue {
    pub(super) cq: Arc<Cq<Evd>>,
    pub(super) room: Room,
    /// Which completions it notifies of, where nobody has to see them all.
    notify: Notify,
}

/// The completion queues of an EVD. Lies behind its consumer's lock.
pub(super) struct Queues {
    list: KVVec<Arc<Queue>>,
    /// Where the next drain begins.
    next: usize,
    /// Whether there may be more: completions go here, and the device is there.
    open: bool,
}

impl Queues {
    /// None, and never any unless they are [opened](Queues::open_with).
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
    fn open_with(&mut self, first: Arc<Queue>) -> DatResult {
        self.list.push(first, GFP_KERNEL_ACCOUNT)?;
        self.open = true;
        Ok(())
    }

    /// Gives them all away. Nothing comes any more.
    pub(super) fn close(&mut self) -> KVVec<Arc<Queue>> {
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
    pub(super) fn take_turns(&mut self, mut enough: impl FnMut(&Queue) -> bool) {
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
    fn take(&self, entries: u32, notify: Notify) -> Option<Arc<Queue>> {
        let mut queues = self.list.iter();
        let found = queues.find(|queue| queue.notify == notify && queue.room.take(entries));
        found.cloned()
    }
}

impl Queue {
    fn new(
        evd: &Arc<Evd>,
        device: &Arc<Device>,
        nth: u32,
        depth: u32,
        notify: Notify,
    ) -> DatResult<Arc<Self>> {
        let vector = evd.placement.of_queue(nth, device.completion_vectors());
        Ok(Arc::new(
            Self {
                cq: Cq::new(device.clone(), evd.clone(), depth, vector)?,
                room: Room::new(depth),
                notify,
            },
            GFP_KERNEL_ACCOUNT,
        )?)
    }
}

/// What a queue pair has of a completion queue, until the drop: once it is destroyed.
pub(in crate::dat) struct Share {
    evd: Arc<Evd>,
    queue: Arc<Queue>,
    taken: Taken,
}

impl Share {
    fn new(evd: Arc<Evd>, queue: Arc<Queue>, taken: Taken) -> Self {
        Self { evd, queue, taken }
    }

    /// The completion queue.
    pub(in crate::dat) fn cq(&self) -> Arc<Cq<Evd>> {
        self.queue.cq.clone()
    }

    /// Makes two of it, the second with so many entries.
    pub(in crate::dat) fn split(mut self, entries: u32) -> (Self, Self) {
        let taken = self.taken.split(entries);
        let other = Self::new(self.evd.clone(), self.queue.clone(), taken);
        (self, other)
    }

    /// The EVD that has it.
    pub(in crate::dat) fn evd(&self) -> Arc<Evd> {
        self.evd.clone()
    }

    /// So many DTOs in flight are given up. What comes of them takes room in the completion queue until
    /// the queue pair is destroyed, and that has been drained. One at a time.
    pub(in crate::dat) fn give_up(&self, count: u32) {
        self.evd.given_up.add(self.taken.give_up(count));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.taken.end(&self.queue.room);
    }
}

impl Evd {
    /// The completion queue that an EVD begins with.
    pub(super) fn open_queues(this: &Arc<Self>, device: &Arc<Device>) -> DatResult {
        let depth = this
            .qlen()
            .max(MIN_DEPTH)
            .saturating_mul(2)
            .min(device.limits().max_cqe);
        let first = Queue::new(this, device, 0, depth, Notify::Next)?;
        this.consumer.lock().queues.open_with(first)
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
        this: &Arc<Self>,
        device: &Arc<Device>,
        entries: u32,
        notify: Notify,
    ) -> DatResult<Share> {
        let share = |queue| Share::new(this.clone(), queue, Taken::new(entries));
        loop {
            let (count, last) = {
                let consumer = this.consumer.lock();
                if let Some(queue) = consumer.queues.take(entries, notify) {
                    return Ok(share(queue));
                }
                this.may_grow(&consumer, notify)?
            };
            let max = device.limits().max_cqe;
            let depth = depth_behind(last, entries, max).ok_or(no_room())?;
            let new = Queue::new(this, device, count, depth, notify)?;
            new.room.take(entries);
            // One that nobody has armed so far does not keep a sleeper asleep that waits already.
            new.cq.arm(notify);
            if Self::add_queue(this, &new)? {
                return Ok(share(new));
            }
        }
    }

    /// Whether there may be one more completion queue. How many there are, and how long the last one is
    /// that notifies so.
    fn may_grow(&self, consumer: &Consumer, notify: Notify) -> DatResult<(u32, u32)> {
        if !consumer.queues.open {
            return Err(DatError::device());
        }
        let queues = consumer.queues.list.iter();
        // What outlives its Endpoint does not count: its number is limited.
        if queues.clone().any(|queue| queue.room.has_given_up()) {
            return Err(no_room());
        }
        let depths = queues
            .filter(|queue| queue.notify == notify)
            .map(|queue| queue.room.depth());
        Ok((consumer.queues.count(), depths.last().unwrap_or(0)))
    }

    /// Adds one. `false` if somebody else was quicker to add some, which may have room.
    fn add_queue(this: &Arc<Self>, new: &Arc<Queue>) -> DatResult<bool> {
        let count = this.consumer.lock().queues.list.len();
        let mut list = KVVec::with_capacity(count.saturating_add(1), GFP_KERNEL_ACCOUNT)?;
        let old;
        {
            let mut consumer = this.consumer.lock();
            let queues = &mut consumer.queues;
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
