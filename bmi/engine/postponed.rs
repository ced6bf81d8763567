// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Connects that wait for an Endpoint.
//!
//! All times are in milliseconds.

use super::{
    peer::RailId,
    shortage::Shortage, //
};
use core::ops::Deref;

/// Connect that waits, and the time at which it began.
pub(crate) type Waiter = (RailId, u64);

/// Connects that wait, the oldest one first, in storage of the home.
pub(crate) trait Waiters: Deref<Target = [Waiter]> {
    /// Adds the youngest connect. Returns whether there was memory for it.
    fn push(&mut self, waiter: Waiter) -> bool;

    /// Takes the connect at a place.
    fn take(&mut self, place: usize) -> Option<Waiter>;

    /// Puts back a connect, for which [`Self::take`] has left room.
    fn put_back(&mut self, place: usize, waiter: Waiter);
}

/// The connects, and the shortage that they wait for the end of.
#[derive(Debug)]
pub(crate) struct Postponed<W> {
    pub(crate) shortage: Shortage,
    /// An Endpoint was freed, and no connect was tried again since then.
    was_freed: bool,
    waiters: W,
    /// Time after which a connect fails.
    timeout: u64,
}

impl<W: Waiters> Postponed<W> {
    /// Begins without connects, in storage that is empty.
    pub(crate) fn new(waiters: W, timeout: u64) -> Self {
        Self {
            shortage: Shortage::default(),
            was_freed: false,
            waiters,
            timeout,
        }
    }

    /// Notes that an Endpoint was freed.
    pub(crate) fn ep_was_freed(&mut self, now: u64) {
        self.shortage.ep_was_freed(now);
        self.was_freed = true;
    }

    /// Returns whether an Endpoint was freed, once.
    pub(crate) fn take_freed(&mut self) -> bool {
        core::mem::take(&mut self.was_freed)
    }

    /// Lets a connect wait. Returns whether there was memory for that.
    pub(crate) fn push(&mut self, rail: RailId, now: u64) -> bool {
        self.shortage.begin();
        self.waiters.push((rail, now))
    }

    /// Returns the connect at a place, from the oldest one on.
    pub(crate) fn get(&self, place: usize) -> Option<RailId> {
        self.waiters.get(place).map(|(rail, _)| *rail)
    }

    /// Takes the connect at a place.
    pub(crate) fn take(&mut self, place: usize) -> Option<Waiter> {
        self.waiters.take(place)
    }

    /// Puts back a connect that was taken at a place.
    pub(crate) fn put_back(&mut self, place: usize, waiter: Waiter) {
        let place = place.min(self.waiters.len());
        self.waiters.put_back(place, waiter);
    }

    /// Takes the youngest connect.
    pub(crate) fn pop(&mut self) -> Option<RailId> {
        let last = self.waiters.len().checked_sub(1)?;
        self.take(last).map(|(rail, _)| rail)
    }

    /// Takes the oldest connect if it has waited for too long.
    pub(crate) fn take_expired(&mut self, now: u64) -> Option<RailId> {
        let (_, since) = self.waiters.first()?;
        let has_expired = now >= since.saturating_add(self.timeout);
        let oldest = has_expired.then(|| self.take(0)).flatten();
        oldest.map(|(rail, _)| rail)
    }

    /// Forgets a connect.
    pub(crate) fn forget(&mut self, rail: RailId) {
        let place = self.waiters.iter().position(|(found, _)| *found == rail);
        let _ = place.and_then(|place| self.take(place));
    }

    /// Notes that a session stays which was asked to leave.
    pub(crate) fn session_stays(&mut self, now: u64) {
        let waits = !self.waiters.is_empty();
        self.shortage.session_stays(waits, now);
    }
}
