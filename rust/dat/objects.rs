// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The objects of one Interface Adapter, by handle.

mod noun;
mod storage;
mod walk;

pub(crate) use self::{
    noun::{
        Noun,
        Object, //
    },
    walk::Until,
};

use self::storage::Storage;
use super::{
    ep::Ep,
    users::{
        InUse,
        Shared, //
    },
};
use crate::{
    model::{
        allowance::Item,
        code::{
            DatError,
            DatResult,
            Kind,
            Subtype, //
        },
        handle::{
            Handle,
            HandleKind,
            OuterHandle,
            Table,
            WrId, //
        },
    },
    sys::{
        random::random_u64,
        user::{
            Tally,
            User, //
        },
    },
};
use kernel::{
    alloc::Flags,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};

/// Fields of [`Objects`] protected by its lock.
struct Inner {
    table: Table<Object, Storage>,
    /// No more objects: the Interface Adapter closes, or its device goes.
    closed: bool,
    /// Entries in use. One that is kept aside is given back with the table.
    entries: Tally,
}

impl Inner {
    fn get<T: Noun>(&self, handle: u64) -> Option<&Arc<T>> {
        T::of(self.table.get(Handle::from_raw(handle))?)
    }

    /// Sets an entry aside; `None` if there is no room for one more.
    ///
    /// # Errors
    ///
    /// `EAGAIN` above the user's limit.
    fn reserve(&mut self, kind: HandleKind) -> Result<Option<Handle>> {
        self.entries.take()?;
        let mut reserved = self.table.reserve(kind);
        if reserved.is_none() && self.table.storage_mut().append() {
            reserved = self.table.reserve(kind);
        }
        if reserved.is_none() {
            self.entries.give_back();
        }
        Ok(reserved)
    }

    /// Takes an object out of the table.
    fn remove(&mut self, handle: Handle) -> Option<Object> {
        let removed = self.table.remove(handle)?;
        self.entries.give_back();
        Some(removed)
    }

    /// Gives an entry back that was set aside; nothing once an object is there.
    fn abandon(&mut self, handle: Handle) {
        if self.table.abandon(handle) {
            self.entries.give_back();
        }
    }
}

/// The table.
///
/// Its lock is taken in `rdma_cm`'s worker, which is everybody's: nobody waits for memory under it.
#[pin_data]
pub(crate) struct Objects {
    /// Who is charged for them: the user that opened the adapter.
    user: User,
    #[pin]
    inner: Mutex<Inner>,
}

/// An entry that is set aside for an object in the making.
pub(super) struct Reservation {
    objects: Arc<Objects>,
    handle: Handle,
    /// Whether the drop gives the entry back.
    open: bool,
}

impl Objects {
    /// An empty table, for which a user is charged.
    pub(super) fn new(user: User) -> DatResult<Arc<Self>> {
        let inner = Inner {
            table: Table::new(Storage::new(), random_u64()),
            closed: false,
            entries: Tally::new(user.clone(), Item::Object),
        };
        Ok(Arc::pin_init(
            pin_init!(Self {
                user,
                inner <- new_mutex!(inner, "Objects::inner"),
            }),
            GFP_KERNEL_ACCOUNT,
        )?)
    }

    /// Who is charged for them.
    pub(super) fn user(&self) -> &User {
        &self.user
    }

    /// Sets an entry aside. It is given back when the reservation is dropped before
    /// [`Reservation::commit`].
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) if there is none, or above the user's limit; (device) once
    /// nothing is added any more.
    pub(super) fn reserve(this: &Arc<Self>, kind: HandleKind) -> DatResult<Reservation> {
        Self::reserve_with(this, kind, GFP_KERNEL_ACCOUNT)
    }

    /// As [`Objects::reserve`], with memory that is allocated so.
    ///
    /// # Errors
    ///
    /// As for [`Objects::reserve`].
    pub(super) fn reserve_with(
        this: &Arc<Self>,
        kind: HandleKind,
        flags: Flags,
    ) -> DatResult<Reservation> {
        loop {
            let wanted = {
                let mut inner = this.inner.lock();
                if inner.closed {
                    return Err(DatError::device());
                }
                if let Some(handle) = inner.reserve(kind)? {
                    return Ok(Reservation {
                        objects: this.clone(),
                        handle,
                        open: true,
                    });
                }
                let longer = inner.table.storage_mut().longer();
                longer.ok_or(DatError::memory())?
            };
            // Allocated without the lock. Others may be as quick: the longest storage stays.
            let other = Storage::with_room(wanted, flags)?;
            let left_over = this.inner.lock().table.storage_mut().move_into(other);
            drop(left_over);
        }
    }

    /// The object with this handle.
    ///
    /// # Errors
    ///
    /// INVALID_HANDLE with the subtype of the kind.
    pub(crate) fn get<T: Noun>(&self, handle: u64) -> DatResult<Arc<T>> {
        self.get_as(handle, T::INVALID)
    }

    /// As [`Objects::get`], with a subtype that says which of several handles was wrong.
    pub(crate) fn get_as<T: Noun>(&self, handle: u64, subtype: Subtype) -> DatResult<Arc<T>> {
        let inner = self.inner.lock();
        let found = inner.get(handle).cloned();
        found.ok_or(DatError::new(Kind::InvalidHandle, subtype))
    }

    /// Begins a use of the object with this handle.
    pub(super) fn use_as<T: Noun + Shared>(
        &self,
        handle: u64,
        subtype: Subtype,
    ) -> DatResult<InUse<T>> {
        let inner = self.inner.lock();
        let found = inner.get::<T>(handle).cloned();
        found
            .map(InUse::new)
            .ok_or(DatError::new(Kind::InvalidHandle, subtype))
    }

    /// Finds out who may use what, and lets it begin: nobody else does meanwhile.
    pub(super) fn arrange<R>(&self, action: impl FnOnce() -> R) -> R {
        let _inner = self.inner.lock();
        action()
    }

    /// Takes an object out of the table, if `check` allows it.
    pub(super) fn take<T: Noun>(
        &self,
        handle: u64,
        check: impl FnOnce(&T) -> DatResult,
    ) -> DatResult<Arc<T>> {
        let taken = {
            let mut inner = self.inner.lock();
            let invalid = DatError::new(Kind::InvalidHandle, T::INVALID);
            check(inner.get::<T>(handle).ok_or(invalid)?)?;
            inner.remove(Handle::from_raw(handle))
        };
        let taken = taken.as_ref().and_then(T::of).cloned();
        taken.ok_or(DatError::internal())
    }

    /// The object that a consumer in the kernel means.
    ///
    /// # Errors
    ///
    /// As for [`Objects::get`].
    pub(crate) fn get_outer<T: Noun>(&self, handle: OuterHandle) -> DatResult<Arc<T>> {
        let inner = self.inner.lock();
        let found = inner
            .table
            .get_short(handle.index(), handle.generation())
            .and_then(T::of)
            .filter(|_| handle.kind() == Some(T::KIND))
            .cloned();
        found.ok_or(DatError::new(Kind::InvalidHandle, T::INVALID))
    }

    /// The handle in this table of the object that a consumer in the kernel means.
    pub(crate) fn whole(&self, handle: OuterHandle) -> Option<Handle> {
        let inner = self.inner.lock();
        let found = inner.table.whole(handle.index(), handle.generation());
        found.filter(|found| found.kind() == handle.kind())
    }

    /// The Endpoint that posted a work request.
    pub(super) fn poster(&self, wr: WrId) -> Option<Arc<Ep>> {
        let inner = self.inner.lock();
        Ep::of(inner.table.get_short(wr.ep, wr.generation)?).cloned()
    }

    /// From now on nothing is added.
    pub(super) fn close(&self) {
        self.inner.lock().closed = true;
    }

    /// Whether nothing is added any more.
    pub(super) fn is_closed(&self) -> bool {
        self.inner.lock().closed
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> u32 {
        self.inner.lock().table.len()
    }
}

impl Reservation {
    /// The handle that the object will have.
    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Leaves the entry set aside for ever: the handle never names an object.
    pub(super) fn keep(mut self) {
        self.open = false;
    }

    /// Puts the object into the table.
    ///
    /// # Errors
    ///
    /// The Interface Adapter closes, or its device went in the meantime: the caller has to shut the
    /// object down.
    pub(super) fn commit<T: Noun>(self, object: Arc<T>) -> DatResult {
        let refused = {
            let mut inner = self.objects.inner.lock();
            if inner.closed {
                Err(T::forget(object))
            } else {
                inner.table.commit(self.handle, T::forget(object))
            }
        };
        refused.map_err(|_| DatError::device())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.open {
            self.objects.inner.lock().abandon(self.handle);
        }
    }
}
