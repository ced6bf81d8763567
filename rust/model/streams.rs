// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Which completion streams of Endpoints go to an EVD, and how those agree.
//!
//! An EVD has one way to be woken, so all streams that feed it have the same [`Mode`]: the first brings
//! it, and once the last has left another may. What differs from [`Mode::Threshold`] cannot share an
//! EVD with anything but completions, which have no flags. (DAT, `dat_ep_create`, Usage.)

use super::completion::Mode;

/// The completion streams of an EVD, as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams(u32);

/// `DAT_EVD_FLAGS`: completions of DTOs.
const DTO: u32 = 0x20;

/// `DAT_EVD_FLAGS`: completions of RMR binds.
const RMR_BIND: u32 = 0x80;

/// Bits for the number of streams.
const COUNT: u32 = (1 << 24) - 1;

/// Two of a kind of stream do not agree, or there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

const fn bits(mode: Mode) -> u32 {
    match mode {
        Mode::Threshold => 0,
        Mode::Unsignalled => 1 << 24,
        Mode::Solicited => 2 << 24,
    }
}

impl Streams {
    /// What one stream less subtracts.
    pub(crate) const ONE: u32 = 1;

    /// No stream.
    pub(crate) const NONE: Self = Self(0);

    /// From a word.
    pub(crate) const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// As a word.
    pub(crate) const fn word(self) -> u32 {
        self.0
    }

    /// How many there are.
    pub(crate) const fn count(self) -> u32 {
        self.0 & COUNT
    }

    /// How who waits is woken. Of no stream it is the default.
    pub(crate) const fn mode(self) -> Mode {
        match (self.count(), self.0 & !COUNT) {
            (0, _) => Mode::Threshold,
            (_, 0) => Mode::Threshold,
            (_, mode) if mode == bits(Mode::Unsignalled) => Mode::Unsignalled,
            (_, _) => Mode::Solicited,
        }
    }

    /// With `joining` more of this mode, where `leaving` of those that are here will leave and do not
    /// matter any more. `flags` are the EVD's `DAT_EVD_FLAGS`.
    ///
    /// # Errors
    ///
    /// [`Mismatch`]; nothing joins then.
    pub(crate) const fn join(
        self,
        leaving: u32,
        mode: Mode,
        joining: u32,
        flags: u32,
    ) -> Result<Self, Mismatch> {
        let stays = self.count().saturating_sub(leaving);
        let agrees = stays == 0 || bits(mode) == bits(self.mode());
        let others = match mode {
            Mode::Threshold => 0,
            Mode::Unsignalled => flags & !(DTO | RMR_BIND),
            Mode::Solicited => flags & !DTO,
        };
        let count = self.count().saturating_add(joining);
        if agrees && others == 0 && count <= COUNT {
            Ok(Self(bits(mode) | count))
        } else {
            Err(Mismatch)
        }
    }
}
