// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Messages between client and server.
//!
//! A client begins with a request, an unexpected message. The server answers with an empty message
//! when its receives are posted, or with the text of an error. Then come messages with data.

use anyhow::{ensure, Result};

/// Tag of a request and of its answer.
pub const REQUEST: i32 = 0;
/// Tag of data to the server.
pub const TO_SERVER: i32 = 1;
/// Tag of data from the server.
pub const FROM_SERVER: i32 = 2;
/// Tag of the last message of a service: all data have arrived.
pub const COMPLETE: i32 = 3;

/// Bytes of the longest text of an error.
pub const TEXT: usize = 256;

/// First bytes of a request.
const MAGIC: [u8; 8] = *b"KDAPLBM1";

/// Messages in flight of a client at most.
pub const DEPTH: u32 = 128;

/// Bytes that a server allocates for a client at most.
const MEMORY: u64 = 256 << 20;

/// Work of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Returns each message.
    Echo,
    /// Receives messages.
    Sink,
    /// Sends messages.
    Source,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Echo, Self::Sink, Self::Source];

    /// Returns the name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "returned",
            Self::Sink => "received",
            Self::Source => "sent",
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: Kind,
    /// Messages in flight.
    pub depth: u32,
    /// Bytes of each message.
    pub size: u32,
    /// Number of messages; 0 if the end of the connection is the end.
    pub count: u64,
}

impl Request {
    /// Bytes of an encoded request.
    pub const LENGTH: usize = 32;

    /// Converts the request to bytes.
    pub fn encode(&self) -> Vec<u8> {
        let kind = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
        let mut bytes = MAGIC.to_vec();
        bytes.extend((kind as u32).to_le_bytes());
        bytes.extend(self.depth.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.count.to_le_bytes());
        bytes
    }

    /// Converts bytes of a client, and checks them.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        ensure!(bytes.len() == Self::LENGTH, "a request has {} bytes", Self::LENGTH);
        ensure!(bytes.starts_with(&MAGIC), "the request is none of kdapl-bmi");
        let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let count = bytes[24..].try_into().map_or(0, u64::from_le_bytes);
        let kind = Kind::ALL.get(word(8) as usize).copied();
        ensure!(kind.is_some(), "the server does not know the test {}", word(8));
        let (depth, size) = (word(12), word(16));
        ensure!((1..=DEPTH).contains(&depth), "the server has at most {DEPTH} messages in flight");
        let fits = size > 0 && u64::from(depth) * u64::from(size) <= MEMORY;
        ensure!(fits, "the server allocates at most 256 MiB for a client");
        Ok(Self { kind: kind.unwrap_or(Kind::Echo), depth, size, count })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Request};

    #[test]
    fn requests_are_decoded() {
        let request = Request { kind: Kind::Source, depth: 8, size: 1 << 20, count: 1000 };
        assert_eq!(Request::decode(&request.encode()).unwrap(), request);
    }

    #[test]
    fn requests_that_are_refused() {
        let good = Request { kind: Kind::Echo, depth: 1, size: 1, count: 1 };
        for (request, text) in [
            (Request { depth: 0, ..good }.encode(), "at most 128 messages"),
            (Request { depth: 129, ..good }.encode(), "at most 128 messages"),
            (Request { size: 0, ..good }.encode(), "at most 256 MiB"),
            (Request { depth: 100, size: 4 << 20, ..good }.encode(), "at most 256 MiB"),
            (good.encode()[1..].to_vec(), "32 bytes"),
            (vec![b'x'; 32], "none of kdapl-bmi"),
        ] {
            let error = Request::decode(&request).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
        let mut unknown = good.encode();
        unknown[8] = 9;
        assert!(Request::decode(&unknown).unwrap_err().to_string().contains("test 9"));
    }
}
