// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Lists of the slots of a Consumer Notification Object, linked through the slots.

use super::{
    super::segments::SegmentedTable,
    EvdSlot, //
};
use core::ops::DerefMut;

/// End of a list: not the number of any slot.
pub(super) const END: u32 = u32::MAX;

/// Place of a slot in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Links {
    /// Previous slot of the list.
    prev: u32,
    /// Next slot of the list.
    next: u32,
}

impl Links {
    pub(super) const NONE: Self = Self {
        prev: END,
        next: END,
    };
}

/// Selects the links of a slot that a list uses.
pub(super) type Select = fn(&mut EvdSlot) -> &mut Links;

/// A doubly linked list of slots, in the order in which they were appended.
pub(super) struct SlotList {
    pub(super) first: u32,
    last: u32,
    pub(super) len: u32,
}

impl SlotList {
    pub(super) const EMPTY: Self = Self {
        first: END,
        last: END,
        len: 0,
    };

    /// Appends a slot that is in no list of this kind.
    pub(super) fn append<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
        select: Select,
        number: u32,
    ) {
        let prev = self.last;
        if let Some(slot) = slots.get_mut(number) {
            *select(slot) = Links { prev, next: END };
        }
        match slots.get_mut(prev) {
            Some(slot) => select(slot).next = number,
            None => self.first = number,
        }
        self.last = number;
        self.len = self.len.wrapping_add(1);
    }

    /// Removes a slot that is in this list.
    pub(super) fn remove<S: DerefMut<Target = [EvdSlot]>>(
        &mut self,
        slots: &mut SegmentedTable<S>,
        select: Select,
        number: u32,
    ) {
        let Some(slot) = slots.get_mut(number) else {
            return;
        };
        let Links { prev, next } = core::mem::replace(select(slot), Links::NONE);
        match slots.get_mut(prev) {
            Some(slot) => select(slot).next = next,
            None => self.first = next,
        }
        match slots.get_mut(next) {
            Some(slot) => select(slot).prev = prev,
            None => self.last = prev,
        }
        self.len = self.len.wrapping_sub(1);
    }
}
