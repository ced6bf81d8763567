// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Walks over all objects of a table.
//!
//! A consumer may have a million objects. So a walk releases the lock and the processor in between,
//! and it can end early when its process is killed.

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

/// Number of entries that a walk visits while it holds the lock.
const SCAN: u32 = 4096;

/// Condition that ends a walk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// All objects were visited.
    Done,
    /// All objects were visited, or the running task was killed. In the second case, the release of
    /// the task's file visits the rest.
    Killed,
}

impl Until {
    /// Checks whether the walk may continue.
    ///
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
    /// Removes every object from the table and shuts it down. The table is closed already. Also
    /// waits for other threads that free objects, so on return the device uses none.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL if the walk was cut short. The table still has objects then.
    pub(in crate::dat) fn shutdown(&self, until: Until) -> DatResult {
        self.walk(until, |handle, object| {
            let freeing = self.begin_free();
            if object.hide() {
                object.shutdown(freeing);
                self.remove_freed(handle.into_raw());
                return;
            }
            let taken = self.remove(&mut self.inner.lock(), handle);
            // `None` if another thread has freed it in the meantime.
            if let Some(object) = taken {
                object.shutdown(freeing);
            }
        })?;
        self.await_frees();
        let unused = self.inner.lock().take_unused();
        drop(unused);
        Ok(())
    }

    /// Shuts every object down. They stay in the table.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn shutdown_in_place(&self) {
        self.for_each(|object| object.shutdown(self.begin_free()));
    }

    /// Calls `action` for every object, without the lock.
    ///
    /// An object keeps its index, so the walk visits each object that stays in the table.
    ///
    /// Context: process; sleeps.
    pub(in crate::dat) fn for_each(&self, mut action: impl FnMut(&Arc<T>)) {
        // Does not fail: the walk is not cut short.
        let _ = self.walk(Until::Done, |_, object| action(&object));
    }

    /// As [`Objects::for_each`], with the handle.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL if the walk was cut short. `action` was not called for all objects then.
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

    /// Returns the first object whose index is `from` or higher.
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
