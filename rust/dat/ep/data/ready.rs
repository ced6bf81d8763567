// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Repeats posts that a queue pair (QP) does not take while its state changes.

use crate::dat::{
    ep::Ep,
    prelude::*, //
};
use kernel::time::{
    delay::fsleep,
    Delta,
    Instant,
    Monotonic, //
};

/// Longest time to repeat a post, in milliseconds. A driver changes the state of a QP faster.
const PATIENCE_MS: i64 = 1_000;

/// Shortest pause between two posts, in microseconds. Each further pause is twice as long, up to a
/// millisecond.
const FIRST_PAUSE_US: i64 = 50;

/// Returns the error of a post whose QP is not ready yet. A call that may sleep posts again.
#[cold]
pub(super) fn not_ready() -> DatError {
    DatError::new(Kind::InvalidState, Subtype::InvalidStateEpNotready)
}

impl Ep {
    /// Calls `post` again after an `error` that says that the QP is not ready, for up to a second.
    /// Returns the last error. Returns any other `error` at once.
    ///
    /// Either this module is making the QP ready: the peer's first message establishes the
    /// connection, and may arrive before the QP can send. Or the driver is changing its state: siw
    /// takes no post meanwhile.
    ///
    /// Context: process; sleeps.
    #[cold]
    pub(super) fn retry_when_ready<R>(
        &self,
        mut error: DatError,
        mut post: impl FnMut() -> DatResult<R>,
    ) -> DatResult<R> {
        let (start, mut pause) = (Instant::<Monotonic>::now(), 0);
        while error == not_ready() && start.elapsed().as_millis() < PATIENCE_MS {
            // `connect_qp` holds this lock while it makes the QP ready.
            drop(self.preposted.lock());
            fsleep(Delta::from_micros(pause));
            pause = pause.saturating_mul(2).clamp(FIRST_PAUSE_US, 1_000);
            error = match post() {
                Err(error) => error,
                posted => return posted,
            };
        }
        Err(error)
    }
}
