// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Receives of a Shared Receive Queue (SRQ) that the driver has lost with destroyed queue pairs
//! (QP): see [`model::shared_receives`](crate::model::shared_receives).

use super::{
    members::Cursor,
    Srq, //
};

/// Search for lost receives.
#[derive(Default)]
pub(super) struct Loss {
    /// Number of the newest receive that may be lost and still have its slot; 0 if there is none.
    until: u64,
    /// A QP was destroyed since the last examination of the queue.
    may_examine: bool,
    /// A thread examines the queue. No receive is posted meanwhile.
    pub(super) is_examined: bool,
}

impl Srq {
    /// Records that a QP was destroyed, which may have lost a receive.
    pub(super) fn may_have_lost(&self) {
        let mut inner = self.inner.lock();
        inner.loss.until = inner.receives.posts();
        inner.loss.may_examine = true;
    }

    /// Frees the slots of lost receives. Returns whether there may have been any.
    ///
    /// Visits all QPs, so call it only when the exact number of receives matters.
    ///
    /// Context: process; sleeps.
    pub(super) fn drop_lost(&self) -> bool {
        let (until, newest) = {
            let inner = self.inner.lock();
            (inner.loss.until, inner.receives.newest())
        };
        if until == 0 {
            return false;
        }
        if newest <= until && self.oldest_in_use() > newest {
            self.look_into_queue();
        }
        // The members are read after `newest`. A receive of a member that joins later is newer.
        let number = self.inner.lock().receives.newest();
        let number = number.min(self.oldest_in_use());
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.inner.lock().receives.drop_lost(from, number);
        }
        let mut inner = self.inner.lock();
        // All receives up to `until` are known to be taken, and those that were lost are free.
        if number > until && inner.loss.until == until {
            inner.loss.until = 0;
        }
        true
    }

    /// Returns the smallest number of a receive that a present QP may be filling.
    fn oldest_in_use(&self) -> u64 {
        let mut number = u64::MAX;
        let mut next = Some(Cursor::first());
        while let Some(cursor) = next {
            next = self.inner.lock().members.visit(cursor, |member| {
                number = number.min(member.newest);
            });
        }
        number
    }

    /// Finds out whether all receives but the newest have left the queue of the device.
    ///
    /// Context: process; sleeps.
    fn look_into_queue(&self) {
        // Excludes resizes, and other threads that examine the queue.
        let slots = self.slots.lock();
        let queue = {
            let mut inner = self.inner.lock();
            let matters = inner.receives.posted() > 1;
            if !matters || !core::mem::take(&mut inner.loss.may_examine) {
                return;
            }
            let Some(queue) = inner.queue.clone() else {
                return;
            };
            inner.loss.is_examined = true;
            queue
        };
        let is_nearly_empty = queue.holds_at_most_one(*slots);
        let mut inner = self.inner.lock();
        inner.loss.is_examined = false;
        if is_nearly_empty {
            let posts = inner.receives.posts();
            inner.receives.all_taken_before(posts);
        }
    }
}
