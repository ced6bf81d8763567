// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Frees an Event Dispatcher (EVD).

use super::Evd;
use crate::{
    dat::{
        base::{
            Freeing,
            Object,
            Objects,
            Usable,
            UseCount, //
        },
        prelude::*, //
    },
    model::handle::HandleKind,
};

impl Object for Evd {
    const KIND: HandleKind = HandleKind::Evd;
    const INVALID: Subtype = Subtype::InvalidHandleEvdRequest;
    /// The requests of a service point refer to its EVD.
    const CHARGES_ITSELF: bool = true;

    /// Checks that the EVD is unused.
    ///
    /// # Errors
    ///
    /// INVALID_STATE
    ///
    /// * for the asynchronous EVD of the adapter;
    /// * while an object reports to the EVD, or if the caller is in an upcall of the EVD;
    /// * while a thread waits.
    fn prepare_free(&self) -> DatResult {
        let refused = |subtype| Err(DatError::new(Kind::InvalidState, subtype));
        if self.context.async_evd.is_none() {
            refused(Subtype::InvalidStateEvdAsync)
        } else if self.uses.any() || self.is_called_by_me() {
            refused(Subtype::InvalidStateEvdInUse)
        } else if self.wakeup.waiter.is_taken() {
            refused(Subtype::InvalidStateEvdWaiter)
        } else {
            Ok(())
        }
    }

    fn is_hidden(&self) -> bool {
        self.is_freed.load_acquire()
    }

    fn hide(&self) -> bool {
        self.is_freed.swap(true);
        true
    }

    /// Implements `dat_evd_free`. The EVD stays in the table until no upcall is in progress, so
    /// that a close of the adapter waits for these upcalls, too.
    fn free(objects: &Objects<Self>, handle: u64) -> DatResult {
        let freeing = objects.begin_free();
        let evd = objects.check(handle, |evd| {
            evd.prepare_free()?;
            evd.hide();
            Ok(())
        })?;
        evd.shutdown(freeing);
        objects.remove_freed(handle);
        Ok(())
    }

    fn shutdown(self: &Arc<Self>, _freeing: Freeing<'_, Self>) {
        self.end();
    }
}

impl Usable for Evd {
    fn uses(&self) -> &UseCount {
        &self.uses
    }
}
