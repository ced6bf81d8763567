// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Table of handles and objects, over storage that its owner grows.

use super::{
    Handle,
    HandleKind,
    ObjectKey,
    GENERATION_MASK,
    MAX_INDEX, //
};

/// Content of an entry.
enum Content<T> {
    /// The entry is free. Links to the next free entry of the list.
    Vacant(Option<u32>),
    /// A handle was allocated for an object that is being created.
    Reserved(Handle),
    /// An object and its handle.
    Live(Handle, T),
}

/// Storage for one object.
pub(crate) struct HandleEntry<T>(Content<T>);

impl<T> HandleEntry<T> {
    /// Returns an entry to grow a table with.
    pub(crate) const fn vacant() -> Self {
        Self(Content::Vacant(None))
    }
}

/// Storage of a table.
///
/// The owner may append [`HandleEntry::vacant`] and may move all entries to another address. It
/// must not change the storage in any other way.
pub(crate) trait TableStorage<T> {
    /// Returns all entries.
    fn entries(&self) -> &[HandleEntry<T>];

    /// Returns all entries, mutably.
    fn entries_mut(&mut self) -> &mut [HandleEntry<T>];
}

/// A table of handles and their objects.
///
/// A handle is reserved first, and then either committed with its object or abandoned. So a lookup
/// never finds an object that is being created, and the object can store its handle.
pub(crate) struct HandleTable<T, S> {
    storage: S,
    /// First entry of the free list.
    free: Option<u32>,
    /// Entries from this index on were never used.
    next_unused: u32,
    /// Number of objects.
    live: u32,
    /// Number of reserved handles.
    reserved: u32,
    /// Generation of the next handle.
    generation: u64,
    objects: core::marker::PhantomData<T>,
}

impl<T, S: TableStorage<T>> HandleTable<T, S> {
    /// Creates a table over `storage`, whose entries are all [`HandleEntry::vacant`].
    ///
    /// `salt` is a random number that differs between tables.
    pub(crate) const fn new(storage: S, salt: u64) -> Self {
        Self {
            storage,
            free: None,
            next_unused: 0,
            live: 0,
            reserved: 0,
            generation: salt & GENERATION_MASK,
            objects: core::marker::PhantomData,
        }
    }

    /// Returns the storage, for its owner to grow.
    pub(crate) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// Returns the number of objects.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Exchanges the storage of a table without handles for an empty one. Returns `empty` if there
    /// are handles.
    pub(crate) fn replace_unused(&mut self, empty: S) -> S {
        if self.live != 0 || self.reserved != 0 {
            return empty;
        }
        (self.free, self.next_unused) = (None, 0);
        core::mem::replace(&mut self.storage, empty)
    }

    /// Reserves a handle for an object that is being created.
    ///
    /// Returns `None` if no entry is free. The owner grows the storage and tries again, unless it
    /// has [`MAX_INDEX`] entries already.
    pub(crate) fn reserve(&mut self, kind: HandleKind) -> Option<Handle> {
        let index = self.free.unwrap_or(self.next_unused);
        if index >= MAX_INDEX {
            return None;
        }
        let entry = entry_mut(&mut self.storage, index)?;
        match entry.0 {
            Content::Vacant(next) => self.free = next,
            // The free list contains no such entry. The check keeps the object if it did.
            Content::Reserved(_) | Content::Live(..) => return None,
        }
        let handle = Handle::new(
            kind,
            ObjectKey {
                index,
                generation: self.generation,
            },
        );
        entry.0 = Content::Reserved(handle);
        if index == self.next_unused {
            self.next_unused = index.wrapping_add(1);
        }
        self.generation = self.generation.wrapping_add(1) & GENERATION_MASK;
        self.reserved = self.reserved.wrapping_add(1);
        Some(handle)
    }

    /// Stores the object of a reserved handle. Lookups find it from now on.
    ///
    /// # Errors
    ///
    /// Returns the object if `handle` is not reserved.
    pub(crate) fn commit(&mut self, handle: Handle, object: T) -> Result<(), T> {
        match entry_mut(&mut self.storage, handle.key().index) {
            Some(entry) if entry.is_reserved(handle) => {
                entry.0 = Content::Live(handle, object);
                self.live = self.live.wrapping_add(1);
                self.reserved = self.reserved.wrapping_sub(1);
                Ok(())
            }
            Some(_) | None => Err(object),
        }
    }

    /// Frees a reserved handle. Returns `false`, and changes nothing, if the handle is not
    /// reserved.
    pub(crate) fn abandon(&mut self, handle: Handle) -> bool {
        let index = handle.key().index;
        match entry_mut(&mut self.storage, index) {
            Some(entry) if entry.is_reserved(handle) => {
                entry.0 = Content::Vacant(self.free);
                self.free = Some(index);
                self.reserved = self.reserved.wrapping_sub(1);
                true
            }
            Some(_) | None => false,
        }
    }

    /// Returns the object of a handle.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        match self.live_at(handle.key().index) {
            Some((found, object)) if found == handle => Some(object),
            Some(_) | None => None,
        }
    }

    /// Returns the object at an index if the low bits of its generation match. A
    /// [`WrId`](super::WrId) contains these bits.
    pub(crate) fn get_by_short_generation(&self, index: u32, generation: u32) -> Option<&T> {
        match self.live_at(index) {
            Some((found, object)) if found.key().short_generation() == generation => Some(object),
            Some(_) | None => None,
        }
    }

    /// Returns the handle of the object at an index if the low bits of its generation match.
    pub(crate) fn full_handle(&self, index: u32, generation: u32) -> Option<Handle> {
        match self.live_at(index) {
            Some((found, _)) if found.key().short_generation() == generation => Some(found),
            Some(_) | None => None,
        }
    }

    /// Removes and returns the object of a handle. The handle is stale afterwards.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let index = handle.key().index;
        let entry = entry_mut(&mut self.storage, index)?;
        match entry.0 {
            Content::Live(found, _) if found == handle => {}
            Content::Live(..) | Content::Reserved(_) | Content::Vacant(_) => return None,
        }
        let content = core::mem::replace(&mut entry.0, Content::Vacant(self.free));
        self.free = Some(index);
        self.live = self.live.wrapping_sub(1);
        match content {
            Content::Live(_, object) => Some(object),
            Content::Reserved(_) | Content::Vacant(_) => None,
        }
    }

    /// Returns the number of entries in use so far: no object has this index or a higher one.
    pub(crate) fn end(&self) -> u32 {
        self.next_unused
    }

    /// Iterates over the objects of `count` entries from the index `from` on, in the order of the
    /// indices.
    pub(crate) fn iter_in(&self, from: u32, count: u32) -> impl Iterator<Item = (Handle, &T)> {
        let entries = self.storage.entries().iter();
        let number = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        entries
            .skip(number(from))
            .take(number(count))
            .filter_map(HandleEntry::live)
    }

    /// Returns the object at an index, and its handle.
    fn live_at(&self, index: u32) -> Option<(Handle, &T)> {
        self.storage
            .entries()
            .get(usize::try_from(index).ok()?)?
            .live()
    }
}

/// Returns the entry at an index.
fn entry_mut<T, S: TableStorage<T>>(storage: &mut S, index: u32) -> Option<&mut HandleEntry<T>> {
    storage.entries_mut().get_mut(usize::try_from(index).ok()?)
}

impl<T> HandleEntry<T> {
    /// Returns whether the entry is reserved for this handle.
    fn is_reserved(&self, handle: Handle) -> bool {
        match self.0 {
            Content::Reserved(reserved) => reserved == handle,
            Content::Live(..) | Content::Vacant(_) => false,
        }
    }

    /// Returns the object and its handle.
    fn live(&self) -> Option<(Handle, &T)> {
        match &self.0 {
            Content::Live(handle, object) => Some((*handle, object)),
            Content::Reserved(_) | Content::Vacant(_) => None,
        }
    }
}
