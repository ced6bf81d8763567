// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Walks over all objects of a table, of which a consumer may have a million. Other threads get the
//! lock and the processor in between, and a process that is killed does not have to finish.

use super::{
    Object,
    Objects, //
};
use crate::{
    dat::prelude::*,
    model::handle::Handle,
    sys::task::{
        cond_resched,
        is_killed, //
    },
};

/// Number of entries that a walk visits with the lock held.
const SCAN: u32 = 4096;

/// When a walk ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// After the last object.
    Done,
    /// After the last object, or when the running task is killed. The release of the task's file
    /// visits the rest.
    Killed,
}

impl Until {
    /// # Errors
    ///
    /// INTERRUPTED_CALL if the walk ends before the last object.
    fn check(self) -> DatResult {
        if self == Self::Killed && is_killed() {
            return Err(Kind::InterruptedCall.into());
        }
        Ok(())
    }
}

impl<T: Object> Objects<T> {
    /// Takes every object out of the table and shuts it down. The table is closed before.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL, and objects are left.
    pub(in crate::dat) fn shutdown(&self, until: Until) -> DatResult {
        self.walk(until, |handle, _| {
            let taken = self.inner.lock().remove(handle);
            // `None` if another thread frees it at this moment.
            if let Some(object) = taken {
                object.shutdown();
            }
        })
    }

    /// Calls `action` for every object, without the lock.
    ///
    /// Indices do not change, so an object that stays in the table is not missed.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn for_each(&self, mut action: impl FnMut(&Arc<T>)) {
        // Never an error.
        let _ = self.walk(Until::Done, |_, object| action(&object));
    }

    /// As [`Objects::for_each`], with the handle.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL, and `action` was not called for all.
    pub(in crate::dat) fn walk(
        &self,
        until: Until,
        mut action: impl FnMut(Handle, Arc<T>),
    ) -> DatResult {
        let mut index = 0;
        while let Some((handle, object)) = self.next(index) {
            until.check()?;
            action(handle, object);
            index = handle.key().index.saturating_add(1);
        }
        Ok(())
    }

    /// Returns the first object from this index on.
    fn next(&self, mut from: u32) -> Option<(Handle, Arc<T>)> {
        loop {
            cond_resched();
            let inner = self.inner.lock();
            let first = inner.table.iter_in(from, SCAN).next();
            if let Some((handle, object)) = first {
                return Some((handle, object.clone()));
            }
            from = from.saturating_add(SCAN);
            if from >= inner.table.end() {
                return None;
            }
        }
    }
}
