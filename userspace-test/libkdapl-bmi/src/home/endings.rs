// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of connections. A thread disconnects and frees the Endpoints, without the lock of the
//! instance.

use super::{DatHome, Report};
use crate::bmi::engine::{self, Close, Connects, Ending, EndsEndpoints, Error, RailId, Task};
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
        self.connections.routes.of_rails.remove(&rail);
        self.reports.push_back(Report::Closed(rail, reason));
    }

    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_unsignalled(rail);
        self.forget_receives(rail);
        self.try_other_way(rail, reason);
    }
}
