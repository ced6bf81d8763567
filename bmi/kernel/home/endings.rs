// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends of connections. A work item disconnects and frees the Endpoints, without the lock of the
//! instance.

use super::{
    devices::Device,
    KernelHome,
    Report,
    Work, //
};
use crate::{
    engine::{
        Close,
        Ending,
        EndsEndpoints,
        Error,
        RailId,
        Short,
        Task, //
    },
    storage::filled, //
};
use kdat::Ep;
use kernel::{
    alloc::AllocError,
    prelude::*,
    sync::Arc, //
};

/// Queue of Endpoints.
pub(crate) type Endings = crate::engine::Endings<Arc<Ep>, KVVec<Option<Ending<Arc<Ep>>>>>;

/// Task of the work item.
pub(crate) type EpTask = Task<Arc<Ep>>;

/// Creates an empty queue for peers with so many rails each.
pub(super) fn queue(rails: u8) -> Result<Endings, AllocError> {
    let places = filled(crate::engine::ending_places(rails), || None)?;
    Ok(Endings::new(places))
}

impl EndsEndpoints for KernelHome {
    type Ep = Arc<Ep>;
    type Places = KVVec<Option<Ending<Arc<Ep>>>>;

    fn endings(&mut self) -> &mut Endings {
        &mut self.endings
    }

    fn ep_of(&self, rail: RailId) -> Option<Arc<Ep>> {
        self.connections.ep(rail).cloned()
    }

    fn take_ep(&mut self, rail: RailId) -> Option<Arc<Ep>> {
        self.connections.remove(rail)
    }

    fn disconnect_ep(ep: &Arc<Ep>, how: Close) -> bool {
        let how = match how {
            Close::Graceful => kdat::Close::Graceful,
            Close::Abrupt => kdat::Close::Abrupt,
        };
        ep.disconnect(how).is_ok()
    }

    fn closed(&mut self, rail: RailId, reason: Option<Error>) {
        self.connections.routes.forget(rail);
        self.report(Report::Closed(rail, reason));
    }

    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_requests(rail);
        self.forget_binds(rail);
        self.forget_receives(rail);
        self.postponed.ep_was_freed();
        // If the session has not begun, the peer may be reached by another way.
        self.connections.routes.fail(rail);
        self.go_on(rail, reason, &mut Short::default());
    }
}

impl KernelHome {
    /// Frees the Endpoint of a rail, if it has one, at once: it has not begun to connect. Returns
    /// whether it had one.
    pub(super) fn free_unconnected(&mut self, rail: RailId) -> bool {
        let Some(ep) = self.take_ep(rail) else {
            return false;
        };
        drop(ep);
        self.forget_receives(rail);
        true
    }

    /// Replaces receives that were lost with an Endpoint.
    fn forget_receives(&mut self, rail: RailId) {
        let Some(device) = self.connections.device(rail) else {
            return;
        };
        let window = self.connections.window(device);
        let Device {
            receives, adapter, ..
        } = self.devices.get_mut(device);
        receives.forget(adapter, window);
    }

    /// Forgets requests of an Endpoint that was freed, of which no events come any more.
    fn forget_requests(&mut self, rail: RailId) {
        while let Some(request) = self.requests.take_where(|request| request.rail == rail) {
            if let Work::Bind(place) = request.work {
                self.step_ended(place, Err(Error::Reset));
            }
        }
    }
}
