// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of connections. A thread disconnects and frees the Endpoints, without the lock of the
//! instance.

use super::devices::Device;
use super::{DatHome, Report};
use crate::bmi::engine::{self, Close, Ending, EndsEndpoints, Error, RailId, Short, Task};
use libkdapl::Ep;

/// Queue of Endpoints.
pub(crate) type Endings = engine::Endings<Ep, Vec<Option<Ending<Ep>>>>;

/// Task of the thread.
pub(crate) type EpTask = Task<Ep>;

/// Creates an empty queue for peers with so many rails each.
pub(super) fn queue(rails: u8) -> Endings {
    Endings::new((0..engine::ending_places(rails)).map(|_| None).collect())
}

impl EndsEndpoints for DatHome {
    type Ep = Ep;
    type Places = Vec<Option<Ending<Ep>>>;

    fn endings(&mut self) -> &mut Endings {
        &mut self.endings
    }

    fn ep_of(&self, rail: RailId) -> Option<Ep> {
        self.connections.ep(rail).cloned()
    }

    fn take_ep(&mut self, rail: RailId) -> Option<Ep> {
        let (device, ep) = self.connections.remove(rail)?;
        self.devices.get_mut(device).receives.keep(ep.handle(), rail);
        Some(ep)
    }

    fn disconnect_ep(ep: &Ep, how: Close) -> bool {
        let how = match how {
            Close::Graceful => libkdapl::Close::Graceful,
            Close::Abrupt => libkdapl::Close::Abrupt,
        };
        ep.disconnect(how).is_ok()
    }

    fn closed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_binds(rail);
        self.connections.routes.forget(rail);
        self.reports.push_back(Report::Closed(rail, reason));
    }

    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_receives(rail);
        self.postponed.ep_was_freed();
        // If the session has not begun, the peer may be reached by another way.
        self.connections.routes.fail(rail);
        self.go_on(rail, reason, &mut Short::default());
    }
}

impl DatHome {
    /// Frees the Endpoint of a rail, if it has one, at once: it has not begun to connect. Returns
    /// whether it had one.
    pub(super) fn free_unconnected(&mut self, rail: RailId) -> bool {
        let Some(ep) = self.take_ep(rail) else { return false };
        drop(ep);
        self.forget_receives(rail);
        true
    }

    fn forget_receives(&mut self, rail: RailId) {
        let Some(device) = self.connections.device(rail) else { return };
        let window = self.connections.window(device);
        let Device { receives, adapter, .. } = self.devices.get_mut(device);
        receives.forget(adapter, rail, window);
    }
}
