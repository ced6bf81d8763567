// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Walks over all objects, of which a consumer may have a million: others have their turn in between, and
//! a process that is killed need not come to the end.

use super::{
    Noun,
    Objects, //
};
use crate::{
    model::{
        code::{
            DatResult,
            Kind, //
        },
        handle::Handle,
    },
    sys::task::{
        cond_resched,
        is_killed, //
    },
};
use kernel::sync::Arc;

/// How many entries are looked at under one lock.
const SCAN: u32 = 4096;

/// How long objects are taken down.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until none is left.
    Done,
    /// Also until the running task is killed: what is left then goes with its file.
    Killed,
}

impl Until {
    /// # Errors
    ///
    /// INTERRUPTED_CALL if it is over before all is done.
    fn check(self) -> DatResult {
        if self == Self::Killed && is_killed() {
            return Err(Kind::InterruptedCall.into());
        }
        Ok(())
    }
}

impl Objects {
    /// Takes every object of a kind out of the table, once nothing is added any more.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// INTERRUPTED_CALL; some are left then.
    pub(in crate::dat) fn take_all<T: Noun>(
        &self,
        until: Until,
        mut action: impl FnMut(Arc<T>),
    ) -> DatResult {
        self.walk(until, |handle, _: Arc<T>| {
            let taken = self.inner.lock().remove(handle);
            // None: somebody frees it at this moment.
            if let Some(object) = taken.as_ref().and_then(T::of) {
                action(object.clone());
            }
        })
    }

    /// Does something to every object of a kind. Places do not move: this misses nothing that stays,
    /// whatever goes meanwhile.
    ///
    /// Context: process; sleeps.
    ///
    /// # Errors
    ///
    /// As for [`Objects::take_all`].
    pub(in crate::dat) fn walk<T: Noun>(
        &self,
        until: Until,
        mut action: impl FnMut(Handle, Arc<T>),
    ) -> DatResult {
        let mut place = 0;
        while let Some((behind, handle, object)) = self.next::<T>(place) {
            until.check()?;
            action(handle, object);
            place = behind;
        }
        Ok(())
    }

    /// The first object of a kind at this place of the table or behind it, and the place behind.
    fn next<T: Noun>(&self, mut from: u32) -> Option<(u32, Handle, Arc<T>)> {
        loop {
            cond_resched();
            let inner = self.inner.lock();
            let mut objects = inner.table.iter_in(from, SCAN);
            let found = objects.find_map(|(handle, object)| Some((handle, T::of(object)?)));
            if let Some((handle, object)) = found {
                let behind = handle.key().index.saturating_add(1);
                return Some((behind, handle, object.clone()));
            }
            from = from.saturating_add(SCAN);
            if from >= inner.table.end() {
                return None;
            }
        }
    }
}
