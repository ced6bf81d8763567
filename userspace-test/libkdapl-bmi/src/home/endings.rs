// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Ends of connections. A thread disconnects and frees the Endpoints, without the lock of the
//! instance.

use super::{DatHome, Report};
use crate::bmi::engine::{self, Close, Ending, Error, Next, RailId, Task, ENDINGS};
use libkdapl::Ep;

/// Queue of Endpoints.
pub(crate) type Endings = engine::Endings<Ep, Vec<Option<Ending<Ep>>>>;

/// Task of the thread.
pub(crate) type EpTask = Task<Ep>;

/// Creates an empty queue.
pub(super) fn queue() -> Endings {
    Endings::new((0..ENDINGS).map(|_| None).collect())
}

/// Carries out a task, which sleeps. Returns whether it has succeeded.
pub(crate) fn carry_out(task: EpTask) -> bool {
    match task {
        Task::Disconnect(ep, how) => disconnect(&ep, how),
        Task::Free(ep) => {
            drop(ep);
            true
        }
    }
}

fn disconnect(ep: &Ep, how: Close) -> bool {
    let how = match how {
        Close::Graceful => libkdapl::Close::Graceful,
        Close::Abrupt => libkdapl::Close::Abrupt,
    };
    ep.disconnect(how).is_ok()
}

impl DatHome {
    /// Disconnects a rail. The event of the end follows, also if it is on its way already.
    pub(super) fn begin_disconnect(&mut self, rail: RailId, how: Close) {
        self.connections.forget_postponed(rail);
        let Some(ep) = self.ep(rail) else { return self.close_rail(rail, None) };
        let refused = self.endings.disconnect(rail, ep, how);
        if refused.is_err_and(|ep| !disconnect(&ep, how)) {
            self.close_rail(rail, None);
        }
    }

    /// Frees the Endpoint of a rail, and reports its end afterwards. Nothing is outstanding on it.
    pub(super) fn close_rail(&mut self, rail: RailId, reason: Option<Error>) {
        let Some(ep) = self.take_ep(rail) else {
            if !self.endings.frees(rail) {
                self.forget_binds(rail);
                self.reports.push_back(Report::Closed(rail, reason));
            }
            return;
        };
        if let Err(ep) = self.endings.free(rail, ep, reason) {
            drop(ep);
            self.freed(rail, reason);
        }
    }

    /// Frees the Endpoint of a rail, if it has one, at once: it was never connected.
    pub(super) fn free_unconnected(&mut self, rail: RailId) {
        if let Some(ep) = self.take_ep(rail) {
            drop(ep);
            self.forget_receives(rail);
        }
    }

    /// Takes the Endpoint of a rail out of the tables.
    fn take_ep(&mut self, rail: RailId) -> Option<Ep> {
        let ep = self.connections.remove(rail)?;
        self.receives.keep(ep.handle(), rail);
        Some(ep)
    }

    /// Continues after a task of the thread.
    pub(crate) fn task_done(&mut self, rail: RailId, succeeded: bool) {
        match self.endings.done(rail, succeeded) {
            Next::Wait => {}
            Next::Close(rail) => self.close_rail(rail, None),
            Next::Freed(rail, reason) => self.freed(rail, reason),
        }
    }

    /// Carries out the tasks that wait, and creates the Endpoint of a rail then.
    pub(super) fn create_ep_after_ends(&mut self, rail: RailId) -> libkdapl::Result<Ep> {
        // The first attempt may have created one without receives.
        self.free_unconnected(rail);
        while let Some((ended, task)) = self.endings.take() {
            let succeeded = carry_out(task);
            self.task_done(ended, succeeded);
        }
        self.create_ep(rail)
    }

    /// Reports the end of a rail whose Endpoint was freed.
    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_receives(rail);
        self.forget_binds(rail);
        self.reports.push_back(Report::Closed(rail, reason));
        self.connections.ep_was_freed();
    }

    fn forget_receives(&mut self, rail: RailId) {
        let window = self.connections.window();
        self.receives.forget(&self.adapter, rail, window);
    }
}
