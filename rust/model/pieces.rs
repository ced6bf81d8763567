// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Memory that consists of pieces, which follow each other in it but lie anywhere.

/// Ends of the pieces of a memory, as offsets in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ends<'a> {
    /// The first piece has `first` bytes, and each other one `size`.
    Regular { first: u64, size: u64 },
    /// One end for each piece, in ascending order.
    Listed(&'a [u64]),
}

/// Position of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Index of the piece.
    pub(crate) piece: usize,
    /// Offset in the piece.
    pub(crate) into: u64,
    /// Number of bytes from the offset to the end of the piece.
    pub(crate) left: u64,
}

impl Ends<'_> {
    /// Returns the position of an offset, or `None` beyond the end of listed pieces. Regular pieces
    /// have no end.
    pub(crate) fn position(self, offset: u64) -> Option<Position> {
        match self {
            Self::Regular { first, size } => regular_position(first, size, offset),
            Self::Listed(ends) => listed_position(ends, offset),
        }
    }
}

fn regular_position(first: u64, size: u64, offset: u64) -> Option<Position> {
    let Some(beyond) = offset.checked_sub(first) else {
        return Some(Position {
            piece: 0,
            into: offset,
            left: first.checked_sub(offset)?,
        });
    };
    let into = beyond.checked_rem(size)?;
    Some(Position {
        piece: usize::try_from(beyond.checked_div(size)?)
            .ok()?
            .checked_add(1)?,
        into,
        left: size.checked_sub(into)?,
    })
}

fn listed_position(ends: &[u64], offset: u64) -> Option<Position> {
    let piece = ends.partition_point(|end| *end <= offset);
    let start = match piece.checked_sub(1) {
        Some(before) => *ends.get(before)?,
        None => 0,
    };
    Some(Position {
        piece,
        into: offset.checked_sub(start)?,
        left: ends.get(piece)?.checked_sub(offset)?,
    })
}
