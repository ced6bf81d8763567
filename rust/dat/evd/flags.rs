// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `DAT_EVD_FLAGS`: streams that may feed an Event Dispatcher (EVD).

/// Set of streams that may feed an EVD: `DAT_EVD_FLAGS`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Software events.
    pub(crate) const SOFTWARE: Self = Self(kdapl_bindings::KDAPL_EVD_SOFTWARE);
    /// Connection Requests.
    pub(crate) const CR: Self = Self(kdapl_bindings::KDAPL_EVD_CR);
    /// Completions of Data Transfer Operations (DTO).
    pub(crate) const DTO: Self = Self(kdapl_bindings::KDAPL_EVD_DTO);
    /// Connection events.
    pub(crate) const CONNECTION: Self = Self(kdapl_bindings::KDAPL_EVD_CONNECTION);
    /// Asynchronous events.
    pub(crate) const ASYNC: Self = Self(kdapl_bindings::KDAPL_EVD_ASYNC);
    /// The EVD discards all events: see [`sink`](super::sink). No consumer can create such an EVD.
    pub(super) const DISCARD: Self = Self(1 << 31);

    /// Converts from a word. Returns `None` if it has undefined bits, or no bit.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        (bits != 0 && bits & !kdapl_bindings::KDAPL_EVD_FLAGS_ALL == 0).then_some(Self(bits))
    }

    /// Converts to a word.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether the set contains a stream.
    pub(crate) fn has(self, stream: Self) -> bool {
        self.0 & stream.0 == stream.0
    }
}
