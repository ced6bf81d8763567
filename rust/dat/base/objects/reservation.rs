// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Reserved entries of a table of objects.

use super::{
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
    pub(super) objects: Arc<Objects<T>>,
    pub(super) handle: Handle,
    /// Allocation flags.
    pub(super) flags: Flags,
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
