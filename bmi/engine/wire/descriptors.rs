// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Descriptors of memory in the body of RTS and CTS.
//!
//! A body is a list of entries of 16 bytes. Without [`GROUPS`](super::GROUPS), each is a
//! descriptor, and they are for all rails. Otherwise each device of the sender has a group: an
//! entry with its rails and the number of descriptors, and then these. A rail is in one group at
//! most.

use super::{
    super::{
        devices::Rails,
        pieces::Descriptor, //
    },
    at,
    put,
    Header,
    HEADER, //
};

/// Bytes of an entry.
const ENTRY: usize = 16;

/// Returns the number of entries that a message of so many bytes can have.
pub(crate) fn entry_limit(message: u32) -> u16 {
    let message = usize::try_from(message).unwrap_or(0);
    u16::try_from(message.saturating_sub(HEADER) / ENTRY).unwrap_or(u16::MAX)
}

/// Converts a descriptor to bytes.
pub(crate) fn encode_descriptor(descriptor: Descriptor) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    put(&mut bytes, 0, descriptor.address.to_le_bytes());
    put(&mut bytes, 8, descriptor.length.to_le_bytes());
    put(&mut bytes, 12, descriptor.context.to_le_bytes());
    bytes
}

/// Converts the start of a group with so many descriptors to bytes.
pub(crate) fn encode_group(rails: Rails, count: u16) -> [u8; ENTRY] {
    let mut bytes = [0; ENTRY];
    put(&mut bytes, 0, [rails.bits()]);
    // Byte 1 and those after the count are reserved.
    put(&mut bytes, 2, count.to_le_bytes());
    bytes
}

/// Returns the rails and the number of descriptors of a group.
fn decode_group(bytes: &[u8]) -> Option<(Rails, u16)> {
    let [rails] = at(bytes, 0)?;
    let count = u16::from_le_bytes(at(bytes, 2)?);
    Some((Rails::from_bits(rails)?, count))
}

fn decode_descriptor(bytes: &[u8], rails: Rails) -> Option<Descriptor> {
    Some(Descriptor {
        address: u64::from_le_bytes(at(bytes, 0)?),
        length: u32::from_le_bytes(at(bytes, 8)?),
        context: u32::from_le_bytes(at(bytes, 12)?),
        rails,
    })
}

/// Returns the descriptors of a body, which names their rails or not.
pub(crate) fn descriptors(body: &[u8], named: bool) -> impl Iterator<Item = Descriptor> + '_ {
    let mut rails = Rails::ALL;
    // Descriptors that are left of the group.
    let mut left = 0_u16;
    body.chunks_exact(ENTRY).filter_map(move |entry| {
        if named && left == 0 {
            (rails, left) = decode_group(entry)?;
            return None;
        }
        left = left.saturating_sub(1);
        decode_descriptor(entry, rails)
    })
}

impl Header {
    /// Returns whether a body has the entries of the header, and each list of descriptors the bytes
    /// of the message.
    pub(super) fn describes(&self, body: &[u8]) -> bool {
        let size = usize::from(self.descriptors).checked_mul(ENTRY);
        let lists = match self.names_rails() {
            true => self.has_groups(body),
            false => self.is_described_by(body),
        };
        size == Some(body.len()) && lists
    }

    fn is_described_by(&self, list: &[u8]) -> bool {
        let sum = descriptors(list, false).try_fold(0_u64, |sum, descriptor| {
            sum.checked_add(descriptor.length.into())
        });
        sum == Some(self.length)
    }

    /// Returns whether a body has groups, with different rails.
    fn has_groups(&self, body: &[u8]) -> bool {
        let (mut rest, mut earlier) = (body, Rails::NONE);
        while let Some((group, after)) = rest.split_at_checked(ENTRY) {
            let Some((rails, count)) = decode_group(group) else {
                return false;
            };
            let bytes = usize::from(count).saturating_mul(ENTRY);
            let Some((list, after)) = after.split_at_checked(bytes) else {
                return false;
            };
            let valid = !rails.is_empty() && rails.and(earlier).is_empty();
            if !valid || !self.is_described_by(list) {
                return false;
            }
            (rest, earlier) = (after, earlier.or(rails));
        }
        rest.is_empty() && !earlier.is_empty()
    }
}
