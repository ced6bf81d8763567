// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Completion streams that feed an Event Dispatcher (EVD), and the wake-up mode that they share.
//!
//! A completion stream is the completions of one queue of an Endpoint. An EVD has one [wake-up
//! mode](WakeMode), so all its streams must have the same one. The first stream sets the mode.
//! After the last stream has left, the next one may set another mode.
//!
//! With [`WakeMode::Solicited`] an EVD may carry completions of Data Transfer Operations only. With
//! [`WakeMode::Unsignalled`] it may carry completions of binds of remote memory regions as well.
//! Other events have no completion flags. (DAT, `dat_ep_create`, Usage.)

use super::completion::WakeMode;

/// Number and mode of the completion streams of an EVD, packed into a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamSet(u32);

/// `DAT_EVD_FLAGS`: completions of Data Transfer Operations.
const DTO: u32 = 0x20;

/// `DAT_EVD_FLAGS`: completions of binds of remote memory regions.
const RMR_BIND: u32 = 0x80;

/// Mask of the number of streams.
const COUNT: u32 = (1 << 24) - 1;

/// Error: the modes differ, the EVD may carry other events, or there are too many streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IncompatibleStreams;

/// Returns the bits of a mode.
const fn bits(mode: WakeMode) -> u32 {
    match mode {
        WakeMode::Threshold => 0,
        WakeMode::Unsignalled => 1 << 24,
        WakeMode::Solicited => 2 << 24,
    }
}

impl StreamSet {
    /// Difference that a leaving stream subtracts from the word.
    pub(crate) const ONE: u32 = 1;

    /// No streams.
    pub(crate) const NONE: Self = Self(0);

    /// Converts from a word.
    pub(crate) const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// Converts to a word.
    pub(crate) const fn word(self) -> u32 {
        self.0
    }

    /// Returns the number of streams.
    pub(crate) const fn count(self) -> u32 {
        self.0 & COUNT
    }

    /// Returns the wake-up mode; `Threshold` without streams.
    pub(crate) const fn mode(self) -> WakeMode {
        match (self.count(), self.0 & !COUNT) {
            (0, _) => WakeMode::Threshold,
            (_, 0) => WakeMode::Threshold,
            (_, mode) if mode == bits(WakeMode::Unsignalled) => WakeMode::Unsignalled,
            (_, _) => WakeMode::Solicited,
        }
    }

    /// Adds `joining` streams of this mode. `leaving` of the present streams will leave, so their
    /// mode does not matter. `flags` are the `DAT_EVD_FLAGS` of the EVD.
    ///
    /// # Errors
    ///
    /// [`IncompatibleStreams`]: no stream is added.
    pub(crate) const fn try_join(
        self,
        leaving: u32,
        mode: WakeMode,
        joining: u32,
        flags: u32,
    ) -> Result<Self, IncompatibleStreams> {
        let stays = self.count().saturating_sub(leaving);
        let agrees = stays == 0 || bits(mode) == bits(self.mode());
        let others = match mode {
            WakeMode::Threshold => 0,
            WakeMode::Unsignalled => flags & !(DTO | RMR_BIND),
            WakeMode::Solicited => flags & !DTO,
        };
        let count = self.count().saturating_add(joining);
        if agrees && others == 0 && count <= COUNT {
            Ok(Self(bits(mode) | count))
        } else {
            Err(IncompatibleStreams)
        }
    }
}
