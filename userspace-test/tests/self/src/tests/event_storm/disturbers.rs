// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Threads that disturb the consumers.

use super::storm::{count, Storm, LENGTH_EXPONENTS};
use crate::tests::wait::interrupt;
use anyhow::Result;
use fastrand::Rng;
use libkdapl::Type;
use std::time::Duration;

fn pause(rng: &mut Rng, most: u64) {
    std::thread::sleep(Duration::from_micros(rng.u64(0..most)));
}

/// Resizes EVDs, disables and enables them, makes them unwaitable and waitable, and triggers CNOs
/// without an event.
pub fn change(storm: &Storm, mut rng: Rng) -> Result<()> {
    while !storm.is_over() {
        let evd = &storm.queues[rng.usize(..storm.queues.len())].evd;
        match rng.u8(0..8) {
            0..=3 => match evd.resize(1 << rng.u32(LENGTH_EXPONENTS)) {
                Ok(_) => count(&storm.conditions.resizes),
                // More events are queued, or waited for.
                Err(error) if error.kind() == Some(Type::INVALID_STATE) => {}
                Err(error) => return Err(error.into()),
            },
            4 | 5 => {
                evd.disable()?;
                pause(&mut rng, 200);
                evd.enable()?;
            }
            6 => {
                evd.set_unwaitable()?;
                pause(&mut rng, 200);
                evd.clear_unwaitable()?;
            }
            _ => storm.notifiers[rng.usize(..storm.notifiers.len())].cno.trigger()?,
        }
        pause(&mut rng, 200);
    }
    Ok(())
}

/// Sends signals to waiting threads.
pub fn signal(storm: &Storm, mut rng: Rng) -> Result<()> {
    while !storm.is_over() {
        let waiters = storm.waiters();
        if !waiters.is_empty() {
            interrupt(waiters[rng.usize(..waiters.len())]);
        }
        pause(&mut rng, 500);
    }
    Ok(())
}
