// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! A table that gives handles for objects, over storage that its owner grows.

use super::{
    Handle,
    HandleKind,
    Key,
    GENERATION_MASK,
    MAX_INDEX, //
};

/// What an entry is in use for.
enum Content<T> {
    /// Nothing; the free entry that follows in the list.
    Vacant(Option<u32>),
    /// A handle that was given out, for an object in the making.
    Reserved(Handle),
    /// An object under its handle.
    Live(Handle, T),
}

/// A place for one object.
pub(crate) struct Entry<T>(Content<T>);

impl<T> Entry<T> {
    /// An entry to grow a table with.
    pub(crate) const fn vacant() -> Self {
        Self(Content::Vacant(None))
    }
}

/// Storage of a table.
///
/// Its owner appends [`Entry::vacant`], may move all entries to another place, and changes nothing
/// else, ever.
pub(crate) trait Entries<T> {
    /// All entries.
    fn entries(&self) -> &[Entry<T>];

    /// All entries, to be changed.
    fn entries_mut(&mut self) -> &mut [Entry<T>];
}

/// A table from handles to objects.
///
/// A handle is reserved, then committed together with the object, or abandoned: so nobody finds an
/// object half made, and the object can be told its handle while it is being made.
pub(crate) struct Table<T, S> {
    storage: S,
    /// First of the vacant entries that were used before.
    free: Option<u32>,
    /// Entries from here on were never used.
    fresh: u32,
    live: u32,
    /// Generation of the next handle.
    generation: u64,
    objects: core::marker::PhantomData<T>,
}

impl<T, S: Entries<T>> Table<T, S> {
    /// Takes charge of `storage`, whose entries are all [`Entry::vacant`].
    ///
    /// `salt` is random, and another one for every table.
    pub(crate) const fn new(storage: S, salt: u64) -> Self {
        Self {
            storage,
            free: None,
            fresh: 0,
            live: 0,
            generation: salt & GENERATION_MASK,
            objects: core::marker::PhantomData,
        }
    }

    /// The storage, for its owner to grow.
    pub(crate) fn storage_mut(&mut self) -> &mut S {
        &mut self.storage
    }

    /// How many objects there are.
    pub(crate) fn len(&self) -> u32 {
        self.live
    }

    /// Reserves a handle for an object in the making.
    ///
    /// `None` if no entry is vacant: the owner grows the storage and tries again, unless it has
    /// [`MAX_INDEX`] entries already.
    pub(crate) fn reserve(&mut self, kind: HandleKind) -> Option<Handle> {
        let index = self.free.unwrap_or(self.fresh);
        if index >= MAX_INDEX {
            return None;
        }
        let entry = entry_mut(&mut self.storage, index)?;
        match entry.0 {
            Content::Vacant(next) => self.free = next,
            // Never in any list; refused for good measure.
            Content::Reserved(_) | Content::Live(..) => return None,
        }
        let handle = Handle::new(
            kind,
            Key {
                index,
                generation: self.generation,
            },
        );
        entry.0 = Content::Reserved(handle);
        if index == self.fresh {
            self.fresh = index.wrapping_add(1);
        }
        self.generation = self.generation.wrapping_add(1) & GENERATION_MASK;
        Some(handle)
    }

    /// Puts the object in the place of a reserved handle; from here on it can be found.
    ///
    /// # Errors
    ///
    /// The object comes back if `handle` is not reserved.
    pub(crate) fn commit(&mut self, handle: Handle, object: T) -> Result<(), T> {
        match entry_mut(&mut self.storage, handle.key().index) {
            Some(entry) if entry.is_reserved(handle) => {
                entry.0 = Content::Live(handle, object);
                self.live = self.live.wrapping_add(1);
                Ok(())
            }
            Some(_) | None => Err(object),
        }
    }

    /// Gives up a reserved handle; any other is left alone. Says whether it was reserved.
    pub(crate) fn abandon(&mut self, handle: Handle) -> bool {
        let index = handle.key().index;
        match entry_mut(&mut self.storage, index) {
            Some(entry) if entry.is_reserved(handle) => {
                entry.0 = Content::Vacant(self.free);
                self.free = Some(index);
                true
            }
            Some(_) | None => false,
        }
    }

    /// The object of a handle.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        match self.live_at(handle.key().index) {
            Some((found, object)) if found == handle => Some(object),
            Some(_) | None => None,
        }
    }

    /// The object at an index with the low bits of its generation, as a [`WrId`](super::WrId)
    /// carries them.
    pub(crate) fn get_short(&self, index: u32, generation: u32) -> Option<&T> {
        match self.live_at(index) {
            Some((found, object)) if found.key().short() == generation => Some(object),
            Some(_) | None => None,
        }
    }

    /// The handle of the object at an index with the low bits of its generation.
    pub(crate) fn whole(&self, index: u32, generation: u32) -> Option<Handle> {
        match self.live_at(index) {
            Some((found, _)) if found.key().short() == generation => Some(found),
            Some(_) | None => None,
        }
    }

    /// Takes the object of a handle out; the handle is stale from here on.
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

    /// How many entries there are: no object has this index or a higher one.
    pub(crate) fn end(&self) -> u32 {
        self.fresh
    }

    /// The objects of `count` entries from the index `from` on, with their handles, in the order of the
    /// indices.
    pub(crate) fn iter_in(&self, from: u32, count: u32) -> impl Iterator<Item = (Handle, &T)> {
        let entries = self.storage.entries().iter();
        let place = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        entries
            .skip(place(from))
            .take(place(count))
            .filter_map(Entry::live)
    }

    /// The object at an index, and its handle.
    fn live_at(&self, index: u32) -> Option<(Handle, &T)> {
        self.storage
            .entries()
            .get(usize::try_from(index).ok()?)?
            .live()
    }
}

/// The entry at an index.
fn entry_mut<T, S: Entries<T>>(storage: &mut S, index: u32) -> Option<&mut Entry<T>> {
    storage.entries_mut().get_mut(usize::try_from(index).ok()?)
}

impl<T> Entry<T> {
    /// Whether the entry is reserved for this very handle.
    fn is_reserved(&self, handle: Handle) -> bool {
        match self.0 {
            Content::Reserved(reserved) => reserved == handle,
            Content::Live(..) | Content::Vacant(_) => false,
        }
    }

    /// The object, and its handle.
    fn live(&self) -> Option<(Handle, &T)> {
        match &self.0 {
            Content::Live(handle, object) => Some((*handle, object)),
            Content::Reserved(_) | Content::Vacant(_) => None,
        }
    }
}
