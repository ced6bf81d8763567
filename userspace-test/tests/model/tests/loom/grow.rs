// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! EVDs are attached to a CNO without vacant slots while one of its EVDs triggers.

use super::{
    explore,
    rust::model::cno::{
        EvdSlot,
        EvdTable,
        SlotIndex, //
    },
};
use loom::{
    sync::{
        Arc,
        Mutex, //
    },
    thread,
};

type Cno = Mutex<EvdTable<Vec<EvdSlot>>>;

/// Returns a CNO whose slots are taken by the EVDs 0 to 15, and the slot of the last one.
fn full() -> (Arc<Cno>, SlotIndex) {
    let mut table = EvdTable::new();
    assert!(table.grow(vec![EvdSlot::VACANT; 16]).is_ok());
    let slots = (0..16).map(|evd| table.attach(evd));
    let last = slots.last().and_then(Result::ok).expect("a slot");
    (Arc::new(Mutex::new(table)), last)
}

/// Attaches an EVD as `Cno::attach` does, but adds slots at most `tries` times.
fn attach(cno: &Cno, evd: u64, tries: u32) -> Option<SlotIndex> {
    for _ in 0..tries {
        let full = match cno.lock().expect("the CNO").attach(evd) {
            Ok(slot) => return Some(slot),
            Err(full) => full,
        };
        let slots = vec![EvdSlot::VACANT; full.wanted?];
        let added = cno.lock().expect("the CNO").grow(slots);
        if tries == 1 {
            // The error: assumes that no other thread adds or takes slots.
            added.ok()?;
        }
    }
    cno.lock().expect("the CNO").attach(evd).ok()
}

/// Two EVDs are attached, while an attached one triggers and is handed out.
fn two_come(tries: u32) {
    let (cno, last) = full();
    let comers = [20, 21].map(|evd| {
        let cno = cno.clone();
        thread::spawn(move || attach(&cno, evd, tries).expect("a slot"))
    });
    {
        let mut table = cno.lock().expect("the CNO");
        assert!(table.trigger(last));
        assert_eq!(table.take(), Some(15));
    }
    let slots = comers.map(|comer| comer.join().expect("no panic"));
    assert_ne!(slots[0], slots[1]);
    let table = cno.lock().expect("the CNO");
    assert_eq!(table.evds(), 18);
    assert_eq!(slots.map(|slot| table.evd(slot)), [20, 21]);
    assert_eq!(table.first_unchecked(), Some((last, 15)));
}

#[test]
fn each_evd_gets_its_own_slot() {
    explore(|| two_come(2));
}

#[test]
#[should_panic]
fn a_thread_whose_slots_are_late_tries_again() {
    explore(|| two_come(1));
}
