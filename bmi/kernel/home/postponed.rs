// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects that wait for an Endpoint.

use super::KernelHome;
use crate::{
    engine::{
        EndsEndpoints,
        Error,
        RailId,
        Short,
        Shortage, //
    },
    options::Options, //
};
use core::mem;
use kernel::prelude::*;

/// The connects, and the time.
pub(crate) struct Postponed {
    pub(crate) shortage: Shortage,
    /// An Endpoint was freed, and no connect was tried again since then.
    was_freed: bool,
    /// When they began: the oldest one first.
    connects: KVVec<(RailId, u64)>,
    /// Milliseconds after which one fails.
    timeout: u64,
    /// Milliseconds at the last tick.
    now: u64,
}

impl Postponed {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            shortage: Shortage::default(),
            was_freed: false,
            connects: KVVec::new(),
            timeout: options.connect_timeout.into(),
            now: 0,
        }
    }

    /// Notes that an Endpoint was freed.
    pub(super) fn ep_was_freed(&mut self) {
        self.shortage.ep_was_freed(self.now);
        self.was_freed = true;
    }

    /// Forgets a connect.
    pub(super) fn forget(&mut self, rail: RailId) {
        self.connects.retain(|(waiting, ..)| *waiting != rail);
    }

    /// Lets a connect wait for an Endpoint. Returns whether there was memory for that.
    pub(super) fn push(&mut self, rail: RailId) -> bool {
        self.shortage.begin();
        let connect = (rail, self.now);
        self.connects.push(connect, GFP_KERNEL).is_ok()
    }

    /// Takes the last connect.
    pub(super) fn pop(&mut self) -> Option<RailId> {
        self.connects.pop().map(|(rail, ..)| rail)
    }
}

impl KernelHome {
    /// Tries all connects that wait again, the oldest one first. Those whose devices have no
    /// Endpoint keep their turns.
    fn retry_postponed(&mut self) {
        let (mut short, mut place) = (Short::default(), 0);
        while let Some((rail, _)) = self.postponed.connects.get(place).copied() {
            if !self.has_way(rail, short) && self.has_way(rail, Short::default()) {
                place += 1;
                continue;
            }
            let Ok(connect) = self.postponed.connects.remove(place) else {
                break;
            };
            let Err(reason) = self.connect_again(rail, Some(Error::NoMemory), &mut short) else {
                continue;
            };
            if !self.has_way(rail, Short::default()) {
                self.close_rail(rail, reason);
                continue;
            }
            // It has left room.
            let waiting = &mut self.postponed.connects;
            let _ = waiting.insert_within_capacity(place.min(waiting.len()), connect);
            place += 1;
        }
        if place > 0 {
            self.postponed.shortage.go_on(self.postponed.now);
        }
    }

    /// Asks another session to leave if a connect waits, since the one that was asked stays.
    pub(crate) fn session_stays(&mut self) {
        let (waits, now) = (!self.postponed.connects.is_empty(), self.postponed.now);
        self.postponed.shortage.session_stays(waits, now);
    }

    /// Fails the last connect that waits, unless an Endpoint may be had soon: there is no idle
    /// session.
    pub(crate) fn fail_postponed(&mut self) {
        if self.postponed.shortage.expects_ep(self.postponed.now) {
            return;
        }
        if let Some(rail) = self.postponed.pop() {
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Lets time pass: tries again, and fails the connects that have waited for too long. `now` is
    /// in milliseconds.
    pub(crate) fn tick_postponed(&mut self, now: u64) {
        self.postponed.now = now;
        if self.postponed.shortage.tick(now) {
            self.retry_postponed();
        }
        self.expire_postponed(now);
    }

    fn expire_postponed(&mut self, now: u64) {
        while let Some((rail, since)) = self.postponed.connects.first().copied() {
            if now < since.saturating_add(self.postponed.timeout) {
                return;
            }
            let _ = self.postponed.connects.remove(0);
            self.close_rail(rail, Some(Error::NoMemory));
        }
    }

    /// Tries the connects that wait again if an Endpoint was freed. Returns whether one was.
    pub(crate) fn retry_if_freed(&mut self) -> bool {
        let was_freed = mem::take(&mut self.postponed.was_freed);
        if was_freed {
            self.retry_postponed();
        }
        was_freed
    }
}
