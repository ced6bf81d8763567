// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! Protocol between client and server: a request in the private data of the connect, an offer in
//! the private data of the accept, and commands in messages. All numbers are little-endian.

use anyhow::{bail, ensure, Result};
use libkdapl::Segment;

const MAGIC: u32 = u32::from_le_bytes(*b"kdTE");
const VERSION: u16 = 3;

/// Size of a request in bytes. Every transport carries at least 56 bytes of private data.
pub const REQUEST_BYTES: usize = 36;

/// Service that the client requests from the server on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Send every message back.
    Echo,
    /// Receive messages, and report their number regularly, so that the client can continue, and
    /// after the farewell. Then compare the data in the receives and report [`RIGHT`] or [`WRONG`].
    Sink,
    /// Execute [`Command`]s and offer memory.
    Serve,
    /// Like [`Mode::Echo`], on one of many short connections that share queues and memory.
    Connect,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Echo => "echo",
            Self::Sink => "sink",
            Self::Serve => "serve",
            Self::Connect => "connect",
        }
    }
}

/// Request, sent with the connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub mode: Mode,
    /// Dequeue in a loop instead of waiting.
    pub poll: bool,
    /// Number of receives that the server posts.
    pub depth: u32,
    /// Maximum size of a message in bytes.
    pub message_size: u32,
    /// Size of the memory to offer in bytes.
    pub region_size: u32,
    /// Maximum random pause before a reply in microseconds.
    pub pause_us: u32,
    /// Identifier of the client, the same for all of its connections; in [`Mode::Sink`] the seed of
    /// the messages' pattern.
    pub run: u64,
    /// Number of connections of the client.
    pub connections: u32,
}

impl Request {
    pub fn encode(&self) -> [u8; REQUEST_BYTES] {
        let mut out = Writer::default();
        out.u32(MAGIC).u16(VERSION).u8(self.mode as u8).u8(self.poll.into());
        out.u32(self.depth).u32(self.message_size).u32(self.region_size).u32(self.pause_us);
        out.u64(self.run).u32(self.connections);
        out.array()
    }

    /// # Errors
    /// A text for the client that fits into the private data of a reject.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Reader(bytes);
        ensure!(input.u32()? == MAGIC, "the client is not kdapltest");
        let version = input.u16()?;
        ensure!(version == VERSION, "the client uses protocol {version}, the server {VERSION}");
        let mode = match input.u8()? {
            0 => Mode::Echo,
            1 => Mode::Sink,
            2 => Mode::Serve,
            3 => Mode::Connect,
            other => bail!("unknown mode {other}"),
        };
        Ok(Self {
            mode,
            poll: input.u8()? != 0,
            depth: input.u32()?,
            message_size: input.u32()?,
            region_size: input.u32()?,
            pause_us: input.u32()?,
            run: input.u64()?,
            connections: input.u32()?,
        })
    }
}

/// Cookie of the farewell, a message of no bytes. A client sends it when it has finished. A
/// connection that ends without it was lost; [`Mode::Connect`] has none.
pub const FAREWELL: u64 = u64::MAX;

/// [`Mode::Sink`]: result of the comparison, in place of a number of messages.
pub const RIGHT: u64 = u64::MAX;
pub const WRONG: u64 = u64::MAX - 1;

/// Size of an offer in bytes.
pub const OFFER_BYTES: usize = 24;

/// Encodes an offer, the server's memory. It is sent with the accept.
pub fn encode_offer(memory: Segment) -> [u8; OFFER_BYTES] {
    let mut out = Writer::default();
    out.u32(MAGIC).u16(VERSION).u16(0);
    out.u64(memory.address).u32(memory.length).u32(memory.context);
    out.array()
}

pub fn decode_offer(bytes: &[u8]) -> Result<Segment> {
    let mut input = Reader(bytes);
    ensure!(input.u32()? == MAGIC, "the server is not kdapltest");
    let version = input.u16()?;
    ensure!(version == VERSION, "the server uses protocol {version}, this client {VERSION}");
    input.u16()?;
    Ok(Segment { address: input.u64()?, length: input.u32()?, context: input.u32()? })
}

/// Size of a command or of its reply in bytes, without the payload.
pub const COMMAND_BYTES: usize = 32;

/// Command of a message in [`Mode::Serve`], and its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Check the payload, and reply with the pattern of `seed + 1` of the same length.
    Echo,
    /// Check the offered memory.
    Verify,
    /// Fill the offered memory.
    Fill,
    /// Reply: no error.
    Done,
    /// Reply: the byte at `offset` is wrong.
    Wrong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    pub verb: Verb,
    pub seed: u64,
    pub offset: u64,
    pub length: u64,
}

impl Command {
    pub fn encode(&self) -> [u8; COMMAND_BYTES] {
        let mut out = Writer::default();
        out.u32(MAGIC).u32(self.verb as u32).u64(self.seed).u64(self.offset).u64(self.length);
        out.array()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut input = Reader(bytes);
        ensure!(input.u32()? == MAGIC, "the message does not start with a command");
        let verb = match input.u32()? {
            0 => Verb::Echo,
            1 => Verb::Verify,
            2 => Verb::Fill,
            3 => Verb::Done,
            4 => Verb::Wrong,
            other => bail!("unknown command {other}"),
        };
        Ok(Self { verb, seed: input.u64()?, offset: input.u64()?, length: input.u64()? })
    }
}

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    fn array<const N: usize>(&self) -> [u8; N] {
        self.0.as_slice().try_into().expect("each encode writes as many bytes as its constant")
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((head, rest)) = self.0.split_first_chunk() else {
            bail!("the message is too short");
        };
        self.0 = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_way() {
        let request = Request {
            mode: Mode::Sink,
            poll: true,
            depth: 1,
            message_size: 2,
            region_size: 3,
            pause_us: 4,
            run: 5,
            connections: 6,
        };
        // The transport pads private data with zeros.
        let mut padded = request.encode().to_vec();
        padded.resize(56, 0);
        assert_eq!(Request::decode(&padded).unwrap(), request);
        let command = Command { verb: Verb::Fill, seed: 1, offset: 2, length: 3 };
        assert_eq!(Command::decode(&command.encode()).unwrap(), command);
        assert!(Request::decode(&padded[..30]).is_err());
        assert!(Request::decode(b"GET / HTTP/1.1").is_err());
    }
}
