// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a read and a write of an event file have in common: when they sleep, and when they end.

use super::sleepers::SleepPlace;
use crate::{
    model::{
        bell::BellCount,
        wait::{
            SleepEnd,
            WaitError, //
        },
    },
    sys::{
        record_file::Blocking,
        task, //
    },
};

/// A read or a write, on its thread.
pub(super) struct FileCall<'a> {
    place: &'a SleepPlace,
    blocking: Blocking,
    /// Count of announcements before the last check.
    seen: BellCount,
    has_slept: bool,
}

impl<'a> FileCall<'a> {
    /// Begins a call that sleeps at this place.
    pub(super) fn new(place: &'a SleepPlace, blocking: Blocking) -> Self {
        Self {
            place,
            blocking,
            seen: place.count(),
            has_slept: false,
        }
    }

    /// Notes the announcements until now. The caller then checks for what they announce. A later
    /// announcement ends the next sleep.
    pub(super) fn hear(&mut self) {
        self.seen = self.place.count();
    }

    /// Returns whether the call has slept.
    pub(super) fn has_slept(&self) -> bool {
        self.has_slept
    }

    /// Returns the reason to end the call without a sleep; `None` if there is none.
    pub(super) fn stop(&self) -> Option<WaitError> {
        match self.blocking {
            Blocking::MayNot => Some(WaitError::TimedOut),
            Blocking::May => task::has_signal().then_some(WaitError::Interrupted),
        }
    }

    /// Sleeps until the next announcement, if the call may sleep.
    pub(super) fn sleep(&mut self) -> SleepEnd {
        match self.blocking {
            Blocking::MayNot => SleepEnd::TimedOut,
            Blocking::May => {
                self.has_slept = true;
                self.place.sleep(self.seen).into()
            }
        }
    }
}
