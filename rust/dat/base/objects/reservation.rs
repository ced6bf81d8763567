// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reservations of entries for objects that are being created.

use super::{
    storage::EntryStorage,
    Object,
    Objects, //
};
use crate::{
    dat::prelude::*,
    model::handle::Handle, //
};
use kernel::alloc::Flags;

/// Reserved entry for an object that is being created.
///
/// Releases the entry on drop, unless [`Reservation::commit`] has put the object there.
pub(in crate::dat) struct Reservation<T: Object> {
    objects: Arc<Objects<T>>,
    handle: Handle,
    /// Allocation flags.
    flags: Flags,
}

impl<T: Object> Objects<T> {
    /// Reserves an entry. The caller's cgroup pays if the table grows.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (memory) if the table is full, without memory, or above the user's
    /// limit; (device) after the table was closed.
    pub(in crate::dat) fn reserve(self: &Arc<Self>) -> DatResult<Reservation<T>> {
        self.reserve_with(GFP_KERNEL_ACCOUNT)
    }

    /// As [`Objects::reserve`]. If the table grows, it allocates with `flags`.
    ///
    /// # Errors
    ///
    /// As for [`Objects::reserve`].
    pub(in crate::dat) fn reserve_with(
        self: &Arc<Self>,
        flags: Flags,
    ) -> DatResult<Reservation<T>> {
        loop {
            let wanted = {
                let mut inner = self.inner.lock();
                if inner.closed {
                    return Err(DatError::device());
                }
                if let Some(handle) = inner.reserve(T::KIND)? {
                    return Ok(Reservation {
                        objects: self.clone(),
                        handle,
                        flags,
                    });
                }
                let longer = inner.table.storage_mut().longer();
                longer.ok_or(DatError::memory())?
            };
            // Other threads may grow the table in the meantime. The table keeps the longest
            // storage.
            let other = EntryStorage::with_room(&self.user, wanted, flags)?;
            let left_over = self.inner.lock().table.storage_mut().move_into(other);
            drop(left_over);
        }
    }
}

impl<T: Object> Reservation<T> {
    /// Returns the handle that the object will have.
    pub(in crate::dat) fn handle(&self) -> Handle {
        self.handle
    }

    /// Puts the object into the table.
    ///
    /// # Errors
    ///
    /// INSUFFICIENT_RESOURCES: (device) if the table was closed in the meantime; (memory) without
    /// memory. The caller then shuts the object down.
    pub(in crate::dat) fn commit(self, object: Arc<T>) -> DatResult {
        // The consumer has no handle yet, so no lookup finds the object before it is in the table.
        self.objects
            .begin_lookups(self.handle, &object, self.flags)?;
        let refused = {
            let mut inner = self.objects.inner.lock();
            let refused = match inner.closed {
                true => Err(object),
                false => inner.table.commit(self.handle, object),
            };
            if refused.is_err() {
                self.objects.end_lookups(self.handle);
            }
            refused
        };
        refused.map_err(|_| DatError::device())
    }
}

impl<T: Object> Drop for Reservation<T> {
    fn drop(&mut self) {
        let mut inner = self.objects.inner.lock();
        inner.abandon(self.handle);
        let unused = inner.take_unused();
        drop(inner);
        drop(unused);
    }
}
