// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! `DAT_EVD_FLAGS`: the streams that may feed an EVD.

/// `DAT_EVD_FLAGS`: the streams that may feed an EVD.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags(u32);

impl Flags {
    /// Software events.
    pub(crate) const SOFTWARE: Self = Self(kdapl_bindings::KDAPL_EVD_SOFTWARE);
    /// Connection requests.
    pub(crate) const CR: Self = Self(kdapl_bindings::KDAPL_EVD_CR);
    /// Completions.
    pub(crate) const DTO: Self = Self(kdapl_bindings::KDAPL_EVD_DTO);
    /// Connections.
    pub(crate) const CONNECTION: Self = Self(kdapl_bindings::KDAPL_EVD_CONNECTION);
    /// Asynchronous events.
    pub(crate) const ASYNC: Self = Self(kdapl_bindings::KDAPL_EVD_ASYNC);

    /// The streams of a word; `None` if it has other bits, or none.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        (bits != 0 && bits & !kdapl_bindings::KDAPL_EVD_FLAGS_ALL == 0).then_some(Self(bits))
    }

    /// As a word.
    pub(crate) fn bits(self) -> u32 {
        self.0
    }

    /// Whether the stream is among them.
    pub(crate) fn has(self, stream: Self) -> bool {
        self.0 & stream.0 == stream.0
    }
}
