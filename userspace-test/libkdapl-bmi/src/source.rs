// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Events of a device.
//!
//! A thread of the program waits for those of the first device (`wait.rs`). Those of each other one
//! are waited for by a thread of the library, which the last drop of the instance, its contexts and
//! its peers ends. So what completes there wakes a thread of the program by one more context
//! switch.

use crate::error::{Failure, Result};
use crate::events::is_receive;
use crate::home::Device;
use crate::instance::Shared;
use crate::state::TICK;
use crate::wait::lock;
use libkdapl::{Evd, Event};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
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
    pub(crate) fn start(self, shared: Arc<Shared>) -> Result<DeviceThread> {
        let (evd, stopping) = (self.evd.clone(), Arc::new(AtomicBool::new(false)));
        let stops = stopping.clone();
        let thread = std::thread::Builder::new().name("kdapl-bmi-dev".into());
        let thread = thread.spawn(move || self.run(&shared, &stops));
        let thread = Some(thread.map_err(|_| Failure::NoMemory)?);
        Ok(DeviceThread { evd, stopping, thread })
    }

    fn run(self, shared: &Arc<Shared>, stopping: &AtomicBool) {
        let mut events = Vec::new();
        let mut taken = Ok(());
        while taken.is_ok() && !stopping.load(Ordering::Acquire) {
            taken = self.take(Some(Duration::from_millis(TICK)), &mut events);
            if taken.is_ok() && events.is_empty() {
                continue;
            }
            let mut guard = lock(&shared.state);
            for event in events.drain(..) {
                guard.0.process(self.device, event);
            }
            if taken.is_err() {
                // Without events no operation on this device would end.
                guard.0.fail_device(self.device);
            }
            shared.announce(&mut guard);
        }
    }
}

/// Thread of the library that waits for the events of a device. The drop ends it.
pub(crate) struct DeviceThread {
    evd: Evd,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        // If the queue is full, there are events that wake the thread.
        let _ = self.evd.post_se(0);
        if let Some(thread) = self.thread.take() {
            // It has ended, whether or not it has panicked.
            let _ = thread.join();
        }
    }
}
