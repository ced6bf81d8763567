// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Decides when to probe the peer of an idle connection, and when to give it up.
//!
//! A transport detects a dead peer only while requests are outstanding. So an Endpoint with a
//! keepalive posts a request of no bytes, a *probe*, after a third of its keepalive time without a
//! message of the peer, and another one at each of the next ticks. If the peer neither answers a
//! probe nor sends a message, the connection is broken before the keepalive time is over.
//!
//! A lost packet alone does not break the connection. A transport repeats it after seconds, or at
//! once when the next probe shows the gap.
//!
//! Time is counted in ticks. A machine that was stopped has missed ticks, and a peer cannot answer
//! a machine that is stopped.

/// Milliseconds between two ticks.
pub(crate) const TICK_MS: u32 = 1_000;

/// Shortest keepalive time: it has room for [`MAX_PROBES`], and a tick to answer the last one.
pub(crate) const MIN_MS: u32 = 6 * TICK_MS;

/// Largest number of probes that are outstanding.
pub(crate) const MAX_PROBES: u32 = 3;

/// Next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Wait for the next tick.
    Wait,
    /// Post a probe. No request of the consumer is outstanding.
    Probe,
    /// Break the connection.
    GiveUp,
}

/// State of the keepalive of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keepalive {
    /// Number of ticks since the last sign of life.
    silent: u32,
    /// Number of probes that are outstanding.
    probes: u32,
}

impl Keepalive {
    /// Returns the number of probes that are outstanding.
    pub(crate) const fn probes(&self) -> u32 {
        self.probes
    }

    /// Records that a probe was posted.
    pub(crate) const fn probe_posted(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    /// Records that a probe has completed. Returns `false` if none was outstanding.
    pub(crate) const fn probe_completed(&mut self) -> bool {
        self.silent = 0;
        let was_outstanding = self.probes != 0;
        self.probes = self.probes.saturating_sub(1);
        was_outstanding
    }

    /// Counts a tick. `heard` says whether a message has arrived since the last one, `is_busy`
    /// whether requests of the consumer are outstanding: then the transport watches the peer. The
    /// keepalive time is in milliseconds, at least [`MIN_MS`].
    pub(crate) const fn tick(&mut self, keepalive_ms: u32, heard: bool, is_busy: bool) -> Action {
        // Requests posted after an unanswered probe give no further sign of life.
        let is_alive = heard || (is_busy && self.probes == 0);
        self.silent = if is_alive {
            0
        } else {
            self.silent.saturating_add(1)
        };
        let ticks = keepalive_ms / TICK_MS;
        // The silence may have begun a tick before the first one that was counted.
        if self.probes != 0 && self.silent.saturating_add(1) >= ticks {
            Action::GiveUp
        } else if !is_busy && self.probes < MAX_PROBES && self.silent >= ticks / 3 {
            Action::Probe
        } else {
            Action::Wait
        }
    }
}
