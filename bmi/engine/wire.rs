// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Format of messages, version 1. `docs/bmi.md` has the tables.
//!
//! A message is a header of 48 bytes and a body: the payload of an eager message, or descriptors of
//! memory. Numbers are little-endian. The decoder accepts a message only if its lengths agree, so
//! the engine relies on them.

mod descriptors;
mod hello;

pub(crate) use self::{
    descriptors::{
        descriptors,
        encode_descriptor,
        encode_group,
        entry_limit, //
    },
    hello::{
        reason_of,
        rejection,
        Hello,
        FEATURE_DEVICES,
        FEATURE_PULL, //
    },
};
use super::{
    credit::{
        Class,
        Window, //
    },
    error::Error, //
};

/// Bytes of a header.
pub(crate) const HEADER: usize = 48;

/// Flag of DONE: the transfer ended early, and some bytes of the range were not written.
pub(crate) const ABORTED: u8 = 1;

/// Flag of RTS and CTS: the body has groups of descriptors, each of which names its rails.
pub(crate) const GROUPS: u8 = 2;

/// Type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A message with its payload.
    Eager,
    /// The same, for which no receive is posted.
    Unexpected,
    /// Offers a message (request to send). With descriptors, the receiver reads it.
    Rts,
    /// Names the memory for an offered message (clear to send).
    Cts,
    /// The bytes of a range are in their place, or were read.
    Done,
    /// The receiver does not take the message, or no longer.
    Refuse,
    /// The sender withdraws its offer.
    Cancel,
    /// Returns credits.
    Credit,
    /// Asks for a CREDIT.
    Ping,
    /// Asks to end an idle connection.
    Bye,
    /// Agrees to end it.
    Leave,
    /// Keeps it.
    Stay,
}

impl Kind {
    /// All types, in the order of their numbers, which begin with 1.
    pub(crate) const ALL: [Self; 12] = [
        Self::Eager,
        Self::Unexpected,
        Self::Rts,
        Self::Cts,
        Self::Done,
        Self::Refuse,
        Self::Cancel,
        Self::Credit,
        Self::Ping,
        Self::Bye,
        Self::Leave,
        Self::Stay,
    ];

    /// Returns the class.
    pub(crate) const fn class(self) -> Class {
        match self {
            Self::Eager | Self::Unexpected | Self::Rts => Class::Data,
            _ => Class::Control,
        }
    }

    /// Returns whether it answers BYE.
    pub(crate) const fn answers_bye(self) -> bool {
        matches!(self, Self::Leave | Self::Stay)
    }

    fn number(self) -> u8 {
        let index = Self::ALL.iter().position(|kind| *kind == self);
        index
            .and_then(|index| u8::try_from(index).ok())
            .map_or(0, |index| index.wrapping_add(1))
    }

    fn from_number(number: u8) -> Option<Self> {
        let index = usize::from(number).checked_sub(1)?;
        Self::ALL.get(index).copied()
    }
}

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Type.
    pub(crate) kind: Kind,
    /// [`ABORTED`], [`GROUPS`] or 0.
    pub(crate) flags: u8,
    /// Credits that the message returns.
    pub(crate) returned: Window,
    /// Number of entries in the body: descriptors and groups.
    pub(crate) descriptors: u16,
    /// Position in the order of all messages of the connection, over all rails.
    pub(crate) sequence: u32,
    /// Tag of the consumer. For REFUSE: the reason, an error number of Linux.
    pub(crate) tag: i32,
    /// Bytes of the message of the consumer. For DONE: bytes of the range.
    pub(crate) length: u64,
    /// Operation of the side that sends this message.
    pub(crate) operation: u64,
    /// Operation of the other side.
    pub(crate) peers_operation: u64,
    /// For DONE: start of the range.
    pub(crate) offset: u64,
}

impl Header {
    /// Creates a header whose other fields are 0.
    pub(crate) const fn new(kind: Kind) -> Self {
        Self {
            kind,
            flags: 0,
            returned: Window {
                data: 0,
                control: 0,
            },
            descriptors: 0,
            sequence: 0,
            tag: 0,
            length: 0,
            operation: 0,
            peers_operation: 0,
            offset: 0,
        }
    }

    /// Converts the header to bytes.
    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        put(&mut bytes, 0, [self.kind.number(), self.flags]);
        put(&mut bytes, 2, self.returned.data.to_le_bytes());
        put(&mut bytes, 4, self.returned.control.to_le_bytes());
        put(&mut bytes, 6, self.descriptors.to_le_bytes());
        put(&mut bytes, 8, self.sequence.to_le_bytes());
        put(&mut bytes, 12, self.tag.to_le_bytes());
        put(&mut bytes, 16, self.length.to_le_bytes());
        put(&mut bytes, 24, self.operation.to_le_bytes());
        put(&mut bytes, 32, self.peers_operation.to_le_bytes());
        put(&mut bytes, 40, self.offset.to_le_bytes());
        bytes
    }

    /// Converts the bytes of a message, and checks its lengths. The error is always
    /// [`Error::Protocol`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let header = Self::parse(bytes).ok_or(Error::Protocol)?;
        let body = bytes.get(HEADER..).unwrap_or_default();
        let valid = match header.kind {
            Kind::Eager | Kind::Unexpected => {
                header.descriptors == 0 && u64::try_from(body.len()) == Ok(header.length)
            }
            Kind::Rts if header.descriptors == 0 => body.is_empty(),
            Kind::Rts | Kind::Cts if header.describes(body) => return Ok(header),
            _ => header.descriptors == 0 && body.is_empty(),
        };
        let valid = valid && !header.names_rails();
        valid.then_some(header).ok_or(Error::Protocol)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let [kind, flags] = at(bytes, 0)?;
        let returned = Window {
            data: u16::from_le_bytes(at(bytes, 2)?),
            control: u16::from_le_bytes(at(bytes, 4)?),
        };
        Some(Self {
            kind: Kind::from_number(kind)?,
            flags: (flags & !(ABORTED | GROUPS) == 0).then_some(flags)?,
            returned,
            descriptors: u16::from_le_bytes(at(bytes, 6)?),
            sequence: u32::from_le_bytes(at(bytes, 8)?),
            tag: i32::from_le_bytes(at(bytes, 12)?),
            length: u64::from_le_bytes(at(bytes, 16)?),
            operation: u64::from_le_bytes(at(bytes, 24)?),
            peers_operation: u64::from_le_bytes(at(bytes, 32)?),
            offset: u64::from_le_bytes(at(bytes, 40)?),
        })
    }

    /// Returns whether the descriptors of the message name their rails.
    pub(crate) const fn names_rails(&self) -> bool {
        self.flags & GROUPS != 0
    }
}

/// Returns the bytes at an offset; `None` beyond the end.
fn at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..)?.first_chunk().copied()
}

/// Stores bytes at an offset. Bytes beyond the end are left out.
fn put<const N: usize>(bytes: &mut [u8], offset: usize, number: [u8; N]) {
    let place = bytes
        .get_mut(offset..)
        .and_then(|rest| rest.first_chunk_mut());
    if let Some(place) = place {
        *place = number;
    }
}
