// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Decides when to probe the peer of an idle connection, and when to give it up.
//!
//! A transport detects a dead peer only while requests are outstanding. So an Endpoint with a
//! keepalive posts a request of no bytes, the *probe*, after half of its keepalive time without a
//! message of the peer. If the peer answers neither the probe nor with a message, the connection is
//! broken before the keepalive time is over.
//!
//! Time is counted in ticks. A machine that was stopped has missed ticks, and a peer cannot answer
//! a machine that is stopped.

/// Milliseconds between two ticks.
pub(crate) const TICK_MS: u32 = 1_000;

/// Shortest keepalive time: the probe has one tick to be answered.
pub(crate) const MIN_MS: u32 = 4 * TICK_MS;

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
    /// Whether a probe is outstanding.
    is_probing: bool,
}

impl Keepalive {
    /// Returns whether a probe is outstanding.
    pub(crate) const fn is_probing(&self) -> bool {
        self.is_probing
    }

    /// Records that a probe was posted.
    pub(crate) const fn probe_posted(&mut self) {
        self.is_probing = true;
    }

    /// Records that the probe has completed.
    pub(crate) const fn probe_completed(&mut self) {
        self.silent = 0;
        self.is_probing = false;
    }

    /// Counts a tick. `heard` says whether a message has arrived since the last one, `is_busy`
    /// whether requests of the consumer are outstanding: then the transport watches the peer. The
    /// keepalive time is in milliseconds, at least [`MIN_MS`].
    pub(crate) const fn tick(&mut self, keepalive_ms: u32, heard: bool, is_busy: bool) -> Action {
        // Requests that follow an unanswered probe tell no more than the probe.
        let is_alive = heard || (is_busy && !self.is_probing);
        self.silent = if is_alive {
            0
        } else {
            self.silent.saturating_add(1)
        };
        let ticks = keepalive_ms / TICK_MS;
        // The silence may have begun a tick before the first one that was counted.
        if self.is_probing && self.silent.saturating_add(1) >= ticks {
            Action::GiveUp
        } else if !self.is_probing && self.silent >= ticks / 2 {
            Action::Probe
        } else {
            Action::Wait
        }
    }
}
