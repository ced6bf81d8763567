// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Division of an operation's memory for binds of RMRs.

use super::{
    error::Error,
    home::{
        Rdma,
        Wanted, //
    },
};

/// Parts of a send's memory up to which the receiver is asked to read them. Of more, the sender
/// writes them: it needs no bind for that.
const READ: u16 = 4;

/// Memory of one bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BindRange {
    /// Number of the fragment.
    pub(crate) fragment: usize,
    /// Offset in the fragment.
    pub(crate) offset: usize,
    /// Bytes.
    pub(crate) length: usize,
}

impl Wanted {
    /// Returns the largest number of binds that are worth their time.
    pub(crate) fn most_binds(&self) -> usize {
        let most = match self.rdma {
            Rdma::Read => self.descriptors.min(READ),
            Rdma::Write => self.descriptors,
        };
        most.into()
    }

    /// Returns why contiguous memory cannot be bound: the message is longer than all binds, or
    /// there is no memory.
    pub(crate) fn refusal(&self, longest: usize) -> Error {
        let most = self.most_binds().saturating_mul(longest);
        match usize::try_from(self.length).is_ok_and(|length| length <= most) {
            true => Error::NoMemory,
            false => Error::TooLong,
        }
    }

    /// Divides the bytes of the message, in fragments of these lengths, into ranges of at most
    /// `longest` bytes, which is not 0.
    pub(crate) fn divide(
        &self,
        lengths: impl Iterator<Item = usize>,
        longest: usize,
    ) -> impl Iterator<Item = BindRange> {
        let message = usize::try_from(self.length).unwrap_or(usize::MAX);
        let used = lengths.scan(message, |left, length| {
            let end = length.min(*left);
            *left = left.saturating_sub(end);
            Some(end)
        });
        used.enumerate().flat_map(move |(fragment, end)| {
            (0..end).step_by(longest).map(move |offset| BindRange {
                fragment,
                offset,
                length: end.saturating_sub(offset).min(longest),
            })
        })
    }
}
