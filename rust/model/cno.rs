// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! State of each Event Dispatcher (EVD) at its Consumer Notification Object (CNO).
//!
//! A wait on a CNO returns an EVD that has events. No such EVD may be forgotten, and none may be
//! returned to two waiters at once.
//!
//! Each EVD has an [`EvdSlot`] at its CNO, which holds its state. The state changes under the CNO's
//! lock only, so an EVD that may have events always has a state that says so:
//!
//! ```text
//!              trigger                   take
//!      Idle ------------> Triggered -------------> HandedOut
//!        ^                 ^     |                   |
//!        |         trigger |     | begin_check_empty | begin_check, begin_check_empty
//!        |  end_check      |     v                   |
//!        +------------------- Checking <-------------+
//! ```
//!
//! * *Idle*: the EVD was found empty. Its next event triggers the CNO. `begin_check` moves it to
//!   *Checking* as well, for example after it was enabled.
//! * *Triggered*: the EVD has events, and no waiter has been given it yet.
//! * *HandedOut*: a waiter was given the EVD. It may hold more events than that waiter takes.
//! * *Checking*: a thread is checking whether the EVD has events. The thread enters this state
//!   before it checks (see [`check`]). An event that arrives during the check triggers the CNO, and
//!   the result of the check is discarded.
//!
//! An agent of a process takes triggers besides the waiters, and independently of them: see
//! [`agent`].
//!
//! The CNO's lock disables interrupts, and a program chooses the number of EVDs of a CNO. So each
//! function here takes constant time. The slots of a state form a list that is linked through the
//! slots. A CNO that needs more slots gets another [segment](SegmentedTable) of them.

mod agent;
pub(crate) mod check;
mod list;

pub(crate) use self::agent::AgentTrigger;

use self::{
    agent::{
        AgentQueue,
        Untaken, //
    },
    list::{
        Links,
        SlotList,
        END, //
    },
};
use super::segments::SegmentedTable;
use core::ops::DerefMut;

/// State of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvdState {
    /// The slot has no EVD.
    Vacant,
    /// The EVD has no events. Its next event triggers.
    Idle,
    /// The EVD has events, and no waiter has been given it.
    Triggered,
    /// A waiter was given the EVD, which may have more events.
    HandedOut,
    /// A thread is checking whether the EVD has events.
    Checking,
}

/// State of one EVD at its CNO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvdSlot {
    evd: u64,
    /// Place in the list for the state.
    links: Links,
    state: EvdState,
    untaken: Untaken,
}

impl EvdSlot {
    /// A slot without an EVD.
    pub(crate) const VACANT: Self = Self {
        evd: 0,
        links: Links::NONE,
        state: EvdState::Vacant,
        untaken: Untaken::NONE,
    };
}

/// Number of a slot. An EVD stores the number of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotIndex(u32);

/// Error of [`EvdTable::attach`]: all slots are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoFreeSlot {
    /// Number of slots to [add](EvdTable::grow); `None` if the CNO has the maximum already.
    pub(crate) wanted: Option<usize>,
}

/// Selects the links that the lists of states use.
fn links(slot: &mut EvdSlot) -> &mut Links {
    &mut slot.links
}

/// Lists of the slots of a CNO. Idle slots are in no list.
struct SlotLists {
    /// Slots whose EVD has left.
    vacant: SlotList,
    triggered: SlotList,
    /// Slots whose EVD was handed out or is being checked.
    unchecked: SlotList,
}

impl SlotLists {
    /// Returns the list for slots in this state; `None` if there is none.
    fn of(&mut self, state: EvdState) -> Option<&mut SlotList> {
        match state {
            EvdState::Idle => None,
            EvdState::Vacant => Some(&mut self.vacant),
            EvdState::Triggered => Some(&mut self.triggered),
            EvdState::HandedOut | EvdState::Checking => Some(&mut self.unchecked),
        }
    }
}

/// The EVDs of a CNO, over storage that the caller provides.
pub(crate) struct EvdTable<S> {
    slots: SegmentedTable<S>,
    /// Slots from this index on never had an EVD, and are in no list.
    next_unused: u32,
    lists: SlotLists,
    agent: AgentQueue,
}

impl<S: DerefMut<Target = [EvdSlot]>> EvdTable<S> {
    /// Creates a table without EVDs and without slots.
    pub(crate) const fn new() -> Self {
        Self {
            slots: SegmentedTable::new(),
            next_unused: 0,
            lists: SlotLists {
                vacant: SlotList::EMPTY,
                triggered: SlotList::EMPTY,
                unchecked: SlotList::EMPTY,
            },
            agent: AgentQueue::EMPTY,
        }
    }

    /// Returns the number of EVDs.
    pub(crate) fn evds(&self) -> u32 {
        self.next_unused.saturating_sub(self.lists.vacant.len)
    }

    /// Returns the number of EVDs that have triggered.
    pub(crate) fn triggered(&self) -> u32 {
        self.lists.triggered.len
    }

    /// Assigns a slot to an EVD, whose state is idle.
    ///
    /// # Errors
    ///
    /// All slots are taken. The caller allocates more slots, [adds](EvdTable::grow) them and tries
    /// again.
    pub(crate) fn attach(&mut self, evd: u64) -> Result<SlotIndex, NoFreeSlot> {
        let number = self.alloc().ok_or(NoFreeSlot {
            wanted: self.slots.next_len(),
        })?;
        if let Some(slot) = self.slots.get_mut(number) {
            *slot = EvdSlot {
                evd,
                state: EvdState::Idle,
                ..EvdSlot::VACANT
            };
        }
        Ok(SlotIndex(number))
    }

    /// Finds a free slot and removes it from its list.
    fn alloc(&mut self) -> Option<u32> {
        let first = self.lists.vacant.first;
        if first != END {
            self.unlink(first);
            return Some(first);
        }
        let next_unused = self.next_unused;
        if next_unused >= self.slots.len() {
            return None;
        }
        self.next_unused = next_unused.wrapping_add(1);
        Some(next_unused)
    }

    /// Adds vacant slots.
    ///
    /// # Errors
    ///
    /// Returns the slots if their number differs from the one that is [wanted](NoFreeSlot::wanted)
    /// now, because another thread has added some. The caller drops them after it has released the
    /// lock.
    pub(crate) fn grow(&mut self, slots: S) -> Result<(), S> {
        self.slots.grow(slots)
    }

    /// Releases the slot of an EVD that leaves. Returns `true` if it was the last EVD.
    pub(crate) fn detach(&mut self, slot: SlotIndex) -> bool {
        if self.state(slot) != EvdState::Vacant {
            self.agent.remove(&mut self.slots, slot);
            self.move_to(slot, EvdState::Vacant);
        }
        self.evds() == 0
    }

    /// Marks an EVD as having events. Returns `false` if it was marked already.
    pub(crate) fn trigger(&mut self, slot: SlotIndex) -> bool {
        let is_news = match self.state(slot) {
            EvdState::Idle | EvdState::HandedOut | EvdState::Checking => true,
            EvdState::Triggered | EvdState::Vacant => false,
        };
        if is_news {
            self.move_to(slot, EvdState::Triggered);
        }
        is_news
    }

    /// Returns the EVD that triggered first, and marks it as handed out.
    pub(crate) fn take(&mut self) -> Option<u64> {
        let first = self.lists.triggered.first;
        let evd = self.slots.get(first)?.evd;
        self.move_to(SlotIndex(first), EvdState::HandedOut);
        Some(evd)
    }

    /// Takes the EVD that triggered first, if it is this one. Returns whether it was.
    pub(crate) fn take_if(&mut self, evd: u64) -> bool {
        let is_first = self.first_triggered().map(|slot| self.evd(slot)) == Some(evd);
        is_first && self.take().is_some()
    }

    /// Returns the slot of the EVD that the next [`EvdTable::take`] will return.
    pub(crate) fn first_triggered(&self) -> Option<SlotIndex> {
        let first = self.lists.triggered.first;
        (first != END).then_some(SlotIndex(first))
    }

    /// Returns the EVD of a slot; 0 if there is no such slot.
    pub(crate) fn evd(&self, slot: SlotIndex) -> u64 {
        self.slots.get(slot.0).map_or(0, |slot| slot.evd)
    }

    /// Returns the first EVD that has to be checked for events, and its slot.
    pub(crate) fn first_unchecked(&self) -> Option<(SlotIndex, u64)> {
        let first = self.lists.unchecked.first;
        Some((SlotIndex(first), self.slots.get(first)?.evd))
    }

    /// Marks an EVD as being checked. Returns `false` if no check is needed, because the EVD has
    /// triggered.
    pub(crate) fn begin_check(&mut self, slot: SlotIndex) -> bool {
        match self.state(slot) {
            EvdState::Idle | EvdState::HandedOut | EvdState::Checking => {
                self.move_to(slot, EvdState::Checking);
                true
            }
            EvdState::Triggered | EvdState::Vacant => false,
        }
    }

    /// Marks an EVD as being checked after the consumer has found it empty, and withdraws its
    /// trigger. Returns `false` if no check is needed, because it was found empty before and has
    /// not triggered since.
    pub(crate) fn begin_check_empty(&mut self, slot: SlotIndex) -> bool {
        match self.state(slot) {
            EvdState::Triggered | EvdState::HandedOut | EvdState::Checking => {
                self.move_to(slot, EvdState::Checking);
                true
            }
            EvdState::Idle | EvdState::Vacant => false,
        }
    }

    /// Ends a check that found no events. The EVD becomes idle unless it has triggered since the
    /// check began.
    pub(crate) fn end_check(&mut self, slot: SlotIndex) {
        if self.state(slot) == EvdState::Checking {
            self.move_to(slot, EvdState::Idle);
        }
    }

    /// Marks an [unchecked](EvdTable::first_unchecked) EVD as idle if it still has this slot. The
    /// EVD is being freed, so no thread can check it.
    pub(crate) fn clear_unchecked(&mut self, slot: SlotIndex, evd: u64) {
        let Some(found) = self.slots.get(slot.0) else {
            return;
        };
        if found.evd == evd && matches!(found.state, EvdState::HandedOut | EvdState::Checking) {
            self.move_to(slot, EvdState::Idle);
        }
    }

    fn state(&self, slot: SlotIndex) -> EvdState {
        self.slots
            .get(slot.0)
            .map_or(EvdState::Vacant, |slot| slot.state)
    }

    /// Removes a slot from its list.
    fn unlink(&mut self, slot: u32) {
        let state = self.state(SlotIndex(slot));
        if let Some(list) = self.lists.of(state) {
            list.remove(&mut self.slots, links, slot);
        }
    }

    /// Moves a slot to the end of the list for `state`.
    fn move_to(&mut self, SlotIndex(number): SlotIndex, state: EvdState) {
        self.unlink(number);
        if let Some(slot) = self.slots.get_mut(number) {
            slot.state = state;
        }
        if let Some(list) = self.lists.of(state) {
            list.append(&mut self.slots, links, number);
        }
    }

    /// Counts an event of an EVD for the agent; `is_trigger` is the result of
    /// [`EvdTable::trigger`]. Returns whether the agent has to be notified.
    pub(crate) fn add_for_agent(&mut self, slot: SlotIndex, is_trigger: bool) -> bool {
        match self.state(slot) {
            EvdState::Vacant => false,
            EvdState::Idle | EvdState::Triggered | EvdState::HandedOut | EvdState::Checking => {
                self.agent.add(&mut self.slots, slot, is_trigger)
            }
        }
    }

    /// Counts a trigger by the consumer for the agent.
    pub(crate) fn add_by_consumer_for_agent(&mut self) {
        self.agent.add_by_consumer();
    }

    /// Takes a trigger for the agent. The states of the EVDs do not change.
    pub(crate) fn take_for_agent(&mut self) -> Option<AgentTrigger> {
        self.agent.take(&mut self.slots)
    }

    /// Forgets the agent's triggers of an EVD that is being freed, if it still has this slot.
    pub(crate) fn clear_for_agent(&mut self, slot: SlotIndex, evd: u64) {
        if self.evd(slot) == evd {
            self.agent.remove(&mut self.slots, slot);
        }
    }

    /// Forgets all triggers of the agent, which is replaced.
    pub(crate) fn replace_agent(&mut self) {
        self.agent.clear();
    }
}
