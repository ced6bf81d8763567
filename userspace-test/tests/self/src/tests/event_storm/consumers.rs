// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Who takes events: each queue has an owner, who waits on it or leaves it to its notification object.

use super::field::{count, Bell, Field, ALWAYS};
use super::ledger::Seen;
use anyhow::{bail, ensure, Context as _, Result};
use fastrand::Rng;
use libkdapl::{Event, Subtype, Type};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Events that are dequeued at a time at most.
const MANY: u32 = 64;

/// A thread that takes events.
pub struct Taker<'a> {
    field: &'a Field,
    seen: Seen,
    rng: Rng,
}

impl<'a> Taker<'a> {
    /// The calling thread.
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

    /// Dequeues some events, or all.
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

    /// Nothing, or about as long as an event takes, or longer, or until it must have come.
    fn time(&mut self) -> Duration {
        match self.rng.u8(..) {
            0..=15 => Duration::ZERO,
            16..=95 => Duration::from_micros(self.rng.u64(0..300)),
            96..=127 => Duration::from_micros(self.rng.u64(0..5000)),
            _ => self.field.patience,
        }
    }

    /// Waits on a queue once, and takes what the wait returns, and maybe some of what is behind it.
    fn wait(&mut self, queue: usize) -> Result<()> {
        let (field, by) = (self.field, &self.field.weather.direct);
        let place = &field.queues[queue];
        let time = self.time();
        let long = time == field.patience;
        // Of asynchronous events no second comes before the first was taken.
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
                ensure!(!due, "nobody woke the waiter for {threshold}: {:?}", place.evd.query());
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

    /// Leaves a queue to its notification object until some events were taken.
    fn leave(&mut self, queue: usize) -> Result<()> {
        let (field, place) = (self.field, &self.field.queues[queue]);
        let start = Instant::now();
        let before = place.taken.load(Ordering::Relaxed);
        let some = self.rng.u64(1..=if place.software { 200 } else { 3 });
        while place.taken.load(Ordering::Relaxed) < before + some && field.is_posting() {
            let late = start.elapsed() > field.patience;
            ensure!(!late, "nobody was told of events: {}", field.state());
            std::thread::sleep(Duration::from_micros(100));
        }
        if !field.is_posting() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Owns a queue: waits on it, with its notification object or without, or leaves it to that.
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

    /// Takes events of queues that trigger; some wait for that, some poll.
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
                    let queue = found.context("an EVD that there is not")?;
                    let most = self.rng.u32(1..=MANY);
                    self.dequeue(queue, most, &field.weather.notified)?;
                }
                // Somebody's own trigger.
                Ok(None) => {}
                Err(error) if error.is_empty() => count(&field.weather.timeouts),
                Err(error) if error.is_interrupted() => count(&field.weather.interrupted),
                // The last EVD has left it.
                Err(error) if error.kind() == Some(Type::ABORT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Polls the file of a notification object; then there is no more time to wait.
    fn poll(&mut self, bell: &Bell, time: Duration) -> Result<Duration> {
        let mut asked =
            libc::pollfd { fd: bell.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: it is one valid entry.
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
