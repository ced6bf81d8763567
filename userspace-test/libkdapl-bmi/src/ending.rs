// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Thread that disconnects and frees Endpoints, without the lock of the instance. The first end of
//! a connection creates it.

use crate::bmi::engine::EndsEndpoints;
use crate::home::DatHome;
use crate::instance::Shared;
use crate::wait::{lock, Guard};
use std::sync::{Arc, PoisonError};

/// Name of the thread.
const NAME: &str = "kdapl-bmi-end";

impl Shared {
    /// Calls the thread for tasks that are queued.
    pub(crate) fn call_ender(self: &Arc<Self>, guard: &mut Guard<'_>) {
        if !guard.0.home.endings.call() {
            return;
        }
        if guard.1.ender.is_some() {
            return self.sleepers.ender.notify_one();
        }
        let ender = self.clone();
        let thread = std::thread::Builder::new().name(NAME.into());
        match thread.spawn(move || ender.end_endpoints()) {
            Ok(thread) => guard.1.ender = Some(thread),
            // There is no memory for a thread.
            Err(_) => end_all(guard),
        }
    }

    /// Carries out tasks until the instance is closed, and the queue is empty.
    fn end_endpoints(self: Arc<Self>) {
        let mut guard = lock(&self.state);
        let mut next = guard.0.next_task(None);
        loop {
            let Some((rail, task)) = next else {
                if guard.1.stopping {
                    return;
                }
                let woken = self.sleepers.ender.wait(guard);
                guard = woken.unwrap_or_else(PoisonError::into_inner);
                next = guard.0.next_task(None);
                continue;
            };
            drop(guard);
            let succeeded = DatHome::carry_out(task);
            guard = lock(&self.state);
            next = guard.0.next_task(Some((rail, succeeded)));
            self.announce(&mut guard);
        }
    }
}

/// Carries out all tasks under the lock.
fn end_all(guard: &mut Guard<'_>) {
    let mut next = guard.0.next_task(None);
    while let Some((rail, task)) = next {
        next = guard.0.next_task(Some((rail, DatHome::carry_out(task))));
    }
}
