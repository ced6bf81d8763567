// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Lookups in contexts that cannot sleep, under RCU, beside the table itself.

use super::{
    Object,
    Objects, //
};
use crate::{
    dat::prelude::*,
    model::handle::{
        Handle,
        KernelHandle, //
    },
    sys::{
        rcu::RcuTable,
        user::User, //
    },
};
use kernel::{
    alloc::Flags,
    sync::rcu::{
        read_lock,
        Guard, //
    }, //
};

impl<T: Object> Objects<T> {
    /// Creates an empty table, whose objects are also found in contexts that cannot sleep:
    /// [`Objects::borrow_for_kernel`].
    pub(in crate::dat) fn for_any_context(user: &User) -> DatResult<Arc<Self>> {
        Self::with_lookups(user, Some(RcuTable::new()))
    }

    /// Returns the object that a kernel consumer's shorter handle names. Its memory stays while the
    /// guard exists, also if the object is freed.
    ///
    /// Context: any.
    ///
    /// # Errors
    ///
    /// As for [`Objects::get`]. A table that was not made [for
    /// any context](Objects::for_any_context) has no objects here.
    pub(crate) fn borrow_for_kernel<'a>(
        &'a self,
        guard: &'a Guard,
        handle: KernelHandle,
    ) -> DatResult<&'a Arc<T>> {
        let is_named = |key: u64| {
            let key = Handle::from_raw(key).key();
            key.short_generation() == handle.generation() && handle.kind() == Some(T::KIND)
        };
        let lookups = self.lookups.as_ref();
        let found = lookups.and_then(|lookups| lookups.get(guard, handle.index(), is_named));
        found.ok_or(DatError::new(Kind::InvalidHandle, T::INVALID))
    }

    /// Returns the object with this handle, without sleeping if the table was made [for any
    /// context](Objects::for_any_context).
    ///
    /// A caller that cannot sleep is an RCU reader, so the reference that it drops is not the last.
    pub(crate) fn find(&self, handle: u64) -> Option<Arc<T>> {
        match &self.lookups {
            Some(lookups) => Self::find_in(lookups, Handle::from_raw(handle).key().index, |key| {
                key == handle
            }),
            None => self.get(handle).ok(),
        }
    }

    /// As [`Objects::find`], by the low bits of the generation: see
    /// [`Objects::get_by_short_generation`].
    pub(in crate::dat) fn find_by_short_generation(
        &self,
        index: u32,
        generation: u32,
    ) -> Option<Arc<T>> {
        match &self.lookups {
            Some(lookups) => Self::find_in(lookups, index, |key| {
                Handle::from_raw(key).key().short_generation() == generation
            }),
            None => self.get_by_short_generation(index, generation),
        }
    }

    /// As [`Objects::find_by_short_generation`], and passes the object to `with`. For kernel
    /// consumers `with` is called by an RCU reader, in place of a reference to the object: it must
    /// not sleep.
    #[inline]
    pub(in crate::dat) fn with_short_generation(
        &self,
        index: u32,
        generation: u32,
        with: impl FnOnce(&Arc<T>),
    ) {
        let is_it = |key| Handle::from_raw(key).key().short_generation() == generation;
        if let Some(lookups) = &self.lookups {
            let guard = read_lock();
            if let Some(object) = Self::borrow_in(lookups, &guard, index, is_it) {
                with(object);
            }
        } else if let Some(object) = self.get_by_short_generation(index, generation) {
            with(&object);
        }
    }

    fn find_in(
        lookups: &RcuTable<T>,
        index: u32,
        is_it: impl FnOnce(u64) -> bool,
    ) -> Option<Arc<T>> {
        let guard = read_lock();
        Self::borrow_in(lookups, &guard, index, is_it).cloned()
    }

    #[inline]
    fn borrow_in<'a>(
        lookups: &'a RcuTable<T>,
        guard: &'a Guard,
        index: u32,
        is_it: impl FnOnce(u64) -> bool,
    ) -> Option<&'a Arc<T>> {
        let found = lookups.get(guard, index, is_it);
        found.filter(|object| !object.is_hidden())
    }

    /// Lets lookups find an object. Allocates with `flags`.
    pub(super) fn begin_lookups(&self, handle: Handle, object: &Arc<T>, flags: Flags) -> Result {
        let (index, key) = (handle.key().index, handle.into_raw());
        let lookups = self.lookups.as_ref().filter(|_| object.is_looked_up());
        lookups.map_or(Ok(()), |lookups| {
            lookups.store(index, key, object.clone(), flags)
        })
    }

    /// Ends the lookups of an object.
    pub(super) fn end_lookups(&self, handle: Handle) {
        if let Some(lookups) = &self.lookups {
            lookups.remove(handle.key().index);
        }
    }
}
