// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Ends of connections. A work item disconnects and frees the Endpoints, without the lock of the
//! instance.

use super::{
    KernelHome,
    Report,
    Work, //
};
use crate::{
    engine::{
        Close,
        Connects,
        Ending,
        EndsEndpoints,
        Error,
        RailId,
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
        self.try_other_way(rail, reason);
    }
}

impl KernelHome {
    /// Forgets requests of an Endpoint that was freed, of which no events come any more.
    fn forget_requests(&mut self, rail: RailId) {
        while let Some(request) = self.requests.take_where(|request| request.rail == rail) {
            if let Work::Bind(place) = request.work {
                self.step_ended(place, Err(Error::Reset));
            }
        }
    }
}
