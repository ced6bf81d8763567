// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The completion streams of Endpoints that feed an EVD, and what they say of who is woken: the
//! configuration of the EVD, in the words of DAT.
//!
//! What agrees is [`model::streams`](crate::model::streams). Streams join one at a time, under the lock of
//! the table (`Objects::arrange`), and leave whenever they like: so what may join once may still.

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

/// A completion stream that goes to an EVD, from its joining to the drop.
pub(in crate::dat) struct Stream(Arc<Evd>);

impl Stream {
    /// Whether it goes there.
    pub(in crate::dat) fn goes_to(&self, evd: &Arc<Evd>) -> bool {
        Arc::ptr_eq(&self.0, evd)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.cqs.streams.fetch_sub(StreamSet::ONE, Release);
    }
}

/// Streams that may join an EVD, as long as the lock is held under which that was found out.
pub(in crate::dat) struct Joining {
    evd: Arc<Evd>,
    /// What to add to the word of the EVD.
    difference: u32,
}

impl Joining {
    /// They join: as many streams of the EVD begin.
    pub(in crate::dat) fn join(&self) {
        self.evd.cqs.streams.fetch_add(self.difference, Full);
    }

    /// One of them.
    pub(in crate::dat) fn stream(&self) -> Stream {
        Stream(self.evd.clone())
    }
}

impl Evd {
    fn joined(&self) -> StreamSet {
        StreamSet::from_word(self.cqs.streams.load(Acquire))
    }

    /// Which completions wake who waits.
    pub(super) fn mode(&self) -> WakeMode {
        self.joined().mode()
    }

    /// The part of `DAT_EVD_STATE` that tells of it.
    pub(super) fn config(&self) -> u32 {
        match self.mode() {
            WakeMode::Unsignalled => kdapl_bindings::KDAPL_EVD_CONFIG_NOTIFY,
            WakeMode::Solicited => kdapl_bindings::KDAPL_EVD_CONFIG_SOLICITED,
            WakeMode::Threshold => kdapl_bindings::KDAPL_EVD_CONFIG_THRESHOLD,
        }
    }

    /// Whether `count` more streams may join, once `leaving` of those that are here have left. With the
    /// lock of the table.
    ///
    /// # Errors
    ///
    /// INVALID_PARAMETER (`argument`) if they do not agree with the others.
    pub(in crate::dat) fn may_join(
        self: &Arc<Self>,
        leaving: u32,
        mode: WakeMode,
        count: u32,
        argument: u8,
    ) -> DatResult<Joining> {
        let before = self.joined();
        let after = before
            .try_join(leaving, mode, count, self.flags.bits())
            .map_err(|_| DatError::invalid_parameter(argument))?;
        Ok(Joining {
            evd: self.clone(),
            difference: after.word().wrapping_sub(before.word()),
        })
    }
}
