// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Side effects of a state transition that may sleep, and the objects that they apply to.
//!
//! When the effects are carried out, the Endpoint may have been reset, or may make another attempt
//! to connect. So the objects are chosen under the lock, together with the transition.
//!
//! Two kinds of callers leave their effects to a work item:
//!
//! - A completion is taken under the consumer lock of its Event Dispatcher (EVD), where nothing may
//!   wait for `rdma_cm` or for the device.
//! - A handler of `rdma_cm` runs in a worker that all users of the host share, so it does a bounded
//!   amount of work only. Moving a queue pair (QP) to ERR may first have to post thousands of
//!   receives.

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

/// Work item that carries out the effects of completions and connection manager (CM) events.
pub(super) const EFFECTS: u64 = 2;

/// Effects, with the life of the Endpoint and the CM ID that they apply to.
pub(super) struct PendingEffects {
    pub(super) effects: Effects,
    pub(super) life: u32,
    pub(super) id: Option<Arc<CmId>>,
    /// ID without a remaining use. It is only dropped.
    unused_id: Option<Arc<CmId>>,
}

impl Inner {
    /// Returns whether the ID is that of the present attempt or connection, and not of an earlier
    /// one.
    pub(super) fn owns(&self, id: &IdRef<'_>) -> bool {
        self.connection.id.as_ref().is_some_and(|own| own.is(id))
    }

    /// As [`Inner::owns`], for a caller that holds a reference to the ID.
    pub(super) fn owns_arc(&self, id: &Arc<CmId>) -> bool {
        self.connection
            .id
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, id))
    }

    /// Chooses the objects that these effects apply to. The caller has held the lock since the
    /// transition.
    pub(super) fn bind_effects(&mut self, effects: Effects) -> PendingEffects {
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
            unused_id: None,
        }
    }
}

impl PendingEffects {
    /// Interrupts the call that connects, if the effects abandon the ID.
    pub(super) fn cancel_call(&self) {
        if let (Some(id), true) = (&self.id, self.effects.abandon_id) {
            id.cancel_call();
        }
    }

    /// Disconnects from the peer if the effects say so, and drops the ID. Must not be called in a
    /// handler of the ID: the drop waits for it.
    pub(super) fn disconnect_id(self) {
        if let (true, Some(id)) = (self.effects.send_disconnect, &self.id) {
            id.disconnect();
        }
    }
}

impl Ep {
    /// Leaves the drop of an ID to the work item. For a call in a handler of that ID, which cannot
    /// destroy it.
    pub(super) fn drop_id_later(self: &Arc<Self>, id: Arc<CmId>) {
        let before = {
            let mut inner = self.inner.lock();
            let life = inner.life;
            let pending = inner.pending_effects.get_or_insert(PendingEffects {
                effects: Effects::NONE,
                life,
                id: None,
                unused_id: None,
            });
            pending.unused_id.replace(id)
        };
        // The ID of an earlier attempt. It is dropped without the lock.
        drop(before);
        let _ = queue().enqueue::<_, EFFECTS>(self.clone());
    }

    /// Leaves the effects of a transition to the work item. The caller has held the lock since the
    /// transition.
    pub(super) fn perform_later(self: &Arc<Self>, inner: &mut Inner, effects: Effects) {
        let pending = inner.bind_effects(effects);
        inner.pending_effects = Some(match inner.pending_effects.take() {
            // Both are of the same life: a reset takes the pending effects of the last one.
            Some(before) => PendingEffects {
                effects: before.effects.and(pending.effects),
                life: pending.life,
                // Both IDs are of the present attempt, which has only one.
                id: pending.id.or(before.id),
                unused_id: before.unused_id,
            },
            None => pending,
        });
        // A work item that is queued already has not read `inner.pending_effects` yet.
        let _ = queue().enqueue::<_, EFFECTS>(self.clone());
    }
}

impl_has_work! {
    impl HasWork<Self, { EFFECTS }> for Ep { self.effects_work }
}

impl WorkItem<EFFECTS> for Ep {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let pending = this.inner.lock().pending_effects.take();
        if let Some(pending) = pending {
            this.perform(pending);
        }
    }
}
