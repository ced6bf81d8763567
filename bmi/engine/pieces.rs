// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pieces of a transfer between two lists of fragments.
//!
//! The two sides of a message may have different lists. A *piece* is a range of the message that is
//! contiguous at the peer, and that at most so many local fragments hold as a work request may
//! have. So a piece is one RDMA write or read.

use super::devices::Rails;

/// Fragment of the peer's memory, as a message describes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// Address at the peer.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) length: u32,
    /// RMR context, with which the peer's device finds the memory.
    pub(crate) context: u32,
    /// Rails over which the memory can be accessed with it.
    pub(crate) rails: Rails,
}

/// Returns the descriptors of a rail, which follow each other.
pub(crate) fn of_rail(descriptors: &[Descriptor], rail: u8) -> &[Descriptor] {
    let is_of = |descriptor: &Descriptor| descriptor.rails.has(rail.into());
    let first = descriptors.iter().position(is_of);
    let rest = first.and_then(|first| descriptors.get(first..));
    let rest = rest.unwrap_or_default();
    let end = rest.iter().position(|descriptor| !is_of(descriptor));
    rest.get(..end.unwrap_or(rest.len())).unwrap_or_default()
}

/// Returns the bytes of the message that descriptors are for: each rail has its own list of them.
pub(crate) fn described(descriptors: &[Descriptor]) -> u64 {
    let rails = descriptors.first().map(|first| first.rails);
    let list = descriptors.iter();
    let list = list.take_while(|descriptor| Some(descriptor.rails) == rails);
    list.fold(0, |sum, descriptor| {
        sum.saturating_add(descriptor.length.into())
    })
}

/// A piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Offset in the message.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) length: u32,
    /// Address at the peer.
    pub(crate) address: u64,
    /// RMR context at the peer.
    pub(crate) context: u32,
    /// Local fragment in which the piece begins.
    pub(crate) fragment: usize,
    /// Offset in this fragment.
    pub(crate) skip: u64,
}

/// Iterator over the pieces of a range of a message.
#[derive(Clone, Debug)]
pub(crate) struct Pieces<'a> {
    /// Bytes of each local fragment.
    local: &'a [u64],
    remote: &'a [Descriptor],
    from: u64,
    to: u64,
    segments: usize,
}

impl<'a> Pieces<'a> {
    /// Divides the bytes from `from` to `to`, with at most `segments` local fragments each.
    pub(crate) const fn new(
        local: &'a [u64],
        remote: &'a [Descriptor],
        from: u64,
        to: u64,
        segments: usize,
    ) -> Self {
        Self {
            local,
            remote,
            from,
            to,
            segments,
        }
    }
}

/// Finds the fragment that has the byte at `offset`. Returns its index and the offset in it.
fn find(lengths: impl Iterator<Item = u64>, mut offset: u64) -> Option<(usize, u64)> {
    for (index, length) in lengths.enumerate() {
        match offset.checked_sub(length) {
            Some(rest) => offset = rest,
            None => return Some((index, offset)),
        }
    }
    None
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let left = self.to.checked_sub(self.from).filter(|left| *left > 0)?;
        let (fragment, skip) = find(self.local.iter().copied(), self.from)?;
        let lengths = self.remote.iter().map(|remote| remote.length.into());
        let (remote, inside) = find(lengths, self.from)?;
        let remote = self.remote.get(remote)?;
        let held = self.local.get(fragment..)?.iter().take(self.segments);
        let held = held
            .fold(0_u64, |sum, length| sum.saturating_add(*length))
            .saturating_sub(skip);
        let at_peer = u64::from(remote.length).saturating_sub(inside);
        let length = u32::try_from(left.min(held).min(at_peer)).ok()?;
        let piece = Piece {
            offset: self.from,
            length,
            address: remote.address.checked_add(inside)?,
            context: remote.context,
            fragment,
            skip,
        };
        self.from = self.from.checked_add(length.into())?;
        (length > 0).then_some(piece)
    }
}
