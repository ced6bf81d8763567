// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Compares the handle table with a `HashMap`, and tests the bits of handles.

use crate::rust::model::handle::{
    Handle,
    HandleEntry,
    HandleKind,
    HandleTable,
    ObjectKey,
    TableStorage,
    MAX_INDEX, //
};
use proptest::prelude::*;
use std::collections::HashMap;

/// Storage of a table on the host.
struct Host<T>(Vec<HandleEntry<T>>);

impl<T> TableStorage<T> for Host<T> {
    fn entries(&self) -> &[HandleEntry<T>] {
        &self.0
    }

    fn entries_mut(&mut self) -> &mut [HandleEntry<T>] {
        &mut self.0
    }
}

type HostHandleTable<T> = HandleTable<T, Host<T>>;

fn table<T>(salt: u64) -> HostHandleTable<T> {
    HandleTable::new(Host(Vec::new()), salt)
}

/// Reserves a handle as the kernel does: grows the storage if it is full and tries again.
fn reserve<T>(table: &mut HostHandleTable<T>, kind: HandleKind) -> Handle {
    table.reserve(kind).unwrap_or_else(|| {
        table.storage_mut().0.push(HandleEntry::vacant());
        table.reserve(kind).expect("a grown table has room")
    })
}

fn insert<T: std::fmt::Debug>(
    table: &mut HostHandleTable<T>,
    kind: HandleKind,
    object: T,
) -> Handle {
    let handle = reserve(table, kind);
    table.commit(handle, object).expect("a reserved handle");
    handle
}

const EP: HandleKind = HandleKind::Ep;

#[test]
fn the_bits_of_a_handle() {
    let mut table = table(0x12_3456_789a);
    let handle = insert(&mut table, HandleKind::Csp, ());
    assert_eq!(handle.into_raw(), 0xc123_4567_89a0_0000);
    let handle = insert(&mut table, HandleKind::Cr, ());
    assert_eq!(handle.into_raw(), 0x1123_4567_89b0_0001);
    assert_eq!(handle.kind(), Some(HandleKind::Cr));
    let key = ObjectKey {
        index: 1,
        generation: 0x12_3456_789b,
    };
    assert_eq!(handle.key(), key);
    assert_eq!(Handle::from_raw(handle.into_raw()), handle);
    let widest = Handle::from_raw(u64::MAX);
    assert_eq!(widest.kind(), None);
    assert_eq!(widest.key().index, 0xf_ffff);
    assert_eq!(widest.key().generation, 0xff_ffff_ffff);
    assert_eq!(Handle::from_raw(0).kind(), None);
}

#[test]
fn kinds_are_dat_handle_types_from_one() {
    for (number, kind) in [
        (1, HandleKind::Cr),
        (2, HandleKind::Ep),
        (3, HandleKind::Evd),
        (4, HandleKind::Ia),
        (5, HandleKind::Lmr),
        (6, HandleKind::Psp),
        (7, HandleKind::Pz),
        (8, HandleKind::Rmr),
        (9, HandleKind::Rsp),
        (10, HandleKind::Cno),
        (11, HandleKind::Srq),
        (12, HandleKind::Csp),
    ] {
        assert_eq!(kind.number(), number);
        assert_eq!(HandleKind::from_number(number), Some(kind));
    }
}

#[test]
fn no_object_is_found_before_its_commit() {
    let mut table = table(1);
    let handle = reserve(&mut table, EP);
    assert_eq!(table.get(handle), None);
    assert_eq!(table.get_by_short_generation(0, 1), None);
    assert_eq!(table.remove(handle), None);
    assert_eq!(table.len(), 0);
    assert_eq!(table.commit(handle, 'a'), Ok(()));
    assert_eq!(table.get(handle), Some(&'a'));
    assert_eq!(table.len(), 1);
    // A handle can be committed once.
    assert_eq!(table.commit(handle, 'b'), Err('b'));
    assert_eq!(table.get(handle), Some(&'a'));
    assert_eq!(table.len(), 1);
}

#[test]
fn an_abandoned_handle_is_dead_and_its_entry_used_again() {
    let mut table = table(7);
    let first = reserve(&mut table, EP);
    assert!(table.abandon(first));
    assert_eq!(table.commit(first, 'a'), Err('a'));
    assert!(!table.abandon(first));
    let second = table.reserve(EP).expect("the same entry");
    assert_eq!(second.key().index, first.key().index);
    assert_ne!(second, first);
    // A stale handle does not abandon the reservation of another object.
    assert!(!table.abandon(first));
    assert_eq!(table.commit(second, 'b'), Ok(()));
    // Nor does it abandon an object.
    assert!(!table.abandon(second));
    assert_eq!(table.get(second), Some(&'b'));
    assert!(table.reserve(EP).is_none());
}

#[test]
fn a_wrong_kind_is_refused() {
    let mut table = table(7);
    let handle = insert(&mut table, EP, 'a');
    for kind in 0..16 {
        let other = Handle::from_raw((handle.into_raw() & !(0xf << 60)) | (kind << 60));
        assert_eq!(table.get(other).is_some(), kind == 2, "{kind}");
        assert_eq!(table.commit(other, 'b'), Err('b'));
        if kind != 2 {
            assert_eq!(table.remove(other), None);
        }
    }
    assert_eq!(table.remove(handle), Some('a'));
    assert_eq!(table.len(), 0);
}

#[test]
fn generations_wrap_within_their_bits() {
    let mut table = table(u64::MAX);
    let first = insert(&mut table, EP, 'a');
    assert_eq!(first.key().generation, 0xff_ffff_ffff);
    let second = insert(&mut table, EP, 'b');
    assert_eq!(second.key().generation, 0);
    assert_eq!(second.kind(), Some(EP));
    assert_eq!(table.get(first), Some(&'a'));
    assert_eq!(table.get(second), Some(&'b'));
}

#[test]
fn the_short_generation() {
    // A salt with bits above the 23 that a work request id contains.
    let mut table = table(0x12_34ff_fffe);
    let handle = insert(&mut table, EP, 'a');
    assert_eq!(handle.key().short_generation(), 0x7f_fffe);
    assert_eq!(table.get_by_short_generation(0, 0x7f_fffe), Some(&'a'));
    for (index, generation) in [
        (0, 0x7f_ffff),
        (0, 0),
        (1, 0x7f_fffe),
        (u32::MAX, 0x7f_fffe),
    ] {
        assert_eq!(table.get_by_short_generation(index, generation), None);
    }
    table.remove(handle);
    assert_eq!(table.get_by_short_generation(0, 0x7f_fffe), None);
    insert(&mut table, EP, 'b');
    assert_eq!(table.get_by_short_generation(0, 0x7f_fffe), None);
    assert_eq!(table.get_by_short_generation(0, 0x7f_ffff), Some(&'b'));
}

#[test]
fn a_table_stops_where_indices_end() {
    let mut table: HostHandleTable<()> = table(0);
    let storage = &mut table.storage_mut().0;
    storage.extend((0..=MAX_INDEX).map(|_| HandleEntry::vacant()));
    let mut last = None;
    for n in 0..MAX_INDEX {
        let handle = table.reserve(EP).expect("an entry");
        assert_eq!(handle.key().index, n);
        last = Some(handle);
    }
    assert_eq!(table.reserve(EP), None);
    table.abandon(last.expect("a handle"));
    let again = table.reserve(EP).expect("the entry that was given back");
    assert_eq!(again.key().index, MAX_INDEX - 1);
}

#[test]
fn storage_that_was_not_vacant_is_refused() {
    let mut first = table(1);
    insert(&mut first, EP, 'a');
    let taken = std::mem::take(&mut first.storage_mut().0);
    let mut second: HostHandleTable<char> = HandleTable::new(Host(taken), 2);
    assert_eq!(second.reserve(EP), None);
    assert_eq!(second.iter_in(0, u32::MAX).count(), 1);
}

/// An operation on a table. The number selects one of all handles that were returned so far.
#[derive(Clone, Copy, Debug)]
enum Act {
    Reserve(HandleKind),
    Commit(usize),
    Abandon(usize),
    Remove(usize),
    Foreign(usize),
    Invented(u64),
    Flipped(usize, u32),
}

fn any_act() -> impl Strategy<Value = Act> {
    let kind = (1..=12_u32).prop_map(|n| HandleKind::from_number(n).expect("a kind"));
    prop_oneof![
        4 => kind.prop_map(Act::Reserve),
        4 => any::<usize>().prop_map(Act::Commit),
        1 => any::<usize>().prop_map(Act::Abandon),
        2 => any::<usize>().prop_map(Act::Remove),
        1 => any::<usize>().prop_map(Act::Foreign),
        1 => any::<u64>().prop_map(Act::Invented),
        1 => (any::<usize>(), 0..64_u32).prop_map(|(n, bit)| Act::Flipped(n, bit)),
    ]
}

/// State of a handle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Reserved,
    Live(u64),
    Dead,
}

proptest! {
    #[test]
    fn like_a_map(
        salts in any::<[u64; 2]>(),
        acts in prop::collection::vec(any_act(), 0..150),
    ) {
        let [salt, other] = salts;
        // The generations of the two tables are apart, as with random salts.
        prop_assume!((salt ^ other) & 0xff_ffff_f000 != 0);
        prop_assume!(salt.wrapping_sub(other) & 0xff_ffff_ffff > 1000);
        prop_assume!(other.wrapping_sub(salt) & 0xff_ffff_ffff > 1000);
        let mut near = table(salt);
        let mut far = table(other);
        let mut fates: HashMap<Handle, Fate> = HashMap::new();
        let mut issued: Vec<Handle> = Vec::new();
        let mut foreign: Vec<Handle> = Vec::new();
        let pick = |from: &[Handle], n: usize| (!from.is_empty()).then(|| from[n % from.len()]);
        for (n, act) in acts.into_iter().enumerate() {
            let object = n as u64;
            match act {
                Act::Reserve(kind) => {
                    let handle = reserve(&mut near, kind);
                    prop_assert_eq!(handle.kind(), Some(kind));
                    prop_assert_ne!(handle.into_raw(), 0);
                    prop_assert_eq!(fates.insert(handle, Fate::Reserved), None);
                    issued.push(handle);
                    foreign.push(insert(&mut far, kind, object));
                }
                Act::Commit(n) => if let Some(handle) = pick(&issued, n) {
                    let reserved = fates[&handle] == Fate::Reserved;
                    prop_assert_eq!(near.commit(handle, object).is_ok(), reserved);
                    if reserved {
                        fates.insert(handle, Fate::Live(object));
                    }
                }
                Act::Abandon(n) => if let Some(handle) = pick(&issued, n) {
                    near.abandon(handle);
                    if fates[&handle] == Fate::Reserved {
                        fates.insert(handle, Fate::Dead);
                    }
                }
                Act::Remove(n) => if let Some(handle) = pick(&issued, n) {
                    match fates[&handle] {
                        Fate::Live(object) => {
                            prop_assert_eq!(near.remove(handle), Some(object));
                            fates.insert(handle, Fate::Dead);
                        }
                        Fate::Reserved | Fate::Dead => prop_assert_eq!(near.remove(handle), None),
                    }
                }
                Act::Foreign(n) => if let Some(handle) = pick(&foreign, n) {
                    prop_assert_eq!(near.get(handle), None);
                    prop_assert_eq!(near.remove(handle), None);
                }
                Act::Invented(raw) => {
                    prop_assert_eq!(near.get(Handle::from_raw(raw)), None);
                    prop_assert_eq!(near.remove(Handle::from_raw(raw)), None);
                }
                Act::Flipped(n, bit) => if let Some(handle) = pick(&issued, n) {
                    let flipped = Handle::from_raw(handle.into_raw() ^ (1 << bit));
                    if !fates.contains_key(&flipped) {
                        prop_assert_eq!(near.get(flipped), None);
                        prop_assert_eq!(near.remove(flipped), None);
                    }
                }
            }
            let mut live: Vec<(Handle, u64)> = Vec::new();
            for (handle, fate) in &fates {
                let expected = match fate {
                    Fate::Live(object) => Some(object),
                    Fate::Reserved | Fate::Dead => None,
                };
                prop_assert_eq!(near.get(*handle), expected);
                if let Some(object) = expected {
                    live.push((*handle, *object));
                    let key = handle.key();
                    prop_assert_eq!(near.get_by_short_generation(key.index, key.short_generation()), expected);
                }
            }
            prop_assert_eq!(near.len() as usize, live.len());
            prop_assert!(fates.keys().all(|handle| handle.key().index < near.end()));
            let part = |from, count| near.iter_in(from, count).map(|(h, o)| (h, *o)).collect::<Vec<_>>();
            let mut listed: Vec<(Handle, u64)> = part(0, near.end());
            listed.sort_by_key(|(handle, _)| handle.into_raw());
            live.sort_by_key(|(handle, _)| handle.into_raw());
            prop_assert_eq!(&listed, &live);
            // A walk in parts returns each object once.
            let middle = live.get(live.len() / 2).map_or(0, |(handle, _)| handle.key().index);
            let mut walked = part(0, middle);
            prop_assert!(walked.iter().all(|(handle, _)| handle.key().index < middle));
            walked.extend(part(middle, 3));
            walked.extend(part(middle + 3, u32::MAX));
            walked.sort_by_key(|(handle, _)| handle.into_raw());
            prop_assert_eq!(walked, listed);
        }
        // The table has grown by at most one entry for each handle.
        prop_assert!(near.storage_mut().0.len() <= issued.len());
    }
}

#[test]
fn storage_is_exchanged_only_without_handles() {
    let mut table = table(7);
    let first = insert(&mut table, EP, 1);
    let reserved = reserve(&mut table, EP);
    assert_eq!(table.replace_unused(Host(Vec::new())).0.len(), 0);
    assert_eq!(table.remove(first), Some(1));
    assert_eq!(table.replace_unused(Host(Vec::new())).0.len(), 0);
    assert!(table.abandon(reserved));
    assert!(!table.abandon(reserved));
    assert_eq!(table.replace_unused(Host(Vec::new())).0.len(), 2);
    assert_eq!((table.len(), table.end()), (0, 0));
    assert_eq!(table.get(first), None);
    assert!(!table.abandon(reserved));
    // A reservation that was committed does not count as one.
    let second = insert(&mut table, EP, 2);
    assert_eq!(table.get(second), Some(&2));
    assert_eq!(table.remove(second), Some(2));
    assert_eq!(table.replace_unused(Host(Vec::new())).0.len(), 1);
}
