// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A thread that waits for events on request.

use crate::threads::{Patience, Worker};
use anyhow::{anyhow, Context as _, Result};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex};

/// A thread that waits for events on request, and returns them.
///
/// Between requests it spins on atomics, so that it sleeps only in the waits.
pub struct Waiter<T, E> {
    worker: Worker<()>,
    desk: Arc<Desk<T, E>>,
}

struct Desk<T, E> {
    /// Threshold to wait for, or one of the two values below.
    order: AtomicI32,
    answer: Mutex<Option<Result<T, E>>>,
}

const NOTHING_TO_DO: i32 = 0;
const GO_HOME: i32 = -1;

impl<T, E> Waiter<T, E>
where
    T: Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    /// Starts the thread. `wait` waits for an event; its argument is the requested threshold.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn with(wait: impl Fn(i32) -> Result<T, E> + Send + 'static) -> Result<Self> {
        let desk =
            Arc::new(Desk { order: AtomicI32::new(NOTHING_TO_DO), answer: Mutex::new(None) });
        let theirs = desk.clone();
        let worker = Worker::start(move || loop {
            match theirs.order.load(Ordering::Acquire) {
                NOTHING_TO_DO => std::thread::yield_now(),
                GO_HOME => return,
                threshold => {
                    let outcome = wait(threshold);
                    // The other side accesses the answer only after `order` was reset.
                    if let Ok(mut answer) = theirs.answer.lock() {
                        *answer = Some(outcome);
                    }
                    theirs.order.store(NOTHING_TO_DO, Ordering::Release);
                }
            }
        })?;
        Ok(Self { worker, desk })
    }

    /// Returns the thread's id.
    #[must_use]
    pub fn tid(&self) -> i32 {
        self.worker.tid
    }

    /// Requests a wait for `threshold` events, at least one, and returns when the thread sleeps.
    ///
    /// # Errors
    /// The thread does not sleep.
    pub fn asleep(&self, patience: &impl Patience, threshold: i32) -> Result<()> {
        self.desk.order.store(threshold, Ordering::Release);
        self.worker.asleep(patience)
    }

    /// Returns the result of the wait.
    ///
    /// # Errors
    /// That of the wait.
    pub fn event(&self) -> Result<T> {
        while self.desk.order.load(Ordering::Acquire) != NOTHING_TO_DO {
            std::thread::yield_now();
        }
        let answer = self.desk.answer.lock().map_err(|_| anyhow!("the waiter panicked"))?.take();
        Ok(answer.context("the waiter has no answer")??)
    }
}

impl<T, E> Drop for Waiter<T, E> {
    fn drop(&mut self) {
        self.desk.order.store(GO_HOME, Ordering::Release);
    }
}
