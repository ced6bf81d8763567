// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables of entries with lists that are linked through them, over storage of the home.
//!
//! An entry has a [`Key`]: its index, and a generation, which differs for each value that the entry
//! holds. So a key of a value that was removed is never taken for another one. Inserting, removing
//! and each operation on a list take constant time. Entries from `next_unused` on were never used,
//! so that new storage needs no set-up.

use core::{
    marker::PhantomData,
    ops::DerefMut, //
};

/// Identity of a value in a table. The raw number is positive and fits into 63 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// Returns the index, by which the home finds what it stores for the same value.
    pub(crate) const fn index(self) -> u32 {
        self.index
    }

    /// Returns the number for messages and for callers. It is never 0.
    pub(crate) const fn raw(self) -> u64 {
        ((self.generation as u64) << 32) | self.index as u64
    }

    /// Converts a number, which may be invented.
    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self {
            // Truncation is intended: these are the lower bits.
            index: raw as u32,
            generation: (raw >> 32) as u32,
        }
    }
}

/// Neighbours of an entry in a list.
#[derive(Clone, Copy, Debug, Default)]
struct Links {
    previous: Option<u32>,
    next: Option<u32>,
}

/// List of entries of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct List {
    first: Option<u32>,
    last: Option<u32>,
}

impl List {
    /// Creates an empty list.
    pub(crate) const fn new() -> Self {
        Self {
            first: None,
            last: None,
        }
    }

    /// Returns whether the list has no entry.
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// Storage of one entry, which may be in as many lists at once as it has links.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<T, const LINKS: usize> {
    generation: u32,
    links: [Links; LINKS],
    value: Option<T>,
}

impl<T, const LINKS: usize> Entry<T, LINKS> {
    /// Returns the value that new storage is filled with.
    pub(crate) const fn vacant() -> Self {
        const NOWHERE: Links = Links {
            previous: None,
            next: None,
        };
        Self {
            generation: 0,
            links: [NOWHERE; LINKS],
            value: None,
        }
    }
}

/// A table.
pub(crate) struct Table<T, S, const LINKS: usize> {
    /// Entries that were used and are free again, linked by their first links.
    free: List,
    next_unused: u32,
    used: u32,
    storage: S,
    values: PhantomData<T>,
}

impl<T, S, const LINKS: usize> Table<T, S, LINKS>
where
    S: DerefMut<Target = [Entry<T, LINKS>]>,
{
    /// Creates a table over `storage`, whose entries are all [`Entry::vacant`].
    pub(crate) const fn new(storage: S) -> Self {
        Self {
            free: List::new(),
            next_unused: 0,
            used: 0,
            storage,
            values: PhantomData,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn capacity(&self) -> u32 {
        u32::try_from(self.storage.len()).unwrap_or(u32::MAX)
    }

    /// Returns the number of values.
    pub(crate) const fn used(&self) -> u32 {
        self.used
    }

    /// Moves the values into other storage, whose entries are all [`Entry::vacant`]. Each keeps its
    /// key. Returns the storage that is not needed: the shorter one.
    pub(crate) fn grow(&mut self, mut storage: S) -> S {
        if storage.len() <= self.storage.len() {
            return storage;
        }
        for (new, old) in storage.iter_mut().zip(self.storage.iter_mut()) {
            core::mem::swap(new, old);
        }
        core::mem::replace(&mut self.storage, storage)
    }

    /// Inserts a value; `None` if all entries are used.
    pub(crate) fn insert(&mut self, value: T) -> Option<Key> {
        let mut free = self.free;
        let index = match self.pop(&mut free, 0) {
            Some(index) => index,
            None if self.next_unused < self.capacity() => self.next_unused,
            None => return None,
        };
        self.free = free;
        let entry = self.entry_mut(index)?;
        // 31 bits, and never 0, so that the raw number of a key is positive.
        entry.generation = (entry.generation.wrapping_add(1) & (u32::MAX >> 1)).max(1);
        entry.value = Some(value);
        let generation = entry.generation;
        if index == self.next_unused {
            self.next_unused = index.wrapping_add(1);
        }
        self.used = self.used.wrapping_add(1);
        Some(Key { index, generation })
    }

    /// Removes a value, which is in no list.
    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let value = self.entry_mut(key.index)?.value.take()?;
        self.used = self.used.wrapping_sub(1);
        let mut free = self.free;
        self.link_first(&mut free, 0, key.index);
        self.free = free;
        Some(value)
    }

    /// Returns a value; `None` if the key is stale or invented.
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entry(key.index)?;
        if entry.generation != key.generation {
            return None;
        }
        entry.value.as_ref()
    }

    /// Returns a value to change it; `None` if the key is stale or invented.
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entry_mut(key.index)?;
        if entry.generation != key.generation {
            return None;
        }
        entry.value.as_mut()
    }

    /// Returns the first entry of a list.
    pub(crate) fn first(&self, list: &List) -> Option<Key> {
        self.key(list.first)
    }

    /// Returns the entry after another one in the list of its links number `link`.
    pub(crate) fn next(&self, link: usize, key: Key) -> Option<Key> {
        self.get(key)?;
        self.key(self.links(key.index, link).next)
    }

    /// Appends an entry, which is in no list of these links.
    pub(crate) fn push(&mut self, list: &mut List, link: usize, key: Key) {
        let index = key.index;
        let previous = list.last;
        self.set_links(index, link, previous, None);
        match previous {
            Some(previous) => self.set_next(previous, link, Some(index)),
            None => list.first = Some(index),
        }
        list.last = Some(index);
    }

    /// Removes an entry, which is in this list.
    pub(crate) fn unlink(&mut self, list: &mut List, link: usize, key: Key) {
        self.unlink_index(list, link, key.index);
    }

    fn unlink_index(&mut self, list: &mut List, link: usize, index: u32) {
        let Links { previous, next } = self.links(index, link);
        match previous {
            Some(previous) => self.set_next(previous, link, next),
            None => list.first = next,
        }
        match next {
            Some(next) => self.set_previous(next, link, previous),
            None => list.last = previous,
        }
        self.set_links(index, link, None, None);
    }

    fn link_first(&mut self, list: &mut List, link: usize, index: u32) {
        let next = list.first;
        self.set_links(index, link, None, next);
        match next {
            Some(next) => self.set_previous(next, link, Some(index)),
            None => list.last = Some(index),
        }
        list.first = Some(index);
    }

    fn pop(&mut self, list: &mut List, link: usize) -> Option<u32> {
        let index = list.first?;
        self.unlink_index(list, link, index);
        Some(index)
    }

    fn key(&self, index: Option<u32>) -> Option<Key> {
        let index = index?;
        let generation = self.entry(index)?.generation;
        Some(Key { index, generation })
    }

    fn entry(&self, index: u32) -> Option<&Entry<T, LINKS>> {
        self.storage.get(usize::try_from(index).ok()?)
    }

    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry<T, LINKS>> {
        self.storage.get_mut(usize::try_from(index).ok()?)
    }

    fn links(&self, index: u32, link: usize) -> Links {
        let links = self
            .entry(index)
            .and_then(|entry| entry.links.get(link).copied());
        links.unwrap_or_default()
    }

    fn links_mut(&mut self, index: u32, link: usize) -> Option<&mut Links> {
        self.entry_mut(index)?.links.get_mut(link)
    }

    fn set_links(&mut self, index: u32, link: usize, previous: Option<u32>, next: Option<u32>) {
        if let Some(links) = self.links_mut(index, link) {
            *links = Links { previous, next };
        }
    }

    fn set_next(&mut self, index: u32, link: usize, next: Option<u32>) {
        if let Some(links) = self.links_mut(index, link) {
            links.next = next;
        }
    }

    fn set_previous(&mut self, index: u32, link: usize, previous: Option<u32>) {
        if let Some(links) = self.links_mut(index, link) {
            links.previous = previous;
        }
    }
}
