// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Consumers of the storm. The owner of an EVD waits on it, or leaves it to its notification object
//! (CNO).

use super::field::{count, Bell, Field, ALWAYS};
use super::ledger::Seen;
use anyhow::{bail, ensure, Context as _, Result};
use fastrand::Rng;
use libkdapl::{Event, Subtype, Type};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of events that are dequeued at a time.
const MANY: u32 = 64;

/// A thread that takes events.
pub struct Taker<'a> {
    field: &'a Field,
    seen: Seen,
    rng: Rng,
}

impl<'a> Taker<'a> {
    /// Registers the calling thread.
    pub fn new(field: &'a Field, rng: Rng) -> Self {
        field.be_interrupted();
        Self { field, seen: Seen::default(), rng }
    }

    fn take(&mut self, queue: usize, event: Event, by: &AtomicU64) -> Result<()> {
        let place = &self.field.queues[queue];
        self.field.ledger.enter(place.side, queue, event, &mut self.seen)?;
        count(&place.taken);
        count(by);
        Ok(())
    }

    /// Dequeues up to `most` events.
    fn dequeue(&mut self, queue: usize, most: u32, by: &AtomicU64) -> Result<()> {
        for _ in 0..most {
            match self.field.queues[queue].evd.dequeue() {
                Ok((event, _)) => self.take(queue, event, by)?,
                Err(error) if error.is_empty() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns a random time-out: zero, about the time of an event, longer, or one that must not
    /// expire.
    fn time(&mut self) -> Duration {
        match self.rng.u8(..) {
            0..=15 => Duration::ZERO,
            16..=95 => Duration::from_micros(self.rng.u64(0..300)),
            96..=127 => Duration::from_micros(self.rng.u64(0..5000)),
            _ => self.field.patience,
        }
    }

    /// Waits once on an EVD. Takes the returned event, and a random number of those after it.
    fn wait(&mut self, queue: usize) -> Result<()> {
        let (field, by) = (self.field, &self.field.weather.direct);
        let place = &field.queues[queue];
        let time = self.time();
        let long = time == field.patience;
        // A second asynchronous event arrives only after the first was taken.
        let most = if place.software { ALWAYS } else { 1 };
        let threshold = if self.rng.bool() { 1 } else { self.rng.i32(1..=most) };
        let posting = field.is_posting();
        let threshold = if posting { threshold } else { 1 };
        match place.evd.wait(Some(time), threshold) {
            Ok((event, behind)) => {
                self.take(queue, event, by)?;
                let most = self.rng.u32(0..=behind.min(MANY));
                self.dequeue(queue, most, by)
            }
            Err(error) if error.is_timeout() => {
                count(&field.weather.timeouts);
                let due = long && posting && field.is_posting();
                ensure!(
                    !due,
                    "a waiter for {threshold} events was not woken: {:?}",
                    place.evd.query()
                );
                Ok(())
            }
            Err(error) if error.is_interrupted() => {
                count(&field.weather.interrupted);
                Ok(())
            }
            Err(error) if error.subtype() == Some(Subtype::INVALID_STATE_EVD_UNWAITABLE) => {
                count(&field.weather.unwaitable);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves an EVD to its CNO until some events were taken.
    fn leave(&mut self, queue: usize) -> Result<()> {
        let (field, place) = (self.field, &self.field.queues[queue]);
        let start = Instant::now();
        let before = place.taken.load(Ordering::Relaxed);
        let some = self.rng.u64(1..=if place.software { 200 } else { 3 });
        while place.taken.load(Ordering::Relaxed) < before + some && field.is_posting() {
            let late = start.elapsed() > field.patience;
            ensure!(!late, "events were not reported: {}", field.state());
            std::thread::sleep(Duration::from_micros(100));
        }
        if !field.is_posting() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Owns an EVD: waits on it, with or without a CNO, or leaves it to the CNO.
    pub fn own(mut self, queue: usize) -> Result<()> {
        let place = &self.field.queues[queue];
        let bells: Vec<_> =
            self.field.bells.iter().filter(|bell| bell.side == place.side).collect();
        while !self.field.is_over() {
            let bell = bells[self.rng.usize(..bells.len())];
            match self.rng.u8(0..4) {
                0 => {
                    place.evd.modify_cno(Some(&bell.cno))?;
                    self.leave(queue)?;
                    continue;
                }
                1 => place.evd.modify_cno(Some(&bell.cno))?,
                2 => place.evd.modify_cno(None)?,
                _ => {}
            }
            for _ in 0..self.rng.u8(..64) {
                self.wait(queue)?;
            }
        }
        Ok(())
    }

    /// Takes events of EVDs that trigger a CNO. Some threads wait for the trigger, some poll.
    pub fn answer(mut self, bell: &Bell, polls: bool) -> Result<()> {
        let field = self.field;
        while !field.is_over() {
            let time = self.time();
            let time = if polls { self.poll(bell, time)? } else { time };
            match bell.cno.wait(Some(time)) {
                Ok(Some(handle)) => {
                    let found = field
                        .queues
                        .iter()
                        .position(|queue| queue.side == bell.side && queue.evd.handle() == handle);
                    let queue = found.context("an unknown EVD")?;
                    let most = self.rng.u32(1..=MANY);
                    self.dequeue(queue, most, &field.weather.notified)?;
                }
                // A trigger by the consumer.
                Ok(None) => {}
                Err(error) if error.is_empty() => count(&field.weather.timeouts),
                Err(error) if error.is_interrupted() => count(&field.weather.interrupted),
                // The last EVD was unlinked.
                Err(error) if error.kind() == Some(Type::ABORT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Polls the file of a CNO. Returns the remaining time: zero.
    fn poll(&mut self, bell: &Bell, time: Duration) -> Result<Duration> {
        let mut asked =
            libc::pollfd { fd: bell.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the argument is one valid entry.
        if unsafe { libc::poll(&mut asked, 1, time.as_millis() as i32) } == -1 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                bail!("poll: {error}");
            }
            count(&self.field.weather.interrupted);
        }
        Ok(Duration::ZERO)
    }
}
