// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Private data of a connection request and of its acceptance.
//!
//! Both sides send the same 48 bytes. InfiniBand and RoCE pad private data with zeros, so bytes
//! after the length are ignored. A later version may have more bytes.

use super::super::{
    credit::Window,
    error::Error, //
};
use super::{
    at,
    put,
    HEADER, //
};

/// Bytes of a hello.
pub(crate) const HELLO: usize = 48;

/// Version of the protocol. A side with another one is refused.
pub(crate) const VERSION: u8 = 1;

/// Feature: this side can read the memory of an offer, and offers memory.
pub(crate) const FEATURE_PULL: u32 = 1;

/// Feature: this side takes descriptors that name their rails, so the rails of a session may be on
/// several devices of the peer.
pub(crate) const FEATURE_DEVICES: u32 = 2;

const MAGIC: [u8; 4] = *b"KBMI";

/// Bytes of a rejection.
pub(crate) const REJECTION: usize = 8;

/// Returns the private data of a rejection, which has the version of this side.
pub(crate) fn rejection() -> [u8; REJECTION] {
    let mut bytes = [0; REJECTION];
    put(&mut bytes, 0, MAGIC);
    put(&mut bytes, 4, [VERSION, REJECTION as u8]);
    bytes
}

/// Returns the reason of a rejection with these private data.
pub(crate) fn reason_of(rejection: &[u8]) -> Error {
    match (at(rejection, 0), at(rejection, 4)) {
        (Some(MAGIC), Some([version])) if version != VERSION => Error::Version,
        _ => Error::Refused,
    }
}

/// Private data of a connect or an accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// Features. Those that both sides have are used.
    pub(crate) features: u32,
    /// Bytes of the largest message that this side can take.
    pub(crate) message: u32,
    /// Receives that this side posts for each rail.
    pub(crate) window: Window,
    /// Rails that this side wants. The smaller number is used.
    pub(crate) rails: u8,
    /// Number of this rail. Rail 0 begins a session, and the others join it.
    pub(crate) rail: u8,
    /// Identity of this side, which changes when it restarts.
    pub(crate) instance: u64,
    /// Number of the session, random, from the side that accepts. 0 in the request of rail 0.
    pub(crate) session: u64,
    /// Peer in the table of the side that accepts: a later request names it, to join its session or
    /// to connect to it again. 0 in the first request.
    pub(crate) peer: u64,
}

impl Hello {
    /// Converts the hello to bytes.
    pub(crate) fn encode(&self) -> [u8; HELLO] {
        let mut bytes = [0; HELLO];
        put(&mut bytes, 0, MAGIC);
        put(&mut bytes, 4, [VERSION, HELLO as u8, self.rails, self.rail]);
        put(&mut bytes, 8, self.features.to_le_bytes());
        put(&mut bytes, 12, self.message.to_le_bytes());
        put(&mut bytes, 16, self.window.data.to_le_bytes());
        put(&mut bytes, 18, self.window.control.to_le_bytes());
        // Bytes 20 to 23 are reserved.
        put(&mut bytes, 24, self.instance.to_le_bytes());
        put(&mut bytes, 32, self.session.to_le_bytes());
        put(&mut bytes, 40, self.peer.to_le_bytes());
        bytes
    }

    /// Converts private data. Data of another version are [`Error::Version`], other data
    /// [`Error::Protocol`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let start: [u8; 8] = at(bytes, 0).ok_or(Error::Protocol)?;
        let [m0, m1, m2, m3, version, length, rails, rail] = start;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Error::Protocol);
        }
        if version != VERSION {
            return Err(Error::Version);
        }
        let hello = Self::parse(bytes, rails, rail).ok_or(Error::Protocol)?;
        let valid = usize::from(length) >= HELLO && hello.is_valid();
        valid.then_some(hello).ok_or(Error::Protocol)
    }

    fn parse(bytes: &[u8], rails: u8, rail: u8) -> Option<Self> {
        Some(Self {
            features: u32::from_le_bytes(at(bytes, 8)?),
            message: u32::from_le_bytes(at(bytes, 12)?),
            window: Window {
                data: u16::from_le_bytes(at(bytes, 16)?),
                control: u16::from_le_bytes(at(bytes, 18)?),
            },
            rails,
            rail,
            instance: u64::from_le_bytes(at(bytes, 24)?),
            session: u64::from_le_bytes(at(bytes, 32)?),
            peer: u64::from_le_bytes(at(bytes, 40)?),
        })
    }

    /// Returns whether the rails of a session with this side may be on several devices.
    pub(crate) const fn knows_devices(&self) -> bool {
        self.features & FEATURE_DEVICES != 0
    }

    /// Returns whether messages can flow with these numbers.
    fn is_valid(&self) -> bool {
        usize::try_from(self.message).is_ok_and(|message| message >= 2 * HEADER)
            && self.window.data > 0
            && self.window.control >= Window::MIN_CONTROL
            && self.rail < self.rails
    }
}
