// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion queues (CQ) of an EVD, and the Endpoints' shares of them.
//!
//! A queue pair cannot change its CQs, and a CQ cannot change its depth. A CQ must never overflow.
//! So an Endpoint reserves a [`CqShare`] for all its outstanding DTOs before it creates a queue
//! pair. An EVD without a CQ that has enough room creates another CQ. The completions of all CQs
//! are drained into one ring. All receives of an Endpoint use one CQ, and so do all its requests,
//! so each keep their order.
//!
//! Streams that need notifications of solicited receives only have separate CQs. A CQ that was
//! armed for each completion cannot be armed for less.

use super::{
    no_room,
    share::CqShare,
    spill::Spill,
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        atomic::AtomicU32,
        cq_room::{
            next_depth,
            CqReservation,
            CqRoom, //
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
    sys::{
        kvvec,
        lock::LockContext, //
    },
};
use kernel::{
    cpu::CpuId,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::atomic::Atomic, //
};

/// Minimum depth of the first completion queue, before it is doubled. An EVD with a short queue may
/// serve many receives, whose events the consumer takes as they arrive.
const MIN_DEPTH: u32 = 512;

/// Returns the completion vectors of the queues of a consumer on the current CPU. `vector` is a
/// completion vector, or [`Placement::ANY`].
///
/// # Errors
///
/// INVALID_PARAMETER (completion vector) if the device has no such vector.
pub(in crate::dat) fn placement(vector: i32, device: &Device) -> DatResult<Placement> {
    let cpu = CpuId::current().as_u32();
    Placement::new(vector, cpu, device.completion_vectors()).ok_or(DatError::Invalid(Arg::Vector))
}

/// Returns the queue length for a consumer that asks for `qlen`: the next power of two.
///
/// # Errors
///
/// INVALID_PARAMETER (queue length) below 1 or above `max`.
pub(in crate::dat) fn queue_length(qlen: i32, max: u32) -> DatResult<u32> {
    u32::try_from(qlen)
        .ok()
        .filter(|qlen| (1..=max).contains(qlen))
        .ok_or(DatError::Invalid(Arg::Qlen))?
        .checked_next_power_of_two()
        .ok_or(DatError::memory())
}

/// State of an EVD's completion queues that no lock protects.
pub(super) struct CqState {
    /// Number and wake-up mode of the completion streams that report to the EVD: see
    /// [`stream`](super::stream).
    pub(super) streams: Atomic<u32>,
    /// Completion vectors of the completion queues.
    pub(super) placement: Placement,
    /// Number of DTOs that were given up: their Endpoint was freed or reset before they completed.
    /// Their completions may still be queued.
    pub(super) given_up: AtomicU32,
}

impl CqState {
    /// Creates the state of an EVD without streams.
    pub(super) fn new(placement: Placement) -> Self {
        Self {
            streams: Atomic::new(StreamSet::NONE.word()),
            placement,
            given_up: AtomicU32::new(0),
        }
    }
}

/// Completion queue of an EVD.
pub(super) struct EvdCq {
    pub(super) cq: Arc<Cq<Evd>>,
    pub(super) room: CqRoom,
    /// Completions for which the queue is armed, unless it is armed for all.
    notify: Notify,
}

/// Completion queues of an EVD. Protected by the lock of its consumer.
pub(super) struct Cqs {
    pub(super) list: KVVec<Arc<EvdCq>>,
    /// Completions that were polled before the ring had room for their events.
    pub(super) spill: Spill,
    /// Objects that have to live as long as the queues are polled, by their addresses.
    kept: RBTree<usize, Arc<dyn Send + Sync>>,
    /// Index of the queue that the next drain starts with.
    next: usize,
    /// Queues may be added: the EVD carries completions, and its device has not been removed.
    open: bool,
}

impl Cqs {
    /// Creates an empty list. Queues cannot be added until it is [opened](Cqs::open_with).
    pub(super) fn none(context: LockContext) -> Self {
        Self {
            list: KVVec::new(),
            spill: Spill::none(context),
            kept: RBTree::new(),
            next: 0,
            open: false,
        }
    }

    /// Returns the number of queues.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.list.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of completions that the queues can hold.
    pub(super) fn depth(&self) -> u32 {
        let depths = self.list.iter().map(|queue| queue.room.depth());
        depths.fold(0, u32::saturating_add)
    }

    /// Permits queues to be added, without adding one.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// Sets the first queue. Queues may be added from now on.
    fn open_with(&mut self, first: KVVec<Arc<EvdCq>>) {
        self.list = first;
        self.open();
    }

    /// Returns whether completions are taken from the queues.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Keeps an object until the queues are closed. Returns an object that is not needed: the new
    /// one if the queues are closed.
    pub(super) fn keep(&mut self, object: KeptObject) -> Option<KeptObject> {
        if self.open {
            self.kept.insert(object)
        } else {
            Some(object)
        }
    }

    /// Removes all queues, for the caller to drop. Queues cannot be added any more.
    pub(super) fn close(&mut self) -> Closed {
        self.open = false;
        Closed {
            _kept: core::mem::replace(&mut self.kept, RBTree::new()),
            _spill: self.spill.take(),
            _list: core::mem::take(&mut self.list),
        }
    }

    /// Arms each queue for the completions that notify in its mode.
    pub(super) fn arm(&self) -> Armed {
        self.arm_each(|queue| queue.notify)
    }

    /// Arms each queue for the next completion of any kind.
    pub(super) fn arm_for_any(&self) -> Armed {
        self.arm_each(|_| Notify::Next)
    }

    #[inline]
    fn arm_each(&self, notify: impl Fn(&EvdCq) -> Notify) -> Armed {
        // No notification comes for spilled completions.
        let mut armed = match self.spill.is_empty() {
            true => Armed::Empty,
            false => Armed::Missed,
        };
        for queue in &self.list {
            if queue.cq.arm(notify(queue)) == Armed::Missed {
                armed = Armed::Missed;
            }
        }
        armed
    }

    /// Calls `enough` for each queue in turn until it returns `true`. The next call starts with the
    /// queue that follows.
    pub(super) fn take_turns(&mut self, mut enough: impl FnMut(&EvdCq) -> bool) {
        if let [only] = self.list.as_slice() {
            enough(only);
            return;
        }
        let count = self.list.len();
        for turn in 0..count {
            let next = self.next.saturating_add(turn).checked_rem(count);
            let Some(queue) = next.and_then(|next| self.list.get(next)) else {
                return;
            };
            if enough(queue) {
                self.next = next.map_or(0, |next| next.saturating_add(1));
                return;
            }
        }
    }

    /// Reserves entries in a queue that is armed for `notify`; `None` if no queue has enough.
    fn take(&self, entries: u32, notify: Notify) -> Option<Arc<EvdCq>> {
        let mut queues = self.list.iter();
        let found = queues.find(|queue| queue.notify == notify && queue.room.take(entries));
        found.cloned()
    }
}

/// An object that has to live as long as the queues are polled.
pub(super) type KeptObject = RBTreeNode<usize, Arc<dyn Send + Sync>>;

/// Queues of an EVD that polls them no longer. Fields are dropped in the order of declaration: the
/// objects first.
pub(super) struct Closed {
    _kept: RBTree<usize, Arc<dyn Send + Sync>>,
    _spill: Spill,
    _list: KVVec<Arc<EvdCq>>,
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

impl Evd {
    /// Returns whether completions of DTOs that were given up may be queued.
    pub(in crate::dat) fn has_given_up_dtos(&self) -> bool {
        self.cqs.given_up.load_acquire() != 0
    }

    /// Creates the first completion queue.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES.
    pub(super) fn open_cqs(self: &Arc<Self>, device: &Arc<Device>) -> DatResult {
        let depth = self
            .qlen()
            .max(MIN_DEPTH)
            .saturating_mul(2)
            .min(device.limits().max_cqe);
        let mut list = KVVec::new();
        let first = EvdCq::new(self, device, 0, depth, Notify::Next)?;
        kvvec::push(&mut list, first, GFP_KERNEL_ACCOUNT)?;
        self.consumer.lock().cqs.open_with(list);
        Ok(())
    }

    /// Reserves `entries` entries in one completion queue. Adds a queue if the others have too
    /// little room.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES:
    ///
    /// * (EVD) if no queue of the device can hold as many completions, or if the completions of
    ///   freed or reset Endpoints take the room. Those are drained only when the consumer takes
    ///   events from a full EVD;
    /// * (device) after the device was removed.
    pub(in crate::dat) fn share(
        self: &Arc<Self>,
        device: &Arc<Device>,
        entries: u32,
        notify: Notify,
    ) -> DatResult<CqShare> {
        let share = |queue| CqShare::new(self.clone(), queue, CqReservation::new(entries));
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
            // A waiter that is asleep has not armed this queue.
            new.cq.arm(notify);
            if self.add_queue(&new)? {
                return Ok(share(new));
            }
        }
    }

    /// Checks whether a queue may be added. Returns the number of queues, and the depth of the last
    /// one that notifies like this.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES, as for [`Evd::share`].
    fn may_grow(&self, consumer: &Consumer, notify: Notify) -> DatResult<(u32, u32)> {
        if !consumer.cqs.open {
            return Err(DatError::device());
        }
        let queues = consumer.cqs.list.iter();
        // Completions of QPs that outlive their Endpoints do not prevent it, since their number is
        // limited.
        if queues.clone().any(|queue| queue.room.has_given_up()) {
            return Err(no_room());
        }
        let depths = queues
            .filter(|queue| queue.notify == notify)
            .map(|queue| queue.room.depth());
        Ok((consumer.cqs.count(), depths.last().unwrap_or(0)))
    }

    /// Adds a queue. Returns `false` if another thread has added queues first, which may have room.
    fn add_queue(self: &Arc<Self>, new: &Arc<EvdCq>) -> DatResult<bool> {
        let count = self.consumer.lock().cqs.list.len();
        let mut list = kvvec::with_capacity(count.saturating_add(1), GFP_KERNEL_ACCOUNT)?;
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
