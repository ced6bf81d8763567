// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! What a step asks for that may sleep, and to whom it is to be done.
//!
//! By the time that it is done the Endpoint may have begun another life, or another attempt to
//! connect: so what it is to be done to is chosen under the lock of the step.
//!
//! A completion is taken under the lock of its EVD's consumer, where nothing may wait for `rdma_cm`
//! or for the device: what follows from it is left to a work item.

use super::{
    Ep,
    Inner, //
};
use crate::{
    model::ep::Effects,
    rdma::cm::{
        CmId,
        IdRef, //
    },
    sys::workqueue::queue,
};
use kernel::{
    impl_has_work,
    sync::Arc,
    workqueue::WorkItem, //
};

/// The work item that does what followed from completions.
pub(super) const ENACT: u64 = 2;

/// Effects, and the life and the id that they are for.
pub(super) struct Due {
    pub(super) effects: Effects,
    pub(super) life: u32,
    pub(super) id: Option<Arc<CmId>>,
}

impl Inner {
    /// Whether the id is that of the present attempt or connection, and not of an earlier one.
    pub(super) fn owns(&self, id: &IdRef<'_>) -> bool {
        self.id.as_ref().is_some_and(|own| own.is(id))
    }

    /// What these effects are to be done to. With the lock of the step that had them.
    ///
    /// `at_hand` is the id if that was in its own handler, or under its handler mutex: there it cannot
    /// be parted with.
    pub(super) fn due(&mut self, effects: Effects, at_hand: Option<&IdRef<'_>>) -> Due {
        let id = if at_hand.is_some() {
            None
        } else if effects.abandon_id {
            self.id.take()
        } else if effects.send_disconnect {
            self.id.clone()
        } else {
            None
        };
        Due {
            effects,
            life: self.life,
            id,
        }
    }
}

impl Due {
    /// Tells the peer, if that is due, and lets go of the id.
    pub(super) fn hang_up(self, id: Option<&IdRef<'_>>) {
        match (id, &self.id) {
            _ if !self.effects.send_disconnect => {}
            (Some(id), _) => id.disconnect(),
            (None, Some(id)) => id.disconnect(),
            (None, None) => {}
        }
    }
}

impl Ep {
    /// Leaves what followed from a step to the work item. With the lock of the step.
    pub(super) fn enact_later(this: &Arc<Self>, inner: &mut Inner, effects: Effects) {
        let due = inner.due(effects, None);
        inner.due = Some(match inner.due.take() {
            // Of the same life: a reset takes what is left of the last one.
            Some(before) => Due {
                effects: before.effects.and(due.effects),
                life: due.life,
                id: due.id.or(before.id),
            },
            None => due,
        });
        // If it is queued already it is yet to look.
        let _ = queue().enqueue::<_, ENACT>(this.clone());
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
            Self::perform(&this, due, None);
        }
    }
}
