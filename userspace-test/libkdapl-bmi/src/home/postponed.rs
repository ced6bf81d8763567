// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Connects that wait for an Endpoint.

use super::DatHome;
use crate::bmi::engine::{EndsEndpoints, Error, RailId, Short, Shortage};
use crate::options::Options;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The connects, and the time.
pub(crate) struct Postponed {
    pub(crate) shortage: Shortage,
    /// An Endpoint was freed, and no connect was tried again since then.
    was_freed: bool,
    /// When they began: the oldest one first.
    connects: VecDeque<(RailId, Instant)>,
    /// Time after which one fails.
    timeout: Duration,
    started: Instant,
}

impl Postponed {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            shortage: Shortage::default(),
            was_freed: false,
            connects: VecDeque::new(),
            timeout: options.connect_timeout,
            started: Instant::now(),
        }
    }

    /// Returns the time in milliseconds.
    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    /// Notes that an Endpoint was freed.
    pub(super) fn ep_was_freed(&mut self) {
        self.shortage.ep_was_freed(self.now());
        self.was_freed = true;
    }

    /// Forgets a connect.
    pub(super) fn forget(&mut self, rail: RailId) {
        self.connects.retain(|(waiting, ..)| *waiting != rail);
    }

    /// Lets a connect wait for an Endpoint.
    pub(super) fn push(&mut self, rail: RailId) {
        self.shortage.begin();
        self.connects.push_back((rail, Instant::now()));
    }

    /// Takes the last connect.
    pub(super) fn pop(&mut self) -> Option<RailId> {
        self.connects.pop_back().map(|(rail, ..)| rail)
    }
}

impl DatHome {
    /// Tries all connects that wait again, the oldest one first. Those whose devices have no
    /// Endpoint keep their turns.
    fn retry_postponed(&mut self) {
        let (mut short, mut place) = (Short::default(), 0);
        while let Some(&(rail, since)) = self.postponed.connects.get(place) {
            if !self.has_way(rail, short) && self.has_way(rail, Short::default()) {
                place += 1;
                continue;
            }
            self.postponed.connects.remove(place);
            let again = self.connect_again(rail, Some(Error::NoMemory), &mut short);
            let Err(reason) = again else { continue };
            if !self.has_way(rail, Short::default()) {
                self.close_rail(rail, reason);
                continue;
            }
            let waiting = &mut self.postponed.connects;
            waiting.insert(place.min(waiting.len()), (rail, since));
            place += 1;
        }
        if place > 0 {
            self.postponed.shortage.go_on(self.postponed.now());
        }
    }

    /// Asks another session to leave if a connect waits, since the one that was asked stays.
    pub(crate) fn session_stays(&mut self) {
        let (waits, now) = (!self.postponed.connects.is_empty(), self.postponed.now());
        self.postponed.shortage.session_stays(waits, now);
    }

    /// Fails the last connect that waits, unless an Endpoint may be had soon: there is no idle
    /// session.
    pub(crate) fn fail_postponed(&mut self) {
        if self.postponed.shortage.expects_ep(self.postponed.now()) {
            return;
        }
        if let Some(rail) = self.postponed.pop() {
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Lets time pass: tries again, and fails the connects that have waited for too long.
    pub(crate) fn tick_postponed(&mut self) {
        let now = self.postponed.now();
        if self.postponed.shortage.tick(now) {
            self.retry_postponed();
        }
        self.expire_postponed();
    }

    fn expire_postponed(&mut self) {
        while let Some((rail, since)) = self.postponed.connects.front().copied() {
            if since.elapsed() < self.postponed.timeout {
                return;
            }
            self.postponed.connects.pop_front();
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Tries the connects that wait again if an Endpoint was freed. Returns whether one was.
    pub(crate) fn retry_if_freed(&mut self) -> bool {
        let was_freed = std::mem::take(&mut self.postponed.was_freed);
        if was_freed {
            self.retry_postponed();
        }
        was_freed
    }
}
