// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Consumers of the storm. The owner of an EVD waits on it, or leaves it to its notification object
//! (CNO).

use super::ledger::LastTaken;
use super::storm::{count, Notifier, Storm, SHORTEST_LENGTH};
use anyhow::{bail, ensure, Context as _, Result};
use fastrand::Rng;
use libkdapl::{Event, Subtype, Type};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum number of events that are dequeued at a time.
const MAX_TAKEN: u32 = 64;

/// A thread that takes events.
pub struct Taker<'a> {
    storm: &'a Storm,
    seen: LastTaken,
    rng: Rng,
}

impl<'a> Taker<'a> {
    /// Registers the calling thread.
    pub fn new(storm: &'a Storm, rng: Rng) -> Self {
        storm.be_interrupted();
        Self { storm, seen: LastTaken::default(), rng }
    }

    fn take(&mut self, queue: usize, event: Event, by: &AtomicU64) -> Result<()> {
        let place = &self.storm.queues[queue];
        self.storm.ledger.enter(place.side, queue, event, &mut self.seen)?;
        count(&place.taken);
        count(by);
        Ok(())
    }

    /// Dequeues up to `most` events.
    fn dequeue(&mut self, queue: usize, most: u32, by: &AtomicU64) -> Result<()> {
        for _ in 0..most {
            match self.storm.queues[queue].evd.dequeue() {
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
            _ => self.storm.patience,
        }
    }

    /// Waits once on an EVD. Takes the returned event, and a random number of those after it.
    fn wait(&mut self, queue: usize) -> Result<()> {
        let (storm, by) = (self.storm, &self.storm.conditions.direct);
        let place = &storm.queues[queue];
        let time = self.time();
        let long = time == storm.patience;
        // A second asynchronous event arrives only after the first was taken.
        let most = if place.software { SHORTEST_LENGTH } else { 1 };
        let threshold = if self.rng.bool() { 1 } else { self.rng.i32(1..=most) };
        let posting = storm.is_posting();
        let threshold = if posting { threshold } else { 1 };
        match place.evd.wait(Some(time), threshold) {
            Ok((event, behind)) => {
                self.take(queue, event, by)?;
                let most = self.rng.u32(0..=behind.min(MAX_TAKEN));
                self.dequeue(queue, most, by)
            }
            Err(error) if error.is_timeout() => {
                count(&storm.conditions.timeouts);
                let due = long && posting && storm.is_posting();
                ensure!(
                    !due,
                    "a waiter for {threshold} events was not woken: {:?}",
                    place.evd.query()
                );
                Ok(())
            }
            Err(error) if error.is_interrupted() => {
                count(&storm.conditions.interrupted);
                Ok(())
            }
            Err(error) if error.subtype() == Some(Subtype::INVALID_STATE_EVD_UNWAITABLE) => {
                count(&storm.conditions.unwaitable);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Leaves an EVD to its CNO until some events were taken.
    fn leave(&mut self, queue: usize) -> Result<()> {
        let (storm, place) = (self.storm, &self.storm.queues[queue]);
        let start = Instant::now();
        let before = place.taken.load(Ordering::Relaxed);
        let some = self.rng.u64(1..=if place.software { 200 } else { 3 });
        while place.taken.load(Ordering::Relaxed) < before + some && storm.is_posting() {
            let late = start.elapsed() > storm.patience;
            ensure!(!late, "events were not reported: {}", storm.state());
            std::thread::sleep(Duration::from_micros(100));
        }
        if !storm.is_posting() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Owns an EVD: waits on it, with or without a CNO, or leaves it to the CNO.
    pub fn own(mut self, queue: usize) -> Result<()> {
        let place = &self.storm.queues[queue];
        let notifiers: Vec<_> =
            self.storm.notifiers.iter().filter(|notifier| notifier.side == place.side).collect();
        while !self.storm.is_over() {
            let notifier = notifiers[self.rng.usize(..notifiers.len())];
            match self.rng.u8(0..4) {
                0 => {
                    place.evd.modify_cno(Some(&notifier.cno))?;
                    self.leave(queue)?;
                    continue;
                }
                1 => place.evd.modify_cno(Some(&notifier.cno))?,
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
    pub fn answer(mut self, notifier: &Notifier, polls: bool) -> Result<()> {
        let storm = self.storm;
        while !storm.is_over() {
            let time = self.time();
            let time = if polls { self.poll(notifier, time)? } else { time };
            match notifier.cno.wait(Some(time)) {
                Ok(Some(handle)) => {
                    let found = storm.queues.iter().position(|queue| {
                        queue.side == notifier.side && queue.evd.handle() == handle
                    });
                    let queue = found.context("an unknown EVD")?;
                    let most = self.rng.u32(1..=MAX_TAKEN);
                    self.dequeue(queue, most, &storm.conditions.notified)?;
                }
                // A trigger by the consumer.
                Ok(None) => {}
                Err(error) if error.is_empty() => count(&storm.conditions.timeouts),
                Err(error) if error.is_interrupted() => count(&storm.conditions.interrupted),
                // The last EVD was unlinked.
                Err(error) if error.kind() == Some(Type::ABORT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Polls the file of a CNO. Returns the remaining time: zero.
    fn poll(&mut self, notifier: &Notifier, time: Duration) -> Result<Duration> {
        let mut asked =
            libc::pollfd { fd: notifier.file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: the argument is one valid entry.
        if unsafe { libc::poll(&mut asked, 1, time.as_millis() as i32) } == -1 {
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                bail!("poll: {error}");
            }
            count(&self.storm.conditions.interrupted);
        }
        Ok(Duration::ZERO)
    }
}
