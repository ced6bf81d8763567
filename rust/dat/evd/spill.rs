// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Spill of an Event Dispatcher (EVD): completions that were polled before the ring had room for
//! their events.
//!
//! Usually a completion stays in its completion queue (CQ) until the ring has room. But before a
//! queue pair is destroyed all its completions have to be polled: some drivers discard them
//! otherwise, and others dereference the destroyed queue pair when they are polled later. The
//! completion of a bind says that the bound memory is open to peers. So [`Evd::drain_fully`]
//! empties the CQs.
//!
//! A completion in the spill counts as queued: its slot stays busy, so no request takes its entry
//! of the CQ. While the spill has completions, drains take them from there instead of the CQs, so
//! the order is kept.

use super::{
    cqs::{
        Cqs,
        EvdCq, //
    },
    Consumer,
    Evd, //
};
use crate::{
    dat::prelude::*,
    model::{
        direct_event::{
            DirectEvent,
            DrainRetries,
            BUDGET, //
        },
        ring_size::BATCH, //
    },
    rdma::wc::{
        Wc,
        WcBatch, //
    },
    sys::{
        lock::LockContext,
        memcg::Payer,
        user::{
            ChargedArray,
            User, //
        },
    },
};
use kernel::{
    alloc::flags::__GFP_NOWARN,
    rbtree::RBTreeNodeReservation,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

/// Smallest number of completions for which memory is allocated.
const MIN_CAPACITY: usize = 64;

/// A completion of a CQ.
pub(super) struct Spilled {
    completion: Wc,
    queue: Arc<EvdCq>,
}

/// Completions that were polled early, oldest first.
pub(super) struct Spill {
    /// Those before `front` were taken. An element is also `None` if its Endpoint was freed.
    entries: ChargedArray<Option<Spilled>>,
    front: usize,
    /// Number of completions.
    live: usize,
    /// Context of the drains, which may free memory in a process only.
    context: LockContext,
}

impl Spill {
    /// Creates an empty spill without memory.
    pub(super) const fn none(context: LockContext) -> Self {
        Self {
            entries: ChargedArray::empty(),
            front: 0,
            live: 0,
            context,
        }
    }

    /// Takes all completions, with their memory.
    pub(super) fn take(&mut self) -> Self {
        let none = Self::none(self.context);
        core::mem::replace(self, none)
    }

    /// Creates an empty spill for this many completions, for which `user` is charged.
    fn with_capacity(user: &User, capacity: usize, payer: Payer<'_>) -> Result<Self> {
        let entries = payer
            .charged(|flags| ChargedArray::with_capacity(user, capacity, flags | __GFP_NOWARN))?;
        Ok(Self {
            entries,
            ..Self::none(LockContext::Process)
        })
    }

    /// Returns whether there are no completions.
    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the number of completions that can be added.
    fn room(&self) -> usize {
        self.entries.capacity().saturating_sub(self.entries.len())
    }

    /// Returns the capacity of a larger spill.
    fn larger(&self) -> usize {
        self.live.saturating_mul(2).max(MIN_CAPACITY)
    }

    /// Adds a completion. There is [room](Spill::room) for it.
    fn push(&mut self, spilled: Spilled) {
        if self.entries.push(Some(spilled)).is_ok() {
            self.live = self.live.saturating_add(1);
        }
    }

    /// Takes the oldest completion.
    fn pop(&mut self) -> Option<Spilled> {
        let mut popped = None;
        while let (None, Some(entry)) = (&popped, self.entries.get_mut(self.front)) {
            popped = entry.take();
            self.front = self.front.saturating_add(1);
        }
        self.removed(popped.is_some().into());
        popped
    }

    /// Returns the number of completions for which `counts` returns `true`.
    fn count_if(&self, counts: impl Fn(&Wc) -> bool) -> usize {
        let spilled = self.entries.iter().flatten();
        spilled
            .filter(|spilled| counts(&spilled.completion))
            .count()
    }

    /// Removes the completions for which `goes` returns `true`.
    fn remove_if(&mut self, mut goes: impl FnMut(&Wc) -> bool) {
        let mut removed = 0_usize;
        for entry in self.entries.iter_mut() {
            if entry
                .as_ref()
                .is_some_and(|spilled| goes(&spilled.completion))
            {
                *entry = None;
                removed = removed.saturating_add(1);
            }
        }
        self.removed(removed);
    }

    /// Counts removed completions. Without completions no memory is kept, unless drains must not
    /// free it: it stays for the next completions then.
    fn removed(&mut self, count: usize) {
        self.live = self.live.saturating_sub(count);
        if self.live != 0 {
            return;
        }
        match self.context {
            LockContext::Process => drop(self.take()),
            LockContext::Any => {
                self.entries.clear();
                self.front = 0;
            }
        }
    }

    /// Moves the completions into a larger spill. Returns the memory that is not needed.
    fn move_into(&mut self, mut larger: Self) -> Self {
        if larger.room() <= self.live {
            return larger;
        }
        larger.context = self.context;
        for spilled in self.entries.iter_mut().filter_map(Option::take) {
            larger.push(spilled);
        }
        core::mem::replace(self, larger)
    }
}

/// Result of an attempt to empty the CQs.
enum SpillEnd {
    /// Each CQ was found empty.
    Empty,
    /// More completions may be queued. The caller releases the lock first.
    BudgetExhausted,
    /// The spill needs memory for more completions.
    Full,
}

impl Evd {
    /// Passes spilled completions on, as far as the ring has room. Returns `true` if the drain is
    /// over: the ring is full, the event was delivered directly, or the budget is used up.
    #[cold]
    pub(super) fn drain_spill(&self, cqs: &mut Cqs, direct: &mut DirectEvent<'_>) -> bool {
        while direct.may_continue() {
            if self.room() == 0 {
                return true;
            }
            let Some(Spilled { completion, queue }) = cqs.spill.pop() else {
                return false;
            };
            direct.charge(1);
            self.complete(&completion, direct);
            self.release_given_up(queue.room.completions_taken(1));
        }
        true
    }

    /// Polls all completions that are queued by now. Those for which the ring has no room go to the
    /// spill. Returns `false` if some may be left: there is no memory, or the user has reached its
    /// limit, or new ones arrive too fast.
    ///
    /// Completions of freed Endpoints are not spilled, because they have no events. A bind that
    /// finds no room in the ring is completed at once. The memory of the spill is charged to
    /// `payer`.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn drain_fully(&self, payer: Payer<'_>) -> bool {
        let mut storage = Spill::none(LockContext::Process);
        let mut retries = DrainRetries::new();
        self.complete_spilled_early();
        loop {
            let mut guard = self.consumer.lock();
            let consumer = &mut *guard;
            let unneeded = consumer.cqs.spill.move_into(storage);
            let end = self.empty_cqs(consumer);
            let (depth, larger) = (consumer.cqs.depth(), consumer.cqs.spill.larger());
            drop(guard);
            drop(unneeded);
            storage = match end {
                SpillEnd::Empty => return true,
                SpillEnd::BudgetExhausted if retries.next(|| depth) => {
                    Spill::none(LockContext::Process)
                }
                SpillEnd::BudgetExhausted => return false,
                SpillEnd::Full => match Spill::with_capacity(&self.context.user, larger, payer) {
                    Ok(storage) => storage,
                    Err(_) => return false,
                },
            };
        }
    }

    /// Returns the number of completions that were polled before the ring had room, and for which
    /// `counts` returns `true`.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn count_spilled(&self, counts: impl Fn(&Wc) -> bool) -> u32 {
        let count = self.consumer.lock().cqs.spill.count_if(counts);
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// Keeps a queue pair until the CQs are released, for drivers that dereference it when they
    /// poll its completions.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn keep(&self, queue_pair: Arc<dyn Send + Sync>) {
        let address = Arc::as_ptr(&queue_pair).addr();
        // The queue pair must not be destroyed before. The node is small: memory is soon free.
        let node = loop {
            match RBTreeNodeReservation::new(GFP_KERNEL) {
                Ok(node) => break node,
                Err(_) => fsleep(Delta::from_millis(1)),
            }
        };
        let object = node.into_node(address, queue_pair);
        // Dropped without the lock.
        let unneeded = self.consumer.lock().cqs.keep(object);
        drop(unneeded);
    }

    /// Notes that an Endpoint was freed or reset, after its state has changed: the next
    /// [`Evd::drain_fully`] removes its completions from the spill.
    ///
    /// Context: any.
    pub(in crate::dat) fn note_life_ended(&self) {
        self.queue.has_ended_lives.swap(true);
    }

    /// Removes spilled completions that have no event any more. Later ones are checked before they
    /// are spilled. So only the end of an Endpoint's life requires another search, whose time
    /// grows with the spill.
    fn complete_spilled_early(&self) {
        // Under the lock: a caller that finds the flag cleared finds the search done.
        let mut consumer = self.consumer.lock();
        if !self.queue.has_ended_lives.swap(false) {
            return;
        }
        let target = &self.context.target;
        let spill = &mut consumer.cqs.spill;
        spill.remove_if(|completion| target.complete_early(self, completion));
    }

    /// Drains into the ring, and then into the spill.
    fn empty_cqs(&self, consumer: &mut Consumer) -> SpillEnd {
        if !consumer.cqs.is_open() {
            return SpillEnd::Empty;
        }
        let mut is_over = false;
        let mut direct = DirectEvent::none();
        if !consumer.cqs.spill.is_empty() {
            is_over = self.drain_spill(&mut consumer.cqs, &mut direct);
        }
        if !is_over {
            consumer.cqs.take_turns(|queue| {
                is_over = self.drain_cq(queue, &mut direct);
                is_over
            });
        }
        if is_over {
            self.spill(&mut consumer.cqs)
        } else {
            SpillEnd::Empty
        }
    }

    /// Polls the CQs into the spill.
    fn spill(&self, cqs: &mut Cqs) -> SpillEnd {
        let mut batch = WcBatch::<BATCH>::new();
        let mut budget = usize::try_from(BUDGET).unwrap_or(usize::MAX);
        let Cqs { list, spill, .. } = cqs;
        for queue in list.iter() {
            loop {
                let room = spill.room().min(BATCH);
                if room == 0 {
                    return SpillEnd::Full;
                }
                let completions = queue.cq.poll(&mut batch, room);
                for completion in completions {
                    // Not counted as taken: older completions may be in the spill.
                    if !self.context.target.complete_early(self, completion) {
                        spill.push(Spilled {
                            completion: completion.copy(),
                            queue: queue.clone(),
                        });
                    }
                }
                if completions.len() < room {
                    break;
                }
                budget = budget.saturating_sub(room);
                if budget == 0 {
                    return SpillEnd::BudgetExhausted;
                }
            }
        }
        if spill.is_empty() {
            for queue in list.iter() {
                self.release_given_up(queue.room.found_empty());
            }
        }
        SpillEnd::Empty
    }
}
