// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Side effects of a step that may sleep, and the objects that they apply to.
//!
//! By the time that they are carried out the Endpoint may have begun another life, or another attempt
//! to connect: so the objects are chosen under the lock of the step.
//!
//! Two kinds of callers leave them to a work item. A completion is taken under the lock of its EVD's
//! consumer, where nothing may wait for `rdma_cm` or for the device. And a handler of `rdma_cm` runs in
//! a worker that all users of the host share, so it does a bounded amount of work only: moving a QP to
//! ERR may first have to post thousands of receives.

use super::{
    Ep,
    Inner, //
};
use crate::{
    dat::prelude::*,
    model::ep::Effects,
    rdma::cm::{
        CmId,
        IdRef, //
    },
    sys::workqueue::queue, //
};
use kernel::{
    impl_has_work,
    workqueue::WorkItem, //
};

/// The work item that carries out what followed from completions and CM events.
pub(super) const ENACT: u64 = 2;

/// Effects, and the life and the id that they are for.
pub(super) struct PendingEffects {
    pub(super) effects: Effects,
    pub(super) life: u32,
    pub(super) id: Option<Arc<CmId>>,
    /// An id of which nothing is left but to let go.
    spare: Option<Arc<CmId>>,
}

impl Inner {
    /// Whether the id is that of the present attempt or connection, and not of an earlier one.
    pub(super) fn owns(&self, id: &IdRef<'_>) -> bool {
        self.connection.id.as_ref().is_some_and(|own| own.is(id))
    }

    /// As [`Inner::owns`], for the thread that holds the id itself.
    pub(super) fn owns_arc(&self, id: &Arc<CmId>) -> bool {
        self.connection
            .id
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, id))
    }

    /// Chooses the objects that these effects apply to. With the lock of the step that had them.
    pub(super) fn due(&mut self, effects: Effects) -> PendingEffects {
        let id = if effects.abandon_id {
            self.connection.id.take()
        } else if effects.send_disconnect {
            self.connection.id.clone()
        } else {
            None
        };
        PendingEffects {
            effects,
            life: self.life,
            id,
            spare: None,
        }
    }
}

impl PendingEffects {
    /// Ends the attempt to connect, if it is one that is parted with.
    pub(super) fn give_up(&self) {
        if let (Some(id), true) = (&self.id, self.effects.abandon_id) {
            id.give_up();
        }
    }

    /// Disconnects from the peer if the effects say so, and drops the id. Never in a handler of the id.
    pub(super) fn hang_up(self) {
        if let (true, Some(id)) = (self.effects.send_disconnect, &self.id) {
            id.disconnect();
        }
    }
}

impl Ep {
    /// Leaves it to the work item to let go of an id of the Endpoint, in whose handler this is called.
    pub(super) fn part_later(self: &Arc<Self>, id: Arc<CmId>) {
        let before = {
            let mut inner = self.inner.lock();
            let life = inner.life;
            let due = inner.due.get_or_insert(PendingEffects {
                effects: Effects::NONE,
                life,
                id: None,
                spare: None,
            });
            due.spare.replace(id)
        };
        // That of an earlier attempt.
        drop(before);
        let _ = queue().enqueue::<_, ENACT>(self.clone());
    }

    /// Leaves what followed from a step to the work item. With the lock of the step.
    pub(super) fn enact_later(self: &Arc<Self>, inner: &mut Inner, effects: Effects) {
        let due = inner.due(effects);
        inner.due = Some(match inner.due.take() {
            // Of the same life: a reset takes what is left of the last one.
            Some(before) => PendingEffects {
                effects: before.effects.and(due.effects),
                life: due.life,
                // Both are of the present attempt, which has one id only.
                id: due.id.or(before.id),
                spare: before.spare,
            },
            None => due,
        });
        // If it is queued already it is yet to look.
        let _ = queue().enqueue::<_, ENACT>(self.clone());
    }
}

impl_has_work! {
    impl HasWork<Self, { ENACT }> for Ep { self.enact }
}

impl WorkItem<ENACT> for Ep {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let due = this.inner.lock().due.take();
        if let Some(due) = due {
            this.perform(due);
        }
    }
}
