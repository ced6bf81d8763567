// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//! A peer over iWARP that is a TCP socket of this program. It accepts a connection, and may send at
//! any time. With verbs, an accepting peer may send only after it has received a message.
//!
//! MPA frames the messages (RFC 5044, and RFC 6581 for the handshake), DDP numbers them (RFC 5041),
//! and RDMAP names their operation (RFC 5040). There are no markers and no checksums: siw requests
//! neither.

use anyhow::{ensure, Context as _, Result};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

const REQUEST: &[u8; 16] = b"MPA ID Req Frame";
const REPLY: &[u8; 16] = b"MPA ID Rep Frame";
/// Revision 2, with the numbers of RDMA reads.
const ENHANCED: u16 = 0x1002;
/// The last segment of an untagged message; version 1 of DDP and of RDMAP; a send.
const SEND: u16 = 0x4143;
/// Bytes of the header of an untagged segment, without the length that precedes it.
const HEADER: u16 = 18;
/// Longest time until the request of the other side.
const SILENCE: Duration = Duration::from_secs(60);
/// Bytes of a message.
pub const MESSAGE: usize = 4;

/// Waits until the other side has ended the connection.
fn await_end(stream: &mut TcpStream) -> Result<()> {
    match std::io::copy(stream, &mut std::io::sink()) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => Err(error.into()),
        _ => Ok(()),
    }
}

/// The accepting side of a connection, before it has answered the request.
pub struct IwarpCallee {
    stream: TcpStream,
    /// Numbers of RDMA reads that the caller answers, and that it sends.
    depths: [u8; 4],
}

impl IwarpCallee {
    /// Takes the next connection, and reads its request.
    pub fn new(listener: &TcpListener) -> Result<Self> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(SILENCE))?;
        let mut request = [0; 20];
        stream.read_exact(&mut request)?;
        ensure!(request.starts_with(REQUEST), "{request:?} is no request");
        let mut data = vec![0; usize::from(u16::from_be_bytes([request[18], request[19]]))];
        stream.read_exact(&mut data)?;
        let depths = *data.first_chunk().context("the request has no numbers of RDMA reads")?;
        Ok(Self { stream, depths })
    }

    /// Waits until the other side has given up.
    pub fn await_end(&mut self) -> Result<()> {
        await_end(&mut self.stream)
    }

    /// Accepts the request.
    pub fn accept(mut self) -> Result<IwarpPeer> {
        let [incoming @ .., _, _] = self.depths;
        let [_, _, outgoing @ ..] = self.depths;
        let mut reply = REPLY.to_vec();
        reply.extend(ENHANCED.to_be_bytes());
        reply.extend(4_u16.to_be_bytes());
        reply.extend(outgoing);
        reply.extend(incoming);
        self.stream.write_all(&reply)?;
        Ok(IwarpPeer { stream: self.stream, sent: 0 })
    }
}

/// The accepting side of a connection.
pub struct IwarpPeer {
    stream: TcpStream,
    sent: u32,
}

impl IwarpPeer {
    /// Takes the next connection, and accepts its request.
    pub fn accept(listener: &TcpListener) -> Result<Self> {
        IwarpCallee::new(listener)?.accept()
    }

    /// Sends `count` messages. Each contains the number of messages so far, in native byte order.
    ///
    /// The other side must have read the reply before: siw fails if data directly follows the
    /// reply.
    pub fn send(&mut self, count: u32) -> Result<()> {
        let mut frames = Vec::new();
        for _ in 0..count {
            self.sent += 1;
            frames.extend((HEADER + MESSAGE as u16).to_be_bytes());
            frames.extend(SEND.to_be_bytes());
            // Reserved, the queue of sends, the number of the message, and the offset in it.
            for word in [0, 0, self.sent, 0] {
                frames.extend(u32::to_be_bytes(word));
            }
            frames.extend(self.sent.to_ne_bytes());
            // No padding is needed; no checksum.
            frames.extend([0; 4]);
        }
        Ok(self.stream.write_all(&frames)?)
    }

    /// Waits until the other side has ended the connection.
    pub fn await_end(&mut self) -> Result<()> {
        await_end(&mut self.stream)
    }

    /// Ends the connection after the sent messages.
    pub fn hang_up(&self) -> Result<()> {
        Ok(self.stream.shutdown(Shutdown::Write)?)
    }
}
