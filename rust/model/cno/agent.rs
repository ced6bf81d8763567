// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Triggers that the agent of a process has not taken yet.
//!
//! An eventfd reports a trigger to a process, but not which Event Dispatcher (EVD) has triggered.
//! So the Consumer Notification Object (CNO) counts the triggers of each EVD, and the agent's
//! thread takes them one by one. Waiters use another list, so the agent also gets triggers that a
//! waiter took, or that were withdrawn. A triggered EVD does not trigger its CNO again. But an
//! event after the agent took the last trigger is a new trigger for the agent.
//!
//! Only the triggers of the present agent count. [`AgentQueue::clear`] cannot visit all slots, so
//! it begins another *term*: the counts of earlier terms mean nothing.

use super::{
    super::segments::SegmentedTable,
    list::{
        Links,
        SlotList,
        END, //
    },
    EvdSlot,
    SlotIndex, //
};
use core::ops::DerefMut;

/// Triggers of one EVD that the agent has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Untaken {
    /// Term in which they were counted.
    term: u64,
    count: u32,
    links: Links,
}

impl Untaken {
    pub(super) const NONE: Self = Self {
        term: 0,
        count: 0,
        links: Links::NONE,
    };
}

/// A trigger that an agent takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentTrigger {
    /// This EVD has triggered.
    Evd(SlotIndex, u64),
    /// The consumer has triggered the CNO.
    Consumer,
}

/// The triggers of a CNO that its agent has not taken.
pub(super) struct AgentQueue {
    term: u64,
    /// Number of triggers by the consumer.
    by_consumer: u32,
    /// Slots with triggers of this term.
    list: SlotList,
}

fn links(slot: &mut EvdSlot) -> &mut Links {
    &mut slot.untaken.links
}

impl AgentQueue {
    pub(super) const EMPTY: Self = Self {
        term: 0,
        by_consumer: 0,
        list: SlotList::EMPTY,
    };

    /// Forgets all triggers.
    pub(super) fn clear(&mut self) {
        *self = Self {
            term: self.term.wrapping_add(1),
            ..Self::EMPTY
        };
    }

    /// Returns the number of triggers of a slot.
    fn count<S: DerefMut<Target = [EvdSlot]>>(
        &self,
        slots: &SegmentedTable<S>,
        number: u32,
    ) -> u32 {
        match slots.get(number) {
            Some(slot) if slot.untaken.term == self.term => slot.untaken.count,
            Some(_) | None => 0,
        }
    }

    /// Sets the number of triggers of a slot that is in no list.
    fn append<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
        number: u32,
        count: u32,
    ) {
        if let Some(slot) = slots.get_mut(number) {
            slot.untaken = Untaken {
                term: self.term,
                count,
                links: Links::NONE,
            };
            self.list.append(slots, links, number);
        }
    }

    /// Counts a trigger by the consumer.
    pub(super) fn add_by_consumer(&mut self) {
        self.by_consumer = self.by_consumer.saturating_add(1);
    }

    /// Counts an event of an EVD; `is_trigger` if it triggered the CNO. Returns `false` if the
    /// agent need not be notified, because it has an older trigger of the EVD to take.
    pub(super) fn add<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
        SlotIndex(number): SlotIndex,
        is_trigger: bool,
    ) -> bool {
        match self.count(slots, number) {
            0 => {
                self.append(slots, number, 1);
                true
            }
            count => {
                if let (true, Some(slot)) = (is_trigger, slots.get_mut(number)) {
                    slot.untaken.count = count.saturating_add(1);
                }
                is_trigger
            }
        }
    }

    /// Forgets the triggers of an EVD.
    pub(super) fn remove<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
        SlotIndex(number): SlotIndex,
    ) {
        if self.count(slots, number) == 0 {
            return;
        }
        self.list.remove(slots, links, number);
        if let Some(slot) = slots.get_mut(number) {
            slot.untaken = Untaken::NONE;
        }
    }

    /// Takes a trigger: the EVDs in turn, in the order in which they have triggered, and then the
    /// consumer's.
    pub(super) fn take<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
    ) -> Option<AgentTrigger> {
        let first = self.list.first;
        if first == END {
            self.by_consumer = self.by_consumer.checked_sub(1)?;
            return Some(AgentTrigger::Consumer);
        }
        let left = self.count(slots, first).saturating_sub(1);
        let evd = slots.get(first)?.evd;
        let slot = SlotIndex(first);
        self.remove(slots, slot);
        if left != 0 {
            self.append(slots, first, left);
        }
        Some(AgentTrigger::Evd(slot, evd))
    }
}
