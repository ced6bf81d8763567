// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events of a device.
//!
//! A thread of the program waits for those of the first device (`wait.rs`). Those of each other one
//! are waited for by a thread of the library, which lives as long as the instance, its contexts and
//! its peers. So what completes there wakes a thread of the program by one more context switch.

use crate::error::{Failure, Result};
use crate::events::is_receive;
use crate::home::Device;
use crate::instance::Shared;
use crate::state::TICK;
use crate::wait::lock;
use libkdapl::{Evd, Event};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Events that are processed at once.
const BATCH: usize = 64;

/// Source of events.
pub(crate) struct Source {
    device: u8,
    pub(crate) evd: Evd,
    /// Receives whose events a thread has dequeued, and nobody has processed yet.
    dequeued: Arc<AtomicUsize>,
}

impl Source {
    pub(crate) fn new((number, device): (u8, &Device)) -> Self {
        let evd = device.adapter.evd.clone();
        Self { device: number, evd, dequeued: device.receives.dequeued() }
    }

    /// Takes events, the first of which it waits for.
    pub(crate) fn take(&self, timeout: Option<Duration>, events: &mut Vec<Event>) -> Result<()> {
        let first = match timeout {
            Some(Duration::ZERO) => self.evd.dequeue(),
            _ => self.evd.wait(timeout, 1),
        };
        let mut next = first;
        loop {
            match next {
                Ok((event, more)) => {
                    if is_receive(&event) {
                        self.dequeued.fetch_add(1, Ordering::Relaxed);
                    }
                    events.push(event);
                    if more == 0 || events.len() >= BATCH {
                        return Ok(());
                    }
                }
                Err(e) if e.is_timeout() || e.is_empty() || e.is_interrupted() => return Ok(()),
                Err(e) => return Err(e.into()),
            }
            next = self.evd.dequeue();
        }
    }

    /// Starts the thread that waits for the events of another device than the first one.
    pub(crate) fn start(self, shared: &Arc<Shared>) -> Result<()> {
        let shared = Arc::downgrade(shared);
        let thread = std::thread::Builder::new().name("kdapl-bmi-dev".into());
        let started = thread.spawn(move || self.run(&shared));
        Ok(started.map(drop).map_err(|_| Failure::NoMemory)?)
    }

    fn run(self, shared: &Weak<Shared>) {
        let mut events = Vec::new();
        while shared.strong_count() > 0 {
            // An error is one of the adapter, and stays.
            if self.take(Some(Duration::from_millis(TICK)), &mut events).is_err() {
                return;
            }
            let Some(shared) = shared.upgrade().filter(|_| !events.is_empty()) else { continue };
            let mut guard = lock(&shared.state);
            for event in events.drain(..) {
                guard.0.process(self.device, event);
            }
            shared.announce(&mut guard);
        }
    }
}
