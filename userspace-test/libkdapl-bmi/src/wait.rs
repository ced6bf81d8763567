// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Waiting for events, by one thread at a time.
//!
//! A thread that waits for a result waits for events itself, so that a completion wakes it
//! directly. Other threads sleep until a result is there for them, or until the waiting thread
//! leaves and one of them takes its place. When no thread of the program has waited for a while,
//! a thread of the library does, until one of the program asks for its place.

use crate::error::Result;
use crate::instance::Shared;
use crate::state::{State, TICK};
use libkdapl::Event;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time without a waiting thread of the program after which the library's takes over.
const PAUSE: Duration = Duration::from_millis(10);

/// Places where threads sleep: the contexts, and unexpected messages.
const PLACES: usize = 17;

/// Place of threads that wait for unexpected messages, or for the end of a context.
pub(crate) const UNEXPECTED_PLACE: usize = PLACES - 1;

/// Thread that waits for events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Waiter {
    #[default]
    Nobody,
    Program,
    Library,
}

/// Waiting and sleeping threads. The lock of the instance protects it.
#[derive(Default)]
pub(crate) struct Waiters {
    waiter: Waiter,
    /// Place of the thread of the program that waits.
    place: usize,
    /// A thread of the program has asked for the place of the library's thread.
    asked: bool,
    /// Times that a thread of the program has waited.
    waits: u64,
    /// Threads that sleep at each place, and a bit for each place with some.
    sleepers: [usize; PLACES],
    sleeping: u32,
    pub(crate) stopping: bool,
    /// The thread that ends Endpoints, if it was needed.
    pub(crate) ender: Option<JoinHandle<()>>,
    /// Room for the events of the waiting thread.
    events: Vec<Event>,
}

/// Where threads sleep.
#[derive(Default)]
pub(crate) struct Sleepers {
    places: [Condvar; PLACES],
    library: Condvar,
    pub(crate) ender: Condvar,
}

/// Lock of an instance.
pub(crate) type Guard<'a> = MutexGuard<'a, (State, Waiters)>;

/// Locks an instance.
pub(crate) fn lock(mutex: &Mutex<(State, Waiters)>) -> Guard<'_> {
    // The state of a thread that has panicked is that of the last complete step of the engine.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time that is left of a wait.
struct TimeLeft {
    timeout: Option<Duration>,
    deadline: Option<Instant>,
}

impl TimeLeft {
    /// Returns the time; `None` if there is no limit.
    fn left(&mut self) -> Option<Duration> {
        let timeout = self.timeout?;
        if timeout.is_zero() {
            return Some(timeout);
        }
        let now = Instant::now();
        // A time that the clock cannot reach is no limit.
        let deadline = match self.deadline {
            Some(deadline) => deadline,
            None => *self.deadline.insert(now.checked_add(timeout)?),
        };
        Some(deadline.saturating_duration_since(now))
    }
}

impl Shared {
    /// Waits until `take` returns a result, or until the time-out (`None`: no limit). With a
    /// time-out of zero, processes the events that are there.
    pub(crate) fn wait<T>(
        self: &Arc<Self>,
        place: usize,
        timeout: Option<Duration>,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Result<Option<T>> {
        let mut time = TimeLeft { timeout, deadline: None };
        let mut guard = lock(&self.state);
        loop {
            if let Some(result) = take(&mut guard.0) {
                self.announce(&mut guard);
                self.leave(&guard);
                return Ok(Some(result));
            }
            let left = time.left();
            let expired = left.is_some_and(|left| left.is_zero());
            if guard.1.waiter == Waiter::Nobody {
                guard.1.waits += 1;
                guard.1.place = place;
                guard = self.wait_for_events(guard, Waiter::Program, left)?;
                if expired {
                    let result = take(&mut guard.0);
                    self.announce(&mut guard);
                    self.leave(&guard);
                    return Ok(result);
                }
            } else if expired {
                return Ok(None);
            } else {
                guard = self.sleep(guard, place, left);
            }
        }
    }

    /// Waits for events, and processes them.
    fn wait_for_events<'a>(
        self: &'a Arc<Self>,
        mut guard: Guard<'a>,
        waiter: Waiter,
        timeout: Option<Duration>,
    ) -> Result<Guard<'a>> {
        let tick = Duration::from_millis(TICK);
        let timeout = match guard.1.stopping {
            true => Some(timeout.map_or(tick, |timeout| timeout.min(tick))),
            false => timeout,
        };
        let mut events = std::mem::take(&mut guard.1.events);
        guard.1.waiter = waiter;
        drop(guard);
        let taken = self.source.take(timeout, &mut events);
        let mut guard = lock(&self.state);
        guard.1.waiter = Waiter::Nobody;
        for event in events.drain(..) {
            guard.0.process(0, event);
        }
        guard.1.events = events;
        if guard.1.stopping {
            // The library's thread has ended.
            guard.0.tick();
        }
        self.announce(&mut guard);
        if taken.is_err() {
            self.leave(&guard);
        }
        taken.map(|()| guard)
    }

    /// Asks the library's thread for its place.
    fn ask(&self, guard: &mut Guard<'_>) {
        if guard.1.waiter == Waiter::Library && !guard.1.asked {
            // If the queue is full, there are events that wake the thread.
            let _ = self.source.evd.post_se(0);
            guard.1.asked = true;
        }
    }

    /// Sleeps until a result is there, or a thread has to wait for events.
    fn sleep<'a>(
        &'a self,
        mut guard: Guard<'a>,
        place: usize,
        timeout: Option<Duration>,
    ) -> Guard<'a> {
        self.ask(&mut guard);
        guard.1.sleepers[place] += 1;
        guard.1.sleeping |= 1 << place;
        let bell = &self.sleepers.places[place];
        let mut guard = match timeout {
            Some(timeout) => {
                let woken = bell.wait_timeout(guard, timeout);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => bell.wait(guard).unwrap_or_else(PoisonError::into_inner),
        };
        guard.1.sleepers[place] -= 1;
        if guard.1.sleepers[place] == 0 {
            guard.1.sleeping &= !(1 << place);
        }
        guard
    }

    /// Wakes the threads for which there are results, and the one that ends Endpoints.
    pub(crate) fn announce(self: &Arc<Self>, guard: &mut Guard<'_>) {
        guard.0.discard_closing();
        let wakes = std::mem::take(&mut guard.0.home.wakes);
        let mut left = wakes & guard.1.sleeping;
        while left != 0 {
            self.sleepers.places[left.trailing_zeros() as usize].notify_all();
            left &= left - 1;
        }
        // The thread that waits for events has to look for its result, which came without one.
        if guard.1.waiter == Waiter::Program && wakes & (1 << guard.1.place) != 0 {
            // If the queue is full, there are events that wake the thread.
            let _ = self.source.evd.post_se(0);
        }
        self.call_ender(guard);
    }

    /// Lets another thread wait for events in place of this one.
    fn leave(&self, guard: &Guard<'_>) {
        if guard.1.waiter == Waiter::Nobody && guard.1.sleeping != 0 {
            self.sleepers.places[guard.1.sleeping.trailing_zeros() as usize].notify_one();
        }
    }

    /// Waits for events while no thread of the program does. Runs in the library's thread.
    pub(crate) fn run(self: Arc<Self>) {
        let mut guard = lock(&self.state);
        while !guard.1.stopping {
            let waits = guard.1.waits;
            if guard.1.waiter == Waiter::Nobody && !guard.1.asked {
                let tick = Duration::from_millis(guard.0.until_tick());
                let waited = self.wait_for_events(guard, Waiter::Library, Some(tick));
                // After an error, a thread of the program may have more luck.
                let failed = waited.is_err();
                guard = waited.unwrap_or_else(|_| lock(&self.state));
                self.tick(&mut guard);
                if !guard.1.asked && !failed {
                    continue;
                }
            }
            guard.1.asked = false;
            self.leave(&guard);
            guard = self.pause(guard, waits);
        }
    }

    /// Sleeps until no thread of the program has waited for a while.
    fn pause<'a>(self: &'a Arc<Self>, mut guard: Guard<'a>, mut waits: u64) -> Guard<'a> {
        loop {
            let slept = self.sleepers.library.wait_timeout(guard, PAUSE);
            guard = slept.unwrap_or_else(PoisonError::into_inner).0;
            self.tick(&mut guard);
            let idle = guard.1.waiter == Waiter::Nobody && guard.1.waits == waits;
            if idle || guard.1.stopping {
                return guard;
            }
            waits = guard.1.waits;
        }
    }

    /// Lets time pass for the engine. Only the library's thread does so, at least every 500 ms, so
    /// that a wait of the program reads no clock.
    fn tick(self: &Arc<Self>, guard: &mut Guard<'_>) {
        guard.0.tick();
        self.announce(guard);
    }

    /// Ends the library's threads. Returns the one that ends Endpoints. Later ends of connections
    /// are those of the caller.
    pub(crate) fn stop(&self) -> Option<JoinHandle<()>> {
        let mut guard = lock(&self.state);
        guard.1.stopping = true;
        guard.0.home.endings.stop();
        self.sleepers.library.notify_all();
        self.sleepers.ender.notify_all();
        let _ = self.source.evd.post_se(0);
        guard.1.ender.take()
    }
}
