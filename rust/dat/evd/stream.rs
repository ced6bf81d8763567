// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion streams of Endpoints that feed an Event Dispatcher (EVD). They determine the EVD's
//! wake-up mode, which DAT calls the configuration of the EVD.
//!
//! [`model::streams`](crate::model::streams) has the rule by which streams may share an EVD.
//! Streams join with the lock of the EVD's table held (`Objects::with_lock`), so one thread at a
//! time changes the mode. They leave at any time, which never makes a permitted stream invalid.

use super::Evd;
use crate::{
    dat::prelude::*,
    model::{
        completion::WakeMode,
        streams::StreamSet, //
    },
};
use kernel::sync::atomic::{
    Acquire,
    Full,
    Release, //
};

/// Completion stream that feeds an EVD, until the drop.
pub(in crate::dat) struct CompletionStream(Arc<Evd>);

impl CompletionStream {
    /// Returns whether the stream feeds this EVD.
    pub(in crate::dat) fn goes_to(&self, evd: &Arc<Evd>) -> bool {
        Arc::ptr_eq(&self.0, evd)
    }
}

impl Drop for CompletionStream {
    fn drop(&mut self) {
        self.0.cqs.streams.fetch_sub(StreamSet::ONE, Release);
    }
}

/// Permission for streams to join an EVD. Valid until the lock is released under which it was
/// given.
pub(in crate::dat) struct JoinPermit {
    evd: Arc<Evd>,
    /// Difference to add to the EVD's word of streams.
    difference: u32,
}

impl JoinPermit {
    /// Adds the streams to the EVD. The caller then creates each with [`JoinPermit::stream`].
    pub(in crate::dat) fn join(&self) {
        self.evd.cqs.streams.fetch_add(self.difference, Full);
        self.evd.retract_empty();
    }

    /// Creates one of the streams.
    pub(in crate::dat) fn stream(&self) -> CompletionStream {
        CompletionStream(self.evd.clone())
    }
}

impl Evd {
    /// Returns the streams that have joined.
    fn joined(&self) -> StreamSet {
        StreamSet::from_word(self.cqs.streams.load(Acquire))
    }

    /// Returns the wake-up mode.
    pub(super) fn mode(&self) -> WakeMode {
        self.joined().mode()
    }

    /// Returns the wake-up mode as a part of `DAT_EVD_STATE`.
    pub(super) fn config(&self) -> u32 {
        match self.mode() {
            WakeMode::Unsignalled => kdapl_bindings::KDAPL_EVD_CONFIG_NOTIFY,
            WakeMode::Solicited => kdapl_bindings::KDAPL_EVD_CONFIG_SOLICITED,
            WakeMode::Threshold => kdapl_bindings::KDAPL_EVD_CONFIG_THRESHOLD,
        }
    }

    /// Checks whether `count` more streams of this mode may join the EVD. `leaving` is the number
    /// of present streams that will leave. The caller holds the lock of the EVD's table.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`arg`) if the modes differ, or the EVD's flags do not allow the
    /// mode.
    pub(in crate::dat) fn may_join(
        self: &Arc<Self>,
        leaving: u32,
        mode: WakeMode,
        count: u32,
        arg: Arg,
    ) -> DatResult<JoinPermit> {
        let before = self.joined();
        let after = before
            .try_join(leaving, mode, count, self.flags.bits())
            .map_err(|_| DatError::Invalid(arg))?;
        Ok(JoinPermit {
            evd: self.clone(),
            difference: after.word().wrapping_sub(before.word()),
        })
    }
}
