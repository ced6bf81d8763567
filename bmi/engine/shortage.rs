// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Shortage of Endpoints. A connect that finds none waits, while the home gives up idle sessions.
//!
//! All times are in milliseconds.

/// Time in which the kernel may still count an Endpoint that was freed. Its queue pair lives until
/// the peer has answered.
const RELEASE: u64 = 5_000;

/// State of a home whose connects may wait for Endpoints.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    /// An idle session has to be given up.
    wants_session: bool,
    /// When an Endpoint was freed last; `None` if that is long ago.
    freed: Option<u64>,
}

impl Shortage {
    /// Notes that a new connect, or an accept, has found no Endpoint.
    pub(crate) fn begin(&mut self) {
        self.wants_session = true;
    }

    /// Notes that a waiting connect has found no Endpoint again. Another session is given up only
    /// if no Endpoint may be had soon.
    pub(crate) fn go_on(&mut self, now: u64) {
        self.wants_session = !self.expects_ep(now);
    }

    /// Notes that a session stays which was asked to leave. If a connect waits, and no Endpoint may
    /// be had soon, another one is asked.
    pub(crate) fn session_stays(&mut self, waits: bool, now: u64) {
        self.wants_session |= waits && !self.expects_ep(now);
    }

    /// Notes that an Endpoint was freed. The caller tries the waiting connects again.
    pub(crate) fn ep_was_freed(&mut self, now: u64) {
        self.freed = Some(now);
    }

    /// Returns whether an idle session has to be given up, once.
    pub(crate) fn take(&mut self) -> bool {
        core::mem::take(&mut self.wants_session)
    }

    /// Returns whether an Endpoint that was freed may still count, so that another one may be had
    /// soon.
    pub(crate) fn expects_ep(&self, now: u64) -> bool {
        self.freed
            .is_some_and(|freed| now.saturating_sub(freed) < RELEASE)
    }

    /// Lets time pass. Returns whether to try the waiting connects again: while an Endpoint is
    /// expected, and once more.
    pub(crate) fn tick(&mut self, now: u64) -> bool {
        let was_freed = self.freed.is_some();
        if !self.expects_ep(now) {
            self.freed = None;
        }
        was_freed
    }
}
