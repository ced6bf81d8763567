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
        Ending,
        Error,
        Next,
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

/// Creates an empty queue.
pub(super) fn queue() -> Result<Endings, AllocError> {
    let places = filled(crate::engine::ENDINGS, || None)?;
    Ok(Endings::new(places))
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
        Close::Graceful => kdat::Close::Graceful,
        Close::Abrupt => kdat::Close::Abrupt,
    };
    ep.disconnect(how).is_ok()
}

impl KernelHome {
    /// Disconnects a rail. The event of the end follows, also if it is on its way already.
    pub(super) fn begin_disconnect(&mut self, rail: RailId, how: Close) {
        self.connections.forget_postponed(rail);
        let Some(ep) = self.connections.ep(rail).cloned() else {
            return self.close_rail(rail, None);
        };
        let refused = self.endings.disconnect(rail, ep, how);
        if refused.is_err_and(|ep| !disconnect(&ep, how)) {
            self.close_rail(rail, None);
        }
    }

    /// Frees the Endpoint of a rail, and reports its end afterwards. Nothing is outstanding on it.
    pub(super) fn close_rail(&mut self, rail: RailId, reason: Option<Error>) {
        let Some(ep) = self.connections.remove(rail) else {
            if !self.endings.frees(rail) {
                self.report(Report::Closed(rail, reason));
            }
            return;
        };
        if let Err(ep) = self.endings.free(rail, ep, reason) {
            drop(ep);
            self.freed(rail, reason);
        }
    }

    /// Continues after a task of the work item.
    pub(crate) fn task_done(&mut self, rail: RailId, succeeded: bool) {
        match self.endings.done(rail, succeeded) {
            Next::Wait => {}
            Next::Close(rail) => self.close_rail(rail, None),
            Next::Freed(rail, reason) => self.freed(rail, reason),
        }
    }

    /// Carries out the tasks that wait, and creates the Endpoint of a rail then. Returns whether
    /// there is one.
    pub(super) fn create_ep_after_ends(&mut self, rail: RailId) -> bool {
        while let Some((ended, task)) = self.endings.take() {
            let succeeded = carry_out(task);
            self.task_done(ended, succeeded);
        }
        self.create_ep(rail).is_ok()
    }

    /// Reports the end of a rail whose Endpoint was freed.
    fn freed(&mut self, rail: RailId, reason: Option<Error>) {
        self.forget_requests(rail);
        self.forget_binds(rail);
        let window = self.connections.window();
        self.receives.forget(&self.adapter, window);
        self.report(Report::Closed(rail, reason));
        self.connections.ep_was_freed();
    }

    /// Forgets requests of an Endpoint that was freed, of which no events come any more.
    fn forget_requests(&mut self, rail: RailId) {
        while let Some(request) = self.requests.take_where(|request| request.rail == rail) {
            if let Work::Bind(op) = request.work {
                self.step_ended(op, Err(Error::Reset));
            }
        }
    }
}
