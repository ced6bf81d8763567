// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Tables of the objects of an Interface Adapter, by handle. Each kind of object has its own table.

mod frees;
mod lookups;
mod reservation;
mod storage;
mod walk;

pub(crate) use self::walk::Until;
pub(in crate::dat) use self::{
    frees::Freeing,
    reservation::Reservation, //
};

use self::storage::EntryStorage;
use super::use_count::{
    InUse,
    Usable, //
};
use crate::{
    dat::prelude::*,
    model::{
        allowance::Item,
        footprint::allocation,
        handle::{
            Handle,
            HandleKind,
            HandleTable,
            KernelHandle, //
        },
    },
    sys::{
        random::random_u64,
        rcu::RcuTable,
        user::{
            User,
            VariableCharge, //
        },
    },
};
use kernel::{
    new_mutex,
    sync::{
        atomic::Atomic,
        Mutex, //
    },
};

/// Kind of object that has handles.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// Kind that the handles contain.
    const KIND: HandleKind;
    /// Subtype of INVALID_HANDLE for a handle that names no such object.
    const INVALID: Subtype;
    /// Whether the object charges its own memory, because it may outlive its handle. The table
    /// charges the memory of others.
    const CHARGES_ITSELF: bool = false;

    /// Permits the consumer to free the object. After a success no use of the object begins: it is
    /// removed from the table, which is locked, or hidden.
    ///
    /// # Errors
    ///
    /// INVALID_STATE while the object is in use.
    fn prepare_free(&self) -> DatResult {
        Ok(())
    }

    /// Returns whether lookups that cannot sleep find the object.
    fn is_looked_up(&self) -> bool {
        true
    }

    /// Returns whether the object is being freed, so that calls no longer find it.
    fn is_hidden(&self) -> bool {
        false
    }

    /// Hides the object from calls. Returns whether it stays in the table until its shutdown has
    /// ended.
    fn hide(&self) -> bool {
        false
    }

    /// Removes an object from the table and shuts it down: see [`Objects::free`].
    fn free(objects: &Objects<Self>, handle: u64) -> DatResult {
        let freeing = objects.begin_free();
        let object = objects.take(handle, Self::prepare_free)?;
        object.shutdown(freeing);
        Ok(())
    }

    /// Stops the object's work and releases its device resources. Then drops `freeing`.
    ///
    /// Context: process; sleeps.
    fn shutdown(self: &Arc<Self>, freeing: Freeing<'_, Self>);
}

/// Returns the kilobytes of an object, without its arrays, that the table charges.
fn charged_memory_of<T: Object>() -> u32 {
    match T::CHARGES_ITSELF {
        true => 0,
        false => allocation(size_of::<T>()),
    }
}

/// Fields of [`Objects`] protected by its lock.
struct Inner<T> {
    table: HandleTable<Arc<T>, EntryStorage<T>>,
    /// The Interface Adapter is being closed, or its device is removed: no more objects are added.
    closed: bool,
    /// Charges of the user for the entries in use.
    entries: VariableCharge,
    /// Charges of the user for the memory of their objects, unless these charge it themselves.
    memory: VariableCharge,
}

impl<T: Object> Inner<T> {
    fn get(&self, handle: u64) -> Option<&Arc<T>> {
        let object = self.table.get(Handle::from_raw(handle));
        object.filter(|object| !object.is_hidden())
    }

    /// Reserves an entry. Returns `None` if the storage has to grow first.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's limit.
    fn reserve(&mut self, kind: HandleKind) -> Result<Option<Handle>> {
        self.charge()?;
        let mut reserved = self.table.reserve(kind);
        if reserved.is_none() && self.table.storage_mut().append() {
            reserved = self.table.reserve(kind);
        }
        if reserved.is_none() {
            self.uncharge();
        }
        Ok(reserved)
    }

    /// Charges the user for one more object.
    fn charge(&mut self) -> Result {
        self.entries.take()?;
        self.memory.take().inspect_err(|_| self.entries.give_back())
    }

    /// Uncharges one object.
    fn uncharge(&mut self) {
        self.entries.give_back();
        self.memory.give_back();
    }

    /// Removes an object from the table.
    fn remove(&mut self, handle: Handle) -> Option<Arc<T>> {
        let removed = self.table.remove(handle)?;
        self.uncharge();
        Some(removed)
    }

    /// Releases a reserved entry that has got no object.
    fn abandon(&mut self, handle: Handle) {
        if self.table.abandon(handle) {
            self.uncharge();
        }
    }

    /// Takes the storage of a closed, empty table. Open files of EVDs keep the table itself. The
    /// caller drops the storage after the lock.
    fn take_unused(&mut self) -> EntryStorage<T> {
        if !self.closed {
            return EntryStorage::new();
        }
        self.table.replace_unused(EntryStorage::new())
    }
}

/// Table of the objects of one kind, by handle.
///
/// The lock is taken in `rdma_cm`'s worker, which all users of the host share. So no memory is
/// allocated with the lock held.
#[pin_data]
pub(crate) struct Objects<T: Object> {
    #[pin]
    inner: Mutex<Inner<T>>,
    /// RCU table of the same objects, for lookups that cannot sleep. `None` for kinds without them.
    lookups: Option<RcuTable<T>>,
    /// Number of threads that free objects.
    frees: Atomic<i32>,
    /// User that is charged for the objects.
    user: User,
}

impl<T: Object> Objects<T> {
    /// Creates an empty table. `user` is charged for its entries.
    pub(in crate::dat) fn new(user: &User) -> DatResult<Arc<Self>> {
        Self::with_lookups(user, None)
    }

    fn with_lookups(user: &User, lookups: Option<RcuTable<T>>) -> DatResult<Arc<Self>> {
        let inner = Inner {
            table: HandleTable::new(EntryStorage::new(), random_u64()),
            closed: false,
            entries: VariableCharge::new(user.clone(), Item::Object, 1),
            memory: VariableCharge::new(user.clone(), Item::ModuleMemory, charged_memory_of::<T>()),
        };
        Ok(Arc::pin_init(
            pin_init!(Self {
                inner <- new_mutex!(inner, "Objects::inner"),
                lookups,
                frees: Atomic::new(0),
                user: user.clone(),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Returns the user that is charged for the objects.
    pub(in crate::dat) fn user(&self) -> &User {
        &self.user
    }

    /// Returns the object with this handle.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of this kind.
    pub(crate) fn get(&self, handle: u64) -> DatResult<Arc<T>> {
        self.get_as(handle, T::INVALID)
    }

    /// As [`Objects::get`], with a subtype that identifies the wrong one of several handles.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with `subtype`.
    pub(crate) fn get_as(&self, handle: u64, subtype: Subtype) -> DatResult<Arc<T>> {
        let inner = self.inner.lock();
        let found = inner.get(handle).cloned();
        found.ok_or(DatError::new(Kind::InvalidHandle, subtype))
    }

    /// Marks the object as in use, so that the consumer cannot free it.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with `subtype`.
    pub(in crate::dat) fn use_as(&self, handle: u64, subtype: Subtype) -> DatResult<InUse<T>>
    where
        T: Usable,
    {
        let inner = self.inner.lock();
        let found = inner.get(handle).cloned();
        found
            .map(InUse::new)
            .ok_or(DatError::new(Kind::InvalidHandle, subtype))
    }

    /// Calls `action` with the table locked, so that no object is removed and no use begins.
    pub(in crate::dat) fn with_lock<R>(&self, action: impl FnOnce() -> R) -> R {
        let _inner = self.inner.lock();
        action()
    }

    /// Returns an object if `check` allows it, which is called with the table locked.
    ///
    /// # Errors
    ///
    /// As for [`Objects::take`].
    pub(in crate::dat) fn check(
        &self,
        handle: u64,
        check: impl FnOnce(&Arc<T>) -> DatResult,
    ) -> DatResult<Arc<T>> {
        let inner = self.inner.lock();
        let invalid = DatError::new(Kind::InvalidHandle, T::INVALID);
        let object = inner.get(handle).ok_or(invalid)?;
        check(object)?;
        Ok(object.clone())
    }

    /// Removes an object from the table, if `check` allows it.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of this kind; the error of `check`.
    pub(in crate::dat) fn take(
        &self,
        handle: u64,
        check: impl FnOnce(&T) -> DatResult,
    ) -> DatResult<Arc<T>> {
        let mut inner = self.inner.lock();
        let invalid = DatError::new(Kind::InvalidHandle, T::INVALID);
        check(inner.get(handle).ok_or(invalid)?)?;
        self.remove(&mut inner, Handle::from_raw(handle))
            .ok_or(DatError::internal())
    }

    /// Removes an object that was [freed](Object::is_hidden), unless another thread has removed it.
    pub(in crate::dat) fn remove_freed(&self, handle: u64) {
        let removed = self.remove(&mut self.inner.lock(), Handle::from_raw(handle));
        drop(removed);
    }

    /// Removes an object from the table, whose lock is held.
    fn remove(&self, inner: &mut Inner<T>, handle: Handle) -> Option<Arc<T>> {
        let removed = inner.remove(handle)?;
        self.end_lookups(handle);
        Some(removed)
    }

    /// Removes an object from the table and shuts it down.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of this kind; as for [`Object::prepare_free`].
    pub(crate) fn free(&self, handle: u64) -> DatResult {
        T::free(self, handle)
    }

    /// Returns the object that a kernel consumer's shorter handle names.
    ///
    /// # Errors
    ///
    /// As for [`Objects::get`].
    #[inline(always)]
    pub(crate) fn get_for_kernel(&self, handle: KernelHandle) -> DatResult<Arc<T>> {
        let is_valid = handle.kind() == Some(T::KIND);
        let object = self.get_by_short_generation(handle.index(), handle.generation());
        let object = object.filter(|_| is_valid);
        object.ok_or(DatError::new(Kind::InvalidHandle, T::INVALID))
    }

    /// Returns the full handle, in this table, for a kernel consumer's shorter handle.
    pub(crate) fn full_handle(&self, handle: KernelHandle) -> Option<Handle> {
        let inner = self.inner.lock();
        let found = inner.table.full_handle(handle.index(), handle.generation());
        found.filter(|found| found.kind() == handle.kind())
    }

    /// Returns the object at an index, if the low bits of its generation match.
    pub(in crate::dat) fn get_by_short_generation(
        &self,
        index: u32,
        generation: u32,
    ) -> Option<Arc<T>> {
        let inner = self.inner.lock();
        let object = inner.table.get_by_short_generation(index, generation);
        object.filter(|object| !object.is_hidden()).cloned()
    }

    /// Closes the table, so that no more objects are added.
    pub(in crate::dat) fn close(&self) {
        self.inner.lock().closed = true;
    }

    /// Returns whether the table is closed.
    pub(in crate::dat) fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    /// Returns the number of objects.
    pub(in crate::dat) fn len(&self) -> u32 {
        self.inner.lock().table.len()
    }
}
