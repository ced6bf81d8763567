// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the EVDs of a CNO (Consumer Notification Object) with lists.

use crate::rust::model::cno::{
    EvdSlot,
    EvdTable,
    NoFreeSlot,
    SlotIndex, //
};
use proptest::prelude::*;
use std::{
    cell::Cell,
    ops::{
        Deref,
        DerefMut, //
    },
};

type Cno = EvdTable<Vec<EvdSlot>>;

/// Attaches an EVD as the kernel does: adds slots when all are taken.
fn attach_growing(cno: &mut Cno, evd: u64) -> SlotIndex {
    loop {
        match cno.attach(evd) {
            Ok(number) => return number,
            Err(NoFreeSlot { wanted }) => {
                let wanted = wanted.expect("the limit is not reached");
                assert_eq!(cno.grow(vec![EvdSlot::VACANT; wanted]), Ok(()));
            }
        }
    }
}

#[test]
fn no_evd_is_attached_without_a_vacant_slot() {
    let mut none = Cno::new();
    assert_eq!(none.attach(1), Err(NoFreeSlot { wanted: Some(16) }));
    assert_eq!(none.take(), None);
    assert_eq!(none.first_triggered(), None);
    assert_eq!(none.first_unchecked(), None);
    assert_eq!((none.evds(), none.triggered()), (0, 0));
}

#[test]
fn slots_of_the_slower_thread_are_returned() {
    let mut cno = Cno::new();
    assert_eq!(cno.grow(vec![EvdSlot::VACANT; 16]), Ok(()));
    // Another thread has added slots after the same error.
    let late = vec![EvdSlot::VACANT; 16];
    assert_eq!(cno.grow(late.clone()), Err(late));
    for evd in 0..16 {
        assert!(cno.attach(evd).is_ok());
    }
    assert_eq!(cno.attach(16), Err(NoFreeSlot { wanted: Some(32) }));
    assert_eq!(cno.evds(), 16);
}

#[test]
fn growing_keeps_all_evds_and_triggers() {
    let mut cno = Cno::new();
    let slots: Vec<_> = (0..200).map(|evd| attach_growing(&mut cno, evd)).collect();
    for evd in (0..200).rev().step_by(3) {
        assert!(cno.trigger(slots[evd]));
    }
    assert_eq!(cno.grow(vec![EvdSlot::VACANT; 256]), Ok(()));
    let handed: Vec<_> = std::iter::from_fn(|| cno.take()).collect();
    let triggered: Vec<_> = (0..200).rev().step_by(3).collect();
    assert_eq!(handed, triggered);
    for (evd, slot) in (0..).zip(&slots) {
        assert_eq!(cno.evd(*slot), evd);
    }
}

#[test]
fn the_slot_of_a_detached_evd_is_reused() {
    let mut cno = Cno::new();
    let slots: Vec<_> = (0..16).map(|evd| attach_growing(&mut cno, evd)).collect();
    assert!(!cno.detach(slots[9]));
    // No effect: the slot has no EVD.
    assert!(!cno.detach(slots[9]));
    assert!(!cno.trigger(slots[9]));
    assert!(!cno.detach(slots[3]));
    assert_eq!(cno.evds(), 14);
    assert_eq!(
        [cno.attach(20), cno.attach(21)],
        [Ok(slots[9]), Ok(slots[3])]
    );
    assert_eq!(cno.attach(22), Err(NoFreeSlot { wanted: Some(32) }));
    for slot in &slots[1..] {
        assert!(!cno.detach(*slot));
    }
    assert!(cno.detach(slots[0]));
}

/// Slots that count the accesses to them.
struct CountedSlots(Vec<EvdSlot>);

thread_local! {
    static ACCESSES: Cell<usize> = const { Cell::new(0) };
}

impl Deref for CountedSlots {
    type Target = [EvdSlot];

    fn deref(&self) -> &[EvdSlot] {
        ACCESSES.set(ACCESSES.get() + 1);
        &self.0
    }
}

impl DerefMut for CountedSlots {
    fn deref_mut(&mut self) -> &mut [EvdSlot] {
        ACCESSES.set(ACCESSES.get() + 1);
        &mut self.0
    }
}

/// Largest number of accesses of one call.
#[derive(Default)]
struct Most(usize);

impl Most {
    fn of<T>(&mut self, call: impl FnOnce() -> T) -> T {
        ACCESSES.set(0);
        let result = call();
        self.0 = self.0.max(ACCESSES.get());
        result
    }
}

/// Makes every call that the kernel makes under the CNO's lock, for each of `evds` EVDs. Returns
/// the largest number of slots that one call accessed.
///
/// The result bounds the time of a call, because no function of [`SegmentedTable`] accesses more
/// than one slot.
///
/// [`SegmentedTable`]: crate::rust::model::segments::SegmentedTable
fn longest_call(evds: u64) -> usize {
    let mut cno = EvdTable::<CountedSlots>::new();
    let mut most = Most::default();
    let mut slots = Vec::new();
    for evd in 0..evds {
        slots.push(loop {
            match most.of(|| cno.attach(evd)) {
                Ok(slot) => break slot,
                Err(full) => {
                    let more = CountedSlots(vec![
                        EvdSlot::VACANT;
                        full.wanted.expect("the limit is not reached")
                    ]);
                    assert!(most.of(|| cno.grow(more)).is_ok());
                }
            }
        });
    }
    for slot in &slots {
        assert!(most.of(|| cno.trigger(*slot)));
        assert!(most.of(|| cno.add_for_agent(*slot, true)));
        assert!(most.of(|| cno.add_for_agent(*slot, true)));
    }
    for _ in 0..evds {
        assert!(most.of(|| cno.take_for_agent()).is_some());
    }
    for evd in 0..evds {
        let first = most.of(|| cno.first_triggered());
        assert_eq!(first.map(|slot| cno.evd(slot)), Some(evd));
        assert_eq!(most.of(|| cno.take()), Some(evd));
    }
    for slot in slots.iter().rev() {
        assert!(most.of(|| cno.begin_check(*slot)));
        assert!(most.of(|| cno.begin_check_empty(*slot)));
        assert!(most.of(|| cno.first_unchecked()).is_some());
        most.of(|| cno.end_check(*slot));
    }
    // Remove slots from the middle of a list.
    for slot in &slots {
        assert!(most.of(|| cno.trigger(*slot)));
    }
    // Each EVD has a trigger that the agent has not taken.
    let half = slots.len() / 2;
    for slot in slots[half..].iter().chain(&slots[..half]) {
        most.of(|| cno.detach(*slot));
    }
    assert_eq!((cno.evds(), cno.triggered()), (0, 0));
    for evd in 0..evds.min(1000) {
        assert!(most.of(|| cno.attach(evd)).is_ok());
    }
    most.0
}

#[test]
fn a_million_evds_take_as_many_steps_as_ten() {
    let few = longest_call(10);
    assert!(few <= 16, "{few} slots touched");
    assert_eq!(longest_call(1_000_000), few);
}

/// State of an EVD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EvdState {
    Idle,
    Triggered,
    HandedOut,
    Checking,
}

/// Reference implementation with lists.
#[derive(Default)]
struct Lists {
    /// The EVD of each slot, and its state.
    slots: Vec<Option<(u64, EvdState)>>,
    /// Numbers of the slots, as returned when an EVD was attached.
    numbers: Vec<SlotIndex>,
    triggered: Vec<usize>,
    unchecked: Vec<usize>,
}

impl Lists {
    /// Attaches an EVD, which the table has given this slot.
    fn attach(&mut self, evd: u64, number: SlotIndex) {
        let taken = self.numbers.iter().position(|known| *known == number);
        let slot = taken.unwrap_or_else(|| {
            self.numbers.push(number);
            self.slots.push(None);
            self.slots.len() - 1
        });
        assert_eq!(self.slots[slot], None, "the slot is taken");
        self.slots[slot] = Some((evd, EvdState::Idle));
    }

    /// Returns a slot that has or had an EVD.
    fn known(&self, slot: usize) -> Option<(usize, SlotIndex)> {
        let slot = slot.checked_rem(self.numbers.len())?;
        Some((slot, self.numbers[slot]))
    }

    fn state(&self, slot: usize) -> Option<EvdState> {
        self.slots[slot].map(|(_, state)| state)
    }

    fn put(&mut self, slot: usize, state: Option<EvdState>) {
        self.triggered.retain(|other| *other != slot);
        self.unchecked.retain(|other| *other != slot);
        match state {
            Some(EvdState::Triggered) => self.triggered.push(slot),
            Some(EvdState::HandedOut | EvdState::Checking) => self.unchecked.push(slot),
            Some(EvdState::Idle) | None => {}
        }
        let evd = self.slots[slot].map(|(evd, _)| evd);
        self.slots[slot] = evd.zip(state);
    }

    /// Changes the state of a slot if it is one of `from`. Returns whether it was.
    fn advance(&mut self, slot: usize, from: &[EvdState], to: EvdState) -> bool {
        let moves = self.state(slot).is_some_and(|state| from.contains(&state));
        if moves {
            self.put(slot, Some(to));
        }
        moves
    }
}

/// An operation.
#[derive(Clone, Copy, Debug)]
enum Act {
    Attach,
    Detach(usize),
    Trigger(usize),
    /// By the handle of the first EVD if true.
    Take(bool),
    BeginCheck(usize),
    BeginCheckEmpty(usize),
    EndCheck(usize),
    /// With the handle of the EVD in the slot if true, with another one if false.
    ClearUnchecked(usize, bool),
    /// With this number of slots, which may be the wanted one.
    Grow(usize),
}

fn any_act() -> impl Strategy<Value = Act> {
    let slot = || prop_oneof![0..6_usize, 0..60_usize];
    prop_oneof![
        3 => Just(Act::Attach),
        1 => slot().prop_map(Act::Detach),
        5 => slot().prop_map(Act::Trigger),
        4 => any::<bool>().prop_map(Act::Take),
        2 => slot().prop_map(Act::BeginCheck),
        2 => slot().prop_map(Act::BeginCheckEmpty),
        2 => slot().prop_map(Act::EndCheck),
        1 => (slot(), any::<bool>()).prop_map(|(slot, right)| Act::ClearUnchecked(slot, right)),
        1 => (0..40_usize).prop_map(Act::Grow),
    ]
}

proptest! {
    #[test]
    fn like_lists(evds in 0..60_u64, acts in prop::collection::vec(any_act(), 0..120)) {
        use EvdState::{HandedOut, Idle, Checking, Triggered};
        let mut table = Cno::new();
        let mut lists = Lists::default();
        for evd in 0..evds {
            lists.attach(evd, attach_growing(&mut table, evd));
        }
        for (evd, act) in (100_u64..).zip(acts) {
            let known = |slot: usize| lists.known(slot);
            match act {
                Act::Attach => lists.attach(evd, attach_growing(&mut table, evd)),
                Act::Detach(slot) => if let Some((slot, number)) = known(slot) {
                    lists.put(slot, None);
                    let was_last = lists.slots.iter().all(Option::is_none);
                    prop_assert_eq!(table.detach(number), was_last);
                },
                Act::Trigger(slot) => if let Some((slot, number)) = known(slot) {
                    let news = lists.advance(slot, &[Idle, HandedOut, Checking], Triggered);
                    prop_assert_eq!(table.trigger(number), news);
                },
                Act::Take(is_known) => {
                    let first = lists.triggered.first().copied();
                    let evd = first.and_then(|slot| lists.slots[slot]).map(|(evd, _)| evd);
                    prop_assert!(!table.take_if(u64::MAX));
                    let taken = match (is_known, evd) {
                        (true, Some(evd)) => table.take_if(evd).then_some(evd),
                        _ => table.take(),
                    };
                    prop_assert_eq!(taken, evd);
                    if let Some(first) = first {
                        lists.put(first, Some(HandedOut));
                    }
                }
                Act::BeginCheck(slot) => if let Some((slot, number)) = known(slot) {
                    let looks = lists.advance(slot, &[Idle, HandedOut, Checking], Checking);
                    prop_assert_eq!(table.begin_check(number), looks);
                },
                Act::BeginCheckEmpty(slot) => if let Some((slot, number)) = known(slot) {
                    let looks = lists.advance(slot, &[Triggered, HandedOut, Checking], Checking);
                    prop_assert_eq!(table.begin_check_empty(number), looks);
                },
                Act::EndCheck(slot) => if let Some((slot, number)) = known(slot) {
                    lists.advance(slot, &[Checking], Idle);
                    table.end_check(number);
                },
                Act::ClearUnchecked(slot, right) => if let Some((slot, number)) = known(slot) {
                    let there = lists.slots[slot].map_or(0, |(evd, _)| evd);
                    if right {
                        lists.advance(slot, &[HandedOut, Checking], Idle);
                    }
                    table.clear_unchecked(number, if right { there } else { there + 1 });
                },
                Act::Grow(slots) => {
                    let slots = vec![EvdSlot::VACANT; slots];
                    let wanted = match table.attach(evd) {
                        Ok(number) => {
                            lists.attach(evd, number);
                            None
                        }
                        Err(full) => full.wanted,
                    };
                    let fits = wanted == Some(slots.len());
                    if wanted.is_some() {
                        prop_assert_eq!(table.grow(slots).is_ok(), fits);
                    }
                }
            }
            prop_assert_eq!(table.evds() as usize, lists.slots.iter().flatten().count());
            prop_assert_eq!(table.triggered() as usize, lists.triggered.len());
            let unchecked = lists.unchecked.first().map(|slot| {
                (lists.numbers[*slot], lists.slots[*slot].expect("an EVD").0)
            });
            prop_assert_eq!(table.first_unchecked(), unchecked);
            for (slot, number) in lists.slots.iter().zip(&lists.numbers) {
                if let Some((evd, _)) = slot {
                    prop_assert_eq!(table.evd(*number), *evd);
                }
            }
        }
    }
}
